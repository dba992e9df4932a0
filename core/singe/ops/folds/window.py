"""The rows that slide a window: pooling over any axes.

window, strides, dilations, before and after name every axis (1, 1, 1, 0, 0 for an axis without a window), so that a
change of layout only permutes them. Elements outside the input are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...dtypes import FLOATS, NUMBERS, bool_, dtype, int32, int64
from ...errors import ShapeError
from ...ir import affine, scalar
from ...ir.affine import flatten
from ...ir.arrays import convert
from ...ir.kernel import IDENTITY
from ...ir.scalar import Expr, const, select, size
from ...shapes import Dim, Shape, ceildiv, dim_max, dim_min, show
from ..kinds import WHOLE_RESULT, Folds, Nest, Read, Shaped, register


def window_size(d: Dim, window: int, stride: int, dilation: int, before: Dim, after: Dim) -> Dim:
    """How many positions a window has along an axis."""
    return (d + before + after - (dilation * (window - 1) + 1)) // stride + 1


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
    out = tuple(window_size(*facts) for facts in zip(x.shape, window, strides, dilations, before, after, strict=True))
    if any(isinstance(n, int) and n <= 0 and d != 0 for n, d in zip(out, x.shape, strict=True)):
        raise ShapeError(f"pool: the window {tuple(window)} is larger than the padded input {show(x.shape)}")
    return out


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


def windows_of(
    x: np.ndarray, fill: Any, window: Any, strides: Any, dilations: Any, before: Any, after: Any
) -> np.ndarray:
    """Every window of the padded input: axes of places, then axes within the window."""
    if any(before) or any(after):
        x = np.pad(x, list(zip(before, after, strict=True)), constant_values=fill)
    reach = tuple(d * (w - 1) + 1 for w, d in zip(window, dilations, strict=True))
    places = tuple(max(0, d - r + 1) for d, r in zip(x.shape, reach, strict=True))
    every = sliding_window_view(x, reach) if all(places) else np.empty((*places, *reach), x.dtype)
    return every[(*(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))]


def _fold_taps(x: np.ndarray, fill: Any, function: Any, facts: dict[str, Any]) -> np.ndarray:
    """The fold over the window: one whole-array operation for each place of the window."""
    windows = windows_of(x, fill, **facts)
    rank = x.ndim
    out: np.ndarray | None = None
    for tap in np.ndindex(windows.shape[rank:]):
        part = windows[(*[slice(None)] * rank, *tap)]
        out = part.copy() if out is None else function(out, part, out=out)
    assert out is not None
    return out


def wide_floats(x: np.ndarray) -> np.ndarray:
    """Floats in their compute type; other numbers as they are."""
    kind = dtype(x.dtype)
    return convert(x, kind.compute.numpy) if kind.is_float else x


def _least(x: np.ndarray) -> Any:
    return IDENTITY["max"](dtype(x.dtype))


def _max_whole(x: np.ndarray, **facts: Any) -> np.ndarray:
    wide = wide_floats(x)
    return convert(_fold_taps(wide, _least(wide), np.maximum, facts), x.dtype)


def _sum_whole(x: np.ndarray, **facts: Any) -> np.ndarray:
    wide = wide_floats(x)
    return convert(_fold_taps(wide, 0, np.add, facts), x.dtype)


def _max_index_whole(x: np.ndarray, *, column_major: bool = False, **facts: Any) -> np.ndarray:
    order = x.shape if not column_major else (*x.shape[:2], *reversed(x.shape[2:]))
    numbers = np.arange(x.size, dtype=np.int64).reshape(order)
    if column_major:
        numbers = numbers.transpose(0, 1, *reversed(range(2, x.ndim)))
    rank, wide = x.ndim, wide_floats(x)
    values = windows_of(wide, _least(wide), **facts)
    indices = windows_of(numbers, np.iinfo(np.int64).max, **facts)
    best = values.max(tuple(range(rank, 2 * rank)), keepdims=True)
    hit = (values == best) | (np.isnan(values) if values.dtype.kind == "f" else False)
    hits = np.where(hit & (indices < x.size), indices, np.iinfo(np.int32).max)
    return hits.min(tuple(range(rank, 2 * rank)))


def numbers_of(window: Sequence[int]) -> tuple[int, ...]:
    """What a step along each axis of a window adds to the number of a place in it, in row-major order."""
    return tuple(int(np.prod(window[i + 1 :], dtype=int)) if w > 1 else 0 for i, w in enumerate(window))


def _max_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, **facts: Any) -> list[Any]:
    """The gradient goes to the first of the largest elements of each window."""
    facts |= {"numbers": numbers_of(facts["window"])}
    (x,) = inputs
    return [b.unpool_pick(g, b.pool_place(x, **facts), sizes=x.shape, **facts)]


def _sum_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, **facts: Any) -> list[Any]:
    return [b.unpool_sum(g, sizes=inputs[0].shape, numbers=numbers_of(facts["window"]), **facts)]


register(
    Nest(name="max_pool", doc="the largest element of each window", shape=pool_shape, nest=max_nest, whole=_max_whole,
         dtypes=NUMBERS, vjp=_max_vjp, windows=_windows_apart),
    Nest(name="max_pool_index", no_gradient=WHOLE_RESULT, public=False,
         doc="the flat index of the largest element of each window, the first if several are equal", result_type=int64, dtypes=NUMBERS,
         shape=_index_shape, nest=_max_index_nest, whole=_max_index_whole),
    Nest(name="pool_sum", public=False, doc="the sum of each window", shape=pool_shape, nest=_sum_nest, whole=_sum_whole,
         dtypes=FLOATS, vjp=_sum_vjp, windows=_windows_apart, tolerance=32, floor=1e-5),
)  # fmt: skip
