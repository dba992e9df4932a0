"""The rows that slide a window: pooling over any axes.

window, strides, dilations, before and after name every axis (1, 1, 1, 0, 0 for an axis without a window), so that a
change of layout only permutes them. Elements outside the input are ignored.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...dtypes import FLOATS, NUMBERS, bool_, int32, int64
from ...errors import ShapeError
from ...ir import affine, scalar
from ...ir.affine import flatten
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.kernel import IDENTITY
from ...ir.scalar import Expr, const, select, size
from ...shapes import Dim, Shape, at_least, ceildiv, dim_max, dim_min, require, show
from ..kinds import WHOLE_RESULT, Folds, Nest, Read, Shaped, register


def window_reach(window: int, dilation: int) -> int:
    """How many elements there are from a window's first to its last."""
    return dilation * (window - 1) + 1


def window_size(d: Dim, window: int, stride: int, dilation: int, before: Dim, after: Dim) -> Dim:
    """How many positions a window has along an axis."""
    return (d + before + after - window_reach(window, dilation)) // stride + 1


def window_sizes(
    what: str, x: Shape, window: Sequence[int], lengths: Iterable[tuple[Dim, int, int, int, Dim, Dim]]
) -> Shape:
    """How many positions a window has along axes of x, each with what `window_size` takes; ShapeError if it does not fit one, which
    the run finds where that depends on sizes. what: the op, in errors."""
    sizes: list[Dim] = []
    for d, length, stride, dilation, before, after in lengths:
        reach = window_reach(length, dilation)
        room = d + before + after - reach
        if not _fits(d, room, reach):
            require(room, f"{what}: the window {tuple(window)} is larger than the padded input {show(x)}")
        sizes.append(window_size(d, length, stride, dilation, before, after))
    return tuple(sizes)


def _fits(d: Dim, room: Dim, reach: int) -> bool:
    """Whether a window fits an axis in every run, or the axis is empty: there are no windows then."""
    if isinstance(room, int):
        return room >= 0 or d == 0
    return reach == 1 or (at_least(room, 0, named=1) and at_least(room, -1))


def ceiling(d: Dim, reach: int, stride: int, before: Dim, after: Dim) -> Dim:
    """The padding after an axis for ceil_mode: a window may start anywhere before the end padding."""
    if stride == 1:
        return after
    places = dim_min(ceildiv(d + before + after - reach, stride) + 1, ceildiv(d + before, stride))
    return dim_max((places - 1) * stride + reach - d - before, 0)


def pool_shape(
    x: Shaped,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Shape,
    after: Shape,
) -> Shape:
    if not len(window) == len(strides) == len(dilations) == len(before) == len(after) == len(x.shape):
        raise ShapeError(
            f"pool: window, strides, dilations and pads must name all {len(x.shape)} axes of {show(x.shape)}"
        )
    lengths = zip(x.shape, window, strides, dilations, before, after, strict=True)
    return window_sizes("pool", x.shape, window, lengths)


def _index_shape(x: Shaped, *, column_major: bool = False, **facts: Any) -> Shape:
    return pool_shape(x, **facts)


def reader(
    coords: Sequence[Expr], read: Read, x: Shaped, window: Any, strides: Any, dilations: Any, before: Any, after: Any
) -> Any:
    """A function of the inner variables that gives: whether the place is inside the input (None: always), the element,
    and its coordinates in the input."""
    if 0 in x.shape:  # the input is empty and windows cover only padding: there is no element to read
        nothing = const(0, x.dtype.compute)
        return lambda inner: (const(False, bool_), nothing, list(coords))

    def at(inner: Sequence[Expr]) -> tuple[Expr | None, Expr, list[Expr]]:
        turns = iter(inner)
        inside: Expr | None = None
        place: list[Expr] = []
        for axis, c in enumerate(coords):
            lo, hi = before[axis], after[axis]
            p = c * strides[axis] + (next(turns) * dilations[axis] if window[axis] > 1 else 0) - size(lo)
            if lo != 0 or hi != 0:
                ok = (p >= 0) & (p < size(x.shape[axis])) if lo != 0 else p < size(x.shape[axis])
                inside = ok if inside is None else inside & ok
                p = affine.clamp(p, x.shape[axis])
            place.append(p)
        return inside, read(0, place), place

    return at


def inner_of(window: Sequence[int]) -> Shape:
    return tuple(w for w in window if w > 1)


def _windows_apart(
    window: Sequence[int], strides: Sequence[int], dilations: Sequence[int], before: Any, after: Any
) -> Sequence[int] | None:
    apart = tuple(window) == tuple(strides) and {*dilations} == {1} and not any((*before, *after))
    return tuple(window) if apart else None


def max_nest(coords: Sequence[Expr], read: Read, x: Shaped, **facts: Any) -> Folds:
    at = reader(coords, read, x, **facts)

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        inside, v, _place = at(inner)
        return v if inside is None else select(inside, v, const(IDENTITY["max"](v.dtype), v.dtype))

    return Folds(inner_of(facts["window"]), [("max", value)])


def _max_index_nest(
    coords: Sequence[Expr], read: Read, x: Shaped, *, column_major: bool = False, **facts: Any
) -> Folds:
    at = reader(coords, read, x, **facts)
    first = max_nest(coords, read, x, **facts)
    last = IDENTITY["min"](int32)

    def value(inner: Sequence[Expr], accumulators: Sequence[Expr]) -> Expr:
        inside, v, place = at(inner)
        shape = x.shape
        if column_major:  # ONNX's storage_order 1: spatial axes in reverse order
            place, shape = [*place[:2], *reversed(place[2:])], (*shape[:2], *reversed(shape[2:]))
        hit = scalar.eq(v, accumulators[0])
        hit = hit | scalar.isnan(v) if v.dtype.is_float else hit
        return select(hit if inside is None else inside & hit, flatten(place, shape), const(last, int32))

    return Folds(first.inner, [*first.folds, ("min", value)], lambda a: scalar.cast(a[1], int64))


def _sum_nest(coords: Sequence[Expr], read: Read, x: Shaped, **facts: Any) -> Folds:
    at = reader(coords, read, x, **facts)

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        inside, v, _place = at(inner)
        return v if inside is None else select(inside, v, const(0, v.dtype))

    return Folds(inner_of(facts["window"]), [("add", value)])


def _evaluate(word: str) -> Callable[..., Array]:
    """The fold over the window: one whole-array operation for each place of the window."""

    def evaluate(xp: ArrayAdapter, x: Array, **facts: Any) -> Array:
        kind, wide = xp.dtype(x), xp.wide(x)
        windows = xp.windows(wide, IDENTITY[word](xp.dtype(wide)), **facts)
        parts = [windows[(..., *tap)] for tap in itertools.product(*map(range, windows.shape[x.ndim :]))]
        return xp.cast(functools.reduce(xp.words[word], parts) if len(parts) > 1 else xp.copy(*parts), kind)

    return evaluate


def _index_evaluate(xp: ArrayAdapter, x: Array, *, column_major: bool = False, **facts: Any) -> Array:
    rank, wide, count = x.ndim, xp.wide(x), math.prod(x.shape)
    order = x.shape if not column_major else (*x.shape[:2], *reversed(x.shape[2:]))
    numbers = xp.reshape(xp.arange(count, int64), order)
    if column_major:
        numbers = xp.permute_dims(numbers, (0, 1, *reversed(range(2, rank))))
    values = xp.windows(wide, IDENTITY["max"](xp.dtype(wide)), **facts)
    indices = xp.windows(numbers, IDENTITY["min"](int64), **facts)
    within = tuple(range(rank, 2 * rank))
    hit = values == xp.max(values, axis=within, keepdims=True)
    hit = hit | xp.isnan(values) if xp.dtype(wide).is_float else hit
    return xp.min(xp.where(hit & (indices < count), indices, IDENTITY["min"](int32)), axis=within)


def numbers_of(window: Sequence[int]) -> tuple[int, ...]:
    """What a step along each axis of a window adds to the number of a place in it, in row-major order."""
    return tuple(math.prod(window[i + 1 :]) if w > 1 else 0 for i, w in enumerate(window))


def _max_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, **facts: Any) -> list[Any]:
    """The gradient goes to the first of the largest elements of each window."""
    facts |= {"numbers": numbers_of(facts["window"])}
    (x,) = inputs
    return [b.unpool_pick(g, b.pool_place(x, **facts), sizes=x.shape, **facts)]


def _sum_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, **facts: Any) -> list[Any]:
    return [b.unpool_sum(g, sizes=inputs[0].shape, numbers=numbers_of(facts["window"]), **facts)]


register(
    Nest(name="max_pool", doc="the largest element of each window", shape=pool_shape, nest=max_nest, evaluate=_evaluate("max"),
         dtypes=NUMBERS, vjp=_max_vjp, windows=_windows_apart),
    Nest(name="max_pool_index", no_gradient=WHOLE_RESULT, public=False,
         doc="the flat index of the largest element of each window, the first if several are equal", result_type=int64, dtypes=NUMBERS,
         shape=_index_shape, nest=_max_index_nest, evaluate=_index_evaluate),
    Nest(name="pool_sum", public=False, doc="the sum of each window", shape=pool_shape, nest=_sum_nest, evaluate=_evaluate("add"),
         dtypes=FLOATS, vjp=_sum_vjp, windows=_windows_apart, tolerance=32, floor=1e-5),
)  # fmt: skip
