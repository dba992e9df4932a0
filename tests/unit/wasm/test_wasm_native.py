"""The native engine of the backend "wasm": memory while many modules come and go, and the end of the process."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
import weakref
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import singe as sg
from singe.compiler.compile import compile_graph
from singe.dtypes import float32
from singe.errors import DeviceError
from singe.extension import align
from singe.graph import Builder, Graph
from singe.program.block import SHARED
from singe_wasm.calls import NAME

pytest.importorskip("wasmtime", reason="wasmtime is not installed")
native = pytest.importorskip("singe_wasm.native")
libwasmtime = pytest.importorskip("singe_wasm.libwasmtime")


@pytest.mark.slow
def test_any_number_of_modules_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody runs is let go. They are compiled once, to save time."""
    engine = native.WasmtimeEngine()
    b = Builder()
    x = b.input("x", (6,), float32)
    program = compile_graph(Graph((x,), (b.neg(x),), ("y",)), native.WasmBackend().target)
    code = next(code for code in program.modules.values() if isinstance(code, bytes))
    compiled = engine.link(code).module
    monkeypatch.setattr(native.WasmtimeEngine, "_compiled", lambda *_: compiled)
    first = module = engine.link(code)
    gone = [weakref.ref(first.instance.store)]
    for _ in range(10_500):
        module = engine.link(code)
        gone.append(weakref.ref(module.instance.store))
    assert engine.arguments(module, NAME) == engine.arguments(first, NAME) == 2
    assert sum(store() is not None for store in gone) == 2


def test_memory_that_is_released_while_memory_is_taken_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector may free an array in the middle of anything."""
    backend = native.WasmBackend()
    heap = backend.engine._heap
    kept = [backend.upload(np.zeros(4096, np.uint8))]
    grow = heap._grow

    def collected(count: int) -> None:
        kept.clear()
        grow(count)

    monkeypatch.setattr(heap, "_grow", collected)
    made = [backend.upload(np.full(8192, k, np.uint8)) for k in range(2)]
    for k, array in enumerate(made):
        np.testing.assert_array_equal(backend.download(array), np.full(8192, k, np.uint8))


def test_released_memory_is_free_again() -> None:
    backend = native.WasmBackend()
    before = backend.describe()["used"]
    array = backend.upload(np.zeros(4096, np.uint8))
    assert backend.describe()["used"] == before + 4096
    del array
    assert backend.describe()["used"] == before


def test_cleaning_gives_the_idle_end_of_the_memory_back() -> None:
    backend = native.WasmBackend()
    b = Builder()
    x = b.input("x", (6,), float32)
    program = backend.prepare(compile_graph(Graph((x,), (b.neg(x),), ("y",)), backend.target))
    array = backend.upload(np.arange(6, dtype=np.float32))
    program.run([array])
    large = backend.upload(np.zeros(32 << 20, np.uint8))
    most = backend.memory().reserved or 0
    del large
    gc.collect()
    backend.clean()
    assert (backend.memory().reserved or 0) <= most - (32 << 20)
    for _ in range(2):  # what is left moved with the memory, and so did the module
        (made,) = program.run([array])
        np.testing.assert_array_equal(backend.download(made), -np.arange(6, dtype=np.float32))
    assert backend.upload(np.zeros(32 << 20, np.uint8)).bytes == 32 << 20


def test_a_first_run_frees_nothing() -> None:
    """No array lies at address 0, and `used` counts all that is taken."""
    backend = native.WasmBackend()
    b = Builder()
    x = b.input("x", (6,), float32)
    program = backend.prepare(compile_graph(Graph((x,), (b.neg(x),), ("y",)), backend.target))
    array = backend.upload(np.zeros(6, np.float32))
    (made,) = program.run([array])
    taken = (array.bytes, made.bytes, backend.engine._words[1], *(held[1] for held in program._held.values()))
    assert backend.describe()["used"] == sum(align(max(count, 1)) for count in taken)
    assert backend.upload(np.zeros(6, np.float32)).address


@pytest.mark.slow
def test_weights_that_do_not_all_fit_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = native.WasmBackend()
    b = Builder()
    x = b.input("x", (6,), float32)
    program = compile_graph(Graph((x,), (b.neg(x),), ("y",)), backend.target)
    program = replace(program, weights=np.zeros(512, np.uint8), shared={SHARED: np.zeros(1024, np.uint8)})
    hold, used = backend.engine.hold, backend.describe()["used"]

    def small_only(block: np.ndarray) -> int:
        if block.size > 512:
            raise DeviceError("there is no memory")
        return hold(block)

    monkeypatch.setattr(backend.engine, "hold", small_only)
    with pytest.raises(DeviceError, match="no memory"):
        backend.prepare(program)
    gc.collect()
    assert backend.describe()["used"] == used
    assert not backend._users


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["None", "model", "model.program()", "model.device", "sg.device('wasm')"])
@pytest.mark.parametrize("end", ["", "sys.exit()", "atexit.register(model, x)"])
def test_a_script_ends_silently(kept: str, end: str) -> None:
    """Also when a module of Python, which lives longer than those of wasmtime, holds what was used."""
    script = f"""
import atexit, functools, sys
import numpy as np, singe as sg
model = sg.Model.of(lambda x: {{"y": (x @ x).exp()}}, {{"x": (4, 4)}}, "wasm")
x = np.ones((4, 4), np.float32)
model(x)
functools.kept = {kept}
{end}
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_states_begin_with_zeros_also_where_others_were() -> None:
    device = sg.device("wasm")

    def count(x: sg.Tensor, total: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        return total + x, {"total": total + x}

    model = sg.Model.of(count, {"x": (3000,)}, device, states={"total": ((3000,), "float32")})
    ones = np.ones(3000, np.float32)
    for _ in range(3):  # each session takes the memory of the one before it
        session = model.session()
        for k in range(1, 3):
            np.testing.assert_array_equal(session(ones), k * ones)
        del session
        gc.collect()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_a_state_takes_memory_where_it_is_written() -> None:
    """Of each four pages one, though the memory asks for large pages, also where it begins in memory that was used."""

    def fill(x: sg.Tensor, held: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        return x + 1, {"held": held.update_slice(x, 0, 0)}

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    model = sg.Model.of(fill, {"x": (4096, 1)}, sg.device("wasm"), states={"held": ((4096, 4096), "float32")})
    model.program()
    sg.ones((1 << 20,), device="wasm").numpy()
    gc.collect()
    before = resident()
    session = model.session()
    session(np.ones((4096, 1), np.float32))
    assert resident() - before < 32 << 20
    assert session.read("held").sum() == 4096


def test_functions_are_declared_as_the_package_declares_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a version that is not known yet; one with another interface is refused."""
    monkeypatch.setattr(libwasmtime, "CHECKED", frozenset())
    libwasmtime.library.__wrapped__()
    changed = {"wasmtime_store_new": " pp", "wasmtime_no_such_function": "p "}
    found = libwasmtime.differences(import_module("wasmtime._bindings"), {**libwasmtime.FUNCTIONS, **changed})
    assert found == [*changed]
    monkeypatch.setattr(libwasmtime, "differences", lambda _: found)
    with pytest.raises(
        DeviceError, match=r"another C interface .*\(wasmtime_store_new, wasmtime_no.*; install wasmtime "
    ):
        libwasmtime.library.__wrapped__()
