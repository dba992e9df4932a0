"""Bundles of models with ops of users: singe.js runs the shader, or the kernels of what the op is made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import assert_close, packed
from pages import node, open_page

import singe as sg
from singe.graph import Builder, Graph
from singe.ops import ROWS
from singe.shapes import size

CODE: Final = """
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let row = i32(at.y);
  let column = i32(at.x);
  if (row >= sizes.rows || column >= sizes.columns) { return; }
  out[row * sizes.columns + column] = max(x[row * sizes.columns + column] + bias[column], 0.0);
}
"""
RUN: Final = """
    const model = await load(given.url, given.options);
    const outputs = [];
    for (const inputs of given.cases) outputs.push(pack(await model.run(unpack(inputs))));
    await model.dispose();
    return outputs;
"""
BIAS: Final = np.linspace(-1, 1, 10).astype(np.float32)
CASES: Final = [np.random.default_rng(n).standard_normal((n, 10)).astype(np.float32) for n in (1, 9, 40)]


def shader(x: Any, bias: Any) -> sg.Wgsl:
    rows, columns = x.shape
    return sg.Wgsl(CODE, (-(-columns // 8), -(-rows // 8)), {"rows": rows, "columns": columns})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Bundles of one op that is made of others, and of one that only the shader and NumPy compute."""
    folder = tmp_path_factory.mktemp("own")
    sg.op("add_relu", lambda x, bias: (x + bias).relu(), wgsl=shader)
    sg.op("add_relu_whole", numpy=lambda x, bias: np.maximum(x + bias, 0), shapes=lambda x, bias: [(x.shape, x.dtype)],
          wgsl=shader)  # fmt: skip
    for name, targets in (("add_relu", ("wasm", "webgpu")), ("add_relu_whole", ("webgpu",))):
        b = Builder()
        x = b.input("x", (size("N"), 10), sg.float32)
        y = b.add(b.apply(ROWS[name], x, b.const(BIAS)), b.const(1.0))
        sg.export(sg.Model(Graph((x,), (y,), ("y",)), "numpy"), folder / name, targets=targets)
    yield folder
    del ROWS["add_relu"], ROWS["add_relu_whole"]


def check(outputs: list[Any]) -> None:
    for found, x in zip(outputs, CASES, strict=True):
        assert_close(found, {"y": np.maximum(x + BIAS, 0) + 1})


@pytest.mark.parametrize("name", ["add_relu", "add_relu_whole"])
def test_a_page_runs_the_shader(browser: Any, root: Path, name: str) -> None:
    assert "sizes.columns" in "".join(p.read_text() for p in (root / name).glob("*.json"))
    with open_page(browser, root) as page:
        options = {"device": "webgpu"}
        check(page.run(RUN, url=f"/bundles/{name}", options=options, cases=[packed({"x": x}) for x in CASES]))


def test_node_runs_what_the_op_is_made_of(root: Path) -> None:
    url = (root / "add_relu").as_uri()
    check(node(RUN, url=url, options={"device": "wasm"}, cases=[packed({"x": x}) for x in CASES]))


def test_a_bundle_for_a_device_without_the_op_is_refused(root: Path, tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (3, 10), sg.float32)
    graph = Graph((x,), (b.apply(ROWS["add_relu_whole"], x, b.const(BIAS)),), ("y",))
    with pytest.raises(sg.SingeError, match="add_relu_whole"):
        sg.export(sg.Model(graph, "numpy"), tmp_path / "refused", targets=("wasm",))
