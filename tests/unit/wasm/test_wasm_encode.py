"""The encoder writes modules that an engine accepts, and the heap keeps its blocks apart."""

from __future__ import annotations

import random

import numpy as np
import pytest
import wasmtime

from singe.program.words import COPY
from singe.runtime.memory.heap import Heap
from singe_wasm.calls import ALONE, NAME
from singe_wasm.code.encode import OPS, Body, Function, i32, integers, memory, module, signed_leb, unsigned_leb
from singe_wasm.driver import driver
from singe_wasm.library import LIBRARY


@pytest.mark.parametrize(("value", "expected"), [(0, "00"), (127, "7f"), (128, "8001"), (624485, "e58e26")])
def test_unsigned_leb(value: int, expected: str) -> None:
    assert unsigned_leb(value).hex() == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "00"), (63, "3f"), (64, "c000"), (-64, "40"), (-65, "bf7f"), (-123456, "c0bb78")]
)
def test_signed_leb(value: int, expected: str) -> None:
    assert signed_leb(value).hex() == expected


def test_instructions_have_different_codes() -> None:
    assert len(set(OPS.values())) == len(OPS)


def triangle() -> Function:
    """0 + 1 + … + (n − 1)."""
    body = Body(["i32"], ["i32"])
    at, total = body.local("i32"), body.local("i32")
    with body.count(at, b"\x20\x00"):
        body.get(total, at)
        body.op("i32.add")
        body.set(total)
    body.get(total)
    return body.finish()


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 0), (5, 10), (-3, 0)])
def test_loops(count: int, expected: int) -> None:
    store = wasmtime.Store()
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
    code = module({"triangle": triangle()}, LIBRARY, relaxed=False)
    run = wasmtime.Instance(store, wasmtime.Module(store.engine, code), [memory]).exports(store)["triangle"]
    assert run(store, count) == expected  # pyright: ignore[reportCallIssue]


def adder(count: int, plus: int) -> Function:
    """A function like a kernel with `count` arguments before its parts:
    *(first argument) = the sum of the others plus a number."""
    body = Body(integers(count + len(ALONE)))
    body.get(0)
    body.add(i32(plus))
    for k in range(1, count + len(ALONE)):
        body.get(k)
        body.op("i32.add")
    body.add(memory("i32.store"))
    return body.finish()


@pytest.mark.parametrize("functions", [0, 1, 3])
def test_one_call_makes_all(functions: int) -> None:
    """Numbers of arguments that differ, copies between them, and no call at all."""
    kernels = {f"k{k}": adder(k + 2, 100 * k) for k in range(functions)}
    store = wasmtime.Store()
    linear = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
    code = module({**kernels, NAME: driver(kernels)}, LIBRARY, relaxed=False)
    run = wasmtime.Instance(store, wasmtime.Module(store.engine, code), [linear]).exports(store)[NAME]
    words: list[int] = []
    wanted: list[int] = []
    for turn in range(5):
        for k in range(functions):
            place = 1024 + 8 * len(wanted)
            words += [k, k + 2, place, *(7 * turn + i for i in range(k + 1)), COPY, 3, place + 4, place, 4]
            total = 100 * k + sum(7 * turn + i for i in range(k + 1)) + sum(ALONE)
            wanted.append(total)
    linear.write(store, np.array(words, np.int32).tobytes(), 4096)
    run(store, 4096, 4096)  # pyright: ignore[reportCallIssue]
    assert not any(linear.read(store, 1024, 2048))
    run(store, 4096, 4096 + 4 * len(words))  # pyright: ignore[reportCallIssue]
    found = np.frombuffer(bytes(linear.read(store, 1024, 1024 + 8 * len(wanted))), np.int32).reshape(-1, 2)
    np.testing.assert_array_equal(found, np.array([[w, w] for w in wanted], np.int32).reshape(-1, 2))


@pytest.mark.parametrize("relaxed", [False, True])
def test_every_library_function_is_valid(relaxed: bool) -> None:
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    wasmtime.Module(wasmtime.Engine(config), module(dict(LIBRARY), LIBRARY, relaxed))


def test_locals_are_used_again() -> None:
    body = Body([])
    first = body.local("v128")
    body.free(first)
    assert body.local("v128") == first
    assert body.local("i32") != first
    body.add(i32(0) + OPS["drop"])
    assert body.finish().locals == ("v128", "i32")


def test_heap() -> None:
    grown = [0]
    heap = Heap(grown.append)
    rng = random.Random(0)
    held: dict[int, int] = {}
    for _ in range(2000):
        if held and rng.random() < 0.5:
            address = rng.choice(list(held))
            heap.give(address, held.pop(address))
        else:
            count = rng.randrange(5000)
            address = heap.take(count)
            assert address % 256 == 0
            assert all(address + count <= a or a + n <= address for a, n in held.items())
            held[address] = count
    for address, count in held.items():
        heap.give(address, count)
    assert heap.used == 0
    assert heap.take(max(grown) - 256) == 256
