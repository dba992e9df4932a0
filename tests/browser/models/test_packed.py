"""Chromium runs the kernels over packed weights and bytes, on WebGPU also those of scattered sums, on WebAssembly in 16-bit integers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import packed, unpacked
from pages import CORES, open_page

import singe as sg
from singe.files.places import MANIFEST
from singe.graph import Builder, Graph
from singe.model.compiling import compile as compiled
from singe.model.model import Model
from singe.ops.products import blocks
from singe.shapes import size
from singe.tools.export.bundle import export

ANSWER: Final = """
const model = await load(given.url, given.options);
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
        given = {"url": "/bundles/model", "options": {"device": "webgpu"}}
        found: dict[str, Any] = page.run(ANSWER, **given, cases=[packed(case(n)) for n in counts])
    for count, output in zip(counts, found["outputs"], strict=True):
        got, wanted = unpacked(output), model(case(count))
        np.testing.assert_array_equal(got["integers"], wanted["integers"])
        np.testing.assert_array_equal(got["rows"], wanted["rows"])
        np.testing.assert_allclose(got["blocks"], wanted["blocks"], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("activations", ["int16", pytest.param("packed_int8", marks=pytest.mark.full)])
def test_rows_in_integers_in_a_page(browser: Any, tmp_path: Path, activations: str) -> None:
    """At both levels of SIMD, on one thread and on two."""
    model = Model(graph(), "numpy")
    export(model, tmp_path / "both", ["wasm"], activations=activations)
    export(model, tmp_path / "plain", ["wasm"], activations=activations)
    manifest = json.loads((tmp_path / "plain" / MANIFEST).read_bytes())
    for kernel in manifest["targets"]["wasm"]["program"]["kernels"]:
        kernel["variants"] = [v for v in kernel["variants"] if not v["requires"]]
    (tmp_path / "plain" / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    assert any(
        activations.removeprefix("packed_") in k["label"] for k in manifest["targets"]["wasm"]["program"]["kernels"]
    )
    same = model if activations == "int16" else Model(graph(), "wasm")  # numpy has those of 16 bits only, as "int8"
    whole, counts = compiled(same, activations="int8" if same is model else activations), (1, 5, 300)
    with open_page(browser, tmp_path) as page:
        for name in ("both", "plain"):
            for threads in (1, 2)[:CORES]:
                given = {"url": f"/bundles/{name}", "options": {"device": "wasm", "threads": threads}}
                found: dict[str, Any] = page.run(ANSWER, **given, cases=[packed(case(n)) for n in counts])
                for count, output in zip(counts, found["outputs"], strict=True):
                    got, wanted = unpacked(output)["blocks"], whole(case(count))["blocks"]
                    np.testing.assert_allclose(got, wanted, atol=2e-6 * np.abs(wanted).max())
