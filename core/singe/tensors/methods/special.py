"""PyTorch's scans, scatters and pieces that are composed of other methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import int64
from ...errors import InputError, ShapeError
from ...ir.scalar import Number
from ...shapes import axis_of, number, plain, product, same_form, show
from ..nodes.shaping import given_sizes, known_length
from ..numpy_fallback import elements
from ..tensor import Tensor, TensorLike, apply
from .attach import method
from .gamma import floating
from .sorting import Ordered


@method
def logcumsumexp(x: Tensor, axis: int) -> Tensor:
    """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
    at = axis_of(axis, x.ndim, "logcumsumexp")
    y, count, step = floating(x), known_length(x.shape, at, "logcumsumexp", "; give it one"), 1
    while step < count:
        head, tail = y.narrow(at, 0, step), y.narrow(at, step, count - step)
        y = _joined([head, tail.logaddexp(y.narrow(at, 0, count - step))], at)
        step *= 2
    return y


def _joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    return apply(lambda b, *nodes: b.concat(*nodes, axis=axis), *parts)


@method
def mode(x: Tensor, axis: int = -1, keepdims: bool = False) -> Ordered:
    """The most frequent element along an axis, the least of several, and its last index."""
    at = axis_of(axis, x.ndim, "mode")
    y = x.movedim(at, -1)
    counts = (y.unsqueeze(-1) == y.unsqueeze(-2)).sum(-1)
    ordered = y.argsort(-1)
    values = y.take_along_dim(ordered, -1)
    first = counts.take_along_dim(ordered, -1).argmax(-1, keepdims=True)
    value = values.take_along_dim(first, -1)
    last = y.shape[-1] - 1 - (y == value).flip(-1).cast(int64).argmax(-1, keepdims=True)
    found = Ordered(value.movedim(-1, at), last.movedim(-1, at))
    return found if keepdims else Ordered(*(part.squeeze(at) for part in found))


@method
def nanmedian(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN where all are."""
    if axis is None:
        empty = x.dtype.is_float and 0 in plain(x.shape)
        return x.new_full((), math.nan) if empty else x.flatten().nanmedian(0).values
    at = axis_of(axis, x.ndim, "nanmedian")
    _some(x, at, "nanmedian")
    values, indices = x.sort(at)
    middle = ((_not_nan(x, at) - 1) // 2).clip(0)
    found = Ordered(values.take_along_dim(middle, at), indices.take_along_dim(middle, at))
    return found if keepdims else Ordered(*(part.squeeze(at) for part in found))


@method
def nanquantile(x: Tensor, q: float | Sequence[float], axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where all are."""
    if np.ndim(q):
        return apply(
            lambda b, *nodes: b.concat(*nodes, axis=0),
            *(x.nanquantile(float(share), axis, keepdims).unsqueeze(0) for share in np.asarray(q)),
        )
    if not 0 <= number(q, "nanquantile", "q") <= 1:
        raise InputError(f"nanquantile: q is {q!r}, expected a number from 0 to 1, or some")
    if axis is None:
        found = x.flatten().nanquantile(q, 0)
        return found.reshape((1,) * x.ndim) if keepdims else found
    at = axis_of(axis, x.ndim, "nanquantile")
    _some(x, at, "nanquantile")
    values = x.sort(at).values
    place = ((_not_nan(x, at) - 1).clip(0) * q).cast(x.dtype)
    low, high = (values.take_along_dim(p.cast(int64), at) for p in (place.floor(), place.ceil()))
    found = low.lerp(high, place - place.floor())
    return found if keepdims else found.squeeze(at)


def _some(x: Tensor, axis: int, what: str) -> None:
    if same_form(x.shape[axis], 0):
        raise ShapeError(f"{what}: axis {axis} of {show(x.shape)} has no elements, expected some")


def _not_nan(x: Tensor, axis: int) -> Tensor:
    """How many elements along an axis are not NaN."""
    return x.isnan().logical_not().sum(axis, keepdims=True)


@method
def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:  # fmt: skip
    """The elements, or slices along an axis, that differ from the one before; the place of each in the result, and how many
    are equal."""
    y = x.flatten() if axis is None else x.movedim(axis, 0)
    rows = y.reshape(y.shape[0], product(y.shape[1:]))
    new = (rows[1:] != rows[:-1]).any(1)
    first = (
        _joined([new[:0].logical_not(), new], 0) if same_form(y.shape[0], 0) else _joined([new.new_ones((1,)), new], 0)
    )
    places = first.cast(int64).cumsum(0) - 1
    starts = first.nonzero().flatten()
    kept = y.take(starts, 0)
    found = [kept if axis is None else kept.movedim(0, axis)]
    if return_inverse:
        found.append(places.reshape(x.shape) if axis is None else places)
    if return_counts:
        found.append(_joined([starts, starts.new_full((1,), y.shape[0])], 0).diff())
    return found[0] if len(found) == 1 else tuple(found)


# --- parts replaced --------------------------------------------------------------------------------------------------


@method
def slice_scatter(
    x: Tensor, src: TensorLike, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:  # fmt: skip
    """The tensor with a slice along an axis replaced."""
    at = axis_of(axis, x.ndim, "slice_scatter")
    return x.at[(slice(None),) * at + (slice(start, end, step),)].set(src)


@method
def select_scatter(x: Tensor, src: TensorLike, axis: int, index: int) -> Tensor:
    """The tensor with the slice at an index along an axis replaced."""
    return x.at[(slice(None),) * axis_of(axis, x.ndim, "select_scatter") + (index,)].set(src)


@method
def fill(x: Tensor, value: TensorLike) -> Tensor:
    """A tensor of the shape and dtype, with one value."""
    return x.new_full(x.shape, value if not isinstance(value, Tensor) else value.item())


@method
def diagonal_scatter(x: Tensor, src: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The tensor with a diagonal (as `diagonal` gives it) replaced."""
    moved = x.movedim((axis1, axis2), (-2, -1))
    rows, columns = moved.shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ShapeError(
            f"diagonal_scatter: {show(x.shape)} has no numbers until a run along {axis1} and {axis2}; expected known sizes"
        )
    places = np.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    key = (..., places + max(-offset, 0), places + max(offset, 0))
    return moved.at[key].set(src).movedim((-2, -1), (axis1, axis2))


@method
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with the elements at indices into the flat tensor replaced, or with those of source added to them."""
    return x.flatten().index_put((index.flatten(),), source.flatten(), accumulate).reshape(x.shape)


@method
def index_reduce(
    x: Tensor, axis: int, index: TensorLike, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with slices combined with those at indices along an axis: prod, mean, amax or amin. include_self: whether
    the slices that are there count, too."""
    at = axis_of(axis, x.ndim, "index_reduce")
    places = source.new_tensor(index, int64) if not isinstance(index, Tensor) else index
    wide = places.reshape(*(-1 if a == at else 1 for a in range(x.ndim))).broadcast_to(source.shape)
    return x.scatter_reduce(at, wide, source, reduce, include_self=include_self)


@method
def index_put(x: Tensor, indices: Sequence[Any], values: TensorLike, accumulate: bool = False) -> Tensor:
    """The tensor with the elements at indices, one tensor for each axis, replaced, or with values added to them."""
    place = x.at[tuple(indices)]
    return place.add(values) if accumulate else place.set(values)


@method
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with elements where a mask holds replaced by those of another, in order."""
    if 0 in plain(source.shape):
        if elements(mask, "masked_scatter with an empty source").any():
            raise ShapeError(
                f"masked_scatter: the source of {show(source.shape)} has no elements, expected one for each place where the "
                "mask holds"
            )
        return x
    holds = mask.broadcast_to(x.shape)
    places = holds.flatten().cast(int64).cumsum(0).reshape(x.shape) - 1
    return source.flatten().take(places.clip(0)).where(holds, x)


@method
def renorm(x: Tensor, p: float, axis: int, maxnorm: float) -> Tensor:
    """The tensor with each slice along an axis whose p-norm is above maxnorm scaled down to it."""
    at = axis_of(axis, x.ndim, "renorm")
    norms = x.norm(p, [a for a in range(x.ndim) if a != at], keepdims=True)
    return x * (maxnorm / (norms + 1e-7)).where(norms > maxnorm, 1.0)


@method
def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """The sums over axes that leave a shape which broadcasts to x's."""
    wanted, old = plain(given_sizes(size, "sum_to_size")), plain(x.shape)
    lead = x.ndim - len(wanted)
    short = [a for a, d in enumerate(wanted, lead) if d == 1 and old[a] != 1]
    if lead < 0 or any(d not in (1, old[a]) for a, d in enumerate(wanted, lead)):
        raise ShapeError(
            f"sum_to_size: {show(wanted)} does not broadcast to {show(x.shape)}; expected axes of length 1, or of the same length"
        )
    kept = x.sum(short, keepdims=True, dtype=x.dtype) if short else x
    return kept.sum(tuple(range(lead)), dtype=x.dtype) if lead else kept


# --- pieces and names ------------------------------------------------------------------------------------------------


@method
def hsplit(x: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 1, of a vector along axis 0."""
    return x.tensor_split(sections, 1 if x.ndim > 1 else 0)


@method
def narrow_copy(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """`narrow`: a tensor does not change, so views and copies are the same."""
    return x.narrow(axis, start, length)


@method
def vsplit(x: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 0."""
    return x.tensor_split(sections, 0)


@method
def dsplit(x: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 2."""
    return x.tensor_split(sections, 2)


@method
def rsub(x: Tensor, other: TensorLike, alpha: Number = 1) -> Tensor:
    """other − alpha · x."""
    return other - x * alpha  # pyright: ignore[reportReturnType]


@method
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, axis: int = -1) -> Tensor:
    """The integral up to each point along an axis of lines through points: at the places x, or at distances dx."""
    return areas(y, x, dx, axis).cumsum(-1).movedim(-1, axis)


def areas(y: Tensor, x: Tensor | None, dx: Number, axis: int) -> Tensor:
    """The areas below lines through points that are neighbours along an axis, as the last axis. Places x of fewer axes
    broadcast, and a vector has those along the axis."""
    moved = y.movedim(axis, -1)
    middles = (moved[..., 1:] + moved[..., :-1]) / 2
    if x is None:
        return middles * dx
    if x.ndim > 1:
        x = x.movedim(axis_of(axis, y.ndim, "trapezoid") - y.ndim, -1)
    return middles * x.diff()


@method
def is_nonzero(x: Tensor) -> bool:
    """Whether the only element is not 0."""
    return bool(x.item())
