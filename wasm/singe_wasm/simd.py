"""The scalar vocabulary spelled in WebAssembly, one value at a time (SCALAR) and four at a time (VECTOR).

On the stack a scalar bool is an i32 of 0 or 1, and a vector of bools has lanes of 0 or −1. int64 comes as scalars only.
A word without a vector instruction is computed lane by lane. Longer code is a call to a function of `library`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from singe.extension import DType, bool_, float32, int32, int64, scalar

from .encode import OPS, Body, Spelling, Type, f32, f32x4, i32, i32x4, i64, lane, ops

VALUE: Final[Mapping[DType, Type]] = {bool_: "i32", int32: "i32", int64: "i64", float32: "f32"}
"""The type that a scalar has on the stack."""


def _call(name: str) -> Spelling:
    return lambda body: body.call(name)


def _scalar_call(name: str) -> Spelling:
    """A function of vectors for one value."""

    def spell(body: Body) -> None:
        body.op("f32x4.splat")
        body.call(name)
        body.add(lane("f32x4.extract_lane", 0))

    return spell


def _pick(kind: Type, test: str) -> Spelling:
    """Select, of two integers on the stack, the first if `first test second` holds, else the second."""

    def spell(body: Body) -> None:
        a, b = body.local(kind), body.local(kind)
        body.set(b)
        body.tee(a)
        body.get(b, a, b)
        body.op(test, "select")
        body.free(a, b)

    return spell


def _absolute(kind: Type, sign: bytes) -> Spelling:
    def spell(body: Body) -> None:
        a, s = body.local(kind), body.local(kind)
        body.tee(a)
        body.add(sign + OPS[f"{kind}.shr_s"])
        body.tee(s)
        body.get(a)
        body.op(f"{kind}.xor")
        body.get(s)
        body.op(f"{kind}.sub")
        body.free(a, s)

    return spell


def _divide(kind: Type, zero: bytes, one: bytes, two: bytes, minus: bytes) -> Spelling:
    """Division that never traps: for the divisors 0 and −1 it divides by 1, and negates the result for −1."""

    def spell(body: Body) -> None:
        a, b = body.local(kind), body.local(kind)
        body.set(b)
        body.set(a)
        body.add(zero)
        body.get(a)
        body.op(f"{kind}.sub")
        body.get(a)
        body.add(one)
        body.get(b, b)
        body.add(one + OPS[f"{kind}.add"] + two + OPS[f"{kind}.lt_u"])
        body.op("select", f"{kind}.div_s")
        body.get(b)
        body.add(minus + OPS[f"{kind}.eq"] + OPS["select"])
        body.free(a, b)

    return spell


def _remainder(kind: Type) -> Spelling:
    def spell(body: Body) -> None:
        b = body.local(kind)
        body.tee(b)
        body.get(b)
        body.op(f"{kind}.eqz")
        if kind == "i64":
            body.op("i64.extend_i32_u")
        body.op(f"{kind}.add", f"{kind}.rem_s")
        body.free(b)

    return spell


def _isnan(body: Body) -> None:
    a = body.local("f32")
    body.tee(a)
    body.get(a)
    body.op("f32.ne")
    body.free(a)


def _isnan_lanes(body: Body) -> None:
    a = body.local("v128")
    body.tee(a)
    body.get(a)
    body.op("f32x4.ne")
    body.free(a)


def _numbers(float_op: str, int_op: str) -> dict[DType, Spelling]:
    return {float32: OPS[f"f32.{float_op}"], int32: OPS[f"i32.{int_op}"], int64: OPS[f"i64.{int_op}"]}


def _logic(op: str) -> dict[DType, Spelling]:
    return {bool_: OPS[f"i32.{op}"], int32: OPS[f"i32.{op}"], int64: OPS[f"i64.{op}"]}


SCALAR: Final[Mapping[str, Mapping[DType, Spelling]]] = scalar.complete("wasm", {
    "add": _numbers("add", "add"),
    "sub": _numbers("sub", "sub"),
    "mul": _numbers("mul", "mul"),
    "div": {float32: OPS["f32.div"], int32: _divide("i32", i32(0), i32(1), i32(2), i32(-1)), int64: _divide("i64", i64(0), i64(1), i64(2), i64(-1))},
    "rem": {float32: _call("fmod"), int32: _remainder("i32"), int64: _remainder("i64")},
    "min": {float32: OPS["f32.min"], int32: _pick("i32", "i32.lt_s"), int64: _pick("i64", "i64.lt_s")},
    "max": {float32: OPS["f32.max"], int32: _pick("i32", "i32.gt_s"), int64: _pick("i64", "i64.gt_s")},
    "neg": {float32: OPS["f32.neg"], int32: i32(-1) + OPS["i32.mul"], int64: i64(-1) + OPS["i64.mul"]},
    "abs": {float32: OPS["f32.abs"], int32: _absolute("i32", i32(31)), int64: _absolute("i64", i64(63))},
    "sqrt": {float32: OPS["f32.sqrt"]},
    "exp": {float32: _scalar_call("exp")},
    "log": {float32: _scalar_call("log")},
    "sin": {float32: _scalar_call("sin")},
    "cos": {float32: _scalar_call("cos")},
    "tanh": {float32: _scalar_call("tanh")},
    "floor": {float32: OPS["f32.floor"]},
    "ceil": {float32: OPS["f32.ceil"]},
    "round": {float32: OPS["f32.nearest"]},
    "isnan": {float32: _isnan},
    "eq": {bool_: OPS["i32.eq"], **_numbers("eq", "eq")},
    "lt": _numbers("lt", "lt_s"),
    "le": _numbers("le", "le_s"),
    "and": _logic("and"),
    "or": _logic("or"),
    "xor": _logic("xor"),
    "not": {bool_: OPS["i32.eqz"], int32: i32(-1) + OPS["i32.xor"], int64: i64(-1) + OPS["i64.xor"]},
    "shl": {int32: OPS["i32.shl"], int64: OPS["i64.shl"]},
    "shr": {int32: OPS["i32.shr_s"], int64: OPS["i64.shr_s"]},
    "select": dict.fromkeys((bool_, int32, int64, float32), OPS["select"]),
    "cast": {},  # CASTS
})  # fmt: skip
"""word → type of its first argument (of select: the second) → instructions."""

CASTS: Final[Mapping[tuple[DType, DType], Spelling]] = {
    (bool_, int32): b"",
    (bool_, int64): OPS["i64.extend_i32_u"],
    (bool_, float32): OPS["f32.convert_i32_s"],
    (int32, bool_): i32(0) + OPS["i32.ne"],
    (int32, int64): OPS["i64.extend_i32_s"],
    (int32, float32): OPS["f32.convert_i32_s"],
    (int64, bool_): i64(0) + OPS["i64.ne"],
    (int64, int32): OPS["i32.wrap_i64"],
    (int64, float32): OPS["f32.convert_i64_s"],
    (float32, bool_): f32(0) + OPS["f32.ne"],
    (float32, int32): OPS["i32.trunc_sat_f32_s"],
    (float32, int64): OPS["i64.trunc_sat_f32_s"],
}
"""(from, to) → instructions."""


def _lanes(float_op: str, int_op: str) -> dict[DType, Spelling]:
    return {float32: OPS[f"f32x4.{float_op}"], int32: OPS[f"i32x4.{int_op}"]}


def _bits(op: str) -> dict[DType, Spelling]:
    return {bool_: OPS[f"v128.{op}"], int32: OPS[f"v128.{op}"]}


def _float(op: str) -> dict[DType, Spelling]:
    return {float32: OPS[f"f32x4.{op}"]}


_MASKED_ONE: Final = f32x4(1.0) + OPS["v128.and"]
_VECTOR: Final[Mapping[str, Mapping[DType, Spelling]]] = {
    "add": _lanes("add", "add"),
    "sub": _lanes("sub", "sub"),
    "mul": _lanes("mul", "mul"),
    "div": _float("div"),
    "rem": {},
    "min": _lanes("min", "min_s"),
    "max": _lanes("max", "max_s"),
    "neg": _lanes("neg", "neg"),
    "abs": _lanes("abs", "abs"),
    "sqrt": _float("sqrt"),
    "exp": {float32: _call("exp")},
    "log": {float32: _call("log")},
    "sin": {float32: _call("sin")},
    "cos": {float32: _call("cos")},
    "tanh": {float32: _call("tanh")},
    "floor": _float("floor"),
    "ceil": _float("ceil"),
    "round": _float("nearest"),
    "isnan": {float32: _isnan_lanes},
    "eq": {bool_: OPS["i32x4.eq"], **_lanes("eq", "eq")},
    "lt": _lanes("lt", "lt_s"),
    "le": _lanes("le", "le_s"),
    "and": _bits("and"),
    "or": _bits("or"),
    "xor": _bits("xor"),
    "not": {bool_: OPS["v128.not"], int32: OPS["v128.not"]},
    "shl": {},
    "shr": {},
    "select": dict.fromkeys((bool_, int32, float32), OPS["v128.bitselect"]),
    "cast": {},
}
VECTOR_CASTS: Final[Mapping[tuple[DType, DType], Spelling]] = {
    (bool_, int32): OPS["i32x4.neg"],
    (bool_, float32): _MASKED_ONE,
    (int32, bool_): i32x4(0) + OPS["i32x4.ne"],
    (int32, float32): OPS["f32x4.convert_i32x4_s"],
    (float32, bool_): f32x4(0) + OPS["f32x4.ne"],
    (float32, int32): OPS["i32x4.trunc_sat_f32x4_s"],
}
SHIFT_BY_ONE_AMOUNT: Final = {"shl": OPS["i32x4.shl"], "shr": OPS["i32x4.shr_s"]}
"""Shifts of a vector by one scalar amount for all lanes."""
SPLAT: Final[Mapping[DType, bytes]] = {
    float32: OPS["f32x4.splat"], int32: OPS["i32x4.splat"], bool_: ops("i32x4.splat i32x4.neg"),
}  # fmt: skip
"""A scalar in all lanes."""


def extract(dtype: DType, number: int) -> bytes:
    """One lane of a vector as a scalar."""
    if dtype is float32:
        return lane("f32x4.extract_lane", number)
    return lane("i32x4.extract_lane", number) + (i32(1) + OPS["i32.and"] if dtype is bool_ else b"")


def _lane_by_lane(word: str, dtype: DType) -> Spelling:
    result = bool_ if scalar.WORDS[word].result == "bool" else dtype
    replace = "f32x4.replace_lane" if result is float32 else "i32x4.replace_lane"

    def spell(body: Body) -> None:
        arguments = [body.local("v128") for _ in range(scalar.WORDS[word].arity)]
        for a in reversed(arguments):
            body.set(a)
        body.get(arguments[0])
        for number in range(4):
            for a in arguments:
                body.get(a)
                body.add(extract(dtype, number))
            body.apply(SCALAR[word][dtype])
            body.add(lane(replace, number))
        body.free(*arguments)

    return spell


VECTOR: Final[Mapping[str, Mapping[DType, Spelling]]] = scalar.complete("wasm", {
    word: {d: row.get(d) or _lane_by_lane(word, d) for d in SCALAR[word] if d is not int64}
    for word, row in _VECTOR.items()
})  # fmt: skip
"""word → type of its first argument (of select: the second) → instructions on vectors."""

AGAINST_NUMBER: Final = {"min": OPS["f32x4.pmin"], "max": OPS["f32x4.pmax"]}
"""min and max if the second argument is not NaN: one machine instruction, and a NaN in the first is kept."""
