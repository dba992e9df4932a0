"""The encoder writes modules that an engine accepts, and the heap keeps its blocks apart."""

from __future__ import annotations

import random

import pytest
import wasmtime

from singe_wasm.encode import OPS, Body, Function, i32, module, signed, unsigned
from singe_wasm.heap import Heap
from singe_wasm.library import LIBRARY


@pytest.mark.parametrize(("value", "expected"), [(0, "00"), (127, "7f"), (128, "8001"), (624485, "e58e26")])
def test_unsigned_leb(value: int, expected: str) -> None:
    assert unsigned(value).hex() == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "00"), (63, "3f"), (64, "c000"), (-64, "40"), (-65, "bf7f"), (-123456, "c0bb78")]
)
def test_signed_leb(value: int, expected: str) -> None:
    assert signed(value).hex() == expected


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
