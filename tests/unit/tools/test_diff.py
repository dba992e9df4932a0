"""`singe diff`: it finds the layer that differs first, and how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import singe as sg
from singe.model.files import load
from singe.runtime.devices import device
from singe.tools import cli
from singe.tools.measuring.diff import compare, describe, relative_error
from singe.tools.measuring.peer import peer_values
from singe.tools.options import REFERENCES

X = np.array([[1, -2, 3]], np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = (2 · max(x, 0)) + 1, in three layers, and a layer that no output needs."""
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("Add", ["positive", "positive"], ["doubled"]),
        helper.make_node("Exp", ["x"], ["unused"]),
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Add", ["doubled", "one"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, ["N", 3])], [value("y", TensorProto.FLOAT, ["N", 3])]
    )
    path = tmp_path / "m.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(made.SerializeToString())
    return path


def test_a_wrong_layer_is_the_first_to_differ(model: Path) -> None:
    def reference(names: Sequence[str]) -> Mapping[str, np.ndarray]:
        found = peer_values(str(model), {"x": X}, names)
        return {**found, "doubled": found["doubled"] * 1.01}

    (found,) = compare(load(model, "numpy"), [device("numpy")], {"x": X}, 1e-4, reference)
    assert [x.name for x in found.layers] == ["positive", "doubled", "y"]
    (wrong,) = found.differing
    assert (wrong.name, wrong.op, wrong.shape) == ("doubled", "Add", (1, 3))
    assert wrong.error == pytest.approx(0.01 / 1.01, rel=1e-4)
    assert "doubled" in describe([found], "a test").split("\n\n")[-1]


def test_the_layers_of_a_record_are_its_nodes(tmp_path: Path) -> None:
    class Net(sg.nn.Module):
        def __init__(self) -> None:
            self.linear = sg.nn.Linear(3, 2)

        def __call__(self, x: sg.Tensor) -> sg.Tensor:
            values, _ = self.linear(x).exp().top_k(k=1, axis=1, largest=True)
            return values

    sg.save(sg.Model.of(Net(), {"x": ("N", 3)}), tmp_path / "net.singe")
    opened = load(tmp_path / "net.singe", "numpy")
    (found,) = compare(opened, [device("numpy")], {"x": X}, 0.0)
    assert not found.differing
    assert {"exp", "top_k"} <= {x.op for x in found.layers}


@pytest.mark.parametrize("against", REFERENCES)
def test_the_command(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, against: str) -> None:
    np.save(tmp_path / "x.npy", X)
    args = ["diff", str(model), "--input", str(tmp_path / "x.npy"), "--devices", "numpy,wasm", "--against", against]
    assert cli.main(args) == 0
    out = capsys.readouterr().out
    assert "wasm" in out
    assert ("numpy   " in out) == (against == "onnxruntime")


def test_a_device_is_not_compared_with_itself(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    assert cli.main(["diff", str(model), "--devices", "numpy"]) == 2
    assert "no device to compare with numpy" in capsys.readouterr().err


def test_a_difference_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("singe.tools.measuring.diff.relative_error", lambda *_: 0.5)
    assert cli.main(["diff", str(model), "--devices", "wasm"]) == 1
    assert "first to differ on wasm" in capsys.readouterr().out


@pytest.mark.parametrize("tolerance", ["nan", "-1", "inf", "x"])
def test_a_tolerance_is_a_number(capsys: pytest.CaptureFixture[str], model: Path, tolerance: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["diff", str(model), "--tolerance", tolerance])
    assert ended.value.code == 2
    assert "--tolerance: expected a number, at least 0" in capsys.readouterr().err


NAN = np.array([1, np.nan])
INFINITE = np.array([1, np.inf])


@pytest.mark.parametrize(
    ("found", "wanted", "error"),
    [
        (np.array([1.0, 2.1]), np.array([1.0, 2.0]), 0.05),
        (np.array([0.1]), np.array([0.0]), 0.1),
        (NAN, NAN, 0),
        (INFINITE, INFINITE, 0),
        (INFINITE, -INFINITE, np.inf),
        (NAN, INFINITE, np.inf),
        (np.zeros(2), np.zeros(3), np.inf),
        (np.zeros(2, np.float32), np.zeros(2), np.inf),
        (np.zeros((0, 2)), np.zeros((0, 2)), 0),
        (np.array([True, False]), np.array([True, True]), 0.5),
        (np.array(["a"], object), np.array(["b"], object), 1),
    ],
)
def test_errors_are_relative_to_the_largest_element(found: np.ndarray, wanted: np.ndarray, error: float) -> None:
    assert relative_error(found, wanted) == pytest.approx(error)


def test_inputs_that_are_not_given_are_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [3]), value("places", TensorProto.INT64, [2])]
    node = helper.make_node("Gather", ["x", "places"], ["y"])
    graph = helper.make_graph([node], "g", inputs, [value("y", TensorProto.FLOAT, [2])])
    path = tmp_path / "m.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    )
    np.save(tmp_path / "places.npy", np.array([2, 0]))
    assert cli.main(["diff", str(path), "--devices", "numpy", "--against", "onnxruntime"]) == 0
    given = ["--input", f"places={tmp_path}/places.npy"]
    assert cli.main(["diff", str(path), "--devices", "numpy", "--against", "onnxruntime", *given]) == 0
    given = ["--input", f"place={tmp_path}/places.npy"]
    assert cli.main(["diff", str(path), "--devices", "numpy", "--against", "onnxruntime", *given]) == 2
    assert "no such input" in capsys.readouterr().err
