"""Functions that generated code calls: exp, log, sin, cos and tanh of four floats, and fmod.

The vector functions are accurate to a few units in the last place and answer ±inf, NaN, zeros and subnormals as NumPy
does. sin and cos reduce their argument in float64 and are good for |x| up to some 1e8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .encode import (
    Body,
    Function,
    f32,
    f32x4,
    f64,
    i32,
    i32x4,
    i64,
    ops,
    shuffle,
)
from .simd import AGAINST_NUMBER

_INF: Final = math.inf
_LOG2E: Final = 1.4426950408889634
# What a small number is rounded by when it is added: its last place is a one. As bits it is the number before plus these.
WHOLE, WHOLE_BITS = 12582912.0, 0x4B400000
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
    body.add(f32x4(_LOG2E) + ops("f32x4.mul") + f32x4(WHOLE) + ops("f32x4.add"))
    body.tee(k)
    body.add(f32x4(WHOLE) + ops("f32x4.sub"))
    body.set(n)
    body.get(k)
    body.add(i32x4(WHOLE_BITS) + ops("i32x4.sub"))
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


ELEMENTARY: Final[Mapping[str, Function]] = {
    "exp": _exp(),
    "log": _log(),
    "sin": _sine(0)(),
    "cos": _sine(1)(),
    "tanh": _tanh(),
    "fmod": _fmod(),
}
