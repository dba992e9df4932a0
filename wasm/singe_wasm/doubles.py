"""Functions of one float64 that generated code calls: exp, log, sin, cos, tanh and fmod.

They are accurate to a few units in the last place and answer ±inf, NaN, zeros and subnormals as NumPy does; sin and cos
for |x| up to some 1e6. They are written as words for a stack: a name is a local (`->name` sets it), a number a
constant (`#1` an i64), any other word an instruction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from .encode import OPS, Body, Function, f64, i64

_EXP: Final = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
_LOG: Final = tuple(2 / (2 * k + 1) for k in range(11, 0, -1))
_SIN: Final = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9, 0, -1))
_COS: Final = tuple((-1) ** k / math.factorial(2 * k) for k in range(9, 0, -1))
_SINH: Final = tuple(1 / math.factorial(2 * k + 1) for k in range(8, 0, -1))
# ln 2 and π/2 in parts of which all but the last have few bits, so that their products with whole numbers are exact.
_LN2: Final = "0.6931471803691238", "1.9082149292705877e-10"
_HALF_PI: Final = "1.5707963267341256", "6.077100506303966e-11", "2.0222662487959506e-21"


def _write(body: Body, text: str, locals: Mapping[str, int]) -> None:
    for word in text.split():
        if word.startswith("->"):
            body.set(locals[word[2:]])
        elif word in locals:
            body.get(locals[word])
        elif word.startswith("#"):
            body.add(i64(int(word[1:], 0)))
        elif word in OPS:
            body.op(word)
        else:
            body.add(f64(float(word)))


def _function(parameters: str, text: str, **kinds: str) -> Function:
    """A function of float64s; kinds: the locals of each type, by name."""
    names = parameters.split()
    body = Body(["f64" for _ in names], ["f64"])
    locals = {name: i for i, name in enumerate(names)}
    for kind, more in kinds.items():
        locals |= {name: body.local(kind) for name in more.split()}  # pyright: ignore[reportArgumentType]
    _write(body, text, locals)
    return body.finish()


def _horner(x: str, coefficients: Sequence[float]) -> str:
    return f"{coefficients[0]!r} " + " ".join(f"{x} f64.mul {c!r} f64.add" for c in coefficients[1:])


_EXP_TEXT: Final = f"""
    x -746.0 f64.max 710.0 f64.min ->x
    x 1.4426950408889634 f64.mul f64.nearest ->n
    x n {_LN2[0]} f64.mul f64.sub n {_LN2[1]} f64.mul f64.sub ->r
    n i64.trunc_sat_f64_s ->k
    {_horner("r", _EXP)}
    k #1 i64.shr_s #1023 i64.add #52 i64.shl f64.reinterpret_i64 f64.mul
    k k #1 i64.shr_s i64.sub #1023 i64.add #52 i64.shl f64.reinterpret_i64 f64.mul
"""
"""The power of two is taken in two halves, since one factor may be beyond the normal numbers."""


def _exp() -> Function:
    return _function("x", _EXP_TEXT, f64="n r", i64="k")


def _log() -> Function:
    return _function(
        "x",
        f"""
        x 18014398509481984.0 f64.mul x x 2.2250738585072014e-308 f64.lt select ->m
        m i64.reinterpret_f64 ->bits
        bits #52 i64.shr_s #1023 i64.sub f64.convert_i64_s
        54.0 0.0 x 2.2250738585072014e-308 f64.lt select f64.sub ->n
        bits #0xfffffffffffff i64.and #0x3ff0000000000000 i64.or f64.reinterpret_i64 ->m
        n 1.0 f64.add n m 1.4142135623730951 f64.gt select
        m 0.5 f64.mul m m 1.4142135623730951 f64.gt select ->m ->n
        m 1.0 f64.sub ->m
        m m 2.0 f64.add f64.div ->s
        s s f64.mul ->z
        n {_LN2[0]} f64.mul
        m s m z {_horner("z", _LOG)} f64.mul f64.sub f64.mul f64.sub
        n {_LN2[1]} f64.mul f64.add f64.add ->m
        m x x inf f64.lt select ->m
        m nan x 0.0 f64.ge select ->m
        -inf m x 0.0 f64.eq select
        """,
        f64="m n s z",
        i64="bits",
    )


def _sine(quarters: int) -> Function:
    return _function(
        "x",
        f"""
        x 0.6366197723675814 f64.mul f64.nearest ->n
        x n {_HALF_PI[0]} f64.mul f64.sub n {_HALF_PI[1]} f64.mul f64.sub n {_HALF_PI[2]} f64.mul f64.sub ->r
        r r f64.mul ->z
        n i64.trunc_sat_f64_s #{quarters} i64.add ->q
        1.0 z {_horner("z", _COS)} f64.mul f64.add
        r r z {_horner("z", _SIN)} f64.mul f64.mul f64.add
        q #1 i64.and i32.wrap_i64 select ->r
        r f64.neg r q #2 i64.and i32.wrap_i64 select
        """,
        f64="n r z",
        i64="q",
    )


def _tanh() -> Function:
    """(1 − e) / (1 + e) with e = exp(−2 |x|); near zero by the hyperbolic sine, which loses no digits there."""
    return _function(
        "x0",
        f"""
        x0 f64.abs ->a
        a -2.0 f64.mul ->x
        {_EXP_TEXT}
        ->x
        a a f64.mul ->z
        a a z {_horner("z", _SINH)} f64.mul f64.mul f64.add ->s
        s s s f64.mul 1.0 f64.add f64.sqrt f64.div
        1.0 x f64.sub 1.0 x f64.add f64.div
        a 0.55 f64.lt select
        x0 f64.copysign
        """,
        f64="a x n r z s",
        i64="k",
    )


def _fmod() -> Function:
    """Exact: by doubled until it is more than half of what is left, then taken off on the way back."""
    body = Body(["f64", "f64"], ["f64"])
    names = {"a": 0, "b": 1, **{n: body.local("f64") for n in ("rest", "by", "t")}}

    def put(text: str) -> None:
        _write(body, text, names)

    put("a f64.abs ->rest b f64.abs ->by rest inf f64.lt by 0.0 f64.gt i32.and i32.eqz")
    with body.when():  # a infinite, b zero, or either NaN
        put("nan return")
    put("by ->t by rest f64.le")
    with body.when():
        with body.block():
            put("t rest t f64.sub f64.gt")
            body.exit_if()
            with body.repeat():
                put("t t f64.add ->t t rest t f64.sub f64.le")
        with body.repeat():
            put("rest t f64.sub rest t rest f64.le select ->rest t 0.5 f64.mul ->t t by f64.ge")
    put("rest a f64.copysign")
    return body.finish()


DOUBLES: Final[Mapping[str, Function]] = {
    "exp_f64": _exp(),
    "log_f64": _log(),
    "sin_f64": _sine(0),
    "cos_f64": _sine(1),
    "tanh_f64": _tanh(),
    "fmod_f64": _fmod(),
}
