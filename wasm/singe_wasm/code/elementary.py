"""Functions that generated code calls: exp, log, sin, cos and tanh of four floats, and fmod.

The vector functions are accurate to a few units in the last place and answer ±inf, NaN, zeros and subnormals as NumPy
does. sin and cos reduce their argument in float64 and are good for |x| up to some 1e8.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from .encode import Body, Function, FunctionWriters
from .values import F32, I32, F32x4, I32x4
from .writer import Writer

_INF: Final = math.inf
_HALF_BITS: Final = 0x8FFFE000 - 2**32
"""Of a float16 that is shifted by 13 bits, with its sign repeated: those that are the float's."""
_HALF_INF: Final = 0x7C00 << 13
LOG2E: Final = 1.4426950408889634
# Adding WHOLE to a small number rounds it to an integer, which then is the sum's bits minus WHOLE_BITS.
WHOLE, WHOLE_BITS = 12582912.0, 0x4B400000
# ln 2 and π/2 as a part of few bits, whose products are exact, and the rest.
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
_HALF_PI_HIGH, _HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11
EXP_POLYNOMIAL: Final = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_EXP2: Final = (1.3264727e-3, 9.6715128e-3, 5.5507337e-2, 2.4022242e-1, 6.9314698e-1, 1.0)  # from −½ to ½: within 1e-7
_LOG: Final = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)
_SIN: Final = (2.7181216275e-6, -1.9839334836e-4, 8.3333293855e-3, -1.6666666641e-1)
_COS: Final = (2.4390448796e-5, -1.3887316255e-3, 4.1666645683e-2, -0.5)
_TANH_P: Final = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-8,
    1.48572235717979e-5, 6.37261928875436e-4, 4.89352455891786e-3,
)  # fmt: skip
_TANH_Q: Final = (1.19825839466702e-6, 1.18534705686654e-4, 2.26843463243900e-3, 4.89352518554385e-3)


def _vectors() -> tuple[Writer, F32x4]:
    """A function of one vector to one."""
    return Writer(Body(["v128"], ["v128"])), F32x4(number=0)


def _power_of_two(exponent: I32x4) -> F32x4:
    return ((exponent + 127) << 23).floats()


def _exp() -> Function:
    w, x = _vectors()
    w.set(x, x.within(-104.0, 89.0))  # beyond these bounds the result is 0 or infinite anyway
    rounded = w.f32x4(x * LOG2E + WHOLE)
    n, k = w.f32x4(rounded - WHOLE), w.i32x4(rounded.integers() - WHOLE_BITS)
    w.set(x, n.times_plus(-LN2_HIGH, x))
    w.set(x, n.times_plus(-LN2_LOW, x))
    value = x.horner(EXP_POLYNOMIAL).times_plus(x * x, x) + 1.0
    # Scale by 2^k in two steps: 2^k itself may not be a float though the result is.
    half = w.i32x4(k >> 1)
    return w.finish(value * _power_of_two(half) * _power_of_two(k - half))


def four_halves(w: Writer, at: I32, offset: int) -> F32x4:
    """Four neighbouring float16 at an address; a multiplication moves the exponent, which handles subnormals too."""
    bits = w.i32x4(at.i32x4(offset, "v128.load16x4_s") << 13 & _HALF_BITS)
    endless = (bits & 0x7FFFFFFF).above(_HALF_INF - 1) & 0x7F800000  # exponent 31 is infinity or NaN
    return ((bits.floats() * 2.0**112).integers() | endless).floats()


def falling_exp(w: Writer, x: F32x4) -> F32x4:
    """The exponential of a local with numbers up to 0, without a call; 0 where it would be subnormal."""
    w.set(x, (x * LOG2E).within(-127.0, 0.0))
    rounded = w.f32x4(x + WHOLE)
    w.set(x, x - (rounded - WHOLE))
    power, *others = (w.f32x4(c) for c in _EXP2)
    for c in others:
        w.multiply_add(c, power, x)
        power = c
    return power * _power_of_two(rounded.integers() - WHOLE_BITS)


def _log() -> Function:
    w, x = _vectors()
    # Subnormals are scaled up by 2^25.
    small = w.i32x4(x < 2.0**-126)
    y = w.i32x4(small.choose(x * 2.0**25, x).integers() + (0x3F800000 - 0x3F3504F3))
    k = w.f32x4(((y >> 23) - 127 - (small & 25)).as_floats())
    f = w.f32x4(((y & 0x007FFFFF) + 0x3F3504F3).floats() - 1.0)
    s = w.f32x4(f / (f + 2.0))
    z, half = w.f32x4(s * s), w.f32x4(f * f * 0.5)
    value = w.f32x4((z.horner(_LOG) * z + half) * s + k * LN2_LOW - half + f + k * LN2_HIGH)
    # Infinity and NaN are their own results; that of zero is −inf, that of a negative number NaN.
    w.set(value, (x.equals(_INF) | x.differs(x)).choose(x, value))
    w.set(value, x.equals(0.0).choose(F32x4.of(-_INF), value))
    return w.finish((x < 0.0).choose(F32x4.of(math.nan), value))


def _sine(quarter_turns: int) -> Function:
    """sin(x + quarter_turns · π/2)."""
    w, x = _vectors()
    wide = [w.local(half.doubles()) for half in (x, x.integers().shuffled(x.integers(), 2, 3, 2, 3))]
    turns = [w.local((half * (2 / math.pi)).whole()) for half in wide]
    quarters = [t.as_integers() for t in turns]
    q = w.i32x4(quarters[0].shuffled(quarters[1], 0, 1, 4, 5) + quarter_turns)
    low, high = ((a - t * _HALF_PI_HIGH - t * _HALF_PI_LOW).as_floats() for a, t in zip(wide, turns, strict=True))
    r = w.f32x4(low.integers().shuffled(high.integers(), 0, 1, 4, 5).floats())
    z = w.f32x4(r * r)
    # Even quarters have the sine of the remainder, odd ones its cosine; the second half of the turn is negative.
    value = ((q << 31) >> 31).choose(z.horner(_COS) * z + 1.0, z.horner(_SIN) * z * r + r)
    value = (value ^ ((q & 2) << 30)).floats()
    # A small number is its own sine; so is a zero of either sign.
    return w.finish(value if quarter_turns else (abs(x) < 2.0**-12).choose(x, value))


def _tanh() -> Function:
    w, x = _vectors()
    w.set(x, x.within(-9.0, 9.0))
    z = w.f32x4(x * x)
    ratio = (z.horner(_TANH_P) * x / z.horner(_TANH_Q)).within(-1.0, 1.0)
    return w.finish((abs(x) < 4e-4).choose(x, ratio))  # a small number is its own tanh


def _fmod() -> Function:
    """Exact: quotients are taken 28 bits at a time in float64, where every product and difference is exact."""
    w, a, b = Writer(Body(["f32", "f32"], ["f32"])), F32(number=0), F32(number=1)
    rest, by = w.f64(abs(a).as_f64()), w.f64(abs(b).as_f64())
    with w.when(((by > 0.0) & (rest < _INF)).zero):  # a infinite, b zero, or either NaN
        w.leave(F32.of(math.nan))
    with w.when(by.equals(_INF)):
        w.leave(a)
    with w.when(rest >= by), w.repeat_while(rest >= by):
        w.set(rest, rest - ((rest / by).bits() & -1 << 24).as_f64().truncated() * by)
    # The quotient may have been rounded up to a whole number.
    return w.finish((rest + by).where(rest < 0.0, rest).as_f32().signed_as(a))


ELEMENTARY: Final[FunctionWriters] = {
    "exp": _exp,
    "log": _log,
    "sin": partial(_sine, 0),
    "cos": partial(_sine, 1),
    "tanh": _tanh,
    "fmod": _fmod,
}
