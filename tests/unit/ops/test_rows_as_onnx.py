"""Every row leaves as ONNX, in every type that it takes: the file is valid, and Singe reads it again and computes the same. What is
refused names the opset that has it, but for the rows in NONE."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from rows.row_samples import SAMPLED, graph_of, sampled, samples_of

import singe as sg
from singe.dtypes import COMPLEX, DType, outward, own, string, widened
from singe.errors import CompileError
from singe.ops import Row

onnx = pytest.importorskip("onnx")
NONE: Final = {
    **dict.fromkeys(
        ("dot_blocks_int16", "dot_blocks_int8", "dot_int8", "conv_int8", "conv_integers"), "made by the compiler"
    ),
    **dict.fromkeys(("pool_place", "pool_pick", "unpool_pick", "unpool_sum"), "of gradients of pools"),
    **dict.fromkeys(("random_bits", "random_unit", "random_normal"), "ONNX's generators draw other numbers"),
    **dict.fromkeys(("conv_last", "conv"), "groups of integers"),
    "dot_blocks": "weights that are no constants",
    "max_pool_index": "windows along axes where ONNX has none, or over integers",
}
"""Rows with samples that have no form in ONNX, and what these samples are."""
TOLERANCE: Final = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-6}
SEED: Final = 3


def compared(found: Any, wanted: Any, kind: DType, what: str) -> None:
    a, b = (widened(own(np.asarray(v))) for v in (found, wanted))
    assert (a.shape, a.dtype) == (b.shape, b.dtype), what
    if b.dtype.kind == "f":
        bound = TOLERANCE.get(kind.name, 2e-5)
        np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=bound, atol=bound, err_msg=what)
    else:
        np.testing.assert_array_equal(a, b, what)


def check(row: Row, kind: DType, opset: int, path: Path) -> None:
    for number, sample in enumerate(samples_of(row)):
        what = f"{row.name} of {kind}, sample {number}, opset {opset}"
        try:
            arrays = [outward(a) for a in sampled(row, sample, np.random.default_rng(SEED), kind)]
            graph = graph_of(row, sample, [own(a) for a in arrays])
        except (sg.SingeError, TypeError, ValueError):  # a sample of other types
            continue
        model = sg.Model(graph, "numpy")
        wanted = model(*arrays)
        try:
            sg.onnx.save(model, path, opset)
        except CompileError as e:
            if "give opset=" in str(e) or "no op of ONNX but Cast" in str(e) or row.name in NONE:
                continue
            raise AssertionError(what) from e
        onnx.checker.check_model(str(path), full_check=True)
        again = sg.load(path, "numpy")
        taken = {p.name for p in again.inputs}
        compared(
            again({x.name: a for x, a in zip(graph.inputs, arrays, strict=True) if x.name in taken}), wanted, kind, what
        )


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 22, 28])
@pytest.mark.parametrize("row", SAMPLED, ids=lambda row: row.name)
def test_a_row_leaves_in_every_type(row: Row, opset: int, tmp_path: Path) -> None:
    """In the types that NumPy has; conformance/drawn/test_saved_graphs.py has the others."""
    for kind in row.dtypes:
        if kind not in COMPLEX and kind is not string and not kind.held:
            check(row, kind, opset, tmp_path / "row.onnx")
