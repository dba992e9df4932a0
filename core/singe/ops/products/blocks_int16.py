"""The row that multiplies rows in 16-bit integers by weights of a few bits: `dot_blocks_int16`, the quantised form of `dot_blocks`.

Weights are as in blocks.py. The other operand is quantised at run time, each row by itself: x ≈ q · step, q from −32639 to
32639, where the row's largest magnitude is 32639 steps; so q is two bytes with a sign, 256 · high + low. The products of
a block are sums of integers, which a kernel may take in any order; a block's sum is scaled in float32. So nothing else is
rounded than in a product of floats.

A row that holds NaN or an infinity gives NaN. A row whose step is not a normal float32 counts as zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...dtypes import LEAST_NORMAL, float32, int32
from ...errors import ShapeError
from ...ir import scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const
from ...shapes import Shape
from ..kinds import ROWS, Folds, Nest, Read, Shaped, register
from .quantised import LARGEST

WIDE_TOP: Final = 127 * 256 + 127
"""The largest q."""
WIDE_PART: Final = float(np.float32(1 / WIDE_TOP))
"""1 / WIDE_TOP in float32."""
MAX_BLOCK: Final = {4: 4096, 8: 256}
"""Bits of a weight ↦ the longest block whose sum surely fits an int32."""
_FLOATS: Final = ROWS["dot_blocks"]
assert isinstance(_FLOATS, Nest)


def _shape(x: Shaped, w: Shaped, scale: Shaped, zero: Shaped, *, bits: int, block: int) -> Shape:
    shape = _FLOATS.shape(x, w, scale, zero, bits=bits, block=block)
    if block > MAX_BLOCK[bits]:
        raise ShapeError(
            f"dot_blocks_int16: got blocks of {block} weights of {bits} bits, expected at most {MAX_BLOCK[bits]}"
        )
    return shape


def wide_step_of(most: Expr) -> Expr:
    """A row's step, from its largest magnitude; NaN if that is not finite."""
    most = scalar.maximum(most, 0.0)
    return scalar.select(scalar.le(most, LARGEST), most * WIDE_PART, const(math.nan, float32))


def _quantised(x: Expr, most: Expr) -> Expr:
    step = wide_step_of(most)
    inverse = scalar.select(scalar.le(LEAST_NORMAL, step), scalar.div(1.0, step), const(0.0, float32))
    return scalar.cast(scalar.cast(scalar.round_(x * inverse), int32), float32)


def _nest(
    coords: Sequence[Expr], read: Read, x: Shaped, w: Shaped, scale: Shaped, zero: Shaped, *, bits: int, block: int
) -> Folds:
    floats = _FLOATS.nest(coords, read, x, w, scale, zero, bits=bits, block=block)
    ((_, product),) = floats.folds

    def parts(inner: Sequence[Expr]) -> tuple[Expr, Expr]:
        value, weight = product(inner, ()).args
        return value, weight

    def total(inner: Sequence[Expr], folded: Sequence[Expr]) -> Expr:
        value, weight = parts(inner)
        return _quantised(value, folded[0]) * weight

    def result(folded: Sequence[Expr]) -> Expr:
        return folded[1] * wide_step_of(folded[0])

    return Folds(floats.inner, [("max", lambda inner, _: scalar.absolute(parts(inner)[0])), ("add", total)], result)


def _evaluate(xp: ArrayAdapter, x: Array, w: Array, scale: Array, zero: Array, *, bits: int, block: int) -> Array:
    zeros = xp.full((), 0, float32)
    most = xp.maximum(xp.fold("max", xp.maximum(x, -x), (-1,)), zeros)
    step = xp.where(most <= LARGEST, most * WIDE_PART, xp.full((), math.nan, float32))
    inverse = xp.where(step >= LEAST_NORMAL, 1 / step, zeros)
    q = xp.round(x * inverse)
    q = xp.where(xp.isnan(q), zeros, q)
    assert _FLOATS.evaluate is not None
    return _FLOATS.evaluate(xp, q, w, scale, zero, bits=bits, block=block) * step


register(
    Nest(name="dot_blocks_int16", public=False, doc="product of float rows, quantised to 16 bits, with weights of 4 or 8 bits", routine="matmul_blocks_int16",
         no_gradient="it rounds its input to 16 bits",
         dtypes=(float32,), argument_types=_FLOATS.argument_types, result_type=float32, shape=_shape, nest=_nest, evaluate=_evaluate,
         facts=_FLOATS.facts, tolerance=64, floor=1e-5),
)  # fmt: skip
