"""Indices out of range among the inputs of a bundle, in node: refused before the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import write_bundle
from changed import edited
from pages import node

from singe import nn
from singe.dtypes import int64
from singe.tensors.tracing import trace

BODY = """
    const model = await load(given.url, { device: "wasm" });
    const found = [];
    for (const { ids, classes } of given.cases) {
      const inputs = { ids: { data: BigInt64Array.from(ids, BigInt), shape: [2, 3] }, classes: BigInt64Array.from(classes, BigInt) };
      found.push(await failure(() => model.run(inputs)));
    }
    await model.dispose();
    return found.map(({ code, message }) => [code, message]);
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the loss of a small language model: all tokens but the last are looked up."""
    table = nn.Embedding(5, 4, rng=0)

    def loss(ids: Any, classes: Any) -> Any:
        return table(ids[:, :-1]).sum(1).cross_entropy(classes)

    graph = trace(loss, [("ids", (2, 3), int64), ("classes", (2,), int64)])
    return write_bundle(graph, tmp_path_factory.mktemp("ranges") / "model", "ranges")


def test_indices_are_checked(folder: Path) -> None:
    cases = [
        {"ids": [0, 4, 9, -5, 1, 9], "classes": [3, -100]},
        {"ids": [0, 5, 0, 0, 0, 0], "classes": [0, 0]},
        {"ids": [0, 0, 0, 0, -6, 0], "classes": [0, 0]},
        {"ids": [0, 0, 0, 0, 0, 0], "classes": [0, 4]},
    ]
    right, *wrong = node(BODY, url=folder.as_uri(), cases=cases)
    assert right[0] == "none"
    assert [code for code, _ in wrong] == ["input"] * 3
    for (_, message), text in zip(
        wrong,
        (
            "\"ids\": Embedding: its argument 'x': index: axis 0 of (5, 4): got 5, expected from -5 to 4",
            "got -6, expected from -5",
            "got 4, expected from 0 to 3, or -100",
        ),
        strict=True,
    ):
        assert text in message


@pytest.mark.parametrize(
    "change",
    [{"input": 9}, {"part": [None, None]}, {"part": [{"start": 0, "step": 0, "count": 1}] * 2}, {"least": "x"}, {"text": 1}, {"ignored": 0.5}],
)  # fmt: skip
def test_a_range_that_is_none_is_refused(folder: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    def edit(manifest: Any) -> None:
        manifest["targets"]["wasm"]["program"]["ranges"][0] |= change

    case = {"ids": np.zeros(6, int).tolist(), "classes": [0, 0]}
    ((code, _),) = node(BODY, url=edited(folder, tmp_path / "changed", edit).as_uri(), cases=[case])
    assert code == "format"
