"""Sorts and scattered sums as functions of the wasm module, through singe.js in node: with one thread and with two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bundles import packed, unpacked, write_bundle
from pages import node

from singe.dtypes import float32, int64
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.shapes import size

RUN = """
const model = await load(given.url, { device: "wasm", threads: given.threads });
const found = [];
for (const tensors of given.cases) found.push(pack(await model.run(unpack(tensors))));
await model.dispose();
return found;
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_sorts_and_scattered_sums_in_node(threads: int, tmp_path: Path) -> None:
    b = Builder()
    x, at = b.input("x", (size("N"), size("L"), 3), float32), b.input("at", (size("N"), size("L"), 3), int64)
    outputs = (
        *b.sort(x, axis=1, descending=True),
        *b.top_k(x, axis=0, k=1, largest=False),
        b.scatter_elements_reduce(x, x, at, axis=1, reduction="add"),
    )
    graph = Graph((x, at), outputs, tuple("abcde"), b.size_nodes)
    model = Model(graph, "numpy")
    rng = np.random.default_rng(0)
    cases = [
        {
            "x": rng.integers(-50, 50, (n, length, 3)).astype(np.float32),
            "at": rng.integers(-length, length, (n, length, 3)),
        }
        for n, length in ((1, 1), (3, 1000), (20, 70))
    ]
    url = write_bundle(graph, tmp_path / "m", "m").as_uri() + "/"
    found = node(RUN, url=url, threads=threads, cases=[packed(c) for c in cases])
    for got, case in zip(map(unpacked, found), cases, strict=True):
        want = dict(zip("abcde", model.program().run([case["x"], case["at"]]), strict=True))
        for name, array in want.items():
            np.testing.assert_array_equal(got[name], array)
