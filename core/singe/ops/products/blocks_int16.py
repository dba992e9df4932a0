"""The rows that multiply rows in integers by weights of a few bits, quantised forms of `dot_blocks`: `dot_blocks_int16`, and
`dot_blocks_int8`, for weights of 4 bits.

Weights are as in blocks.py. The other operand is quantised at run time, each row by itself: x ≈ q · step, q from −32639 to
32639, where the row's largest magnitude is 32639 steps; so q is two bytes with a sign, 256 · high + low. The products of
a block are sums of integers, which a kernel may take in any order; a block's sum is scaled in float32. So nothing else is
rounded than in a product of floats.

In `dot_blocks_int8` eight bits of a q count. Four neighbours along the depth share a whole number n, as small as may be: q = n · v, v from
−127 to 127. So the same integers come of either size of product, and a few large elements of a row cost the others nothing.

A row that holds NaN or an infinity gives NaN. A row whose step is not a normal float32 counts as zeros.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final

import numpy as np

from ...dtypes import LEAST_NORMAL, float32, int32, int64
from ...errors import ShapeError
from ...ir import affine, scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const
from ...shapes import Shape
from ..kinds import ROWS, Folds, Nest, Read, Shaped, register
from .quantised import LARGEST

WIDE_TOP: Final = 127 * 256 + 127
"""The largest q."""
WIDE_PART: Final = float(np.float32(1 / WIDE_TOP))
"""1 / WIDE_TOP in float32."""
GROUP: Final = 4
"""Neighbours that share a number n."""
BYTE_TOP: Final = 127
"""The largest v."""
BYTE_PART: Final = float(np.float32(1 / BYTE_TOP))
"""1 / BYTE_TOP in float32."""
BYTE_TOP_STEPS: Final = WIDE_TOP // BYTE_TOP
"""The largest n."""
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


def _shape_of_bytes(x: Shaped, w: Shaped, scale: Shaped, zero: Shaped, *, bits: int, block: int) -> Shape:
    if bits != 4:
        raise ShapeError(f"dot_blocks_int8: got weights of {bits} bits, expected 4")
    return _shape(x, w, scale, zero, bits=bits, block=block)


def wide_step_of(most: Expr) -> Expr:
    """A row's step, from its largest magnitude; NaN if that is not finite."""
    most = scalar.maximum(most, 0.0)
    return scalar.select(scalar.le(most, LARGEST), most * WIDE_PART, const(math.nan, float32))


def _inverse(most: Expr) -> Expr:
    step = wide_step_of(most)
    return scalar.select(scalar.le(LEAST_NORMAL, step), scalar.div(1.0, step), const(0.0, float32))


def _whole(x: Expr) -> Expr:
    return scalar.cast(scalar.cast(scalar.round_(x), int32), float32)


def _in_bytes(x: Expr, largest: Expr) -> Expr:
    """A number, in steps of the row, of which eight bits count. largest: the largest magnitude of its group, likewise."""
    n = scalar.clip(scalar.ceil(largest * BYTE_PART), 1.0, BYTE_TOP_STEPS)
    return _whole(x * scalar.div(1.0, n)) * n


def _nest(
    coords: Sequence[Expr], read: Read, x: Shaped, w: Shaped, scale: Shaped, zero: Shaped, *, bits: int, block: int,
    in_bytes: bool = False,
) -> Folds:  # fmt: skip
    floats = _FLOATS.nest(coords, read, x, w, scale, zero, bits=bits, block=block)
    ((_, product),) = floats.folds
    depth = x.shape[-1]

    def parts(inner: Sequence[Expr]) -> tuple[Expr, Expr]:
        value, weight = product(inner, ()).args
        return value, weight

    def total(inner: Sequence[Expr], folded: Sequence[Expr]) -> Expr:
        value, weight = parts(inner)
        inverse = _inverse(folded[0])
        if not in_bytes:
            return _whole(value * inverse) * weight
        assert isinstance(depth, int)  # of constant weights
        first, last = affine.index_div(inner[0], GROUP) * GROUP, max(depth - 1, 0)
        group = [scalar.absolute(parts([scalar.minimum(first + j, last)])[0]) for j in range(GROUP)]
        return _in_bytes(value * inverse, reduce(scalar.maximum, group) * inverse) * weight

    def result(folded: Sequence[Expr]) -> Expr:
        return folded[1] * wide_step_of(folded[0])

    return Folds(floats.inner, [("max", lambda inner, _: scalar.absolute(parts(inner)[0])), ("add", total)], result)


def _evaluate(
    xp: ArrayAdapter, x: Array, w: Array, scale: Array, zero: Array, *, bits: int, block: int, in_bytes: bool = False
) -> Array:
    zeros = xp.full((), 0, float32)
    most = xp.maximum(xp.fold("max", xp.maximum(x, -x), (-1,)), zeros)
    step = xp.where(most <= LARGEST, most * WIDE_PART, xp.full((), math.nan, float32))
    inverse = xp.where(step >= LEAST_NORMAL, 1 / step, zeros)
    q = x * inverse
    q = _rounded_to_bytes(xp, q) if in_bytes else xp.round(q)
    q = xp.where(xp.isnan(q), zeros, q)
    assert _FLOATS.evaluate is not None
    return _FLOATS.evaluate(xp, q, w, scale, zero, bits=bits, block=block) * step


def _rounded_to_bytes(xp: ArrayAdapter, x: Array) -> Array:
    """As `_in_bytes`."""
    depth = x.shape[-1]
    groups = -(-depth // GROUP)
    places = xp.clip(xp.arange(groups * GROUP, int64), 0, max(depth - 1, 0))
    magnitudes = xp.take(xp.maximum(x, -x), places, axis=-1)
    largest = xp.fold("max", xp.reshape(magnitudes, (*x.shape[:-1], groups, GROUP)), (-1,))[..., 0]
    n = xp.clip(xp.ceil(largest * BYTE_PART), 1, BYTE_TOP_STEPS)
    each = xp.take(n, xp.arange(depth, int64) // GROUP, axis=-1)
    return xp.round(x * (1 / each)) * each


def _facts_of_bytes(*inputs: Shaped, bits: int, block: int) -> Mapping[str, Any]:
    return {"bits": bits, "block": block, "in_bytes": True}


register(
    Nest(name="dot_blocks_int16", public=False, doc="product of float rows, quantised to 16 bits, with weights of 4 or 8 bits", routine="matmul_blocks_int16",
         no_gradient="it rounds its input to 16 bits",
         dtypes=(float32,), argument_types=_FLOATS.argument_types, result_type=float32, shape=_shape, nest=_nest, evaluate=_evaluate,
         facts=_FLOATS.facts, tolerance=64, floor=1e-5),
    Nest(name="dot_blocks_int8", public=False, doc="product of float rows, quantised to 8 bits, with weights of 4 bits", routine="matmul_blocks_int16",
         no_gradient="it rounds its input to 8 bits",
         dtypes=(float32,), argument_types=_FLOATS.argument_types, result_type=float32, shape=_shape_of_bytes, nest=partial(_nest, in_bytes=True),
         evaluate=partial(_evaluate, in_bytes=True), facts=_facts_of_bytes, tolerance=64, floor=1e-5),
)  # fmt: skip
