"""The code of a Program for several levels of SIMD: that of the first is written when it is compiled, the others when they are asked for."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import singe as sg
import singe_wasm.printing as printing
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.garbage import collector_resting
from singe.graph import Builder, Graph
from singe.shapes import Dim, size
from singe_wasm.target import WasmTarget


def product(rows: Dim) -> Graph:
    b = Builder()
    x = b.input("x", (rows, 64), sg.float32)
    w = b.const(np.linspace(-1, 1, 64 * 48, dtype=np.float32).reshape(64, 48))
    return Graph((x,), (b.relu(b.dot(x, w)),), ("y",))


@pytest.mark.parametrize("rows", [32, size("n")])
def test_other_levels_are_written_when_they_are_asked_for(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[bool] = []
    module = printing.module

    def noted(functions: Any, library: Any, relaxed: bool) -> bytes:
        encoded.append(relaxed)
        return module(functions, library, relaxed)

    monkeypatch.setattr(printing, "module", noted)
    lazy = compile_graph(product(rows), WasmTarget(("wasmtime", "simd")))
    assert encoded == [True]
    assert [*lazy.modules] == ["wasmtime", "simd"]
    alone = compile_graph(product(rows), WasmTarget(("simd",)))
    assert lazy.modules["simd"] is lazy.modules["simd"]
    assert lazy.modules["simd"] == alone.modules["simd"] or rows != 32  # tiles of other sizes take other parameters
    assert "relaxed" not in lazy.modules


def test_the_collector_works_again_after_compiling() -> None:
    assert gc.isenabled()
    with collector_resting():
        with collector_resting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(sg.InputError, match="the open sizes are none"):
        compile_graph(product(32), WasmTarget(), Options(specialised=[({"n": 1}, product(32))]))
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_resting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
