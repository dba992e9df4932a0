"""Functions that generated code calls: exp, log, sin, cos and tanh of four floats, fmod, float16's conversions, and copies.

The vector functions are accurate to a few units in the last place and answer ±inf, NaN, zeros and subnormals as NumPy
does. sin and cos reduce their argument in float64 and are good for |x| up to some 1e8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from singe.ops.quantised import LARGEST, LEAST, PART, TOP

from .encode import (
    Body,
    Function,
    f32,
    f32x4,
    f64,
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
from .simd import AGAINST_NUMBER
from .transforms import TRANSFORMS

_INF: Final = math.inf
_LOG2E: Final = 1.4426950408889634
# What a small number is rounded by when it is added: its last place is a one. As bits it is the number before plus these.
_WHOLE, _WHOLE_BITS = 12582912.0, 0x4B400000
# ln 2 and π/2 as a part that few bits hold, so that its products are exact, and the rest.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_HALF_PI_HIGH, _HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11
_EXP: Final = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOG: Final = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)
_SIN: Final = (2.7181216275e-6, -1.9839334836e-4, 8.3333293855e-3, -1.6666666641e-1)
_COS: Final = (2.4390448796e-5, -1.3887316255e-3, 4.1666645683e-2, -0.5)
_TANH_P: Final = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-8,
    1.48572235717979e-5, 6.37261928875436e-4, 4.89352455891786e-3,
)  # fmt: skip
_TANH_Q: Final = (1.19825839466702e-6, 1.18534705686654e-4, 2.26843463243900e-3, 4.89352518554385e-3)


def _horner(body: Body, x: int, coefficients: Sequence[float]) -> None:
    """Push the polynomial in local x, its highest coefficient first."""
    body.add(f32x4(coefficients[0]))
    for c in coefficients[1:]:
        body.get(x)
        body.op("f32x4.mul")
        body.add(f32x4(c))
        body.op("f32x4.add")


def _within(low: float, high: float) -> bytes:
    """Code that holds a vector between two numbers; NaN stays."""
    return f32x4(low) + AGAINST_NUMBER["max"] + f32x4(high) + AGAINST_NUMBER["min"]


def _exp() -> Function:
    body = Body(["v128"], ["v128"])
    x, n, k = 0, body.local("v128"), body.local("v128")
    # Beyond these bounds the result is 0 or infinite anyway.
    body.get(x)
    body.add(_within(-104.0, 89.0))
    body.tee(x)
    body.add(f32x4(_LOG2E) + ops("f32x4.mul") + f32x4(_WHOLE) + ops("f32x4.add"))
    body.tee(k)
    body.add(f32x4(_WHOLE) + ops("f32x4.sub"))
    body.set(n)
    body.get(k)
    body.add(i32x4(_WHOLE_BITS) + ops("i32x4.sub"))
    body.set(k)
    body.get(x, n)
    body.add(f32x4(_LN2_HIGH) + ops("f32x4.mul f32x4.sub"))
    body.get(n)
    body.add(f32x4(_LN2_LOW) + ops("f32x4.mul f32x4.sub"))
    body.set(x)
    _horner(body, x, _EXP)
    body.get(x, x)
    body.op("f32x4.mul", "f32x4.mul")
    body.get(x)
    body.add(ops("f32x4.add") + f32x4(1.0) + ops("f32x4.add"))
    # Scale by 2^k in two steps: 2^k itself may not be a float though the result is.
    half = n
    body.get(k)
    body.add(i32(1) + ops("i32x4.shr_s"))
    body.tee(half)
    _power_of_two(body)
    body.op("f32x4.mul")
    body.get(k, half)
    body.op("i32x4.sub")
    _power_of_two(body)
    body.op("f32x4.mul")
    return body.finish()


def _power_of_two(body: Body) -> None:
    body.add(i32x4(127) + ops("i32x4.add") + i32(23) + ops("i32x4.shl"))


def _log() -> Function:
    body = Body(["v128"], ["v128"])
    x, y, k, f, s, z, half = 0, *(body.local("v128") for _ in range(6))
    small = y
    # Subnormals are scaled up by 2^25.
    body.get(x)
    body.add(f32x4(2.0**-126) + ops("f32x4.lt"))
    body.set(small)
    body.get(small)
    body.add(i32x4(25) + ops("v128.and"))
    body.set(k)
    body.get(x)
    body.add(f32x4(2.0**25) + ops("f32x4.mul"))
    body.get(x, small)
    body.add(ops("v128.bitselect") + i32x4(0x3F800000 - 0x3F3504F3) + ops("i32x4.add"))
    body.tee(y)
    body.add(i32(23) + ops("i32x4.shr_s") + i32x4(127) + ops("i32x4.sub"))
    body.get(k)
    body.op("i32x4.sub", "f32x4.convert_i32x4_s")
    body.set(k)
    body.get(y)
    body.add(i32x4(0x007FFFFF) + ops("v128.and") + i32x4(0x3F3504F3) + ops("i32x4.add") + f32x4(1.0) + ops("f32x4.sub"))
    body.tee(f)
    body.get(f)
    body.add(f32x4(2.0) + ops("f32x4.add f32x4.div"))
    body.tee(s)
    body.get(s)
    body.op("f32x4.mul")
    body.set(z)
    body.add(f32x4(0.5))
    body.get(f, f)
    body.op("f32x4.mul", "f32x4.mul")
    body.set(half)
    # s·(half + R(z)) + k·low − half + f + k·high
    _horner(body, z, _LOG)
    body.get(z)
    body.op("f32x4.mul")
    body.get(half)
    body.op("f32x4.add")
    body.get(s)
    body.op("f32x4.mul")
    body.get(k)
    body.add(f32x4(_LN2_LOW) + ops("f32x4.mul f32x4.add"))
    body.get(half)
    body.op("f32x4.sub")
    body.get(f)
    body.op("f32x4.add")
    body.get(k)
    body.add(f32x4(_LN2_HIGH) + ops("f32x4.mul f32x4.add"))
    body.set(y)
    # Infinity and NaN answer themselves, zero −inf, what is negative NaN.
    body.get(x)
    body.get(y)
    body.get(x)
    body.add(f32x4(_INF) + ops("f32x4.eq"))
    body.get(x, x)
    body.add(ops("f32x4.ne v128.or v128.bitselect"))
    body.set(y)
    body.add(f32x4(-_INF))
    body.get(y, x)
    body.add(f32x4(0.0) + ops("f32x4.eq v128.bitselect"))
    body.set(y)
    body.add(f32x4(math.nan))
    body.get(y, x)
    body.add(f32x4(0.0) + ops("f32x4.lt v128.bitselect"))
    return body.finish()


def _sine(quarter_turns: int) -> Callable[[], Function]:
    """sin(x + quarter_turns · π/2)."""

    def build() -> Function:
        body = Body(["v128"], ["v128"])
        x, r, q, z = 0, *(body.local("v128") for _ in range(3))
        halves = [(body.local("v128"), body.local("v128")) for _ in range(2)]
        for high, (wide, turns) in enumerate(halves):
            body.get(x)
            if high:
                body.get(x)
                body.add(shuffle(2, 3, 2, 3))
            body.op("f64x2.promote_low_f32x4")
            body.tee(wide)
            body.add(f64(2 / math.pi) + ops("f64x2.splat f64x2.mul f64x2.nearest"))
            body.tee(turns)
            body.op("i32x4.trunc_sat_f64x2_s_zero")
        body.add(shuffle(0, 1, 4, 5))
        body.add(i32x4(quarter_turns) + ops("i32x4.add"))
        body.set(q)
        for wide, turns in halves:
            body.get(wide)
            for part in (_HALF_PI_HIGH, _HALF_PI_LOW):
                body.get(turns)
                body.add(f64(part) + ops("f64x2.splat f64x2.mul f64x2.sub"))
            body.op("f32x4.demote_f64x2_zero")
        body.add(shuffle(0, 1, 4, 5))
        body.tee(r)
        body.get(r)
        body.op("f32x4.mul")
        body.set(z)
        # Even quarters: the sine of the rest; odd ones: its cosine; the second half of the turn is negative.
        _horner(body, z, _COS)
        body.get(z)
        body.add(ops("f32x4.mul") + f32x4(1.0) + ops("f32x4.add"))
        _horner(body, z, _SIN)
        body.get(z)
        body.op("f32x4.mul")
        body.get(r)
        body.op("f32x4.mul")
        body.get(r)
        body.op("f32x4.add")
        body.get(q)
        body.add(i32(31) + ops("i32x4.shl") + i32(31) + ops("i32x4.shr_s v128.bitselect"))
        body.get(q)
        body.add(i32x4(2) + ops("v128.and") + i32(30) + ops("i32x4.shl v128.xor"))
        return body.finish()

    return build


def _tanh() -> Function:
    body = Body(["v128"], ["v128"])
    x, z = 0, body.local("v128")
    body.get(x)
    body.add(_within(-9.0, 9.0))
    body.tee(x)
    body.get(x)
    body.op("f32x4.mul")
    body.set(z)
    body.get(x)  # the answer where |x| is small
    _horner(body, z, _TANH_P)
    body.get(x)
    body.op("f32x4.mul")
    _horner(body, z, _TANH_Q)
    body.add(ops("f32x4.div") + _within(-1.0, 1.0))
    body.get(x)
    body.add(ops("f32x4.abs") + f32x4(4e-4) + ops("f32x4.lt v128.bitselect"))
    return body.finish()


def _fmod() -> Function:
    """Exact: quotients are taken 28 bits at a time in float64, where every product and difference is exact."""
    body = Body(["f32", "f32"], ["f32"])
    a, b, rest, by = 0, 1, body.local("f64"), body.local("f64")
    body.get(a)
    body.op("f32.abs", "f64.promote_f32")
    body.tee(rest)
    body.add(f64(_INF) + ops("f64.lt"))
    body.get(b)
    body.op("f32.abs", "f64.promote_f32")
    body.tee(by)
    body.add(f64(0.0) + ops("f64.gt i32.and i32.eqz"))
    with body.when():  # a infinite, b zero, or either NaN
        body.add(f32(math.nan) + ops("return"))
    body.get(by)
    body.add(f64(_INF) + ops("f64.eq"))
    with body.when():
        body.get(a)
        body.op("return")
    with body.block():
        body.get(rest, by)
        body.op("f64.lt")
        body.exit_if()
        with body.repeat():
            body.get(rest, rest, by)
            body.op("f64.div", "i64.reinterpret_f64")
            body.add(i64(-1 << 24) + ops("i64.and f64.reinterpret_i64 f64.trunc"))
            body.get(by)
            body.op("f64.mul", "f64.sub")
            body.tee(rest)
            body.get(by)
            body.op("f64.ge")
    # The quotient may have been rounded up to a whole number.
    body.get(rest, by)
    body.op("f64.add")
    body.get(rest, rest)
    body.add(f64(0.0) + ops("f64.lt select f32.demote_f64"))
    body.get(a)
    body.op("f32.copysign")
    return body.finish()


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


_MAGIC: Final = (
    12582912.0  # 1.5 · 2²³: a small float added to it is rounded to an integer, which its last bits then hold
)
_MAGIC_BITS: Final = 0x4B400000


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
    body.add(f32(LEAST) + ops("f32.ge select"))
    body.set(inverse)
    zero, scale, shift = body.local("i32"), body.local("v128"), body.local("v128")
    body.get(low, inverse)
    body.op("f32.mul", "f32.neg", "f32.nearest", "i32.trunc_sat_f32_s")
    body.tee(zero)
    body.add(i32(_MAGIC_BITS) + ops("i32.sub i32x4.splat"))
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
        body.add(ops("f32x4.mul") + f32x4(_MAGIC) + ops("f32x4.add"))
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
    "exp": _exp(),
    "log": _log(),
    "sin": _sine(0)(),
    "cos": _sine(1)(),
    "tanh": _tanh(),
    "fmod": _fmod(),
    "half_to_float": _half_to_float(),
    "float_to_half": _float_to_half(),
    "fill_zero": _fill_zero(),
    "copy_padded": _copy_padded(),
    "quantise_bytes": _quantise(1),
    "quantise_words": _quantise(2),
    **TRANSFORMS,
}
