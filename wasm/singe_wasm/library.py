"""All functions that generated code calls: the elementary ones, Winograd's transforms, those of wide_rows.py, and those defined here.

Here are float16's conversions, copies, zeros, and the quantising of rows of floats.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from singe.extension import LARGEST, LEAST_NORMAL, PART, TOP

from .code.doubles import DOUBLES
from .code.elementary import ELEMENTARY, WHOLE, WHOLE_BITS
from .code.encode import Body, Function, FunctionLibrary, i64, integers, v128
from .code.minifloats import MINIFLOATS
from .code.values import F32, I32, I64, F32x4, I32x4, minimum, select
from .code.wide_rows import WIDE_ROWS
from .code.writer import Writer
from .transforms import TRANSFORMS


def _half_to_float() -> Function:
    """The 16 bits of a float16 (an i32) as a float: a multiplication moves the exponent, which handles subnormals too."""
    w, h = Writer(Body(["i32"], ["f32"])), I32(number=0)
    wide = w.i32((h & 0x7FFF) << 13)
    finite = (wide.as_f32() * 2.0**112).bits()
    magnitude = select((h & 0x7C00).below(0x7C00), finite, wide | 0x70000000)  # exponent 31 is infinity or NaN
    return w.finish((magnitude | (h & 0x8000) << 16).as_f32())


def _float_to_half() -> Function:
    """A float as float16's bits, rounded half to even."""
    w, given = Writer(Body(["f32"], ["i32"])), F32(number=0)
    bits = w.i32(given.bits())
    sign = w.i32(bits >> 16 & 0x8000)
    w.set(bits, bits & 0x7FFFFFFF)
    with w.when(bits.above(0x7F800000)):  # NaN, its payload's head kept
        w.leave(bits >> 13 & 0x3FF | 0x7E00 | sign)
    with w.when(bits.below(0x38800000)):  # subnormal: adding 0.5 leaves the rounded units of 2^-24 in the mantissa
        w.leave((bits.as_f32() + 0.5).bits() - 0x3F000000 | sign)
    # Normal: move the exponent and round half to even; what is too large becomes infinity.
    rounded = bits - 0x37FFF001 + (bits >> 13 & 1) >> 13
    return w.finish(select(bits.below(0x477FF000), rounded, 0x7C00) | sign)


def _words(w: Writer, count: I32, move: Callable[[int], None]) -> None:
    """`move` for each 16 and then each 4 bytes of `count` bytes, a multiple of 4; the count is used up."""
    for step in (16, 4):
        with w.when(count >= step), w.repeat_while(count >= step):
            move(step)
            w.add(count, -step)


def _fill_zero() -> Function:
    """(to, bytes): bytes is a multiple of 4."""
    w = Writer(Body(integers(2)))
    to, count = w.parameters()

    def clear(step: int) -> None:
        w.store(to, I32x4.of(0) if step == 16 else I32.of(0))
        w.add(to, step)

    _words(w, count, clear)
    return w.finish()


def _copy_padded() -> Function:
    """(to, before, count, source, whole): zeros, `count` bytes of the source, zeros up to `whole` bytes."""
    w = Writer(Body(integers(5)))
    to, before, count, source, whole = w.parameters()
    w.call("fill_zero", to, before)
    w.set(whole, whole - (before + count))
    w.add(to, before)

    def copy(step: int) -> None:
        w.store(to, source.i32x4() if step == 16 else source.load())
        w.add(to, step)
        w.add(source, step)

    _words(w, count, copy)
    w.call("fill_zero", to, whole)
    return w.finish()


def _quantise(size: int) -> Function:
    """(to, source, runs, length, jump): a row of floats as integers of 0 to 127, `size` bytes each (ops/products/quantised.py).

    The row is `runs` runs of `length` floats, `jump` bytes from the end of one to the next. Written are the integers,
    zeros up to a multiple of four of them, then the row's step and its zero.
    """
    w = Writer(Body(integers(5)))
    to, source, runs, length, jump = w.parameters()
    most, least = w.i32x4(0), w.i32x4(-(1 << 31))
    at = w.i32()

    def extremes(load: str) -> None:
        # Compared as integers, floats of one sign are in order, with NaN beyond infinity; each comparison ignores one sign.
        for into, op in ((most, "i32x4.max_s"), (least, "i32x4.max_u")):
            w.set(into, into.with_(op, at.i32x4(0, load)))

    _over_runs(
        w,
        (source, runs, length, jump),
        at,
        ((4, lambda: extremes("v128.load")), (1, lambda: extremes("v128.load32_zero"))),
    )
    ends = []
    for vector, op in ((most, "i32x4.max_s"), (least, "i32x4.max_u")):
        for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
            w.set(vector, vector.with_(op, vector.shuffled(vector, *lanes)))
        ends.append(w.local(vector.lane(0).as_f32()))
    high, low = ends
    step = w.f32(high * PART - low * PART)
    w.set(step, step.where(step <= LARGEST, math.nan))
    inverse = w.f32((1.0 / step).where(step >= LEAST_NORMAL, 0.0))
    zero = w.i32((-(low * inverse)).rounded())
    shift, scale = w.i32x4((zero - WHOLE_BITS).splat()), w.f32x4(inverse.splat())
    write, four = w.i32(to), w.i32x4()
    top = I32x4(v128(bytes([TOP, 0] if size == 2 else [TOP]) * (16 // size)))

    def numbers(offset: int, load: str = "v128.load") -> I32x4:
        return (at.f32x4(offset, load) * scale + WHOLE).integers() + shift

    def eight(offset: int) -> I32x4:
        return numbers(offset).with_("i16x8.narrow_i32x4_s", numbers(offset + 16))

    def clipped(value: I32x4) -> I32x4:
        """Words of two bytes, clipped; for bytes, narrowed from a pair of vectors."""
        return value.with_("i16x8.max_s", 0).with_("i16x8.min_s", top) if size == 2 else value.with_("i8x16.min_u", top)

    def many() -> None:
        value = eight(0) if size == 2 else eight(0).with_("i8x16.narrow_i16x8_u", eight(32))
        w.store(write, clipped(value))
        w.add(write, 16)

    def few(count: int) -> None:
        w.set(four, numbers(0, "v128.load" if count == 4 else "v128.load32_zero"))
        w.set(four, four.with_("i16x8.narrow_i32x4_s", four))
        if size == 1:
            w.set(four, four.with_("i8x16.narrow_i16x8_u", four))
        w.store_lane(write, clipped(four), 8 * size * count)
        w.add(write, size * count)

    _over_runs(w, (source, runs, length, jump), at, ((16 // size, many), (4, lambda: few(4)), (1, lambda: few(1))))
    w.store(write, I64(i64(0)))
    w.set(write, to + (runs * length + 3 & -4) * size)
    w.store(write, step)
    w.store(write, zero, 4)
    return w.finish()


def _scaled(bits: int) -> Function:
    """(to, source, depth, block): a row of floats as products with packed weights take one (kernels/products/blocks.py). The
    second half of a word's weights of `bits` bits is shifted, and then like the first."""
    w = Writer(Body(integers(4)))
    to, source, depth, block = w.parameters()
    at, end, stop = w.i32(source), w.i32(source + (depth << 2)), w.i32()
    total, values = w.f32x4(), w.f32x4()
    half = 16 // bits
    powers = [2.0 ** -(bits * (k % half)) for k in range(4)]
    scale = w.f32x4()

    def move(load: str) -> None:
        w.set(values, at.f32x4(0, load))
        w.set(total, total + values)
        w.set(values, values * scale)

    with w.when(at < end), w.repeat_while(at < end):
        w.set(total, 0.0)
        w.set(scale, F32x4(v128(struct.pack("<4f", *powers))))
        w.set(stop, at + (block << 2))
        w.set(stop, minimum(stop, end))
        four = stop - at >= 16
        with w.when(four), w.repeat_while(four):
            move("v128.load")
            w.store(to, values)
            w.add(to, 16)
            w.add(at, 16)
        with w.when(at < stop), w.repeat_while(at < stop):
            move("v128.load32_zero")
            w.store_lane(to, values, 32)
            w.set(scale, scale.integers().shuffled(scale.integers(), 1, 2, 3, 0).floats())
            w.add(to, 4)
            w.add(at, 4)
        for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
            w.set(total, total + total.integers().shuffled(total.integers(), *lanes).floats())
        w.store(to, total.lane(0))
        w.add(to, 4)
    return w.finish()


def _words_of() -> Function:
    """(to, source, runs, length, jump): a row of whole numbers in float32 as integers of two bytes, then zeros up to a
    multiple of four of them. The row is as in `_quantise`."""
    w = Writer(Body(integers(5)))
    to, source, runs, length, jump = w.parameters()
    at, write = w.i32(), w.i32(to)

    def numbers(offset: int, load: str = "v128.load") -> I32x4:
        return (at.f32x4(offset, load) + WHOLE).integers() - WHOLE_BITS

    def eight() -> None:
        w.store(write, numbers(0).with_("i16x8.narrow_i32x4_s", numbers(16)))
        w.add(write, 16)

    def few(count: int) -> None:
        four = w.local(numbers(0, "v128.load" if count == 4 else "v128.load32_zero"))
        w.store_lane(write, four.with_("i16x8.narrow_i32x4_s", four), 16 * count)
        w.add(write, 2 * count)

    _over_runs(w, (source, runs, length, jump), at, ((8, eight), (4, lambda: few(4)), (1, lambda: few(1))))
    w.store(write, I64(i64(0)))
    return w.finish()


def _bytes_of() -> Function:
    """(to, source, runs, length, jump): a row of whole numbers in float32 as bytes above the least of them and 0, then
    zeros up to a multiple of four, then 0 and minus the least one. The row is as in `_quantise`."""
    w = Writer(Body(integers(5)))
    to, source, runs, length, jump = w.parameters()
    at, write, least = w.i32(), w.i32(to), w.i32x4(WHOLE_BITS)

    def numbers(offset: int, load: str = "v128.load") -> I32x4:
        return (at.f32x4(offset, load) + WHOLE).integers()

    def smaller(load: str) -> None:
        w.set(least, least.with_("i32x4.min_s", numbers(0, load)))

    row = (source, runs, length, jump)
    _over_runs(w, row, at, ((4, lambda: smaller("v128.load")), (1, lambda: smaller("v128.load32_zero"))))
    for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
        w.set(least, least.with_("i32x4.min_s", least.shuffled(least, *lanes)))

    def eight(offset: int) -> I32x4:
        return (numbers(offset) - least).with_("i16x8.narrow_i32x4_s", numbers(offset + 16) - least)

    def many() -> None:
        w.store(write, eight(0).with_("i8x16.narrow_i16x8_u", eight(32)))
        w.add(write, 16)

    def few(count: int) -> None:
        four = w.local(numbers(0, "v128.load" if count == 4 else "v128.load32_zero") - least)
        w.set(four, four.with_("i16x8.narrow_i32x4_s", four))
        w.store_lane(write, four.with_("i8x16.narrow_i16x8_u", four), 8 * count)
        w.add(write, count)

    _over_runs(w, row, at, ((16, many), (4, lambda: few(4)), (1, lambda: few(1))))
    w.store(write, I64(i64(0)))
    w.set(write, to + (runs * length + 3 & -4))
    w.store(write, I32.of(0))
    w.store(write, WHOLE_BITS - least.lane(0), 4)
    return w.finish()


def _over_runs(
    w: Writer, row: tuple[I32, I32, I32, I32], at: I32, steps: Sequence[tuple[int, Callable[[], None]]]
) -> None:
    """Loops over the floats of a row (source, runs, length, jump): each step takes its count of floats at `at`, as long as
    that many are left."""
    source, runs, length, jump = row
    with w.scope():
        end, turn = w.i32(), w.i32()
        w.set(at, source)
        with w.loop(turn, runs, start=0, sure=True):
            w.set(end, at + (length << 2))
            for count, write in steps:
                enough = end - at >= 4 * count
                with w.when(enough), w.repeat_while(enough):
                    write()
                    w.add(at, 4 * count)
            w.add(at, jump)


LIBRARY: Final = FunctionLibrary({
    **ELEMENTARY,
    "half_to_float": _half_to_float,
    "float_to_half": _float_to_half,
    **MINIFLOATS,
    **DOUBLES,
    "fill_zero": _fill_zero,
    "copy_padded": _copy_padded,
    "quantise_bytes": partial(_quantise, 1),
    "quantise_words": partial(_quantise, 2),
    "scaled_for_4_bits": partial(_scaled, 4),
    "scaled_for_8_bits": partial(_scaled, 8),
    "words_of": _words_of,
    "bytes_of": _bytes_of,
    **TRANSFORMS,
    **WIDE_ROWS,
})  # fmt: skip
