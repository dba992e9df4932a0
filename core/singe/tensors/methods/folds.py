"""Methods that fold axes: sums, extremes and their places, running sums, norms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import COMPLEX, bool_, float32, uint8
from ...errors import InputError, ShapeError
from ...ops import ROWS
from ...shapes import Size, axis_of, product, show
from ..arithmetic import compute
from ..calls import apply_row
from ..nodes import shaping
from ..nodes.shaping import Axis
from ..numpy_fallback import numpy_fallback
from ..tensor import Tensor, TensorLike, apply
from .attach import method
from .sorting import Ordered


@method
def amax(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes."""
    return _extreme(_some(x, axis, "amax"), "reduce_max", axis, keepdims)


@method
def amin(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The least element over axes."""
    return _extreme(_some(x, axis, "amin"), "reduce_min", axis, keepdims)


@method
def max(x: Tensor, axis: int | Tensor | np.ndarray | None = None, keepdims: bool = False) -> Any:
    """The largest element; along an axis, the largest elements and their indices (`amax` gives the elements alone); beside
    another tensor, the larger one of each pair."""
    return _most(x, "max", axis, keepdims)


@method
def min(x: Tensor, axis: int | Tensor | np.ndarray | None = None, keepdims: bool = False) -> Any:
    """The least element; along an axis, or beside another tensor, as `max`."""
    return _most(x, "min", axis, keepdims)


def _most(x: Tensor, name: str, axis: Any, keepdims: bool) -> Any:
    if isinstance(axis, (Tensor, np.ndarray)):
        return compute(f"{name}imum", x, axis)
    if axis is not None and not isinstance(axis, (int, np.integer)):
        raise InputError(f"{name}: got the axes {axis!r}, expected one, along which there are indices; use a{name}")
    values = getattr(x, f"a{name}")(axis, keepdims)
    return values if axis is None else Ordered(values, getattr(x, f"arg{name}")(axis, keepdims))


class Extremes(NamedTuple):
    """The least and the largest elements."""

    min: Tensor
    max: Tensor


@method
def aminmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Extremes:
    """The least and the largest element, of all or along an axis."""
    return Extremes(x.amin(axis, keepdims), x.amax(axis, keepdims))


@method
def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element along an axis (the first, if several are equal), as int64;
    without an axis, the index in the flat tensor."""
    return _place_of(_some(x, axis, "argmax"), "argmax", axis, keepdims)


@method
def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the least element, as `argmax` gives that of the largest."""
    return _place_of(_some(x, axis, "argmin"), "argmin", axis, keepdims)


def _some(x: Tensor, axis: Axis, what: str) -> Tensor:
    """x, which has elements along these axes as far as that is known."""
    empty = [a for a in shaping.chosen_axes(axis, x.ndim, what) if isinstance(x.shape[a], int) and x.shape[a] == 0]
    if empty:
        raise ShapeError(
            f"{what}: axis {empty[0]} of {show(x.shape)} is empty: among no elements none is an extreme; expected an axis of one or more"
        )
    return x


def _reduced(x: Tensor, row: str, axis: Axis, keepdims: bool) -> Tensor:
    axes = shaping.chosen_axes(axis, x.ndim, row.removeprefix("reduce_"))
    return folded(x, row, axes, keepdims, {"axes": axes}) if axes else x


def _extreme(x: Tensor, row: str, axis: Axis, keepdims: bool) -> Tensor:
    if x.dtype is bool_:
        return _reduced(x.cast(uint8), row, axis, keepdims).cast(bool_)
    return _reduced(x, row, axis, keepdims)


def _place_of(x: Tensor, row: str, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        place = _place_of(x.flatten(), row, 0, keepdims=False)
        return place.reshape((1,) * x.ndim) if keepdims else place
    at = axis_of(axis, x.ndim, row)
    x = x.cast(uint8) if x.dtype is bool_ else x
    return folded(x, row, (at,), keepdims, {"axis": at})


def folded(x: Tensor, row: str, axes: Sequence[int], keepdims: bool, attrs: Mapping[str, Any]) -> Tensor:
    """A row over these axes, with or without them."""

    def build(b: Any, n: Any) -> Any:
        y = getattr(b, row)(n, **attrs)
        return y if keepdims else b.reshape(y, shape=tuple(d for i, d in enumerate(n.shape) if i not in axes))

    return apply(build, x)


@method
def any(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether an element over axes is not zero."""
    return _extreme(_truth(x), "reduce_max", axis, keepdims)


@method
def all(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element over axes is zero."""
    return _extreme(_truth(x), "reduce_min", axis, keepdims)


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype is bool_ else x != 0


@method
def count_nonzero(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements over axes are not zero."""
    return _truth(x).sum(axis, keepdims)


@method
def var(x: Tensor, axis: Axis = None, correction: float = 1, keepdims: bool = False) -> Tensor:
    """The mean square of the distances from the mean over axes; the sum is divided by the count less `correction`."""
    if isinstance(axis, bool):  # PyTorch's var(unbiased)
        axis, correction = None, axis
    y = x if x.dtype.is_float else x.cast(float32)
    axes = shaping.chosen_axes(axis, x.ndim, "var")
    count = product(x.shape[a] for a in axes)
    total = (y - y.mean(axes, keepdims=True)).square().sum(axes, keepdims)
    if isinstance(count, Size):
        return total / (count - int(correction))
    least = float(count - correction)
    return total / (least if least > 0 else 0.0 if count else math.nan)


def root(x: Tensor, exponent: float = 0.5) -> Tensor:
    """Sizes, and sums of their powers, to a power. That of a root has the gradient 0 at 0: its own would be infinite, and times
    that of what is inside, 0, NaN."""
    if not 0 < exponent < 1:
        return x.pow(exponent)
    nothing = compute("equal", x, 0)
    return x.masked_fill(nothing, 1).pow(exponent).masked_fill(nothing, 0)


@method
def std(x: Tensor, axis: Axis = None, correction: float = 1, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return root(x.var(axis, correction, keepdims))


@method
def norm(x: Tensor, p: float | str = 2, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm over axes (all, if none is given). p: a number, ±inf, 0 (how many are not zero), "fro" (2), or "nuc", of
    matrices (two axes): the sum of the singular values. dtype: of the elements before."""
    x = x if dtype is None else x.cast(dtype)
    if p == "fro":
        p = 2
    if p == "nuc":
        return _nuclear(x, axis, keepdims)
    if isinstance(p, str):
        raise InputError(f"norm: got {p!r}, expected a number, 'fro' or 'nuc'")
    size = x.abs() if x.dtype.is_float or x.dtype in COMPLEX else x.cast(float32).abs()
    if math.isinf(p):
        return size.amax(axis, keepdims) if p > 0 else size.amin(axis, keepdims)
    if p == 0:
        return (size != 0).cast(size.dtype).sum(axis, keepdims)
    if p == 1:
        return size.sum(axis, keepdims)
    return root(root(size, p).sum(axis, keepdims), 1 / p)


def _nuclear(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    axes = shaping.chosen_axes(axis, x.ndim, "norm")
    if len(axes) != 2:
        raise ShapeError(
            f"norm: got p='nuc' over {len(axes)} axes of {show(x.shape)}, expected the two axes of matrices"
        )
    x = x if x.dtype.is_float or x.dtype in COMPLEX else x.cast(float32)
    return numpy_fallback("norm", np.linalg.norm, x, ord="nuc", axis=axes, keepdims=keepdims)


@method
def logsumexp(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over axes."""
    x = x if x.dtype.is_float else x.cast(float32)
    most = _reduced(x, "reduce_max", axis, keepdims=True)
    top = apply_row(ROWS["where"], (most.abs() < math.inf, most, 0.0)).detach()  # the result does not change with it
    sums = (x - top).exp().sum(axis, keepdims=True).log() + top
    axes = shaping.chosen_axes(axis, x.ndim, "logsumexp")
    return sums if keepdims else sums.reshape([d for i, d in enumerate(x.shape) if i not in axes])


# products


@method
def dot(x: Tensor, other: TensorLike) -> Tensor:
    """The product of two vectors, or matrices. For more axes NumPy's dot is not matmul, and PyTorch has none."""
    if x.ndim > 2 or np.ndim(other) > 2:
        raise ShapeError(
            f"dot: got {show(x.shape)} and {show(np.shape(other))}, expected vectors or matrices; use matmul"
        )
    return x.matmul(other)


@method
def outer(x: Tensor, other: TensorLike) -> Tensor:
    """The products of each element of a vector with each of another."""
    if x.ndim != 1 or np.ndim(other) != 1:
        raise ShapeError(f"outer: got {show(x.shape)} and {show(np.shape(other))}, expected two vectors")
    return x.unsqueeze(-1) * other


@method
def trace(x: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if x.ndim != 2:
        raise ShapeError(f"trace: got {show(x.shape)}, expected a matrix; for several use diagonal and sum")
    return x.diagonal().sum(-1)


@method
def inner(x: Tensor, other: Tensor) -> Tensor:
    """The products of all vectors along the last axis of x with those of another."""
    if not x.ndim or not other.ndim:
        return x * other
    kept = (*x.shape[:-1], *other.shape[:-1])
    return (x.reshape(-1, x.shape[-1]) @ other.reshape(-1, other.shape[-1]).T).reshape(kept)


@method
def vdot(x: Tensor, other: Tensor) -> Tensor:
    """The product of two vectors; of a complex first one, the conjugates."""
    return (x.conj() if x.dtype in COMPLEX else x).dot(other)


@method
def dist(x: Tensor, other: TensorLike, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return (x - other).norm(p)
