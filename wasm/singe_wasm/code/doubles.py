"""Functions of one float64 that generated code calls: exp, log, sin, cos, tanh and fmod.

They are accurate to a few units in the last place and answer ±inf, NaN, zeros and subnormals as NumPy does; sin and cos
for |x| up to some 1e6.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from .encode import Body, Function, FunctionWriters
from .values import F64, I64
from .writer import Writer

_EXP: Final = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
_LOG: Final = tuple(2 / (2 * k + 1) for k in range(11, 0, -1))
_SIN: Final = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9, 0, -1))
_COS: Final = tuple((-1) ** k / math.factorial(2 * k) for k in range(9, 0, -1))
_SINH: Final = tuple(1 / math.factorial(2 * k + 1) for k in range(8, 0, -1))
# ln 2 and π/2 in parts of which all but the last have few bits, so that their products with whole numbers are exact.
_LN2: Final = 0.6931471803691238, 1.9082149292705877e-10
_HALF_PI: Final = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21
_LEAST_NORMAL: Final = 2.0**-1022


def _function() -> tuple[Writer, F64]:
    """A function of one float64 to one."""
    return Writer(Body(["f64"], ["f64"])), F64(number=0)


def _power_of_two(exponent: I64) -> F64:
    return ((exponent + 1023) << 52).as_f64()


def _power(w: Writer, x: F64) -> F64:
    """exp(x), for a local that is used up."""
    w.set(x, x.within(-746.0, 710.0))
    n = w.f64((x * (1 / math.log(2))).whole())
    r = w.f64(x - n * _LN2[0] - n * _LN2[1])
    k = w.i64(n.integer())
    # In two halves, since one factor may be beyond the normal numbers.
    return r.horner(_EXP) * _power_of_two(k >> 1) * _power_of_two(k - (k >> 1))


def _exp() -> Function:
    w, x = _function()
    return w.finish(_power(w, x))


def _log() -> Function:
    w, x = _function()
    # Subnormals are scaled up by 2^54.
    m = w.f64((x * 2.0**54).where(x < _LEAST_NORMAL, x))
    bits = w.i64(m.bits())
    n = w.f64(((bits >> 52) - 1023).converted() - F64.of(54.0).where(x < _LEAST_NORMAL, 0.0))
    w.set(m, (bits & 0xFFFFFFFFFFFFF | 0x3FF0000000000000).as_f64())
    with w.when(m > math.sqrt(2)):
        w.set(n, n + 1.0)
        w.set(m, m * 0.5)
    w.set(m, m - 1.0)
    s = w.f64(m / (m + 2.0))
    z = w.f64(s * s)
    w.set(m, n * _LN2[0] + (m - s * (m - z.horner(_LOG) * z) + n * _LN2[1]))
    # Infinity and NaN are their own results; that of zero is −inf, that of a negative number NaN.
    w.set(m, m.where(x < math.inf, x))
    w.set(m, m.where(x >= 0.0, math.nan))
    return w.finish(F64.of(-math.inf).where(x.equals(0.0), m))


def _sine(quarter_turns: int) -> Function:
    """sin(x + quarter_turns · π/2)."""
    w, x = _function()
    n = w.f64((x * (2 / math.pi)).whole())
    r = w.f64(x - n * _HALF_PI[0] - n * _HALF_PI[1] - n * _HALF_PI[2])
    z = w.f64(r * r)
    q = w.i64(n.integer() + quarter_turns)
    # Even quarters have the sine of the remainder, odd ones its cosine; the second half of the turn is negative.
    cosine, sine = z.horner(_COS) * z + 1.0, z.horner(_SIN) * z * r + r
    w.set(r, cosine.where((q & 1).as_i32(), sine))
    w.set(r, (-r).where((q & 2).as_i32(), r))
    # A small number is its own sine; so is a zero of either sign.
    return w.finish(r if quarter_turns else x.where(abs(x) < 2.0**-27, r))


def _tanh() -> Function:
    """(1 − e) / (1 + e) with e = exp(−2 |x|); near zero by the hyperbolic sine, which loses no digits there."""
    w, given = _function()
    a = w.f64(abs(given))
    z = w.f64(a * a)
    s = w.f64(z.horner(_SINH) * z * a + a)
    near = s / (s * s + 1.0).root()
    x = w.f64(a * -2.0)
    w.set(x, _power(w, x))
    return w.finish(near.where(a < 0.55, (1.0 - x) / (x + 1.0)).signed_as(given))


def _fmod() -> Function:
    """Exact: `by` is doubled until it is more than half of the rest, then subtracted while it is halved again."""
    w, a, b = Writer(Body(["f64", "f64"], ["f64"])), F64(number=0), F64(number=1)
    rest, by = w.f64(abs(a)), w.f64(abs(b))
    with w.when(((by > 0.0) & (rest < math.inf)).zero):  # a infinite, b zero, or either NaN
        w.leave(F64.of(math.nan))
    part = w.f64(by)
    with w.when(by <= rest):
        with w.when(part <= rest - part), w.repeat_while(part <= rest - part):
            w.set(part, part + part)
        with w.repeat_while(part >= by):
            w.set(rest, (rest - part).where(part <= rest, rest))
            w.set(part, part * 0.5)
    return w.finish(rest.signed_as(a))


DOUBLES: Final[FunctionWriters] = {
    "exp_f64": _exp,
    "log_f64": _log,
    "sin_f64": partial(_sine, 0),
    "cos_f64": partial(_sine, 1),
    "tanh_f64": _tanh,
    "fmod_f64": _fmod,
}
