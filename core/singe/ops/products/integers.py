"""The rows that multiply integers and sum exactly: `dot_integers` and `conv_integers`, as `dot` and `conv_last` in int32.

x holds whole numbers as float32, those of a sum within 255 of each other and of 0: 8-bit integers less a zero point. (Sums
of others are not defined.) Weights are int8. Sums are int32, and wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...dtypes import float32, float64, int8, int32, int64
from ...ir import scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const
from ...shapes import Shape
from ..kinds import ROWS, WHOLE_RESULT, Folds, Nest, Read, Shaped, constants_like, register
from ..movement.move import project
from . import contract  # noqa: F401 (registers dot and conv_last)

MOST: Final = 255
"""The largest distance of an element of x from 0 and from the others of its row; a convolution's window is a row."""
_FLOATS: Final = {name: row for name in ("dot", "conv_last") if isinstance(row := ROWS[name], Nest)}
_DOT, _CONV = _FLOATS["dot"], _FLOATS["conv_last"]


def in_steps(b: Any, x: Any) -> tuple[Any, Any, Any]:
    """x in 256 steps that cover its least element, its largest and 0: whole numbers from 0 to 255 in x's own dtype, the length of a step,
    and the number that stands for 0."""
    axes = tuple(range(len(x.shape)))
    none, one, top = constants_like(b, x, 0.0, 1.0, 255.0)
    most = b.reshape(b.maximum(b.reduce_max(x, axes=axes), none), shape=())
    least = b.reshape(b.minimum(b.reduce_min(x, axes=axes), none), shape=())
    step = b.where(b.equal(most, least), one, b.div(b.sub(most, least), top))
    zero = b.clip(b.round(b.div(b.neg(least), step)), none, top)
    return b.clip(b.add(b.round(b.div(x, step)), zero), none, top), step, zero


def _exactly(floats: Folds, weight: Callable[[Sequence[Expr]], Expr]) -> Folds:
    """The folds of float products with 1 as those of whole numbers with weights, given for the inner variables."""
    ((word, value),) = floats.folds
    return Folds(floats.inner, [(word, lambda at, found: scalar.cast(value(at, found), int32) * weight(at))])


def _ones(read: Read) -> Read:
    return lambda k, at: read(0, at) if k == 0 else const(1.0, float32)


def _dot_nest(coords: Sequence[Expr], read: Read, x: Shaped, w: Shaped) -> Folds:
    *batch, _, n = coords
    places = project(batch, w.shape[:-2])
    return _exactly(_DOT.nest(coords, _ones(read), x, w), lambda at: read(1, [*places, *at, n]))


def _conv_nest(coords: Sequence[Expr], read: Read, x: Shaped, w: Shaped, **facts: Any) -> Folds:
    o = coords[-1]
    return _exactly(_CONV.nest(coords, _ones(read), x, w, **facts, group=1), lambda at: read(1, [*at, o]))


def _conv_shape(x: Shaped, w: Shaped, **facts: Any) -> Shape:
    return _CONV.shape(x, w, **facts, group=1)


def _conv_facts(x: Shaped, w: Shaped, **facts: Any) -> Mapping[str, Any] | None:
    return _CONV.facts(x, w, **facts, group=1)


def _summed(xp: ArrayAdapter, row: Nest, x: Array, w: Array, depth: int, **facts: Any) -> Array:
    """The sums by a product of floats in which none is rounded."""
    exact = float32 if depth * MOST * 128 < 2**24 else float64
    total = row.run(xp, (xp.cast(x, exact), xp.cast(w, exact)), facts)
    return xp.cast(xp.cast(total, int32 if exact is float32 else int64), int32)


def _dot_evaluate(xp: ArrayAdapter, x: Array, w: Array) -> Array:
    return _summed(xp, _DOT, x, w, w.shape[-2])


def _conv_evaluate(xp: ArrayAdapter, x: Array, w: Array, **facts: Any) -> Array:
    return _summed(xp, _CONV, x, w, math.prod(w.shape[:-1]), **facts, group=1)


register(
    Nest(name="dot_integers", public=False, doc="product of whole numbers in float32 and 8-bit integers, summed in int32", routine="matmul_integers",
        no_gradient=WHOLE_RESULT,
         dtypes=(float32,), argument_types=(float32, int8), result_type=int32, shape=_DOT.shape, nest=_dot_nest, evaluate=_dot_evaluate),
    Nest(name="conv_integers", public=False, doc="convolution, channels last, of whole numbers in float32 with 8-bit integers, summed in int32",
        no_gradient=WHOLE_RESULT,
         routine="conv_integers", dtypes=(float32,), argument_types=(float32, int8), result_type=int32, shape=_conv_shape, nest=_conv_nest,
         evaluate=_conv_evaluate, facts=_conv_facts),
)  # fmt: skip
