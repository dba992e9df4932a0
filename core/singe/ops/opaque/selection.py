"""Rows over whole arrays, for ops that are not loop nests: order, selection, scattered sums in a fixed
order, and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Final

import numpy as np

from ...dtypes import INTS, NUMBERS, bool_, dtype, float32, int64, narrowed, string, widened
from ...errors import DTypeError, ShapeError
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...shapes import Dim, Shape, axis_of, product, require, same, show
from ..kinds import OPEN_RESULT, SIZE_RESULTS, WHOLE_RESULT, Opaque, Results, Shaped, register
from ..movement.indices import check_elements, check_nd, places_along, places_of
from ..movement.move import amount

REDUCTIONS: Final = ("add", "mul", "max", "min")
"""How elements that are scattered to the same place may be combined."""


_BLOCK: Final = 64
"""So many boxes are compared with each other at once."""
_PAIRS: Final = 1 << 15
"""So many pairs of boxes are compared at once: what that takes is in the processor's cache."""


def _along(x: Shaped, axis: int, what: str) -> int:
    return axis_of(axis, len(x.shape), what)


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of whole arrays that converts elements to their compute type if NumPy lacks the stored one."""

    @wraps(function)
    def over(x: np.ndarray, *rest: np.ndarray, **attrs: Any) -> Any:
        if not x.dtype.names:
            return function(x, *rest, **attrs)
        kind = dtype(x.dtype)
        found = function(widened(x), *(widened(a) if a.dtype == x.dtype else a for a in rest), **attrs)
        every = found if isinstance(found, tuple) else (found,)
        back = tuple(narrowed(y, kind) if y.dtype in (kind.compute.numpy, object) else y for y in every)
        return back if isinstance(found, tuple) else back[0]

    return over


# --- order -----------------------------------------------------------------------------------------------------------


def ranks(xp: ArrayAdapter, x: Array, axis: int, descending: bool) -> Array:
    """The indices that sort the elements; the sort is stable, and NaN counts as the largest."""
    if not descending:
        return xp.argsort(x, axis=axis, stable=True)
    back = xp.argsort(xp.flip(x, axis=axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - xp.flip(back, axis=axis)


def _top_k_shapes(x: Shaped, axis: int, k: Dim, largest: bool) -> Results:
    axis = _along(x, axis, "top_k")
    d = x.shape[axis]
    for room in (k, d - k):
        require(room, f"top_k: k is {k}, and axis {axis} of {show(x.shape)} has {d} elements")
    shape = tuple(k if i == axis else d for i, d in enumerate(x.shape))
    return (shape, x.dtype), (shape, int64)


def _top_k(xp: ArrayAdapter, x: Array, axis: int, k: int, largest: bool) -> tuple[Array, Array]:
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"top_k: k is {k}, and axis {axis} of {show(x.shape)} has {x.shape[axis]} elements")
    order = xp.take(ranks(xp, xp.wide(x), axis, largest), xp.arange(k), axis=axis)
    return xp.take_along_axis(x, order, axis=axis), order


def _top_k_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int, k: Dim, largest: bool) -> list[Any]:
    (x,) = inputs
    if g[0] is None:
        return [None]
    zeros = b.expand(b.const(0, x.dtype), shape=x.shape)
    return [b.scatter_elements(zeros, g[0], b.result(y, index=1), axis=axis)]


def _sort_shapes(x: Shaped, axis: int, descending: bool = False) -> Results:
    _along(x, axis, "sort")
    return (x.shape, x.dtype), (x.shape, int64)


def _sort(xp: ArrayAdapter, x: Array, axis: int, descending: bool = False) -> tuple[Array, Array]:
    order = ranks(xp, xp.wide(x), axis, descending)
    return xp.take_along_axis(x, order, axis=axis), order


def _sort_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int, descending: bool = False) -> list[Any]:
    return _top_k_vjp(b, g, inputs, y, axis, inputs[0].shape[axis], descending)


# --- selection by data -----------------------------------------------------------------------------------------------


def _nonzero_shapes(x: Shaped) -> Results:
    return (((len(x.shape), None), int64),)


def _compress_shapes(x: Shaped, condition: Shaped, axis: int) -> Results:
    _along(x, axis, "compress")
    if condition.dtype is not bool_ or len(condition.shape) != 1:
        raise DTypeError(
            f"compress: the condition is {condition.dtype} of shape {show(condition.shape)}, expected a vector of bool"
        )
    return ((tuple(None if i == axis else d for i, d in enumerate(x.shape)), x.dtype),)


def _compress_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int) -> list[Any]:
    """A slice that was kept has the gradient at its number among those kept; the others have that of a row of zeros."""
    x, condition = inputs
    axis = _along(x, axis, "compress")
    rest = x.shape[axis] - condition.shape[0]
    kept = b.pad(condition, b.const(False), before=(0,), after=(rest,), mode="constant")
    none = (0,) * len(x.shape)
    last = tuple(1 if i == axis else 0 for i in range(len(x.shape)))
    g = b.pad(g, b.const(0, g.dtype), before=none, after=last, mode="constant")
    place = b.sub(b.running_sum(b.cast(kept, to=int64), axis=0), b.const(1))
    return [b.gather(g, b.where(kept, place, amount(b, y.shape[axis], int64)), axis=axis), None]


def _unique_shapes(x: Shaped, axis: int | None = None, ordered: bool = True) -> Results:
    if axis is None:
        count, many = product(x.shape), None
        values: tuple[Dim | None, ...] = (None,)
    else:
        axis = _along(x, axis, "unique")
        count, many = x.shape[axis], None
        values = tuple(None if i == axis else d for i, d in enumerate(x.shape))
    return (values, x.dtype), ((many,), int64), ((count,), int64), ((many,), int64)


def _unique(x: np.ndarray, axis: int | None = None, ordered: bool = True) -> tuple[np.ndarray, ...]:
    """The distinct values, the index where each is first, the index of each element's value among them, and counts."""
    if x.dtype == object:  # strings: NumPy sorts single strings, but not slices of them
        texts, codes = np.unique(x, return_inverse=True)
        values, *rest = _unique(codes.reshape(x.shape), axis, ordered)
        return texts[values], *rest
    values, first, back, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    back = back.reshape(-1)
    if not ordered:
        order = np.argsort(first, kind="stable")
        rank = np.argsort(order, kind="stable")
        values = np.take(values, order, axis=axis or 0)
        first, counts, back = first[order], counts[order], rank[back]
    return values, first.astype(np.int64), back.astype(np.int64), counts.astype(np.int64)


def _nms_shapes(
    boxes: Shaped, scores: Shaped, limit: Shaped, overlap: Shaped, least: Shaped, center: bool = False
) -> Results:
    if len(boxes.shape) != 3 or len(scores.shape) != 3 or not same(boxes.shape[2], 4, "non_max_suppression"):
        raise ShapeError(
            f"non_max_suppression: boxes {show(boxes.shape)} and scores {show(scores.shape)}; "
            "expected (batch, boxes, 4) and (batch, classes, boxes)"
        )
    return (((None, 3), int64),)


def _nms(
    boxes: np.ndarray,
    scores: np.ndarray,
    limit: np.ndarray,
    overlap: np.ndarray,
    least: np.ndarray,
    center: bool = False,
) -> np.ndarray:
    """Rows (batch, class, box): in each class the best boxes, none of which overlaps a better one too much."""
    most, threshold, floor = int(limit.reshape(-1)[0]), float(overlap.reshape(-1)[0]), float(least.reshape(-1)[0])
    found = []
    if center:
        corner, half = boxes[..., :2], boxes[..., 2:] / 2
        low, high = corner - half, corner + half
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    area = (high - low).prod(-1)
    for batch, kind in np.ndindex(*scores.shape[:2]):
        mine = scores[batch, kind]
        order = np.flatnonzero(mine > floor)
        order = order[np.argsort(-mine[order], kind="stable")]
        near = partial(_overlaps, low[batch], high[batch], area[batch], threshold)
        kept, start, ahead = order[:0], 0, _BLOCK
        while start < order.size and kept.size < most:
            block = order[start : start + ahead]
            left = np.flatnonzero(~near(kept, block).any(0))
            if left.size > _BLOCK:  # compared with each other in small blocks
                block, left = block[: left[_BLOCK]], left[:_BLOCK]
            start += block.size
            ahead, block = _BLOCK * block.size // (left.size + 1), block[left]
            hides, waits, best = near(block, block), np.ones(block.size, bool), []
            while waits.any():
                best.append(int(waits.argmax()))
                waits &= ~hides[best[-1]]
                waits[best[-1]] = False
            kept = np.append(kept, block[best])
            ahead = max(_BLOCK, min(ahead, _PAIRS // kept.size))
        found += [(batch, kind, i) for i in kept[:most]]
    return np.array(found, np.int64).reshape(-1, 3)


def _overlaps(
    low: np.ndarray, high: np.ndarray, area: np.ndarray, threshold: float, some: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Which boxes overlap which others by more than the threshold; a row for each of `some`."""
    (x0, y0), (x1, y1) = low[some].T[..., None], high[some].T[..., None]
    (u0, v0), (u1, v1) = low[others].T, high[others].T
    width, height = np.minimum(x1, u1), np.minimum(y1, v1)
    width -= np.maximum(x0, u0)
    height -= np.maximum(y0, v0)
    shared = np.fmax(width, 0, out=width)
    shared *= np.fmax(height, 0, out=height)
    union = area[some][:, None] + area[others]
    union -= shared
    shared /= np.fmax(
        union, np.finfo(np.float32).tiny, out=union
    )  # boxes without an area, or that are NaN, overlap none
    return ~(shared <= threshold)


# --- scattered sums --------------------------------------------------------------------------------------------------


def _check_reduction(what: str, reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ShapeError(f"{what}: the reduction is {reduction!r}, expected one of {', '.join(REDUCTIONS)}")


def _reduce_elements_shapes(x: Shaped, part: Shaped, indices: Shaped, axis: int, reduction: str) -> Results:
    _check_reduction("scatter_elements_reduce", reduction)
    check_elements("scatter_elements_reduce", x, part, indices, axis)
    return ((x.shape, x.dtype),)


def _reduce_nd_shapes(x: Shaped, part: Shaped, indices: Shaped, reduction: str) -> Results:
    _check_reduction("scatter_nd_reduce", reduction)
    check_nd("scatter_nd_reduce", x, part, indices)
    return ((x.shape, x.dtype),)


def _reduce_elements(xp: ArrayAdapter, x: Array, part: Array, indices: Array, axis: int, reduction: str) -> Array:
    return xp.put(x, places_along(xp, indices, axis, x.shape[axis]), part, reduction)


def _reduce_nd(xp: ArrayAdapter, x: Array, part: Array, indices: Array, reduction: str) -> Array:
    return xp.put(x, places_of(xp, indices, x.shape[: indices.shape[-1]]), part, reduction)


def _picked(b: Any, indices: Any, axis: int | None) -> Callable[[Any], Any]:
    """A function of x that reads the elements (along the axis) or the slices (None) at the indices."""
    if axis is None:
        return lambda x: b.gather_nd(x, indices, batch=0)
    return lambda x: b.gather_elements(x, indices, axis=axis)


def _folded(b: Any, indices: Any, axis: int | None) -> Callable[[Any, Any, str], Any]:
    """The scattered sum of (x, part, reduction) at the indices."""
    if axis is None:
        return lambda x, part, word: b.scatter_nd_reduce(x, part, indices, reduction=word)
    return lambda x, part, word: b.scatter_elements_reduce(x, part, indices, axis=axis, reduction=word)


def _reduce_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, reduction: str, axis: int | None = None) -> list[Any]:
    x, part, indices = inputs
    read, fold = _picked(b, indices, axis), _folded(b, indices, axis)
    if reduction == "add":
        return [g, read(g), None]
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    if reduction in ("max", "min"):  # equal elements share the gradient
        hits, part_hits = (b.cast(b.equal(v, found), to=x.dtype) for v, found in ((x, y), (part, read(y))))
        each = b.div(g, b.maximum(fold(hits, part_hits, "add"), one))
        return [b.mul(hits, each), b.mul(part_hits, read(each)), None]
    # The product of all others: of all but the zeros, where there is no other zero.
    is_zero, part_zero = b.equal(x, zero), b.equal(part, zero)
    whole, part_whole = b.where(is_zero, one, x), b.where(part_zero, one, part)
    product = b.mul(g, fold(whole, part_whole, "mul"))
    count = fold(b.cast(is_zero, to=x.dtype), b.cast(part_zero, to=x.dtype), "add")

    def slope(count: Any, own: Any, product: Any, factor: Any) -> Any:
        return b.where(b.equal(count, b.cast(own, to=x.dtype)), b.div(product, factor), zero)

    return [slope(count, is_zero, product, whole), slope(read(count), part_zero, read(product), part_whole), None]


# --- random numbers --------------------------------------------------------------------------------------------------
# By NumPy's MT19937, which gives the same numbers for the same seed everywhere.


def _random_shapes(seed: Shaped, shape: Shape) -> Any:
    return ((shape, float32),)


def _uniform(seed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    state = np.random.RandomState(int(seed.reshape(-1)[0]) & 0xFFFFFFFF)
    return state.random_sample(product(shape)).astype(np.float32).reshape(shape)  # pyright: ignore[reportCallIssue, reportArgumentType]


register(
    Opaque(name="top_k", doc="the k largest or smallest elements along an axis, sorted, and their indices", dtypes=NUMBERS,
           results=_top_k_shapes, evaluate=_top_k, vjp=_top_k_vjp),
    Opaque(name="dimensions", no_gradient=SIZE_RESULTS, public=False,
           doc="dimensions as elements of a vector", evaluate=lambda xp, values, kind: xp.cast(xp.asarray(list(values), int64), kind),
           results=lambda values, kind: (((len(values),), kind),)),
    Opaque(name="sort", doc="the elements sorted along an axis, and their indices", dtypes=NUMBERS,
           results=_sort_shapes, evaluate=_sort, vjp=_sort_vjp),
    Opaque(name="nonzero", doc="the coordinates of all nonzero elements, one column each", host=OPEN_RESULT, results=_nonzero_shapes,
        no_gradient=WHOLE_RESULT,
           on_host=_wide(lambda x: np.array(np.nonzero(x), np.int64).reshape(x.ndim, -1))),
    Opaque(name="compress", doc="the slices along an axis where a condition holds", host=OPEN_RESULT, results=_compress_shapes, index_inputs=(1,),
           on_host=lambda x, condition, axis: np.compress(condition, x, axis=axis), vjp=_compress_vjp),
    Opaque(name="unique", doc="the distinct elements or slices, the first index of each, the index of every element's value, and counts", host=OPEN_RESULT,
        no_gradient="elements that are equal become one",
           dtypes=(*NUMBERS, string), results=_unique_shapes, on_host=_wide(_unique)),
    Opaque(name="non_max_suppression", doc="the best boxes of each class, without those that overlap a better box too much", dtypes=(float32,),
        no_gradient=WHOLE_RESULT,
           host=OPEN_RESULT, results=_nms_shapes, on_host=_nms, index_inputs=(2,)),
    Opaque(name="scatter_elements_reduce", public=False, doc="elements added to (or multiplied, maximum, minimum with) those at indices along an axis",
           results=_reduce_elements_shapes, dtypes=NUMBERS, evaluate=_reduce_elements, index_inputs=(2,), vjp=_reduce_vjp),
    Opaque(name="scatter_nd_reduce", public=False,
           doc="slices added to (or multiplied, maximum, minimum with) those at indices", results=_reduce_nd_shapes, dtypes=NUMBERS,
           evaluate=_reduce_nd, index_inputs=(2,), vjp=_reduce_vjp),
    Opaque(name="random_uniform", public=False,
           doc="random numbers from 0 to 1 in a given shape, from a seed", dtypes=INTS, results=_random_shapes, on_host=_uniform,
           host="its generator draws one number after the other, from a seed on the host"),
)  # fmt: skip
