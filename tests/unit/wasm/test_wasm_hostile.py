"""Programs for wasm whose kernels are not what the rest of the Program says: refused, or stopped within their memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from singe.compiler.compile import compile_graph
from singe.compiler.schedule.steps import Copy, words_of
from singe.dtypes import float32
from singe.errors import DeviceError, FormatError, ShapeError
from singe.graph import Builder, Graph
from singe.program.format import from_bytes, to_bytes
from singe.program.program import Buffer, Code, ProgramData
from singe.shapes import size
from singe_wasm.target import WasmTarget

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed")
native = pytest.importorskip("singe_wasm.native")


def program() -> ProgramData:
    """x + 1."""
    b = Builder()
    x = b.input("x", (size("N"),), float32)
    return compile_graph(Graph((x,), (b.add(x, b.const(1, float32)),), ("y",)), WasmTarget())


def kernels(change: Callable[[Code], Code]) -> Callable[[ProgramData], ProgramData]:
    return lambda p: replace(p, kernels=tuple(map(change, p.kernels)))


def entry(text: str) -> Callable[[ProgramData], ProgramData]:
    return kernels(lambda k: replace(k, variants=tuple(replace(v, entry=text) for v in k.variants)))


def one_more_size(p: ProgramData) -> ProgramData:
    """Its one kernel takes one size more."""
    (kernel,), (head, count, *rest) = p.kernels, p.words
    return replace(p, kernels=(replace(kernel, sizes=(*kernel.sizes, 1)),), words=(head, count + 1, *rest, 0))


def code(text: str) -> Callable[[ProgramData], ProgramData]:
    """Modules of this text in place of the Program's."""
    return lambda p: replace(p, modules=dict.fromkeys(p.modules, bytes(wasmtime.wat2wasm(text))))


MEMORY: Final = '(import "env" "memory" (memory 1))'
KERNEL: Final = '(func (export "k0") (param i32 i32 i32 i32 i32))'
REFUSED: Final = {
    "an entry that is no function": (entry("simd:zz"), 'the entry \'simd:zz\', expected "module:kN"'),
    "an entry of many digits": (entry("simd:k" + "9" * 5000), 'expected "module:kN"'),
    "an entry without a function": (entry("simd"), 'the entry \'simd\', expected "module:kN"'),
    "a function that is not there": (entry("simd:k7"), "function k7 is not there, expected one of 5"),
    "a function of other arguments": (
        one_more_size,
        "function k0 takes 5 arguments, expected one of 6",
    ),
    "no modules": (lambda p: replace(p, kernels=(), words=(), modules={}), "kernels are in [], expected one module"),
    "a module of text": (
        lambda p: replace(p, modules=dict.fromkeys(p.modules, "x")),
        "expected one module",
    ),
    "a module without the function run": (code(f"(module {MEMORY} {KERNEL})"), "function run is not there"),
    "a function run of floats": (
        code(f'(module {MEMORY} {KERNEL} (func (export "run") (param f32 f32)))'),
        "function run is not there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_kernels_that_are_not_there_are_refused(what: str) -> None:
    change, message = REFUSED[what]
    with pytest.raises(FormatError) as caught:
        native.WasmBackend().prepare(from_bytes(to_bytes(change(program()))))
    assert message in str(caught.value)


def run(p: ProgramData) -> np.ndarray:
    backend = native.WasmBackend()
    return backend.download(backend.prepare(p).run([backend.upload(np.ones(4, np.float32))])[0])


STOPPED: Final = {
    "it traps": (DeviceError, "(unreachable)", "a kernel failed: "),
    "it stops nowhere": (FormatError, "(i32.const 12345)", "the module stopped at word"),
}


@pytest.mark.parametrize("what", STOPPED)
def test_a_run_that_goes_wrong_is_an_error(what: str) -> None:
    kind, body, message = STOPPED[what]
    text = f'(module {MEMORY} {KERNEL} (func (export "run") (param i32 i32) (result i32) {body}))'
    with pytest.raises(kind, match=message):
        run(code(text)(program()))


def test_a_function_run_without_an_answer_is_an_error() -> None:
    with pytest.raises(FormatError, match="answers None"):
        run(code(f'(module {MEMORY} {KERNEL} (func (export "run") (param i32 i32)))')(program()))


@pytest.mark.parametrize("address", [-1, 1 << 16, 1 << 33])
def test_nothing_is_copied_beyond_the_memory(address: int) -> None:
    engine = native.WasmBackend().engine
    block = np.zeros(1 << 20, np.uint8)
    for copy in (engine.write, engine.read):
        with pytest.raises(DeviceError, match="beyond the memory's end"):
            copy(address, block)


def test_a_buffer_that_does_not_fit_its_input_at_the_sizes_of_a_run_is_an_error() -> None:
    p = program()
    n, first = size("N"), len(p.buffers)
    large = (
        Buffer("square", float32, (n * n,), 4, ("input", 0)),
        Buffer("y", float32, (n * n,), 4, ("output", 0)),
    )
    words, _, _ = words_of([Copy(first, first + 1)], p.kernels, ())
    p = replace(p, buffers=(*p.buffers, *large), outputs=(first + 1,), words=words)
    with pytest.raises(ShapeError, match=r"square: its 4.* bytes must fit the input in which it lies"):
        run(from_bytes(to_bytes(p)))
