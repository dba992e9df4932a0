"""The scalar vocabulary in CUDA C++: types, literals, and the spelling of each word for each type.

Values: bool, i32, u32, f32, f64; int64 and uint64 are vec2<u32> where templates see them, low half first. Functions are those of
CUDA and of prelude.cuh. CUDA divides and takes roots as IEEE 754 says, so most words need no function of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from singe.extension import DType, Expr, bool_, float32, float64, int32, int64, scalar, uint32, uint64
from singe_gpu.dialect import Spelling, Words

from .elements import ROUNDINGS

TYPES: Final[Mapping[DType, str]] = {
    bool_: "bool", int32: "i32", uint32: "u32", int64: "vec2<u32>", uint64: "vec2<u32>", float32: "f32", float64: "f64",
}  # fmt: skip
"""Compute type ↦ its name."""
_NATIVE: Final = {**TYPES, int64: "i64", uint64: "u64"}
"""The type with which CUDA computes."""
_UNPAIRED: Final = {int64: "signed_of({0})", uint64: "unsigned_of({0})"}
"""A 64-bit integer as one number."""


def literal(value: bool | int | float, dtype: DType) -> str:
    """A constant of a compute type."""
    if dtype is bool_:
        return "true" if value else "false"
    if dtype is int32:
        return f"{value}i" if value != -(2**31) else "(-2147483647i - 1i)"
    if dtype is uint32:
        return f"{value}u"
    if dtype.is_int:
        return f"vec2<u32>({int(value) & 0xFFFFFFFF}u, {(int(value) >> 32) & 0xFFFFFFFF}u)"
    if math.isnan(value):
        text = "nan()"
    elif math.isinf(value):
        text = "inf()" if value > 0 else "(-inf())"
    elif dtype is float32:
        return f"{float(np.float32(value))!r}f"
    else:
        return repr(float(value))
    return text if dtype is float32 else f"f64({text})"


def _native(e: Expr, text: str) -> str:
    """An argument's text as the number that CUDA computes with."""
    return _UNPAIRED.get(e.dtype, "{0}").format(text)


def _wide(operation: str) -> Callable[[Expr, Sequence[str]], str]:
    """The spelling of an operation on 64-bit integers, whose result is one if the word's is."""

    def spell(e: Expr, args: Sequence[str]) -> str:
        text = operation.format(*map(_native, e.args, args))
        return f"pair({text})" if e.dtype in _UNPAIRED else f"({text})"

    return spell


def _divided(operator: str, function: str) -> Callable[[Expr, Sequence[str]], str]:
    """The operator where the divisor is no zero; else the function, which gives 0."""

    def spell(e: Expr, args: Sequence[str]) -> str:
        b = e.args[1]
        plain = b.word == "size" or (b.word == "const" and b.value > 0)
        return f"({args[0]} {operator} {args[1]})" if plain else f"{function}({args[0]}, {args[1]})"

    return spell


def _cast(e: Expr, args: Sequence[str]) -> str:
    text = f"cast<{_NATIVE[e.dtype]}>({_native(e.args[0], args[0])})"
    return f"pair({text})" if e.dtype in _UNPAIRED else text


def _numbers(small: Spelling, wide: str, floats: Spelling) -> dict[DType, Spelling]:
    """The spellings for 32-bit integers, for 64-bit ones, and for floats."""
    return {
        **dict.fromkeys((int32, uint32), small),
        **dict.fromkeys((int64, uint64), _wide(wide)),
        **dict.fromkeys((float32, float64), floats),
    }


def _operator(operator: str) -> dict[DType, Spelling]:
    text = f"{{0}} {operator} {{1}}"
    return _numbers(f"({text})", text, f"({text})")


def _floats(text: str) -> dict[DType, Spelling]:
    return dict.fromkeys((float32, float64), text)


def _bits(of_bools: str, operator: str) -> dict[DType, Spelling]:
    return {bool_: of_bools, **dict.fromkeys((int32, uint32, int64, uint64), f"({{0}} {operator} {{1}})")}


def _shift(operator: str) -> dict[DType, Spelling]:
    return {
        **dict.fromkeys((int32, uint32), f"({{0}} {operator} ({{1}} & 31))"),
        **dict.fromkeys((int64, uint64), _wide(f"{{0}} {operator} ({{1}} & 63)")),
    }


SPELLINGS: Final[Words] = scalar.complete("cuda", {
    "add": _operator("+"),
    "sub": _operator("-"),
    "mul": _operator("*") | _floats("product({0}, {1})"),
    "div": _numbers(_divided("/", "quotient"), "quotient({0}, {1})", "({0} / {1})"),
    "rem": _numbers(_divided("%", "remainder_of"), "remainder_of({0}, {1})", "fmod({0}, {1})"),
    "min": _numbers("min({0}, {1})", "min({0}, {1})", "min_float({0}, {1})"),
    "max": _numbers("max({0}, {1})", "max({0}, {1})", "max_float({0}, {1})"),
    "neg": _numbers("(-{0})", "0 - {0}", "(-{0})"),
    "abs": _numbers("abs({0})", "abs({0})", "abs({0})") | {uint32: "{0}", uint64: "{0}"},
    "sqrt": _floats("sqrt({0})"),
    "exp": _floats("exp({0})"),
    "log": _floats("log({0})"),
    "sin": _floats("sin({0})"),
    "cos": _floats("cos({0})"),
    "tanh": _floats("tanh({0})"),
    "floor": _floats("floor({0})"),
    "ceil": _floats("ceil({0})"),
    "round": _floats("round({0})"),
    "isnan": _floats("is_nan({0})"),
    "bits": {float32: "bitcast<i32>({0})", float64: "pair(bitcast<i64>({0}))"},
    "of_bits": {int32: "bitcast<f32>({0})", int64: "bitcast<f64>(signed_of({0}))"},
    "eq": {bool_: "({0} == {1})", **_operator("==")},
    "lt": _operator("<"),
    "le": _operator("<="),
    "and": _bits("({0} && {1})", "&"),
    "or": _bits("({0} || {1})", "|"),
    "xor": _bits("({0} != {1})", "^"),
    "not": {bool_: "(!{0})"} | dict.fromkeys((int32, uint32, int64, uint64), "(~{0})"),
    "shl": _shift("<<"),
    "shr": _shift(">>"),
    "select": dict.fromkeys(TYPES, "select({2}, {1}, {0})"),
    "cast": dict.fromkeys(TYPES, _cast),
    "rounded": _floats("") | {float32: lambda e, args: ROUNDINGS[e.value].format(*args)},
})  # fmt: skip
"""word ↦ type of its (last) argument ↦ spelling."""
VECTOR_WORDS: Final[Words] = {
    **{word: dict.fromkeys((int32, float32), f"({{0}} {sign} {{1}})") for word, sign in (("add", "+"), ("sub", "-"))},
    **{word: {d: SPELLINGS[word][d] for d in (int32, float32)} for word in ("mul", "neg", "abs", "min", "max")},
    **{word: {float32: SPELLINGS[word][float32]} for word in ("floor", "ceil", "round")},
    "and": {int32: "({0} & {1})"},
    "shr": {int32: "({0} >> (bitcast<vec4<u32>>({1}) & vec4<u32>(31u)))"},
}  # fmt: skip
"""The words that compute vectors of four, besides choices and casts."""
