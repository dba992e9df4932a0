"""ONNX's cases of control flow, recurrent layers and ops of several results, exported and run by singe.js in node."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from bundles import assert_close, packed
from pages import node

from singe.errors import ImportFailure
from singe.model.model import Model
from singe.onnx.importer import import_model, unsupported_ops
from singe.onnx.model import OnnxModel, read_model
from singe.onnx.source import OnnxSource
from singe.tools.export.bundle import export

pytest.importorskip("onnx")
from onnx_cases import every_case

FAMILIES: Final = {
    "If": r"test_if$",
    "Loop": r"test_loop11$|test_range_.*_expanded$",
    "Scan": r"test_scan|test_linear_attention_.*_expanded$",
    "recurrent": r"test_(lstm|gru|rnn|simple_rnn)_",
    "Split": r"test_split_(?!to_)",
    "TopK": r"test_top_k",
}
"""A family ↦ the pattern of its cases' names."""
LEAST: Final = {"If": 1, "Loop": 4, "Scan": 17, "recurrent": 18, "Split": 14, "TopK": 6}
"""The least number of cases that must run."""
BOUND: Final = 1e-3
DTYPES: Final = ("bool", "uint8", "int32", "int64", "float16", "float32", "uint64")
"""Element types that harness.js knows."""


def imported(model: OnnxModel, inputs: dict[str, np.ndarray]) -> Model | None:
    """The case as a Model, with inputs that decide the number of axes as constants; None if it cannot be built."""
    try:
        needed = Model(OnnxSource(model), "numpy").needed
        values = {name: inputs[name] for name in needed.inputs}
        return Model(import_model(model, values=values), "numpy", model.path)
    except ImportFailure:
        return None


@pytest.mark.parametrize("family", FAMILIES)
def test_cases_run_in_node(family: str, tmp_path: Path) -> None:
    given, wanted = [], []
    for case in every_case():
        arrays = [a for inputs, outputs in case.data_sets for a in (*inputs, *outputs)]
        if not re.match(FAMILIES[family], case.name) or any(a.dtype.name not in DTYPES for a in arrays):
            continue
        model = read_model(case.model.SerializeToString(), name=case.name)
        if unsupported_ops(model):
            continue
        ((inputs, outputs),) = case.data_sets
        arrays = dict(zip((v.name for v in model.graph.inputs), map(np.asarray, inputs), strict=True))
        made = imported(model, arrays)
        if made is None:
            continue
        export(made, tmp_path / case.name, ["wasm"])
        tensors = packed({p.name: arrays[p.name] for p in made.inputs})
        given.append({"url": (tmp_path / case.name).as_uri(), "tensors": tensors})
        wanted.append((case.name, dict(zip(made.source.output_names, outputs, strict=True))))
    body = """
    const found = [];
    for (const { url, tensors } of given.cases) {
      const attempt = async () => (await answer(load, url, { device: "wasm" }, [tensors])).outputs[0];
      found.push(await attempt().catch((error) => ({ error: `${error.code}: ${error.message} ${error.stack}` })));
    }
    return found;
    """
    found = node(body, cases=given)
    wrong = {}
    for got, (name, expected) in zip(found, wanted, strict=True):
        try:
            assert "error" not in got, got["error"]
            assert_close(got, {k: np.asarray(v) for k, v in expected.items()}, BOUND)
        except AssertionError as e:
            wrong[name] = str(e)
    assert not wrong
    print(f"{family}: {len(wanted)} cases")
    assert len(wanted) >= LEAST[family]
