"""The rows that undo pooling, which make its gradients: elements go back to the places of the windows that they came from.

The attributes are those of pooling (see window.py), and `numbers`: what a step along each axis of the window adds to the
number of a place in it. sizes: the shape of what was pooled.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...dtypes import FLOATS, DType, bool_, int32
from ...errors import ShapeError
from ...ir import affine, scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const, select, size
from ...shapes import Dim, Shape, ceildiv, show
from ..kinds import WHOLE_RESULT, Folds, Nest, Read, Shaped, register
from .window import inner_of, max_nest, pool_shape, reader

NONE = 1 << 30
"""Above the number of every place of a window."""


# --- the place of the largest element, and the element at a place ----------------------------------------------------


def _place_shape(x: Shaped, numbers: Sequence[int], **facts: Any) -> Shape:
    return pool_shape(x, **facts)


def _number(inner: Sequence[Expr], window: Sequence[int], numbers: Sequence[int]) -> Expr:
    total: Expr = const(0, int32)
    for t, number in zip(inner, [n for n, w in zip(numbers, window, strict=True) if w > 1], strict=True):
        total = total + t * number
    return total


def _place_nest(coords: Sequence[Expr], read: Read, x: Shaped, numbers: Sequence[int], **facts: Any) -> Folds:
    at = reader(coords, read, x, **facts)
    first = max_nest(coords, read, x, **facts)

    def value(inner: Sequence[Expr], folded: Sequence[Expr]) -> Expr:
        inside, v, _ = at(inner)
        hit = scalar.eq(v, folded[0])
        number = _number(inner, facts["window"], numbers)
        return select(hit if inside is None else inside & hit, number, const(NONE, int32))

    return Folds(first.inner, [*first.folds, ("min", value)], lambda a: a[1])


def _taps(window: Sequence[int], numbers: Sequence[int]) -> list[tuple[tuple[int, ...], int]]:
    """Each place of a window, and its number."""
    return [(t, sum(i * n for i, n in zip(t, numbers, strict=True))) for t in itertools.product(*map(range, window))]


def _place_evaluate(xp: ArrayAdapter, x: Array, numbers: Sequence[int], **facts: Any) -> Array:
    windows = xp.windows(xp.wide(x), -math.inf, **facts)
    shape = windows.shape[: x.ndim]
    best, place = xp.full(shape, -math.inf, xp.dtype(windows)), xp.full(shape, NONE, int32)
    for tap, number in sorted(_taps(facts["window"], numbers), key=lambda pair: pair[1]):
        part = windows[(..., *tap)]
        hit = (part > best) | ((part == best) & (place == NONE))
        place = xp.where(hit, xp.asarray(number, int32), place)
        best = xp.maximum(best, part)
    return place


def _pick_shape(x: Shaped, place: Shaped, numbers: Sequence[int], **facts: Any) -> Shape:
    return pool_shape(x, **facts)


def _pick_nest(coords: Sequence[Expr], read: Read, x: Shaped, place: Shaped, numbers: Any, **facts: Any) -> Folds:
    at = reader(coords, read, x, **facts)

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        inside, v, _place = at(inner)
        hit = scalar.eq(read(1, coords), _number(inner, facts["window"], numbers))
        return select(hit if inside is None else inside & hit, v, const(0, v.dtype))

    return Folds(inner_of(facts["window"]), [("add", value)])


def _pick_evaluate(xp: ArrayAdapter, x: Array, place: Array, numbers: Sequence[int], **facts: Any) -> Array:
    windows = xp.windows(x, 0, **facts)
    out = xp.full(place.shape, 0, xp.dtype(x))
    for tap, number in _taps(facts["window"], numbers):
        out = xp.where(place == number, windows[(..., *tap)], out)
    return out


# --- back to the windows ---------------------------------------------------------------------------------------------


class _Of(NamedTuple):
    """What pooling takes for its input."""

    shape: Shape
    dtype: DType


def _back_shape(g: Shaped, sizes: Shape, **facts: Any) -> Shape:
    wanted = pool_shape(_Of(sizes, g.dtype), **{k: v for k, v in facts.items() if k != "numbers"})
    if len(wanted) != len(g.shape) or any(
        isinstance(d, int) and isinstance(e, int) and d != e for d, e in zip(wanted, g.shape, strict=True)
    ):
        raise ShapeError(f"unpool: got {show(g.shape)}, expected {show(wanted)}, for an input {show(sizes)}")
    return tuple(sizes)


def _picked_shape(g: Shaped, place: Shaped, sizes: Shape, **facts: Any) -> Shape:
    return _back_shape(g, sizes, **facts)


def _back_nest(
    coords: Sequence[Expr], read: Read, inputs: Sequence[Shaped], sizes: Shape, window: Any, strides: Any, dilations: Any,
    before: Any, after: Any, numbers: Sequence[int],
) -> Folds:  # fmt: skip
    """Over the windows that may have an element, from the last that begins at or before it backwards."""
    g = inputs[0]
    reach = [d * (w - 1) + 1 for w, d in zip(window, dilations, strict=True)]
    counts = [ceildiv(r, s) for r, s in zip(reach, strides, strict=True)]

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        if 0 in g.shape:  # there is no element to read
            return const(0, g.dtype.compute)
        turns, inside, place, number = iter(inner), [], [], const(0, int32)
        for axis, c in enumerate(coords):
            n: Dim = g.shape[axis]
            if reach[axis] == 1 and strides[axis] == 1 and before[axis] == 0:
                place.append(c)
                continue
            p = c + size(before[axis])
            at = affine.index_div(p, strides[axis])
            if counts[axis] > 1:
                at = at - next(turns)
                inside.append(at >= 0)
            within = p - at * strides[axis]
            if counts[axis] * strides[axis] > reach[axis]:
                inside.append(within < reach[axis])
            if dilations[axis] > 1:
                inside.append(scalar.eq(scalar.rem(within, const(dilations[axis], int32)), 0))
                within = scalar.div(within, const(dilations[axis], int32))
            last = sizes[axis] - 1 + before[axis]
            if not (isinstance(last, int) and isinstance(n, int) and last // strides[axis] < n):
                inside.append(at < size(n))
            place.append(affine.clamp(at, n))
            number = number + within * numbers[axis]
        v = read(0, place)
        if len(inputs) > 1:
            inside.append(scalar.eq(read(1, place), number))
        counted = const(True, bool_)
        for condition in inside:
            counted = condition if counted.word == "const" else counted & condition
        return select(counted, v, const(0, v.dtype)) if inside else v

    return Folds(tuple(n for n in counts if n > 1), [("add", value)])


def _back_evaluate(xp: ArrayAdapter, arrays: Sequence[Array], sizes: Sequence[int], **facts: Any) -> Array:
    kind, wide = xp.dtype(arrays[0]), xp.wide(arrays[0])
    low, high, strides, dilations = (facts[k] for k in ("before", "after", "strides", "dilations"))
    out = xp.full([d + a + b for d, a, b in zip(sizes, low, high, strict=True)], 0, xp.dtype(wide))
    for tap, number in _taps(facts["window"], facts["numbers"]):
        cut = [
            slice(t * d, t * d + (n - 1) * s + 1, s) if n else slice(0, 0)
            for t, d, n, s in zip(tap, dilations, wide.shape, strides, strict=True)
        ]
        part = wide if len(arrays) == 1 else xp.where(arrays[1] == number, wide, xp.asarray(0, xp.dtype(wide)))
        out = xp.put(out, cut, part, "add", over=True)
    return xp.cast(out[tuple(slice(a, a + d) for a, d in zip(low, sizes, strict=True))], kind)


# --- gradients, rows -------------------------------------------------------------------------------------------------


def _pick_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, **facts: Any) -> list[Any]:
    x, place = inputs
    return [b.unpool_pick(g, place, sizes=x.shape, **facts), None]


def _unpool_pick_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, sizes: Shape, **facts: Any) -> list[Any]:
    return [b.pool_pick(g, inputs[1], **facts), None]


def _unpool_sum_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, sizes: Shape, **facts: Any) -> list[Any]:
    return [b.pool_sum(g, **{k: v for k, v in facts.items() if k != "numbers"})]


register(
    Nest(name="pool_place", public=False, doc="the number of the place in each window of its largest element, the first if several are equal",
         result_type=int32,
        no_gradient=WHOLE_RESULT,
         dtypes=FLOATS, shape=_place_shape, nest=_place_nest, evaluate=_place_evaluate),
    Nest(name="pool_pick", public=False, doc="the element of each window at the place of that number", dtypes=FLOATS, index_inputs=(1,), shape=_pick_shape,
         nest=_pick_nest, evaluate=_pick_evaluate, vjp=_pick_vjp),
    Nest(name="unpool_pick", public=False, doc="for each element the sum over the windows in which it is at the place of that number", dtypes=FLOATS,
         index_inputs=(1,), shape=_picked_shape, evaluate=lambda xp, g, place, sizes, **facts: _back_evaluate(xp, (g, place), sizes, **facts),
         nest=lambda coords, read, g, place, sizes, **facts: _back_nest(coords, read, (g, place), sizes, **facts),
         vjp=_unpool_pick_vjp, tolerance=32, floor=1e-5),
    Nest(name="unpool_sum", public=False, doc="for each element the sum over the windows that have it", dtypes=FLOATS, shape=_back_shape,
         evaluate=lambda xp, g, sizes, **facts: _back_evaluate(xp, (g,), sizes, **facts),
         nest=lambda coords, read, g, sizes, **facts: _back_nest(coords, read, (g,), sizes, **facts),
         vjp=_unpool_sum_vjp, tolerance=32, floor=1e-5),
)  # fmt: skip
