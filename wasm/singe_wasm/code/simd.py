"""The scalar vocabulary spelled in WebAssembly, one value at a time (SCALAR) and four at a time (VECTOR).

On the stack a scalar bool is an i32 of 0 or 1, and a vector of bools has lanes of 0 or −1. Types of 64 bits come as
scalars only. A word without a vector instruction is computed lane by lane. Longer code is a call to a function of
`library`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from singe.extension import DType, bool_, float32, float64, int32, int64, scalar, uint32, uint64

from .encode import OPS, Body, Spelling, Type, f32, f32x4, f64, i32, i32x4, i64, lane, ops
from .minifloats import NARROW

VALUE: Final[Mapping[DType, Type]] = {
    bool_: "i32", int32: "i32", uint32: "i32", int64: "i64", uint64: "i64", float32: "f32", float64: "f64",
}  # fmt: skip
"""The type that a scalar has on the stack."""
LANES: Final = (bool_, int32, uint32, float32)
"""The types of which a vector has four."""


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
    """Division that never traps: for the divisors 0 and −1 it divides by 1, and for −1 it negates the result."""

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


def _by_nonzero(kind: Type, op: str) -> Spelling:
    """A division that cannot overflow, by 1 in place of 0."""

    def spell(body: Body) -> None:
        b = body.local(kind)
        body.tee(b)
        body.get(b)
        body.op(f"{kind}.eqz")
        if kind == "i64":
            body.op("i64.extend_i32_u")
        body.op(f"{kind}.add", f"{kind}.{op}")
        body.free(b)

    return spell


def _isnan(kind: Type) -> Spelling:
    def spell(body: Body) -> None:
        a = body.local(kind)
        body.tee(a)
        body.get(a)
        body.op(f"{kind}.ne")
        body.free(a)

    return spell


def _isnan_lanes(body: Body) -> None:
    a = body.local("v128")
    body.tee(a)
    body.get(a)
    body.op("f32x4.ne")
    body.free(a)


def _floats(op: str) -> dict[DType, Spelling]:
    return {d: OPS[f"{VALUE[d]}.{op}"] for d in (float32, float64)}


def _integers(op: str, signs: bool = False) -> dict[DType, Spelling]:
    """signs: whether signed and unsigned integers have different instructions."""
    return {
        d: OPS[f"{VALUE[d]}.{op}{('_s' if d.kind == 'int' else '_u') if signs else ''}"]
        for d in (int32, uint32, int64, uint64)
    }


def _picks(test: str) -> dict[DType, Spelling]:
    kinds = (int32, uint32, int64, uint64)
    return {d: _pick(VALUE[d], f"{VALUE[d]}.{test}_{'s' if d.kind == 'int' else 'u'}") for d in kinds}


def _remainders() -> dict[DType, Spelling]:
    kinds = (int32, uint32, int64, uint64)
    return {d: _by_nonzero(VALUE[d], f"rem_{'s' if d.kind == 'int' else 'u'}") for d in kinds}


SCALAR: Final[Mapping[str, Mapping[DType, Spelling]]] = scalar.complete("wasm", {
    "add": _floats("add") | _integers("add"),
    "sub": _floats("sub") | _integers("sub"),
    "mul": _floats("mul") | _integers("mul"),
    "div": _floats("div") | {
        int32: _divide("i32", i32(0), i32(1), i32(2), i32(-1)), int64: _divide("i64", i64(0), i64(1), i64(2), i64(-1)),
        uint32: _by_nonzero("i32", "div_u"), uint64: _by_nonzero("i64", "div_u"),
    },
    "rem": {float32: _call("fmod"), float64: _call("fmod_f64"), **_remainders()},
    "min": _floats("min") | _picks("lt"),
    "max": _floats("max") | _picks("gt"),
    "neg": _floats("neg") | dict.fromkeys((int32, uint32), i32(-1) + OPS["i32.mul"]) | dict.fromkeys((int64, uint64), i64(-1) + OPS["i64.mul"]),
    "abs": _floats("abs") | {int32: _absolute("i32", i32(31)), int64: _absolute("i64", i64(63)), uint32: b"", uint64: b""},
    "sqrt": _floats("sqrt"),
    "exp": {float32: _scalar_call("exp"), float64: _call("exp_f64")},
    "log": {float32: _scalar_call("log"), float64: _call("log_f64")},
    "sin": {float32: _scalar_call("sin"), float64: _call("sin_f64")},
    "cos": {float32: _scalar_call("cos"), float64: _call("cos_f64")},
    "tanh": {float32: _scalar_call("tanh"), float64: _call("tanh_f64")},
    "floor": _floats("floor"),
    "ceil": _floats("ceil"),
    "round": _floats("nearest"),
    "isnan": {d: _isnan(VALUE[d]) for d in (float32, float64)},
    "bits": {float32: OPS["i32.reinterpret_f32"], float64: OPS["i64.reinterpret_f64"]},
    "of_bits": {int32: OPS["f32.reinterpret_i32"], int64: OPS["f64.reinterpret_i64"]},
    "eq": {bool_: OPS["i32.eq"]} | _floats("eq") | _integers("eq"),
    "lt": _floats("lt") | _integers("lt", signs=True),
    "le": _floats("le") | _integers("le", signs=True),
    "and": {bool_: OPS["i32.and"]} | _integers("and"),
    "or": {bool_: OPS["i32.or"]} | _integers("or"),
    "xor": {bool_: OPS["i32.xor"]} | _integers("xor"),
    "not": {bool_: OPS["i32.eqz"]} | dict.fromkeys((int32, uint32), i32(-1) + OPS["i32.xor"]) | dict.fromkeys((int64, uint64), i64(-1) + OPS["i64.xor"]),
    "shl": _integers("shl"),
    "shr": _integers("shr", signs=True),
    "select": dict.fromkeys(VALUE, OPS["select"]),
    "cast": {},  # CASTS
    "rounded": {},  # ROUNDINGS
})  # fmt: skip
"""word → type of its first argument (of select: the second) → instructions."""

_ZEROS: Final = {"i32": i32(0), "i64": i64(0), "f32": f32(0), "f64": f64(0)}


def _cast(source_dtype: DType, to: DType) -> Spelling:
    a, b = VALUE[source_dtype], VALUE[to]
    if to is bool_:
        return _ZEROS[a] + OPS[f"{a}.ne"]
    if a == b:
        return b""
    if source_dtype.is_float:
        float_ = "f32.demote_f64" if a == "f64" else "f64.promote_f32"
        return OPS[float_ if to.is_float else f"{b}.trunc_sat_{a}_{'s' if to.kind == 'int' else 'u'}"]
    sign = "s" if source_dtype.kind == "int" else "u"
    return OPS[f"{b}.convert_{a}_{sign}" if to.is_float else "i32.wrap_i64" if b == "i32" else f"i64.extend_i32_{sign}"]


CASTS: Final[Mapping[tuple[DType, DType], Spelling]] = {
    (given, to): _cast(given, to) for given in VALUE for to in VALUE if given is not to
}
"""(from, to) → instructions."""


def _lanes(float_op: str, int_op: str, unsigned_op: str = "") -> dict[DType, Spelling]:
    return {
        float32: OPS[f"f32x4.{float_op}"], int32: OPS[f"i32x4.{int_op}"], uint32: OPS[f"i32x4.{unsigned_op or int_op}"],
    }  # fmt: skip


def _bits(op: str) -> dict[DType, Spelling]:
    return dict.fromkeys((bool_, int32, uint32), OPS[f"v128.{op}"])


def _float(op: str) -> dict[DType, Spelling]:
    return {float32: OPS[f"f32x4.{op}"]}


_MASKED_ONE: Final = f32x4(1.0) + OPS["v128.and"]
_VECTOR: Final[Mapping[str, Mapping[DType, Spelling]]] = {
    "add": _lanes("add", "add"),
    "sub": _lanes("sub", "sub"),
    "mul": _lanes("mul", "mul"),
    "div": _float("div"),
    "rem": {},
    "min": _lanes("min", "min_s", "min_u"),
    "max": _lanes("max", "max_s", "max_u"),
    "neg": _lanes("neg", "neg"),
    "abs": _lanes("abs", "abs") | {uint32: b""},
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
    "bits": {float32: b""},
    "of_bits": {int32: b""},
    "eq": {bool_: OPS["i32x4.eq"], **_lanes("eq", "eq")},
    "lt": _lanes("lt", "lt_s", "lt_u"),
    "le": _lanes("le", "le_s", "le_u"),
    "and": _bits("and"),
    "or": _bits("or"),
    "xor": _bits("xor"),
    "not": _bits("not"),
    "shl": {},
    "shr": {},
    "select": dict.fromkeys(LANES, OPS["v128.bitselect"]),
    "cast": {},
    "rounded": {},
}
VECTOR_CASTS: Final[Mapping[tuple[DType, DType], Spelling]] = {
    (bool_, int32): OPS["i32x4.neg"],
    (bool_, uint32): OPS["i32x4.neg"],
    (bool_, float32): _MASKED_ONE,
    (int32, bool_): i32x4(0) + OPS["i32x4.ne"],
    (int32, uint32): b"",
    (int32, float32): OPS["f32x4.convert_i32x4_s"],
    (uint32, bool_): i32x4(0) + OPS["i32x4.ne"],
    (uint32, int32): b"",
    (uint32, float32): OPS["f32x4.convert_i32x4_u"],
    (float32, bool_): f32x4(0) + OPS["f32x4.ne"],
    (float32, int32): OPS["i32x4.trunc_sat_f32x4_s"],
    (float32, uint32): OPS["i32x4.trunc_sat_f32x4_u"],
}
ROUNDINGS: Final = {d: _scalar_call(f"rounded_to_{d}") for d in NARROW}
VECTOR_ROUNDINGS: Final = {d: _call(f"rounded_to_{d}") for d in NARROW}
"""Narrower float → instructions that round to it."""
SHIFT_BY_ONE_AMOUNT: Final = {
    ("shl", int32): OPS["i32x4.shl"], ("shl", uint32): OPS["i32x4.shl"],
    ("shr", int32): OPS["i32x4.shr_s"], ("shr", uint32): OPS["i32x4.shr_u"],
}  # fmt: skip
"""Shifts of a vector by one scalar amount for all lanes."""
SPLAT: Final[Mapping[DType, bytes]] = {
    float32: OPS["f32x4.splat"], int32: OPS["i32x4.splat"], uint32: OPS["i32x4.splat"], bool_: ops("i32x4.splat i32x4.neg"),
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
    word: {d: row[d] if d in row else _lane_by_lane(word, d) for d in SCALAR[word] if d in LANES}
    for word, row in _VECTOR.items()
})  # fmt: skip
"""word → type of its first argument (of select: the second) → instructions on vectors."""

AGAINST_NUMBER: Final = {"min": OPS["f32x4.pmin"], "max": OPS["f32x4.pmax"]}
"""min and max if the second argument is not NaN: one machine instruction, and a NaN in the first is kept."""
