"""Methods that fold axes: sums, extremes and their places, running sums, norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import COMPLEX, bool_, float32, uint8
from ...errors import InputError
from ...ops import ROWS
from ...shapes import Size, axis_of, product
from .. import shaping
from ..calls import call_row
from ..host import hosted
from ..reductions import SUM_TYPES, place_of, reduced
from ..shaping import Axis
from ..tensor import Tensor, TensorLike, apply
from .attach import alias, method


@method
def sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over axes (all, if none is given); integers are summed as int64."""
    return _reduced(x.cast(SUM_TYPES.get(x.dtype, x.dtype)), "reduce_sum", axis, keepdims)


@method
def prod(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _reduced(x.cast(SUM_TYPES.get(x.dtype, x.dtype)), "reduce_prod", axis, keepdims)


@method
def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over axes; integers become float32 first."""
    return _reduced(x if x.dtype.is_float else x.cast(float32), "reduce_mean", axis, keepdims)


@method
def max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _extreme(x, "reduce_max", axis, keepdims)


@method
def min(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _extreme(x, "reduce_min", axis, keepdims)


@method
def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element along an axis (the first, if several are equal), as int64;
    without an axis, the index in the flat tensor."""
    return _place_of(x, "argmax", axis, keepdims)


@method
def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the least element, as `argmax` gives that of the largest."""
    return _place_of(x, "argmin", axis, keepdims)


def _reduced(x: Tensor, row: str, axis: Axis, keepdims: bool) -> Tensor:
    axes = shaping.chosen_axes(axis, x.ndim, row.removeprefix("reduce_"))
    return apply(lambda b, x: reduced(b, x, row, axes, keepdims), x) if axes else x


def _extreme(x: Tensor, row: str, axis: Axis, keepdims: bool) -> Tensor:
    if x.dtype is bool_:
        return _reduced(x.cast(uint8), row, axis, keepdims).cast(bool_)
    return _reduced(x, row, axis, keepdims)


def _place_of(x: Tensor, row: str, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        place = _place_of(x.flatten(), row, 0, keepdims=False)
        return place.reshape((1,) * x.ndim) if keepdims else place
    at = axis_of(axis, x.ndim, row)
    return apply(lambda b, x: place_of(b, x, row, at, keepdims), x)


@method
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x), divided by its sum along an axis."""
    return call_row(ROWS["softmax"], (x,), axis=axis)


@method
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`."""
    return call_row(ROWS["log_softmax"], (x,), axis=axis)


@method
def amax(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes."""
    return x.max(axis, keepdims)


@method
def amin(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The least element over axes."""
    return x.min(axis, keepdims)


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
    y = x if x.dtype.is_float else x.cast(float32)
    axes = shaping.chosen_axes(axis, x.ndim, "var")
    count = product(x.shape[a] for a in axes)
    total = (y - y.mean(axes, keepdims=True)).square().sum(axes, keepdims)
    if isinstance(count, Size):
        return total / (count - int(correction))
    least = float(count - correction)
    return total / (least if least > 0 else 0.0 if count else math.nan)


@method
def std(x: Tensor, axis: Axis = None, correction: float = 1, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return x.var(axis, correction, keepdims).sqrt()


@method
def norm(x: Tensor, p: float | str = 2, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The p-norm over axes (all, if none is given). p: a number, ±inf, 0 (how many are not zero), or "fro" (2)."""
    if p == "fro":
        p = 2
    if isinstance(p, str):
        raise InputError(
            f"norm: got {p!r}, expected a number or 'fro'; for the nuclear norm use linalg.svdvals and sum"
        )
    size = x.abs() if x.dtype.is_float or x.dtype in COMPLEX else x.cast(float32).abs()
    if math.isinf(p):
        return size.max(axis, keepdims) if p > 0 else size.min(axis, keepdims)
    if p == 0:
        return (size != 0).cast(size.dtype).sum(axis, keepdims)
    if p == 1:
        return size.sum(axis, keepdims)
    if p == 2:
        return (size * size).sum(axis, keepdims).sqrt()
    return size.pow(p).sum(axis, keepdims).pow(1 / p)


@method
def logsumexp(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over axes."""
    most = x.max(axis, keepdims=True)
    top = call_row(ROWS["where"], (most.abs() < math.inf, most, 0.0))
    sums = (x - top).exp().sum(axis, keepdims=True).log() + top
    return sums if keepdims else sums.reshape(x.max(axis).shape)


@method
def cumsum(x: Tensor, axis: int) -> Tensor:
    """The sum of all elements up to each one along an axis; integers are summed as int64."""
    return _running(x, axis, "running_sum", np.cumsum)


@method
def cumprod(x: Tensor, axis: int) -> Tensor:
    """The product of all elements up to each one along an axis; integers are multiplied as int64."""
    return _running(x, axis, "running_prod", np.cumprod)


def _running(x: Tensor, axis: int, row: str, function: Callable[..., Any]) -> Tensor:
    at = axis_of(axis, x.ndim, row)
    y = x.cast(SUM_TYPES.get(x.dtype, x.dtype))
    return hosted(row, function, y, axis=at) if y.dtype in COMPLEX else call_row(ROWS[row], (y,), axis=at)


# products


@method
def dot(x: Tensor, other: TensorLike) -> Tensor:
    """The product of two vectors; of matrices, as matmul."""
    return x.matmul(other)


alias("mm", dot)
alias("bmm", dot)
alias("mv", dot)


@method
def outer(x: Tensor, other: TensorLike) -> Tensor:
    """The products of each element of a vector with each of another."""
    return x.unsqueeze(-1) * other


@method
def trace(x: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    return x.diagonal().sum(-1)
