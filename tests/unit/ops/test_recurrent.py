"""The recurrent rows compute what their references say, all results, in float32 and float16, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import NUMPY, few, slow
from networks.recurrent_cases import BATCH, CASES, FEATURES, GATES, HIDDEN, PLAIN, built
from rows.references import REFERENCES

from singe.dtypes import DTYPES, float32
from singe.errors import ShapeError
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.ops import ROWS
from singe.shapes import size
from singe.weights.records import model_record, read_graph


@NUMPY
@pytest.mark.parametrize("kind", ["float32", *slow("float16")])
@pytest.mark.parametrize(("op", "given", "attrs"), CASES, ids=lambda v: v if isinstance(v, str) else None)
def test_recurrent(op: str, given: tuple[str, ...], attrs: dict[str, Any], kind: str, device_name: str) -> None:
    graph, arrays = built(op, given, attrs, kind)
    model = Model(graph, device_name)
    got = model(*arrays)
    reference = REFERENCES[op]
    assert reference is not None
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    bound = 1e-5 if kind == "float32" else 2e-2
    for mine, wanted in zip(
        (got[name] for name in graph.output_names), reference(*wide, given=given, **attrs), strict=True
    ):
        assert mine.dtype == DTYPES[kind].numpy
        np.testing.assert_allclose(mine, wanted, rtol=bound, atol=bound)


@few(3, ("op", "given", "attrs"), CASES, ids=lambda v: v if isinstance(v, str) else None)
def test_records_keep_recurrent_rows(op: str, given: tuple[str, ...], attrs: dict[str, Any]) -> None:
    graph, arrays = built(op, given, attrs, "float32")
    record = model_record(graph)
    again = read_graph(record)
    assert model_record(again) == record
    expected, found = Model(graph, "numpy")(*arrays), Model(again, "numpy")(*arrays)
    for name in graph.output_names:
        np.testing.assert_array_equal(found[name], expected[name])


@NUMPY
@pytest.mark.parametrize("length", [size("T"), 0], ids=["open", "known"])
@pytest.mark.parametrize("op", GATES)
def test_of_no_steps_the_initial_state_is_left(op: str, length: Any, device_name: str) -> None:
    b = Builder()
    arrays: dict[str, np.ndarray] = {
        "x": np.zeros((0, BATCH, FEATURES), np.float32),
        "w": np.ones((2, GATES[op] * HIDDEN, FEATURES), np.float32),
        "r": np.ones((2, GATES[op] * HIDDEN, HIDDEN), np.float32),
        "state": np.arange(2 * BATCH * HIDDEN, dtype=np.float32).reshape(2, BATCH, HIDDEN),
    }
    nodes = [b.input(k, (length, *a.shape[1:]) if k == "x" else a.shape, float32) for k, a in arrays.items()]
    activations = PLAIN[op] * 2
    results = b.apply(ROWS[op], *nodes, given=("state",), activations=activations, direction="bidirectional")
    model = Model(Graph(tuple(nodes), results, tuple(f"y{k}" for k in range(len(results)))), device_name)
    for _ in range(2):
        got = model(*arrays.values())
        assert got["y0"].shape == (0, 2, BATCH, HIDDEN)
        np.testing.assert_array_equal(got["y1"], arrays["state"])
        if "y2" in got:
            np.testing.assert_array_equal(got["y2"], np.zeros_like(arrays["state"]))


def test_inputs_that_do_not_fit_are_refused() -> None:
    b = Builder()
    x, w, r = (b.input(k, s, float32) for k, s in (("x", (3, 2, 4)), ("w", (1, 20, 4)), ("r", (1, 20, 5))))
    with pytest.raises(ShapeError, match="bias is"):
        b.apply(ROWS["lstm"], x, w, r, b.input("b", (1, 20), float32), given=("bias",), activations=PLAIN["lstm"])
    with pytest.raises(ShapeError, match="w is"):
        b.apply(ROWS["gru"], x, w, r, activations=PLAIN["gru"])
    with pytest.raises(ShapeError, match="1 activations"):
        b.apply(ROWS["lstm"], x, w, r, activations=PLAIN["rnn"])
