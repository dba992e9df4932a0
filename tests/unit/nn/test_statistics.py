"""Figures of what layers give, of weights and of gradients."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import singe as sg
from singe import nn
from singe.tensors.layer_statistics import figures

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


class Twice(nn.Module):
    """One layer that is called twice."""

    def __init__(self) -> None:
        self.linear = nn.Linear(3, 3, rng=0)

    def forward(self, x: Any) -> Any:
        return self.linear(self.linear(x).relu())


@pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
def test_the_figures_of_layers_are_those_of_what_they_give(device_name: str) -> None:
    net = nn.Sequential(nn.Linear(3, 5, rng=0), nn.ReLU(), nn.Linear(5, 2, rng=1)).to(device_name)
    found = net.statistics(X)
    assert [(r.name, r.kind, r.shape) for r in found.rows] == [
        ("0", "Linear", (4, 5)),
        ("1", "ReLU", (4, 5)),
        ("2", "Linear", (4, 2)),
        ("(output)", "Sequential", (4, 2)),
    ]
    h = net.layers[1](net.layers[0](sg.tensor(X, device=device_name))).numpy()
    row = found["1"]
    np.testing.assert_allclose([row.mean, row.std, row.least, row.most], [h.mean(), h.std(), h.min(), h.max()], 1e-5)
    assert row.zeros == (h == 0).mean() > 0
    assert row.nan == row.infinite == 0


def test_calls_of_one_layer_are_added_up() -> None:
    net = Twice()
    first = net.linear(sg.tensor(X))
    both = np.concatenate([first.numpy(), net.linear(first.relu()).numpy()])
    row = net.statistics(X)["linear"]
    assert row.size == both.size
    np.testing.assert_allclose([row.mean, row.std, row.least, row.most], [both.mean(), both.std(), both.min(), both.max()], 1e-5)  # fmt: skip


def test_nan_and_infinity_are_counted_and_left_out_of_the_rest() -> None:
    row = figures("a", "", np.array([1.0, 3.0, np.nan, np.inf, -np.inf, 0.0]))
    assert (row.nan, row.infinite, row.least, row.most, row.zeros) == (1, 2, 0.0, 3.0, 1 / 6)
    none = figures("a", "", np.array([np.nan]))
    assert math.isnan(none.mean)
    assert (none + row).mean == (row + none).mean == row.mean
    assert figures("a", "", np.empty((0, 3))).size == 0
    assert figures("a", "", np.ones(2, np.complex64) * 3j).most == 3


def test_models_weights_and_gradients_have_them(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(3, 5, rng=0), nn.ReLU(), nn.Linear(5, 2, rng=1))
    model = sg.Model.of(net, {"x": ("N", 3)}, device="numpy")
    found = model.statistics(X)
    np.testing.assert_allclose(found["output"].mean, net(sg.tensor(X)).numpy().mean(), 1e-5)
    assert "relu" in str(found)
    assert list(net.statistics().rows[0].shape) == [5, 3]
    _, grads = sg.value_and_grad(lambda m: (m(sg.tensor(X)) ** 2).mean())(net)
    assert [r.name for r in grads.statistics().rows] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    np.testing.assert_allclose(grads.statistics()["2.bias"].most, grads["2.bias"].numpy().max(), 1e-6)
    node = helper.make_node("Sqrt", ["x"], ["root"], name="a/sqrt")
    last = helper.make_node("Neg", ["root"], ["y"])
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node, last], "g", [value("x", 1, ["N"])], [value("y", 1, ["N"])])
    (tmp_path / "m.onnx").write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    )
    rows = sg.load(tmp_path / "m.onnx", device="numpy").statistics(np.array([4.0, -1.0], np.float32)).rows
    assert [(r.name, r.kind, r.nan) for r in rows] == [("root", "Sqrt", 1), ("y", "Neg", 1)]


def test_they_are_a_table_and_a_picture(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(3, 5, rng=0), nn.ReLU())
    found = net.statistics(X * np.float32(np.inf))
    assert str(found).splitlines()[0].split() == ["layer", "kind", "shape", "mean", "std", "min", "max", "zeros", "NaN", "inf"]  # fmt: skip
    found.save(tmp_path / "net.svg")
    text = (tmp_path / "net.svg").read_text("utf-8")
    assert text.count("<rect") + text.count("NaN") + text.count("infinite") >= 2
    with pytest.raises(sg.InputError, match="no suffix"):
        found.save(tmp_path / "net")
    with pytest.raises(sg.InputError, match="no layer '7'; there are 0, 1"):
        found["7"]
