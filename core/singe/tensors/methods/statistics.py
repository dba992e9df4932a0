"""Methods that describe many elements by a few: quantiles, extremes so far, histograms, covariances, and folds without NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import bool_, float32, int64, uint8
from ...errors import DTypeError, InputError, ShapeError
from ...ops import ROWS
from ...ops.movement.move import numbered_along
from ...shapes import axis_of, show, whole
from ..calls import apply_row
from ..nodes.shaping import Axis
from ..tensor import Tensor, apply
from .attach import method
from .sorting import Ordered, counted

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@method
def nansum(x: Tensor, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The sum over axes; NaN counts as 0."""
    return _without_nan(x).sum(axis, keepdims, dtype)


@method
def nanmean(x: Tensor, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The mean over axes of the elements that are not NaN."""
    counts = x.isnan().logical_not().cast(x.dtype if x.dtype.is_float else float32).sum(axis, keepdims)
    return x.nansum(axis, keepdims, dtype) / counts


def _without_nan(x: Tensor) -> Tensor:
    return x.masked_fill(x.isnan(), 0.0) if x.dtype.is_float else x


@method
def quantile(
    x: Tensor, q: float | Sequence[float], axis: int | None = None, keepdims: bool = False, interpolation: str = "linear"
) -> Tensor:  # fmt: skip
    """The numbers below which the shares q of the elements lie, along an axis or of all. Several q are a new first axis.
    interpolation: what to take between two elements. NaN beside NaN."""
    shares = np.atleast_1d(np.asarray(q))
    if shares.dtype.kind not in "iuf" or shares.ndim > 1 or not ((shares >= 0) & (shares <= 1)).all():
        raise InputError(f"quantile: q is {q!r}, expected a number from 0 to 1, or some")
    if interpolation not in INTERPOLATIONS:
        raise InputError(
            f"quantile: the interpolation is {interpolation!r}, expected one of {', '.join(INTERPOLATIONS)}"
        )
    if not x.dtype.is_float:
        raise DTypeError(f"quantile: got {x.dtype}, expected floats; cast it first")
    flat = x.flatten() if axis is None else x
    at = 0 if axis is None else axis_of(axis, x.ndim, "quantile")
    count = counted(flat, at, "quantile")
    ordered = flat.sort(at).values
    last = ordered.narrow(at, count - 1, 1)
    wrong = last.isnan()
    found = [last.where(wrong, _between(ordered, at, share * (count - 1), interpolation)) for share in shares.tolist()]
    if axis is None:
        found = [y.reshape((1,) * x.ndim if keepdims else ()) for y in found]
    elif not keepdims:
        found = [y.squeeze(at) for y in found]
    if np.ndim(q) == 0:
        return found[0]
    return apply_row(ROWS["concat"], [y.unsqueeze(0) for y in found], axis=0)


def _between(ordered: Tensor, at: int, place: float, interpolation: str) -> Tensor:
    low, high = int(np.floor(place)), int(np.ceil(place))
    below, above = (ordered.narrow(at, i, 1) for i in (low, high))
    match interpolation:
        case "lower":
            return below
        case "higher":
            return above
        case "nearest":
            return above if round(place) == high else below
        case "midpoint":
            return below.lerp(above, 0.5) if high > low else below
        case _:
            return below.lerp(above, place - low) if high > low else below


@method
def cummax(x: Tensor, axis: int) -> Ordered:
    """The largest element up to each one along an axis, and its last index. NaN is the largest."""
    return _so_far(x, axis, "cummax", reflect=False)


@method
def cummin(x: Tensor, axis: int) -> Ordered:
    """The least element up to each one along an axis, and its last index. NaN is the least."""
    return _so_far(x, axis, "cummin", reflect=True)


def _so_far(x: Tensor, axis: int, name: str, reflect: bool) -> Ordered:
    at = axis_of(axis, x.ndim, name)
    if x.dtype is bool_:
        values, indices = _so_far(x.cast(uint8), axis, name, reflect)
        return Ordered(values.cast(bool_), indices)

    def turned(y: Tensor) -> Tensor:
        return y if not reflect else -y if y.dtype.is_float else y.bitwise_not()

    values = turned(apply_row(ROWS["running_max"], (turned(x),), axis=at))
    is_new = x == values
    if x.dtype.is_float:
        is_new = is_new | x.isnan()
    places = apply(lambda b, n: b.expand(numbered_along(b, n.shape, at, int64), shape=n.shape), x)
    return Ordered(values, apply_row(ROWS["running_max"], (places.masked_fill(is_new.logical_not(), 0),), axis=at))


@method
def histc(x: Tensor, bins: int = 100, low: float = 0, high: float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from low to high; from the least element to the largest, if
    low and high are equal. Elements beyond are not counted."""
    if whole(bins, "histc", "the number of bins") < 1:
        raise InputError(f"histc: got {bins} bins, expected at least one")
    if not x.dtype.is_float:
        raise DTypeError(f"histc: got {x.dtype}, expected floats; cast it first")
    flat = x.flatten()
    if low == high and x.numel():
        low, high = flat.amin().item(), flat.amax().item()
    if not low <= high or not np.isfinite([low, high]).all():
        raise InputError(f"histc: the range is from {low} to {high}, expected finite numbers in order")
    low, high = (low - 1, high + 1) if low == high else (low, high)
    inside = (flat >= low) & (flat <= high)
    place = (
        ((flat.masked_fill(inside.logical_not(), low) - low) * (bins / (high - low)))
        .floor()
        .cast(int64)
        .clip(0, bins - 1)
    )
    return x.new_zeros(bins).scatter_add(0, place, inside.cast(x.dtype))


@method
def histogram(
    x: Tensor, bins: int | Tensor | Sequence[float], *, range: Sequence[float] | None = None,
    weight: Tensor | None = None, density: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """How many elements lie in each interval, and the edges of these: `bins` equal ones over a range (of the elements, if
    none is given), or those between given edges. weight: of each element; density: divided by the total and the widths."""
    flat = x.flatten()
    if isinstance(bins, int):
        if bins < 1:
            raise InputError(f"histogram: got {bins} bins, expected at least one")
        low, high = (flat.amin().item(), flat.amax().item()) if range is None and x.numel() else range or (0.0, 1.0)
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        edges = x.new_tensor(np.linspace(low, high, bins + 1))
    else:
        edges = bins if isinstance(bins, Tensor) else x.new_tensor(bins)
    count = edges.shape[0] - 1
    place = (edges.searchsorted(flat, right=True) - 1).masked_fill(flat == edges[-1], count - 1)
    inside = (flat >= edges[0]) & (flat <= edges[-1])
    shares = inside.cast(x.dtype) if weight is None else weight.flatten().masked_fill(inside.logical_not(), 0.0)
    found = x.new_zeros(count).scatter_add(0, place.clip(0, count - 1), shares)
    return (found / found.sum() / edges.diff() if density else found), edges


@method
def cov(x: Tensor, correction: int = 1) -> Tensor:
    """The covariances of variables: each row is one, each column an observation of all."""
    if x.ndim > 2:
        raise ShapeError(f"cov: got {show(x.shape)}, expected a vector or a matrix")
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    off = rows - rows.mean(1, keepdims=True)
    found = off @ off.T / (rows.shape[1] - correction)
    return found if x.ndim == 2 else found.reshape(())


@method
def corrcoef(x: Tensor) -> Tensor:
    """The correlations of variables: each row is one, each column an observation of all."""
    found = x.cov()
    if x.ndim < 2:
        return found / found
    deviations = found.diagonal().sqrt()
    return found / deviations.unsqueeze(1) / deviations
