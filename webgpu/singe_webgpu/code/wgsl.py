"""The scalar vocabulary in WGSL.

Values: bool → bool, int32 → i32, uint32 → u32, float32 → f32, int64 and uint64 → vec2<u32> (low, high). Every word has
a spelling for each type that it takes; SPELLINGS is complete or this module does not import. Literals carry their type, constants that WGSL
forbids (NaN, infinity) come from bits, and nothing relies on implicit conversion: naga and Tint read the text alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from singe.extension import DType, Expr, affine, bool_, float32, int32, int64, scalar, uint32, uint64
from singe_gpu.dialect import Spelling, Words

from .elements import ROUNDINGS

TYPES: Final[Mapping[DType, str]] = {
    bool_: "bool", int32: "i32", uint32: "u32", int64: "vec2<u32>", uint64: "vec2<u32>", float32: "f32",
}  # fmt: skip
"""Compute type → WGSL type."""

LARGEST: Final = float(np.finfo(np.float32).max)


def literal(value: bool | int | float, dtype: DType) -> str:
    """A constant of a compute type."""
    if dtype is bool_:
        return "true" if value else "false"
    if dtype is int32:
        return f"{value}i" if value != -(2**31) else "i32(-2147483647 - 1)"
    if dtype is uint32:
        return f"{value}u"
    if dtype.is_int:
        return f"vec2<u32>({int(value) & 0xFFFFFFFF}u, {(int(value) >> 32) & 0xFFFFFFFF}u)"
    if math.isnan(value):
        return "nan()"
    if math.isinf(value):
        return "inf()" if value > 0 else "(-inf())"
    if 0 < abs(value) < 1.1754944e-38:  # subnormal numbers, which parsers treat differently
        return f"bitcast<f32>({int(np.float32(value).view(np.uint32))}u)"
    text = str(np.float32(value))
    if abs(float(text)) > LARGEST:  # the shortest text of the largest number is beyond it, which Chromium refuses
        text = repr(float(np.float32(value)))
    return f"{text}f"


def _number(e: Expr) -> bool:
    return e.word == "const" and not math.isnan(e.value)


def _extreme(word: str, plural: str = "") -> Callable[[Expr, Sequence[str]], str]:
    """min or max of floats, or of vectors, by the library's functions with this ending; a constant number is not tested for
    NaN."""

    def spell(e: Expr, args: Sequence[str]) -> str:
        a, b = args if _number(e.args[1]) else reversed(args)
        if any(map(_number, e.args)):
            return f"{word}_number{plural}({a}, {b})"
        return f"{word}_f32{plural}({args[0]}, {args[1]})"

    return spell


def _divide(e: Expr, args: Sequence[str]) -> str:
    """WGSL defines division by zero at run time, but rejects a constant zero divisor."""
    return args[0] if _is_zero(e.args[1]) else f"({args[0]} / {args[1]})"


def _quotient(e: Expr, args: Sequence[str]) -> str:
    """Division of floats. WGSL guarantees nothing for divisors near the largest numbers; devices flush the reciprocal.
    Compilers make anything of a division by a constant zero."""
    b = e.args[1]
    if _is_zero(b):
        return f"over_zero({args[0]})" if math.copysign(1, b.value) > 0 else f"-over_zero({args[0]})"
    if b.word != "const" or not 2.0**-126 <= abs(b.value) <= 2.0**126:
        return f"div_f32({args[0]}, {args[1]})"
    exact = abs(math.frexp(b.value)[0]) == 0.5
    return f"({args[0]} / {args[1]})" if exact else f"div_near({args[0]}, {args[1]})"


def _remainder(e: Expr, args: Sequence[str]) -> str:
    """The plain operator for indices only: Vulkan leaves it undefined for negative numbers, and devices differ there."""
    a, b = e.args
    if _is_zero(b):
        return "0i"
    least = affine.bounds(a)[0]
    positive = b.word == "size" or (b.word == "const" and b.value > 0)
    if positive and least is not None and affine.at_least(least, 0):
        return f"({args[0]} % {args[1]})"
    return f"rem_i32({args[0]}, {args[1]})"


def _modulo(e: Expr, args: Sequence[str]) -> str:
    return "0u" if _is_zero(e.args[1]) else f"({args[0]} % {args[1]})"


def _is_zero(e: Expr) -> bool:
    return e.word == "const" and e.value == 0


_CASTS: Final[Mapping[tuple[DType, DType], str]] = {
    (bool_, int32): "select(0i, 1i, {0})",
    (bool_, int64): "vec2<u32>(select(0u, 1u, {0}), 0u)",
    (bool_, uint32): "select(0u, 1u, {0})",
    (bool_, uint64): "vec2<u32>(select(0u, 1u, {0}), 0u)",
    (bool_, float32): "select(0.0f, 1.0f, {0})",
    (int32, bool_): "({0} != 0i)",
    (int32, uint32): "bitcast<u32>({0})",
    (int32, int64): "i64_of_i32({0})",
    (int32, uint64): "i64_of_i32({0})",
    (int32, float32): "f32({0})",
    (uint32, bool_): "({0} != 0u)",
    (uint32, int32): "bitcast<i32>({0})",
    (uint32, int64): "vec2<u32>({0}, 0u)",
    (uint32, uint64): "vec2<u32>({0}, 0u)",
    (uint32, float32): "f32({0})",
    (int64, bool_): "bool_of_i64({0})",
    (int64, int32): "bitcast<i32>({0}.x)",
    (int64, uint32): "{0}.x",
    (int64, uint64): "{0}",
    (int64, float32): "f32_of_i64({0})",
    (uint64, bool_): "bool_of_i64({0})",
    (uint64, int32): "bitcast<i32>({0}.x)",
    (uint64, uint32): "{0}.x",
    (uint64, int64): "{0}",
    (uint64, float32): "f32_of_u64({0})",
    (float32, bool_): "bool_of_f32({0})",
    (float32, int32): "i32_of_f32({0})",
    (float32, uint32): "u32_of_f32({0})",
    (float32, int64): "i64_of_f32({0})",
    (float32, uint64): "u64_of_f32({0})",
}


def _cast(e: Expr, args: Sequence[str]) -> str:
    return _CASTS[e.args[0].dtype, e.dtype].format(*args)


def _words(word: str, long: str, float_: Spelling, long_unsigned: str = "") -> dict[DType, Spelling]:
    """The spellings for 32-bit integers, for 64-bit integers (and unsigned ones, if they differ), and for floats."""
    return {int32: word, uint32: word, int64: long, uint64: long_unsigned or long, float32: float_}


def _bits(of_bools: str, op: str) -> dict[DType, Spelling]:
    return {bool_: of_bools, **dict.fromkeys((int32, uint32, int64, uint64), f"({{0}} {op} {{1}})")}


def _float(text: str) -> Mapping[DType, Spelling]:
    return {float32: text}


SPELLINGS: Final[Words] = scalar.complete("wgsl", {
    "add": _words("({0} + {1})", "add_i64({0}, {1})", "({0} + {1})"),
    "sub": _words("({0} - {1})", "sub_i64({0}, {1})", "({0} - {1})"),
    "mul": _words("({0} * {1})", "mul_i64({0}, {1})", "({0} * {1})"),
    "div": {int32: _divide, uint32: _divide, int64: "div_i64({0}, {1})", uint64: "divide_u64({0}, {1}).xy", float32: _quotient},
    "rem": {int32: _remainder, uint32: _modulo, int64: "rem_i64({0}, {1})", uint64: "divide_u64({0}, {1}).zw", float32: "rem_f32({0}, {1})"},
    "min": _words("min({0}, {1})", "min_i64({0}, {1})", _extreme("min"), "min_u64({0}, {1})"),
    "max": _words("max({0}, {1})", "max_i64({0}, {1})", _extreme("max"), "max_u64({0}, {1})"),
    "neg": _words("(-{0})", "neg_i64({0})", "(-{0})") | {uint32: "(~{0} + 1u)"},
    "abs": _words("abs({0})", "abs_i64({0})", "abs({0})", "{0}"),
    "sqrt": _float("sqrt_f32({0})"),
    "exp": _float("exp_f32({0})"),
    "log": _float("log_f32({0})"),
    "sin": _float("sine({0}, 0i)"),
    "cos": _float("sine({0}, 1i)"),
    "tanh": _float("tanh_f32({0})"),
    "floor": _float("floor({0})"),
    "ceil": _float("ceil({0})"),
    "round": _float("round({0})"),
    "isnan": _float("is_nan({0})"),
    "bits": _float("bitcast<i32>({0})"),
    "of_bits": {int32: "bitcast<f32>({0})"},
    "eq": {bool_: "({0} == {1})", **_words("({0} == {1})", "eq_i64({0}, {1})", "eq_f32({0}, {1})")},
    "lt": _words("({0} < {1})", "lt_i64({0}, {1})", "lt_f32({0}, {1})", "lt_u64({0}, {1})"),
    "le": _words("({0} <= {1})", "le_i64({0}, {1})", "le_f32({0}, {1})", "(!lt_u64({1}, {0}))"),
    "and": _bits("({0} && {1})", "&"),
    "or": _bits("({0} || {1})", "|"),
    "xor": _bits("({0} != {1})", "^"),
    "not": {bool_: "(!{0})"} | dict.fromkeys((int32, uint32, int64, uint64), "(~{0})"),
    "shl": {int32: "({0} << (bitcast<u32>({1}) & 31u))", uint32: "({0} << ({1} & 31u))", int64: "shl_i64({0}, {1})", uint64: "shl_i64({0}, {1})"},
    "shr": {int32: "({0} >> (bitcast<u32>({1}) & 31u))", uint32: "({0} >> ({1} & 31u))", int64: "shr_i64({0}, {1})", uint64: "shr_u64({0}, {1})"},
    "select": dict.fromkeys(TYPES, "select({2}, {1}, {0})"),
    "cast": dict.fromkeys(TYPES, _cast),
    "rounded": {float32: lambda e, args: ROUNDINGS[e.value].format(*args)},
})  # fmt: skip
"""word → type of its (last) argument → spelling."""
VECTOR_WORDS: Final[Words] = {
    **{word: {d: SPELLINGS[word][d] for d in (int32, float32)} for word in ("add", "sub", "mul", "neg", "abs")},
    **{word: {float32: SPELLINGS[word][float32]} for word in ("floor", "ceil", "round")},
    "min": {int32: "min({0}, {1})", float32: _extreme("min", "s")},
    "max": {int32: "max({0}, {1})", float32: _extreme("max", "s")},
    "and": {int32: "({0} & {1})"},
    "shr": {int32: "({0} >> (bitcast<vec4<u32>>({1}) & vec4<u32>(31u)))"},
}
"""The words that compute vectors, besides choices and casts."""
