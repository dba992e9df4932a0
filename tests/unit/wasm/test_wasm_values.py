"""The typed layer of the WebAssembly code generator: operations compute what Python computes, and statements work."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import wasmtime

from singe_wasm.code.encode import Body, Function, Type, i64, module, ops
from singe_wasm.code.values import F32, F64, I32, I64, F32x4, I32x4, Value, maximum, minimum, select
from singe_wasm.code.writer import Tree, Writer
from singe_wasm.library import LIBRARY

ENGINE = wasmtime.Engine()
OF = {"i32": I32, "i64": I64, "f32": F32, "f64": F64}
INTEGERS = (0, 1, 2, 7, 100, 2**31 - 1)
FLOATS = (0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 1e30, -1e-30, math.inf, -math.inf, math.nan)
VECTORS = ((0.0, -0.0, 1.0, -1.5), (2.5, 3.5, 1e30, -1e-30), (math.inf, -math.inf, math.nan, 5.0))
WORDS = ((0, 1, -1, 2**31 - 1), (-(2**31), 7, -7, 100))


def instance(functions: Mapping[str, Function], memory: bytes) -> tuple[wasmtime.Store, wasmtime.Memory, Any]:
    """A store, its memory, and the exports of a module of these functions."""
    store = wasmtime.Store(ENGINE)
    linear = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
    linear.write(store, memory, 0)
    code = module(functions, LIBRARY, relaxed=False)
    return store, linear, wasmtime.Instance(store, wasmtime.Module(ENGINE, code), [linear]).exports(store)


def run(function: Function, *arguments: Any, memory: bytes = b"") -> tuple[Any, bytes]:
    """The result of a function, and the first bytes of its memory afterwards."""
    store, linear, exports = instance({"f": function}, memory)
    answer = exports["f"](store, *arguments)
    return answer, bytes(linear.read(store, 0, 64))


def expression(make: Callable[..., Value], kinds: Sequence[Type], result: Type) -> Function:
    """A scalar expression over parameters of these types."""
    w = Writer(Body(kinds, [result]))
    return w.finish(make(*(OF[kind](number=k) for k, kind in enumerate(kinds))))


def computed(make: Callable[..., Value], kinds: Sequence[Type], given: Sequence[Any], result: Type) -> Any:
    """The value of a scalar expression over parameters of these types."""
    return run(expression(make, kinds, result), *given)[0]


def computing(functions: Mapping[Any, Function]) -> Callable[..., Any]:
    """A function of a key and arguments that calls the function with that key; all are in one module."""
    store, _, exports = instance({str(key): f for key, f in functions.items()}, b"")
    return lambda key, *given: exports[str(key)](store, *given)


def lanes(make: Callable[..., Value], given: Sequence[tuple[Any, ...]], form: str) -> tuple[Any, ...]:
    """The value of an expression over vectors of four, which are in memory 16 bytes apart."""
    w = Writer(Body(["i32"]))
    at = I32(number=0)
    loads = [at.f32x4(16 * k) if isinstance(v[0], float) else at.i32x4(16 * k) for k, v in enumerate(given)]
    w.store(at, make(*(w.local(load) for load in loads)))
    raw = b"".join(struct.pack("<4f" if isinstance(v[0], float) else "<4i", *v) for v in given)
    _, after = run(w.finish(), 0, memory=raw)
    return struct.unpack(form, after[:16])


def as_i32(value: int) -> int:
    return (int(value) + 2**31) % 2**32 - 2**31


def same(found: Any, wanted: Any, kind: type = np.float64) -> None:
    """Check that numbers are equal to the bit; any NaN equals any other."""
    with np.errstate(over="ignore"):
        found, wanted = np.asarray(found, kind), np.asarray(wanted, kind)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(wanted[~np.isnan(wanted)]))


# --- integers --------------------------------------------------------------------------------------------------------

BINARY: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "//": (lambda a, b: a // b, lambda a, b: a // b),
    "%": (lambda a, b: a % b, lambda a, b: a % b),
    "&": (lambda a, b: a & b, lambda a, b: a & b),
    "|": (lambda a, b: a | b, lambda a, b: a | b),
    "^": (lambda a, b: a ^ b, lambda a, b: a ^ b),
    "<<": (lambda a, b: a << b, lambda a, b: a << (b % 32)),
    ">>": (lambda a, b: a >> b, lambda a, b: a >> (b % 32)),
    "<": (lambda a, b: a < b, lambda a, b: a < b),
    "<=": (lambda a, b: a <= b, lambda a, b: a <= b),
    ">": (lambda a, b: a > b, lambda a, b: a > b),
    ">=": (lambda a, b: a >= b, lambda a, b: a >= b),
    "equals": (lambda a, b: a.equals(b), lambda a, b: a == b),
    "differs": (lambda a, b: a.differs(b), lambda a, b: a != b),
    "below": (lambda a, b: a.below(b), lambda a, b: a < b),
    "above": (lambda a, b: a.above(b), lambda a, b: a > b),
    "minimum": (minimum, min),
    "maximum": (maximum, max),
}


@pytest.mark.parametrize("name", BINARY)
def test_integers(name: str) -> None:
    """With operands that are known when the code is written and that are not."""
    make, wanted = BINARY[name]
    pairs = [(a, b) for a in INTEGERS for b in INTEGERS if not (name in ("//", "%") and b == 0)]
    call = computing(
        {"": expression(make, ["i32", "i32"], "i32")}
        | {("right", b): expression(lambda x, b=b: make(x, b), ["i32"], "i32") for _, b in pairs}
        | {("left", a): expression(lambda x, a=a: make(I32.of(a), x), ["i32"], "i32") for a, _ in pairs}
        | {(a, b): expression(lambda a=a, b=b: make(I32.of(a), I32.of(b)), [], "i32") for a, b in pairs}
    )
    for a, b in pairs:
        both = [call("", a, b), call(("right", b), a), call(("left", a), b), call((a, b))]
        assert both == [as_i32(wanted(a, b))] * 4, (a, b)


def test_negative_numbers_are_unsigned_where_the_layer_says_so() -> None:
    assert computed(lambda a: a >> 28, ["i32"], [-1], "i32") == 15
    assert computed(lambda a: a // 2, ["i32"], [-2], "i32") == 2**31 - 1
    assert computed(lambda: I32.of(-2) // 2, [], [], "i32") == 2**31 - 1
    assert computed(lambda a: a.below(5), ["i32"], [-1], "i32") == 0
    assert computed(lambda a: a.above(5), ["i32"], [-1], "i32") == 1
    assert computed(lambda a: a < 5, ["i32"], [-1], "i32") == 1
    assert computed(lambda a: 5 - a, ["i32"], [7], "i32") == -2


def test_known_integers_are_folded() -> None:
    x = I32(number=0)
    assert (I32.of(3) * 4 + 5).known == 17
    assert (x + 0) is x
    assert (x * 1) is x
    assert (x * 0).known == 0
    assert (x % 1).known == 0
    assert select(I32.of(0), 3, 4).known == 4
    assert x.simple
    assert not (x + 1).simple


@pytest.mark.parametrize("a", INTEGERS)
def test_conditions(a: int) -> None:
    assert computed(lambda x: x.zero, ["i32"], [a], "i32") == (a == 0)
    assert computed(lambda x: select(x, 3, 4), ["i32"], [a], "i32") == (3 if a else 4)


@pytest.mark.parametrize("a", [0, 1, -1, 5, -(2**63), 2**63 - 1])
def test_long_integers(a: int) -> None:
    def wrapped(value: int) -> int:
        return (value + 2**63) % 2**64 - 2**63

    cases: list[tuple[Callable[[I64], Value], Any, Type]] = [
        (lambda x: x + 3, wrapped(a + 3), "i64"), (lambda x: x - 3, wrapped(a - 3), "i64"), (lambda x: x - x, 0, "i64"),
        (lambda x: x & 6, a & 6, "i64"), (lambda x: x | 6, a | 6, "i64"), (lambda x: x << 5, wrapped(a << 5), "i64"),
        (lambda x: x >> 5, a >> 5, "i64"), (lambda x: x.as_i32(), as_i32(a), "i32"), (lambda x: x.converted(), float(a), "f64"),
        (lambda x: x.as_f64().bits(), a, "i64"),
    ]  # fmt: skip
    for make, wanted, result in cases:
        assert computed(make, ["i64"], [a], result) == wanted


# --- floats ----------------------------------------------------------------------------------------------------------

ARITHMETIC: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (lambda a, b: a + b, np.add),
    "-": (lambda a, b: a - b, np.subtract),
    "*": (lambda a, b: a * b, np.multiply),
    "/": (lambda a, b: a / b, np.divide),
    "<": (lambda a, b: a < b, np.less),
    "equals": (lambda a, b: a.equals(b), np.equal),
    "differs": (lambda a, b: a.differs(b), np.not_equal),
}
COMPARED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "<=": (lambda a, b: a <= b, np.less_equal),
    ">": (lambda a, b: a > b, np.greater),
    ">=": (lambda a, b: a >= b, np.greater_equal),
}
TESTS = ("<", "equals", "differs", *COMPARED)
ALONE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "neg": (lambda a: -a, np.negative),
    "abs": (abs, np.abs),
    "whole": (lambda a: a.whole(), np.rint),
    "from a number": (lambda a: 1.0 - a, lambda a: 1 - a),
    "inverse": (lambda a: 1.0 / a, lambda a: 1 / a),
    "horner": (lambda a: a.horner((0.5, -2.0, 3.0)), lambda a: (0.5 * a - 2) * a + 3),
    "within": (lambda a: a.within(-1.0, 2.0), lambda a: np.minimum(np.maximum(a, -1), 2)),
}
ONE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "root": (lambda a: a.root(), np.sqrt),
    "truncated": (lambda a: a.truncated(), np.trunc),
    "signed_as": (lambda a: a.of(3.0).signed_as(a), lambda a: np.copysign(3.0, a)),
    "where": (lambda a: a.where(a > 1.0, 5.0), lambda a: np.where(a > 1, a, 5)),
}
KINDS: dict[Type, type] = {"f32": np.float32, "f64": np.float64}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARED])
def test_two_floats(name: str, kind: Type) -> None:
    make, wanted = (ARITHMETIC | COMPARED)[name]
    result = "i32" if name in TESTS else kind
    call = computing(
        {"": expression(make, [kind, kind], result)}
        | {("right", str(b)): expression(lambda x, b=b: make(x, b), [kind], result) for b in FLOATS}
    )
    with np.errstate(all="ignore"):
        for a in FLOATS:
            for b in FLOATS:
                expected = wanted(KINDS[kind](a), KINDS[kind](b))
                same(call("", a, b), expected, KINDS[kind])
                same(call(("right", str(b)), a), expected, KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*ALONE, *ONE])
def test_one_float(name: str, kind: Type) -> None:
    make, wanted = (ALONE | ONE)[name]
    with np.errstate(all="ignore"):
        for a in FLOATS:
            same(computed(make, [kind], [a], kind), wanted(KINDS[kind](a)), KINDS[kind])


@pytest.mark.parametrize("a", [f for f in FLOATS if abs(f) < 1e9])
def test_floats_become_other_types(a: float) -> None:
    (bits,) = struct.unpack("<i", struct.pack("<f", a))
    (wide,) = struct.unpack("<q", struct.pack("<d", a))
    assert computed(lambda x: x.bits(), ["f32"], [a], "i32") == bits
    same(computed(lambda x: x.bits().as_f32(), ["f32"], [a], "f32"), np.float32(a))
    assert computed(lambda x: x.bits(), ["f64"], [a], "i64") == wide
    assert computed(lambda x: x.rounded(), ["f32"], [a], "i32") == np.rint(a)
    assert computed(lambda x: x.whole().integer(), ["f64"], [a], "i64") == np.rint(a)
    same(computed(lambda x: x.as_f64(), ["f32"], [a], "f64"), np.float64(np.float32(a)))
    same(computed(lambda x: x.as_f32(), ["f64"], [a], "f32"), np.float32(a))


# --- vectors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARITHMETIC)
def test_two_vectors(name: str) -> None:
    """Masks have lanes of 0 or −1."""
    make, wanted = ARITHMETIC[name]
    with np.errstate(all="ignore"):
        for a in VECTORS:
            for b in VECTORS:
                expected = wanted(np.float32(a), np.float32(b))
                if name in TESTS:
                    assert lanes(make, [a, b], "<4i") == tuple(-expected.astype(int))
                else:
                    same(lanes(make, [a, b], "<4f"), expected)


@pytest.mark.parametrize("name", ALONE)
def test_one_vector(name: str) -> None:
    make, wanted = ALONE[name]
    with np.errstate(all="ignore"):
        for a in VECTORS:
            same(lanes(make, [a], "<4f"), wanted(np.float32(a)))


def test_vectors_of_integers() -> None:
    for a in WORDS:
        x = np.array(a, np.int64)
        cases: list[tuple[Callable[..., Value], Any]] = [
            (lambda v: v + 3, x + 3), (lambda v: v - 3, x - 3), (lambda v: v * 3, x * 3), (lambda v: v & 6, x & 6),
            (lambda v: v | I32x4.of(6), x | 6), (lambda v: v ^ I32x4.of(6), x ^ 6), (lambda v: v << 5, x << 5),
            (lambda v: v >> 5, x >> 5), (lambda v: v.with_("i32x4.max_s", 5), np.maximum(x, 5)),
            (lambda v: v.shuffled(I32x4.of(9), 3, 4, 1, 0), [a[3], 9, a[1], a[0]]),
            (lambda v: v.lane(2).splat(), [a[2]] * 4),
        ]  # fmt: skip
        for make, wanted in cases:
            assert lanes(make, [a], "<4i") == tuple(as_i32(v) for v in wanted)
        same(lanes(lambda v: v.as_floats(), [a], "<4f"), np.array(a, np.float32))


def test_vectors_are_chosen_and_widened() -> None:
    a, b = (1.0, -2.0, 1.0 / 3, 4.0), (5.0, 6.0, 7.0, 8.0)
    x = np.float32(a)
    same(lanes(lambda v, u: (v < 1.0).choose(v, u), [a, b], "<4f"), np.where(x < 1, x, np.float32(b)))
    same(lanes(lambda v: v.lane(1).splat(), [a], "<4f"), [-2.0] * 4)
    same(lanes(lambda v: (v.doubles() * 3.0 - v.doubles()).as_floats(), [a], "<4f"), [2.0, -4.0, 0.0, 0.0])
    assert lanes(lambda v: (v.doubles() * 1.25).whole().as_integers(), [a], "<4i") == (1, -2, 0, 0)
    assert lanes(lambda v: v.integers(), [a], "<4i") == struct.unpack("<4i", struct.pack("<4f", *a))


# --- statements ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sure", [False, True])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_loops_run_while_the_variable_is_below_the_limit(count: int, step: int, sure: bool) -> None:
    w = Writer(Body(["i32"], ["i32"]))
    total, i = w.i32(0), w.i32()
    with w.loop(i, I32(number=0), step, start=0, sure=sure):
        w.add(total, i + 1)
    answer, _ = run(w.finish(total), count)
    assert answer == sum(k + 1 for k in range(0, max(count, sure), step))


@pytest.mark.parametrize("given", range(4))
def test_branches(given: int) -> None:
    w = Writer(Body(["i32"], ["i32"]))
    x, found = I32(number=0), w.i32(100)
    with w.when(x.equals(3)):
        w.leave(I32.of(-1))
    with w.when(x):
        w.set(found, x * 10)
        w.otherwise()
        w.add(found, 1)
    with w.when(x > 0), w.repeat_while(x > 0):
        w.add(x, -1)
        w.add(found, 2)
    assert run(w.finish(found), given)[0] == (101, 12, 24, -1)[given]


def test_locals_of_a_scope_are_used_again() -> None:
    w = Writer(Body([], ["i32"]))
    total = w.i32(0)
    for k in range(5):
        with w.scope():
            w.add(total, w.i32(k) + w.i32(1))
    function = w.finish(total)
    assert len(function.locals) == 3
    assert run(function)[0] == 15


def test_memory() -> None:
    w = Writer(Body(["i32"]))
    at = I32(number=0)
    w.store(at, at.load(16) + 1)
    w.store(at, at.f32(20) * 2.0, 4)
    w.store(at, I64(i64(7)), 8)
    w.store(at + 32, F32x4.of(1.5))
    w.store_lane(at + 48, at.i32x4(16), 32)
    w.store_lane(at + 52, at.i32x4(16), 16)
    _, after = run(w.finish(), 0, memory=bytes(16) + struct.pack("<ifii", 41, 1.25, 0, 0))
    assert struct.unpack("<ifq", after[:16]) == (42, 2.5, 7)
    assert struct.unpack("<4f", after[32:48]) == (1.5,) * 4
    assert struct.unpack("<ih", after[48:54]) == (41, 41)


def test_sums_and_folds() -> None:
    w = Writer(Body(["f32", "f32"], ["f32"]))
    a, b = F32(number=0), F32(number=1)
    total = w.f32(1.0)
    w.multiply_add(total, a, b)
    w.fold(total, a, ops("f32.max"))
    assert run(w.finish(total), 2.0, 3.0)[0] == 7.0


def test_calls_pass_their_arguments() -> None:
    w = Writer(Body(["i32"]))
    w.call("fill_zero", I32(number=0) + 4, 8)
    _, after = run(w.finish(), 0, memory=b"\x01" * 16)
    assert after[:16] == b"\x01" * 4 + bytes(8) + b"\x01" * 4


def test_trees_are_computed_once_and_as_far_out_as_they_are_known() -> None:
    body = Body(["i32"], ["i32"])
    w, n = Writer(body), I32(number=0)
    written: list[str] = []

    def squared(b: Body) -> None:
        written.append("square")
        b.get(0, 0)
        b.op("i32.mul")

    i, total = w.i32(), w.i32(0)
    square = Tree(squared, (), "i32", 0)
    turn = Tree(i.push, (), "i32", 1, trivial=True)
    both = Tree(ops("i32.add"), (square, turn), "i32", 1)
    twice = Tree(ops("i32.mul"), (both, both), "i32", 1)
    w.hoist([twice], 0)
    with w.loop(i, n, start=0):
        w.add(total, w.value(twice))
        w.add(total, w.value(square))
    assert run(w.finish(total), 3)[0] == sum((9 + k) ** 2 + 9 for k in range(3))
    assert written == ["square"]
