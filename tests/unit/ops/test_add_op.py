"""An op is one row: HardSwish, declared here, then builds, differentiates, runs on all devices and imports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rows.references import REFERENCES

from singe.dtypes import FLOATS, dtype, float32
from singe.graph import Builder, Graph, gradient
from singe.ir.scalar import clip
from singe.onnx.adapters import ADAPTERS
from singe.onnx.importer import BY_ONNX, import_model
from singe.onnx.model import read_model
from singe.ops import ROWS, Elementwise, register

HARD_SWISH = Elementwise(
    name="hard_swish",
    body=lambda x: x * clip(x / 6.0 + 0.5, 0.0, 1.0),
    onnx="HardSwish",
    dtypes=FLOATS,
    domain=(-8, 8),
)


@pytest.fixture
def hard_swish(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elementwise]:
    """The row, registered for the duration of a test in place of the existing one."""
    monkeypatch.delitem(ROWS, HARD_SWISH.name, raising=False)
    for table in (BY_ONNX, ADAPTERS):
        monkeypatch.delitem(table, "HardSwish", raising=False)
    register(HARD_SWISH)
    yield HARD_SWISH
    del ROWS[HARD_SWISH.name]
    BY_ONNX.pop("HardSwish", None)


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_it_runs_everywhere(hard_swish: Elementwise, kind: str, run_graph: Any) -> None:
    b = Builder()
    x = b.input("x", (4, 5), dtype(kind))
    value = np.linspace(*hard_swish.domain, 20).reshape(4, 5).astype(kind)
    (got,) = run_graph(Graph((x,), (b.hard_swish(x),), ("y",)), [value])
    want = REFERENCES[hard_swish.name](value.astype(np.float64))
    assert got.dtype == value.dtype
    np.testing.assert_allclose(got, want, atol=1e-6, rtol=4 * float(np.finfo(kind).eps))


def test_it_differentiates(hard_swish: Elementwise, run_graph: Any) -> None:
    b = Builder()
    x = b.input("x", (9,), float32)
    (dx,) = gradient(Graph((x,), (b.hard_swish(x),), ("y",)), b, [b.expand(b.const(1.0), shape=(9,))], [x])
    value = np.array([-5, -2.9, -1, -0.1, 0, 0.5, 2.9, 3.1, 7], np.float32)
    (got,) = run_graph(Graph((x,), (dx,), ("dx",)), [value])
    reference, step = REFERENCES[hard_swish.name], 1e-6
    want = (reference(value.astype(np.float64) + step) - reference(value.astype(np.float64) - step)) / (2 * step)
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("domain", ["", "com.example"])
def test_it_imports_by_its_onnx_name(
    domain: str, hard_swish: Elementwise, run_graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if domain:
        monkeypatch.setitem(BY_ONNX, f"{domain}.HardSwish", hard_swish)
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 3]) for name in "xy"]
    node = helper.make_node("HardSwish", ["x"], ["y"], domain=domain)
    opsets = [helper.make_opsetid(d, 21) for d in dict.fromkeys(("", domain))]
    model = helper.make_model(helper.make_graph([node], "g", ports[:1], ports[1:]), opset_imports=opsets, ir_version=10)
    graph = import_model(read_model(model.SerializeToString()))
    assert graph.ops() == {hard_swish.name: 1}
    value = np.array([[-4, -1, 0], [1, 2, 4]], np.float32)
    (got,) = run_graph(graph, [value])
    np.testing.assert_allclose(got, REFERENCES[hard_swish.name](value.astype(np.float64)), atol=1e-6)


def test_a_name_is_given_once(hard_swish: Elementwise) -> None:
    with pytest.raises(ValueError, match="already there"):
        register(hard_swish)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"onnx": "Relu"}, "the row 'relu' is ONNX's 'Relu' already"),
        ({"promote": "floats"}, "got promote='floats', expected one of '', 'same', 'float', 'bool', 'sum'"),
        ({"numpy": "softsine"}, "NumPy has no 'softsine'; give a function of arrays, or leave it out"),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "",
)
def test_a_row_that_cannot_be_is_refused_when_it_is_registered(fields: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        register(Elementwise(name="never_registered", body=lambda x: x * x, **fields))
    assert "never_registered" not in ROWS
