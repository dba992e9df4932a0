"""Random Graphs leave as ONNX files, which are valid: onnxruntime computes of them what the evaluator does, at several sizes; and
Singe reads them again, with all element types, and computes the same.

Control flow, states, open sizes and sizes found in mid-run: see tests/support/networks/random_graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import evaluate
from networks.random_graphs.draw_flow import Drawn, draw, first_states
from networks.random_graphs.drawn import RUNS, assert_close, kinds_on, tolerance_of
from peer import onnxruntime, session

import singe as sg
from singe.dtypes import dtype, outward, own
from singe.errors import CompileError
from singe.onnx.saving.facts import LATEST, ONLY_CAST
from singe.onnx.saving.save import OnnxFiles

onnx = pytest.importorskip("onnx")
CHUNK = 25
GRAPHS = 300
OPSETS = (17, 18, 21, 22)
KINDS = [dtype(name) for name in ("bool", "int32", "int64", "float32", "float64")]
"""The types for which onnxruntime has most ops on the CPU."""
NOT_THERE = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
MOST_NOT_THERE = 3
"""Of a CHUNK, the graphs with an op that onnxruntime has not for their types."""

Run = Callable[[dict[str, np.ndarray]], Sequence[Any]]


def check(drawn: Drawn, files: OnnxFiles, run: Run, taken: Sequence[str], sizes: Sequence[tuple[int, int]]) -> None:
    graph, states = drawn.graph, first_states(drawn.graph)
    names = [*(x.name for x in graph.inputs), *(s.name for s in graph.states)]
    for k, (n, m) in enumerate(sizes):
        arrays = drawn.arrays({"N": n, "M": m}, k)
        wanted, after = evaluate(graph, arrays, states)
        given = {name: x for name, x in zip(names, [*arrays, *states], strict=True) if name in taken}
        for name, theirs, mine in zip(files.outputs, run(given), [*wanted, *after], strict=True):
            assert_close(own(np.asarray(theirs)), mine, tolerance_of(graph), f"seed {drawn.seed} at {n}, {m}: {name}")
        states = after


@pytest.mark.parametrize("start", range(0, GRAPHS, CHUNK))
def test_onnxruntime_computes_random_graphs(start: int, tmp_path: Path) -> None:
    """At sizes above 0: of empty arrays some of onnxruntime's ops end its process."""
    missing, refused = 0, 0
    for seed in range(start, start + CHUNK):
        drawn, path = draw(seed, KINDS), tmp_path / "graph.onnx"
        try:
            files = sg.onnx.save(sg.Model(drawn.graph, "numpy"), path, OPSETS[seed % len(OPSETS)])
        except CompileError as e:
            refused += 1
            if "give opset=" not in str(e):
                raise
            continue
        onnx.checker.check_model(str(path), full_check=True)
        try:
            opened = session(path)
        except NOT_THERE:
            missing += 1
            continue
        taken = [x.name for x in opened.get_inputs()]
        sizes = [run for run in RUNS if 0 not in run] if drawn.graph.symbols else RUNS[:3]
        check(drawn, files, lambda given, opened=opened: opened.run(None, given), taken, sizes)
    assert missing <= MOST_NOT_THERE
    assert refused <= CHUNK // 2


@pytest.mark.parametrize("start", range(0, GRAPHS, CHUNK))
def test_singe_reads_random_graphs_again(start: int, tmp_path: Path) -> None:
    kinds, path = [k for k in kinds_on("numpy") if k.name not in ONLY_CAST], tmp_path / "graph.onnx"
    for seed in range(start, start + CHUNK):
        drawn = draw(seed, kinds)
        files = sg.onnx.save(sg.Model(drawn.graph, "numpy"), path, LATEST)
        onnx.checker.check_model(str(path), full_check=True)
        again = sg.load(path, "numpy")

        def run(given: dict[str, np.ndarray], again: sg.Model = again) -> Sequence[Any]:
            found = again({name: outward(x) for name, x in given.items()})
            return [found[p] for p in again.source.output_names] if isinstance(found, dict) else [found]

        check(drawn, files, run, [x.name for x in again.inputs], RUNS if drawn.graph.symbols else RUNS[:3])
