"""All functions that generated code calls: the elementary ones, Winograd's transforms, and what is here.

Here are float16's conversions, copies, zeros, and the quantising of rows of floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from singe.extension import LARGEST, LEAST_NORMAL, PART, TOP

from .elementary import ELEMENTARY, WHOLE, WHOLE_BITS
from .encode import (
    Body,
    Function,
    f32,
    f32x4,
    get_local,
    i32,
    i32x4,
    i64,
    integers,
    lane,
    memory,
    ops,
    shuffle,
    v128,
)
from .transforms import TRANSFORMS


def _half_to_float() -> Function:
    """The 16 bits of a float16 (an i32) as a float: the exponent is moved by a multiplication, which handles subnormals."""
    body = Body(["i32"], ["f32"])
    h = 0
    body.get(h)
    body.add(
        i32(0x7FFF)
        + ops("i32.and")
        + i32(13)
        + ops("i32.shl f32.reinterpret_i32")
        + f32(2.0**112)
        + ops("f32.mul i32.reinterpret_f32")
    )
    # Exponent 31 is infinity or NaN.
    body.get(h)
    body.add(i32(0x7FFF) + ops("i32.and") + i32(13) + ops("i32.shl") + i32(0x70000000) + ops("i32.or"))
    body.get(h)
    body.add(i32(0x7C00) + ops("i32.and") + i32(0x7C00) + ops("i32.lt_u select"))
    body.get(h)
    body.add(i32(0x8000) + ops("i32.and") + i32(16) + ops("i32.shl i32.or f32.reinterpret_i32"))
    return body.finish()


def _float_to_half() -> Function:
    """A float as float16's bits, rounded half to even."""
    body = Body(["f32"], ["i32"])
    bits, sign = body.local("i32"), body.local("i32")
    body.get(0)
    body.op("i32.reinterpret_f32")
    body.tee(bits)
    body.add(i32(16) + ops("i32.shr_u") + i32(0x8000) + ops("i32.and"))
    body.set(sign)
    body.get(bits)
    body.add(i32(0x7FFFFFFF) + ops("i32.and"))
    body.set(bits)
    body.get(bits)
    body.add(i32(0x7F800000) + ops("i32.gt_u"))
    with body.when():  # NaN, its payload's head kept
        body.get(bits)
        body.add(i32(13) + ops("i32.shr_u") + i32(0x3FF) + ops("i32.and") + i32(0x7E00) + ops("i32.or"))
        body.get(sign)
        body.op("i32.or", "return")
    body.get(bits)
    body.add(i32(0x38800000) + ops("i32.lt_u"))
    with body.when():  # subnormal: adding 0.5 leaves the rounded units of 2^-24 in the mantissa
        body.get(bits)
        body.add(
            ops("f32.reinterpret_i32")
            + f32(0.5)
            + ops("f32.add i32.reinterpret_f32")
            + i32(0x3F000000)
            + ops("i32.sub")
        )
        body.get(sign)
        body.op("i32.or", "return")
    # Normal: move the exponent and round half to even; what is too large becomes infinity.
    body.get(bits)
    body.add(i32(0x37FFF001) + ops("i32.sub"))
    body.get(bits)
    body.add(i32(13) + ops("i32.shr_u") + i32(1) + ops("i32.and i32.add") + i32(13) + ops("i32.shr_u"))
    body.add(i32(0x7C00))
    body.get(bits)
    body.add(i32(0x477FF000) + ops("i32.lt_u select"))
    body.get(sign)
    body.op("i32.or")
    return body.finish()


def _copy_words(body: Body, to: int, source: int, count: int) -> None:
    """Copy `count` bytes, a multiple of 4; all three locals are moved on."""
    for step, load, store in ((16, "v128.load", "v128.store"), (4, "i32.load", "i32.store")):
        with body.block():
            body.get(count)
            body.add(i32(step) + ops("i32.lt_s"))
            body.exit_if()
            with body.repeat():
                body.get(to, source)
                body.add(memory(load) + memory(store))
                body.increase(to, step)
                body.increase(source, step)
                body.get(count)
                body.add(i32(step) + ops("i32.sub"))
                body.tee(count)
                body.add(i32(step) + ops("i32.ge_s"))


def _fill_zero() -> Function:
    """(to, bytes): bytes is a multiple of 4."""
    body = Body(["i32", "i32"])
    to, count = 0, 1
    for step, zero, store in ((16, i32x4(0), "v128.store"), (4, i32(0), "i32.store")):
        with body.block():
            body.get(count)
            body.add(i32(step) + ops("i32.lt_s"))
            body.exit_if()
            with body.repeat():
                body.get(to)
                body.add(zero + memory(store))
                body.increase(to, step)
                body.get(count)
                body.add(i32(step) + ops("i32.sub"))
                body.tee(count)
                body.add(i32(step) + ops("i32.ge_s"))
    return body.finish()


def _copy_padded() -> Function:
    """(to, before, count, source, whole): zeros, `count` bytes of the source, zeros up to `whole` bytes."""
    body = Body(integers(5))
    to, before, count, source, whole = range(5)
    body.get(to, before)
    body.call("fill_zero")
    body.get(whole, before, count)
    body.op("i32.add", "i32.sub")
    body.set(whole)
    body.get(to, before)
    body.op("i32.add")
    body.set(to)
    _copy_words(body, to, source, count)
    body.get(to, whole)
    body.call("fill_zero")
    return body.finish()


def _quantise(size: int) -> Function:
    """(to, source, runs, length, jump): a row of floats as integers of 0 to 127, `size` bytes each (ops/quantised.py).

    The row is `runs` runs of `length` floats, `jump` bytes from the end of one to the next. Written are the integers,
    zeros up to a multiple of four of them, then the row's step and its zero.
    """
    body = Body(integers(5))
    to, source, runs, length, jump = range(5)
    most, least = body.local("v128"), body.local("v128")

    def extremes(load: str) -> None:
        # As integers, floats of one sign are in order, NaN beyond infinity; those of the other sign do not count here.
        for into, op in ((most, "i32x4.max_s"), (least, "i32x4.max_u")):
            body.get(into, at)
            body.add(memory(load) + ops(op))
            body.set(into)

    at, end, turn = (body.local("i32") for _ in range(3))
    body.add(i32x4(0))
    body.set(most)
    body.add(i32x4(-(1 << 31)))
    body.set(least)
    steps = ((4, lambda: extremes("v128.load")), (1, lambda: extremes("v128.load32_zero")))
    _over_runs(body, (source, runs, length, jump), (at, end, turn), steps)
    high, low, step, inverse = (body.local("f32") for _ in range(4))
    for vector, op, into in ((most, "i32x4.max_s", high), (least, "i32x4.max_u", low)):
        for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
            body.get(vector, vector, vector)
            body.add(shuffle(*lanes) + ops(op))
            body.set(vector)
        body.get(vector)
        body.add(lane("i32x4.extract_lane", 0) + ops("f32.reinterpret_i32"))
        body.set(into)
    body.get(high)
    body.add(f32(PART) + ops("f32.mul"))
    body.get(low)
    body.add(f32(PART) + ops("f32.mul f32.sub"))
    body.tee(step)
    body.add(f32(math.nan))
    body.get(step)
    body.add(f32(LARGEST) + ops("f32.le select"))
    body.set(step)
    body.add(f32(1.0))
    body.get(step)
    body.add(ops("f32.div") + f32(0.0))
    body.get(step)
    body.add(f32(LEAST_NORMAL) + ops("f32.ge select"))
    body.set(inverse)
    zero, scale, shift = body.local("i32"), body.local("v128"), body.local("v128")
    body.get(low, inverse)
    body.op("f32.mul", "f32.neg", "f32.nearest", "i32.trunc_sat_f32_s")
    body.tee(zero)
    body.add(i32(WHOLE_BITS) + ops("i32.sub i32x4.splat"))
    body.set(shift)
    body.get(inverse)
    body.op("f32x4.splat")
    body.set(scale)
    write, four = body.local("i32"), body.local("v128")
    body.get(to)
    body.set(write)

    def push(offset: int, load: str = "v128.load") -> None:
        body.get(at)
        body.add(memory(load, offset))
        body.get(scale)
        body.add(ops("f32x4.mul") + f32x4(WHOLE) + ops("f32x4.add"))
        body.get(shift)
        body.op("i32x4.add")

    def eight(offset: int) -> None:
        push(offset)
        push(offset + 16)
        body.op("i16x8.narrow_i32x4_s")

    def clip() -> None:
        """Of the eight on the stack, or of the eight twice."""
        top = v128(bytes([TOP, 0] if size == 2 else [TOP]) * (16 // size))
        body.add(
            i32x4(0) + ops("i16x8.max_s") + top + ops("i16x8.min_s")
            if size == 2
            else ops("i8x16.narrow_i16x8_u") + top + ops("i8x16.min_u")
        )

    def many() -> None:
        body.get(write)
        for offset in range(0, 64 // size, 32):
            eight(offset)
        clip()
        body.add(memory("v128.store"))
        body.increase(write, 16)

    def few(count: int) -> None:
        body.get(write)
        push(0, "v128.load" if count == 4 else "v128.load32_zero")
        body.tee(four)
        body.get(four)
        body.op("i16x8.narrow_i32x4_s")
        if size == 1:
            body.tee(four)
            body.get(four)
        clip()
        body.add(memory(f"v128.store{8 * size * count}_lane") + b"\x00")
        body.increase(write, size * count)

    _over_runs(
        body,
        (source, runs, length, jump),
        (at, end, turn),
        ((16 // size, many), (4, lambda: few(4)), (1, lambda: few(1))),
    )
    body.get(write)
    body.add(i64(0) + memory("i64.store"))
    body.get(to, runs, length)
    body.add(ops("i32.mul") + i32(3) + ops("i32.add") + i32(-4) + ops("i32.and") + i32(size) + ops("i32.mul i32.add"))
    body.tee(write)
    body.get(step)
    body.add(memory("f32.store"))
    body.get(write, zero)
    body.add(memory("i32.store", 4))
    return body.finish()


def _over_runs(
    body: Body,
    row: tuple[int, int, int, int],
    own: tuple[int, int, int],
    steps: Sequence[tuple[int, Callable[[], None]]],
) -> None:
    """All floats of a row (source, runs, length, jump): by each step as many at once as it takes, while so many are left."""
    source, runs, length, jump = row
    at, end, turn = own
    body.get(source)
    body.set(at)
    body.add(i32(0))
    body.set(turn)
    with body.count(turn, get_local(runs), 1, True):
        body.get(at, length)
        body.add(i32(2) + ops("i32.shl i32.add"))
        body.set(end)
        for count, write in steps:
            with body.block():
                body.add(b"\x03\x40")
                body.get(end, at)
                body.add(ops("i32.sub") + i32(4 * count) + ops("i32.lt_s"))
                body.exit_if(1)
                write()
                body.increase(at, 4 * count)
                body.add(b"\x0c\x00\x0b")
        body.get(at, jump)
        body.op("i32.add")
        body.set(at)


LIBRARY: Final[Mapping[str, Function]] = {
    **ELEMENTARY,
    "half_to_float": _half_to_float(),
    "float_to_half": _float_to_half(),
    "fill_zero": _fill_zero(),
    "copy_padded": _copy_padded(),
    "quantise_bytes": _quantise(1),
    "quantise_words": _quantise(2),
    **TRANSFORMS,
}
