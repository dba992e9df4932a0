"""The walk of CONTRIBUTING.md is the way that calls take."""

from __future__ import annotations

from pathlib import Path

import pytest
from snippets import ROOT
from walk import Place, calls, follow, read, when

import singe as sg
from singe.compiler.compile import compile_graph
from singe.compiler.target import Target
from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe_wasm.target import WasmTarget
from singe_webgpu.target import WgslTarget

TARGETS = {"the WGSL line": WgslTarget, "the WebAssembly bytes": WasmTarget}


def eager_call() -> list[Place]:
    x = sg.tensor([1.0, 2.0, 3.0], device="numpy")
    for _ in range(2):
        x.exp()
    return follow(x.exp)


def compiled(target: Target) -> list[Place]:
    b = Builder()
    graph = Graph((b.input("x", (64,), float32),), (), ())
    graph = Graph(graph.inputs, (b.exp(graph.inputs[0]),), ("y",))
    return follow(lambda: compile_graph(graph, target))


def check_order(named: list[Place], entered: list[Place]) -> None:
    at = {place: when(place, entered) for place in named}
    assert [place for place, i in at.items() if i is None] == [], "named in CONTRIBUTING.md, and not entered"
    order = [i for i in at.values() if i is not None]
    assert order == sorted(order), f"entered in another order than CONTRIBUTING.md names them: {at}"


def test_an_eager_call_enters_the_functions_in_the_order_in_which_they_are_named() -> None:
    named = read().eager
    assert len(named) >= 5
    check_order(named, eager_call())


def test_an_eager_call_enters_the_files_that_are_named_and_no_others() -> None:
    walk = read()
    named = {ROOT / path for path in (*walk.beside, *(place.file for place in walk.eager))}
    entered = {ROOT / place.file for place in eager_call()}
    assert sorted(str(p) for p in named if not any(file.is_relative_to(p) for file in entered)) == [], "not entered"
    missing = [str(file.relative_to(ROOT)) for file in entered if not any(file.is_relative_to(p) for p in named)]
    assert sorted(missing) == [], "not in CONTRIBUTING.md"


def test_an_eager_call_that_ran_before_is_short() -> None:
    x = sg.tensor([1.0, 2.0, 3.0], device="numpy")
    for _ in range(2):
        x.exp()
    entered = calls(x.exp)
    assert len(entered) <= 60
    assert len(set(filter(None, entered))) <= 12


@pytest.mark.parametrize("row", TARGETS)
def test_compiling_for_a_target_enters_the_functions_in_the_order_in_which_they_are_named(row: str) -> None:
    walk = read()
    assert set(walk.rows) == set(TARGETS)
    assert len(walk.rows[row]) >= 3
    check_order([*walk.compiled, *walk.rows[row]], compiled(TARGETS[row]()))


def test_the_first_call_for_a_shape_compiles_the_graph() -> None:
    named = [place for place in read().compiled if place.name in ("compile_graph", "rewrite")]
    assert len(named) == 2
    check_order(named, follow(sg.zeros((7, 3, 5, 11), device="numpy").exp))


def test_the_row_and_the_table_are_where_the_walk_says() -> None:
    text = Path(ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for path in ("core/singe/ops/elementwise/arithmetic.py", "wasm/singe_wasm/code/simd.py"):
        assert path in text
        assert '"exp"' in (ROOT / path).read_text("utf-8")
