"""Chromium's WebGPU runs the kernels over packed weights and bytes, and those of scattered sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from bundles import packed, unpacked
from pages import open_page

import singe as sg
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.ops.products import blocks
from singe.shapes import size
from singe.tools.export.bundle import export

ANSWER: Final = """
const model = await load("/bundles/model", { device: "webgpu" });
const outputs = [];
for (const tensors of given.cases) outputs.push(pack(await model.run(unpack(tensors))));
await model.dispose();
return { outputs };
"""
ROWS, DEPTH, COLUMNS = size("N"), 64, 48


def graph() -> Graph:
    b, rng = Builder(), np.random.default_rng(0)
    x, at = b.input("x", (ROWS, DEPTH), sg.float32), b.input("at", (ROWS, 1), sg.int32)
    words = blocks.packed(rng.integers(0, 16, (DEPTH, COLUMNS)), 4)
    scale = rng.uniform(0.01, 0.1, (DEPTH // 32, COLUMNS)).astype(np.float32)
    bytes_ = rng.integers(-128, 128, (DEPTH, COLUMNS), np.int8)
    outputs = (
        b.dot_blocks(x, b.const(words), b.const(scale), b.const(8.0), bits=4, block=32),
        b.dot_integers(b.round(x), b.const(bytes_)),
        b.scatter_nd_reduce(b.const(np.zeros((5, DEPTH), np.float32)), x, at, reduction="add"),
    )
    return Graph((x, at), outputs, ("blocks", "integers", "rows"))


def case(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    x = rng.uniform(-100, 100, (rows, DEPTH)).astype(np.float32)
    return {"x": x, "at": rng.integers(0, 5, (rows, 1)).astype(np.int32)}


def test_packed_products_and_scattered_sums_in_a_page(browser: Any, tmp_path: Path) -> None:
    model = Model(graph(), "numpy")
    export(model, tmp_path / "model", ["webgpu"])
    counts = (1, 300)
    with open_page(browser, tmp_path) as page:
        found: dict[str, Any] = page.run(ANSWER, cases=[packed(case(n)) for n in counts])
    for count, output in zip(counts, found["outputs"], strict=True):
        got, wanted = unpacked(output), model(case(count))
        np.testing.assert_array_equal(got["integers"], wanted["integers"])
        np.testing.assert_array_equal(got["rows"], wanted["rows"])
        np.testing.assert_allclose(got["blocks"], wanted["blocks"], rtol=1e-5, atol=1e-3)
