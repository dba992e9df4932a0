"""Random graphs with control flow, states and sizes found in mid-run, as bundles through singe.js in node.

The graphs are those of tests/support/networks/random_graphs/draw_flow.py, each as one bundle at many sizes; results are compared with direct.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import packed, unpacked
from direct import evaluate
from networks.random_graphs.draw_flow import Drawn, draw, first_states
from networks.random_graphs.drawn import RUNS, assert_close, kinds_on, tolerance_of
from pages import node

from singe.dtypes import DType, float32
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.ops import ROWS
from singe.shapes import size
from singe.tools.export.bundle import export

COUNT = 24
ALL_RUNS = """
const found = [];
for (const { url, cases } of given.graphs) {
  const model = await load(url, { device: "wasm", threads: 1 });
  const one = model.states.length ? model.session() : model;
  const runs = [];
  for (const tensors of cases) {
    const outputs = pack(await one.run(unpack(tensors)));
    const held = {};
    for (const { name, dtype, shape } of model.states) held[name] = { dtype, shape, data: await one.read(name) };
    runs.push({ outputs, held: pack(held) });
  }
  await model.dispose();
  found.push(runs);
}
return found;
"""


def drawn_graphs(kinds: list[DType], count: int) -> list[Drawn]:
    """The first random graphs that have control flow, states, or host steps."""
    found: list[Drawn] = []
    seed = 0
    while len(found) < count:
        made = draw(seed, kinds)
        if made.graph.states or made.graph.own_size_nodes or {"if", "loop"} & made.graph.ops().keys():
            found.append(made)
        seed += 1
    return found


def test_a_bundle_declares_the_outputs_of_its_programs(tmp_path: Path) -> None:
    """A loop of no turns: the size of its result is the one of its initial value."""
    b = Builder()
    x, v, part = (
        b.input("x", (size("N"),), float32),
        b.input("v", (size("own"),), float32),
        b.input("p", (size("N"),), float32),
    )
    body = Graph((v, part), (b.const(True), b.concat(v, part, axis=0)), ("go", "v"))
    y = b.apply(ROWS["loop"], x, x, body=body, carried=1, conditional=False, count=0)
    made = export(Model(Graph((x,), (y,), ("y",), b.size_nodes), "numpy", "none"), tmp_path)
    assert made.manifest["outputs"] == [{"name": "y", "dtype": "float32", "shape": [[[1, "N"]]]}]
    body_of = "const m = await load(given.url); return pack(await m.run({ x: Float32Array.of(1, 2) }));"
    found = unpacked(node(body_of, url=tmp_path.as_uri() + "/"))
    assert found["y"].tolist() == [1, 2]


@pytest.mark.parametrize("start", range(0, COUNT, 8))
def test_random_graphs_run_in_node(tmp_path: Path, start: int) -> None:
    graphs = drawn_graphs(kinds_on("wasm"), COUNT)[start : start + 8]
    given, cases = [], []
    for drawn in graphs:
        folder = tmp_path / str(drawn.seed)
        export(Model(drawn.graph, "numpy", "drawn"), folder, ["wasm"])
        runs = [drawn.arrays({"N": n, "M": m}, k) for k, (n, m) in enumerate(RUNS)]
        names = [x.name for x in drawn.graph.inputs]
        tensors = [packed(dict(zip(names, arrays, strict=True))) for arrays in runs]
        given.append({"url": folder.as_uri() + "/", "cases": tensors})
        cases.append(runs)
    for drawn, runs, found in zip(graphs, cases, node(ALL_RUNS, graphs=given), strict=True):
        states, tolerance = first_states(drawn.graph), tolerance_of(drawn.graph)
        for number, (arrays, answer) in enumerate(zip(runs, found, strict=True)):
            wanted, states = evaluate(drawn.graph, arrays, states)
            got = unpacked({**answer["outputs"], **answer["held"]})
            names = (*drawn.graph.output_names, *(s.name for s in drawn.graph.states))
            for name, want in zip(names, (*wanted, *states), strict=True):
                what = f"seed {drawn.seed}, run {number} at {RUNS[number]}: {name}"
                assert_close(got[name], want, 0.0 if name in drawn.exact else tolerance, what)
