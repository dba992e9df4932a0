"""Methods that fold axes: sums, extremes and their places; and ranges of values."""

from __future__ import annotations

from ...dtypes import bool_, float32, uint8
from ...ops import ROWS
from ...shapes import axis_of
from .. import shaping
from ..reductions import SUM_TYPES, place_of, reduced
from ..shaping import Axis
from ..tensor import Tensor, TensorLike, apply
from .attach import method
from .rows import call_row


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
def clip(x: Tensor, low: TensorLike | None = None, high: TensorLike | None = None) -> Tensor:
    """Elements clipped to the range from low to high (None: no limit)."""
    bounds = ((low, "maximum"), (high, "minimum"))
    if low is not None and high is not None:
        return call_row(ROWS["clip"], (x, low, high))
    return next((call_row(ROWS[row], (x, bound)) for bound, row in bounds if bound is not None), x)
