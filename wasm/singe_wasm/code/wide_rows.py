"""Functions that write rows of floats as integers of 16 bits (ops/products/blocks_int16.py), in the order of packed weights.

Each is (to, source, depth, block, middle). Written are, for each block, its integers, with zeros up to a multiple of eight,
their sum times `middle`, and their sum as a float; at the end the row's step. What lies behind is overwritten, by as much as OVERWRITTEN + a block.

The names of functions whose numbers have eight bits that count begin with "short_".

"halves_for_4_bits"  In the order of the weights in the halves of a word, which is shifted by 4 bits from one to the next.
"bytes_for_4_bits"   The high bytes of a block, then the low ones, both with a sign, in the order of the weights in the
                     bytes of a word, shifted likewise.
"short_groups_for_4_bits"  For each two groups their bytes v in that order, then both n, in 16 bits.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from singe.extension import BYTE_PART, BYTE_TOP_STEPS, GROUP, LARGEST, LEAST_NORMAL, WIDE_PART

from .elementary import WHOLE, WHOLE_BITS
from .encode import Body, Function, FunctionWriters, integers
from .values import I32, F32x4, I32x4, minimum
from .writer import Writer

OVERWRITTEN: Final = 32
"""Bytes."""
_EIGHT: Final = 32
"""Bytes of eight floats, which are written at once."""
_ORDER: Final = {4: (0, 2, 4, 6, 1, 3, 5, 7), 8: tuple(range(8))}
"""Bits of a weight ↦ the order of eight numbers as bytes."""
GROUPS_BYTES: Final = 2 * (GROUP + 2)
"""Bytes of two groups as "short_groups_for_4_bits" writes them."""
_WRITTEN: Final = {"halves": 16, "bytes": 8, "groups": GROUPS_BYTES}
"""Form ↦ the bytes by which eight numbers move on."""


def _record(bits: int, form: str, short: bool) -> Function:
    w = Writer(Body(integers(5)))
    to, source, depth, block, middle = w.parameters()
    end = w.i32(source + (depth << 2))
    at, start, stop, size, total = w.i32(source), w.i32(), w.i32(), w.i32(), w.i32x4()
    apart, behind = w.i32(), w.i32()
    step = w.f32(_largest(w, source, end).as_f32())
    w.set(step, (step * WIDE_PART).where(step <= LARGEST, math.nan))
    scale = w.f32x4((1.0 / step).where(step >= LEAST_NORMAL, 0.0).splat())

    def eight(address: I32) -> None:
        """Adding WHOLE leaves a number in the low half of the sum's bits."""
        numbers = [w.local(address.f32x4(16 * i) * scale) for i in range(2)]
        counts = [_shorten(w, x) for x in numbers] if short else []
        whole = [x * n for x, n in zip(numbers, counts, strict=True)] if short else numbers
        first, second = (w.local((x + WHOLE).integers()) for x in whole)
        w.set(total, total + first + (second - 2 * WHOLE_BITS))
        if form == "groups":
            low = [4 * k for k in _ORDER[bits]]
            v = [(x + WHOLE).integers() for x in numbers]
            w.store_lane(to, v[0].picked(v[1], *low), 64)
            pair = [(n + WHOLE).integers() for n in counts]
            w.store_lane(w.i32(to + 2 * GROUP), (pair[0] & 0xFFFF) | (pair[1] << 16), 32)
        elif form == "halves":
            low, high = first, second
            if bits == 8:
                low, high = first.shuffled(second, 0, 1, 4, 5), first.shuffled(second, 2, 3, 6, 7)
            w.store(to, low & 0xFFFF | high << 16)
        else:
            low = [4 * k for k in _ORDER[bits]]
            w.store_lane(to + apart, first.picked(second, *low), 64)
            w.store_lane(to, (first + 128).picked(second + 128, *(k + 1 for k in low)), 64)
        w.add(to, _WRITTEN[form])

    with w.when(at < end), w.repeat_while(at < end):
        w.set(total, 0)
        w.set(start, to)
        w.set(stop, at + (block << 2))
        w.set(stop, minimum(stop, end))
        w.set(apart, (stop - at + (_EIGHT - 1) & -_EIGHT) >> 2)
        w.set(behind, (apart >> 3) * GROUPS_BYTES if form == "groups" else apart << 1)
        whole = stop - at >= _EIGHT
        with w.when(whole), w.repeat_while(whole), w.scope():
            eight(at)
            w.add(at, _EIGHT)
        w.set(size, stop - at)
        with w.when(size), w.scope():
            rest = w.i32(to + (apart << 1))  # behind all that was written
            w.store(rest, I32x4.of(0))
            w.store(rest, I32x4.of(0), 16)
            w.move(rest, at, size)
            eight(rest)
            w.set(at, stop)
        w.set(to, start + behind)
        for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
            w.set(total, total + total.shuffled(total, *lanes))
        w.store(to, total.lane(0) * middle)
        w.store(to, total.as_floats().lane(0), 4)
        w.add(to, 8)
    w.store(to, step)
    return w.finish()


def _shorten(w: Writer, numbers: F32x4) -> F32x4:
    """Make the numbers of a group their v, in place; gives their n, in each lane."""
    most = w.i32x4(numbers.integers() & 0x7FFFFFFF)
    for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
        w.set(most, most.with_("i32x4.max_s", most.shuffled(most, *lanes)))
    n = w.local((most.floats() * BYTE_PART).raised().within(1.0, BYTE_TOP_STEPS))
    w.set(numbers, (numbers * (1.0 / n)).whole())
    return n


def _largest(w: Writer, source: I32, end: I32) -> I32:
    """The bits of the largest magnitude. As integers, magnitudes are in order, with NaN beyond infinity."""
    at, most = w.i32(source), w.i32x4(0)
    for load, size in (("v128.load", 16), ("v128.load32_zero", 4)):
        left = end - at >= size
        with w.when(left), w.repeat_while(left):
            w.set(most, most.with_("i32x4.max_s", at.i32x4(0, load) & 0x7FFFFFFF))
            w.add(at, size)
    for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
        w.set(most, most.with_("i32x4.max_s", most.shuffled(most, *lanes)))
    return most.lane(0)


WIDE_ROWS: Final[FunctionWriters] = {
    f"{'short_' if short else ''}{form}_for_{bits}_bits": partial(_record, bits, form, short)
    for form, bits, short in (
        *((form, bits, False) for form in ("halves", "bytes") for bits in (4, 8)),
        *((form, 4, True) for form in ("halves", "bytes", "groups")),
    )
}
