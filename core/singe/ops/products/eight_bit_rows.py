"""Rows in eight bits, as a cache may hold keys and values: blocks of int32 words. Each word but the last of a block has four whole numbers
from −127 to 127, the first in its lowest bits; the last has the bits of the float32 by which the numbers of its block are multiplied."""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

from ...dtypes import FLOATS, DType, float32, int32
from ...errors import ShapeError
from ...ir.attention import EIGHT_BIT_BLOCK as BLOCK
from ...ir.attention import WORDS_OF_A_BLOCK as WORDS
from ...shapes import Dim, show
from ..kinds import Composite, as_dtype, register
from ..movement.move import numbered

_BITS: Final = 8
_EACH: Final = 32 // _BITS
"""The numbers of a word."""
_MOST: Final = 127


def words_of_row(size: Dim) -> int:
    """How many words hold a row of so many numbers."""
    if not isinstance(size, int) or size % BLOCK:
        raise ShapeError(f"eight_bit_rows: got rows of {size} elements, expected a multiple of {BLOCK}")
    return size // BLOCK * WORDS


def _eight_bit_rows(b: Any, x: Any) -> Any:
    """The last word of a block is made of four zeros first, so that all words are one elementwise expression, which an update of a cache
    computes as it writes."""
    *outer, size = x.shape
    words = words_of_row(size)
    outer = [*outer, size // BLOCK]
    zeros, ones = (0,) * len(outer), (1,) * len(outer)
    zero, most = b.const(0, float32), b.const(_MOST, float32)
    x = b.reshape(as_dtype(b, x, float32), shape=(*outer, BLOCK))
    x = b.pad(x, zero, before=(*zeros, 0), after=(*zeros, _EACH), mode="constant")
    scale = b.mul(b.reduce_max(b.abs(x), axes=(-1,)), b.const(1 / _MOST, float32))
    whole = b.round(b.div(x, b.where(b.equal(scale, zero), b.const(1, float32), scale)))
    whole = b.clip(whole, b.neg(most), most)  # of a subnormal scale, bits are lost
    low = b.bitwise_and(b.cast(whole, to=int32), b.const(2**_BITS - 1, int32))
    parts = [
        b.bitwise_left_shift(
            b.slice(low, starts=(*zeros, i), steps=(*ones, _EACH), sizes=(*outer, WORDS)), b.const(_BITS * i, int32)
        )
        for i in range(_EACH)
    ]
    is_scale = b.equal(numbered(b, WORDS), b.const(WORDS - 1, int32))
    made = b.where(is_scale, b.bit_cast(scale, to=int32), reduce(b.bitwise_or, parts))
    return b.reshape(made, shape=(*outer[:-1], words))


def floats_of_rows(b: Any, rows: Any, kind: DType) -> Any:
    """The numbers (…, size) that rows in eight bits stand for."""
    *outer, words = rows.shape
    if not isinstance(words, int) or words % WORDS:
        raise ShapeError(
            f"rows in eight bits: got int32{show(rows.shape)}, expected a multiple of {WORDS} words in a row"
        )
    blocks = words // WORDS
    rows = b.reshape(rows, shape=(*outer, blocks, WORDS))
    whole, scale = (
        b.slice(
            rows, starts=(*(0,) * (len(outer) + 1), first), steps=(1,) * (len(outer) + 2), sizes=(*outer, blocks, count)
        )
        for first, count in ((0, WORDS - 1), (WORDS - 1, 1))
    )
    above = b.mul(b.sub(b.const(_EACH - 1, int32), numbered(b, _EACH)), b.const(_BITS, int32))
    lifted = b.bitwise_left_shift(b.reshape(whole, shape=(*whole.shape, 1)), above)
    numbers = b.bitwise_right_shift(lifted, b.const(32 - _BITS, int32))
    floats = b.cast(b.reshape(numbers, shape=(*outer, blocks, BLOCK)), to=float32)
    scaled = b.mul(floats, b.bit_cast(scale, to=float32))
    return as_dtype(b, b.reshape(scaled, shape=(*outer, blocks * BLOCK)), kind)


register(
    Composite(name="eight_bit_rows", public=False, doc="the rows of the last axis in eight bits, with a scale for each 32 numbers: four "
              "numbers to an int32, and after them the bits of the scale", lower=_eight_bit_rows, dtypes=FLOATS,
              no_gradient="the numbers are rounded"),
)  # fmt: skip
