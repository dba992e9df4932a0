"""An ONNX model as a Module: it computes what the Model does, and its gradients are those of the same layers of `singe.nn`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import singe as sg
from singe import nn

SHAPES = {"conv.weight": (4, 2, 3, 3), "conv.bias": (4,), "norm.weight": (4,), "norm.bias": (4,), "fc.weight": (3, 4), "fc.bias": (3,)}  # fmt: skip


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {name: rng.standard_normal(shape).astype(np.float32) / 2 for name, shape in SHAPES.items()}
    return made | {"norm.running_mean": np.full(4, 0.1, np.float32), "norm.running_var": np.full(4, 0.8, np.float32)}


def saved(path: Path, constants: bool = False, transposed: bool = False) -> Path:
    """A convolution, a batch norm, a linear layer. constants: weights are Constant nodes. transposed: the last weight passes
    through a Transpose."""
    held = [onnx.numpy_helper.from_array(a, name) for name, a in arrays().items()]
    node = onnx.helper.make_node
    nodes = [node("Constant", [], [x.name], value=x) for x in held] if constants else []
    nodes += [
        node("Conv", ["x", "conv.weight", "conv.bias"], ["a"]),
        node("BatchNormalization", ["a", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("GlobalAveragePool", ["c"], ["d"]),
        node("Flatten", ["d"], ["e"]),
    ]
    if transposed:
        last = [
            node("Transpose", ["fc.weight"], ["w"]),
            node("MatMul", ["e", "w"], ["f"]),
            node("Add", ["f", "fc.bias"], ["y"]),
        ]
    else:
        last = [node("Gemm", ["e", "fc.weight", "fc.bias"], ["y"], transB=1)]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes + last, "net", [value("x", onnx.TensorProto.FLOAT, ["N", 2, "H", 6])],
        [value("y", onnx.TensorProto.FLOAT, ["N", 3])], [] if constants else held,
    )  # fmt: skip
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    return path


class Same(nn.Module):
    """The same network of layers."""

    def __init__(self) -> None:
        self.conv, self.norm, self.fc = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.fc(self.norm(self.conv(x)).relu().mean((2, 3)))


def loss(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x), y)


X = np.random.default_rng(1).standard_normal((5, 2, 7, 6)).astype(np.float32)
Y = np.arange(5) % 3


@pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
@pytest.mark.parametrize(
    "form", [{}, {"constants": True}, {"transposed": True}], ids=["plain", "constants", "transposed"]
)
def test_gradients_are_those_of_the_same_layers(form: dict[str, bool], device_name: str, tmp_path: Path) -> None:
    module = sg.load_module(saved(tmp_path / "net.onnx", **form))
    assert set(module.state_dict()) == set(SHAPES)  # without the statistics
    same = Same().with_state(arrays(), strict=False).eval()
    x, y = (sg.tensor(a, device=device_name) for a in (X, Y))
    value, found = sg.value_and_grad(loss)(module.to(device_name), x, y)
    wanted_value, wanted = sg.value_and_grad(loss)(same.to(device_name), x, y)
    np.testing.assert_allclose(value.numpy(), wanted_value.numpy(), rtol=1e-4)
    for name in SHAPES:
        most = np.abs(wanted[name].numpy()).max()
        np.testing.assert_allclose(found[name].numpy(), wanted[name].numpy(), atol=1e-4 * most)


def test_it_is_trained_and_is_a_model_again(tmp_path: Path) -> None:
    path = saved(tmp_path / "net.onnx")
    module = sg.load_module(path)
    model = sg.load(path, device="numpy")
    again = sg.Model.of(module, {"x": ("N", 2, "H", 6)}, device="numpy")
    np.testing.assert_array_equal(again(X), model(X))
    sent = pickle.loads(pickle.dumps(module))
    np.testing.assert_array_equal(sent(sg.tensor(X)).numpy(), module(sg.tensor(X)).numpy())
    assert "net.onnx: x(N, 2, H, 6):float32 → y" in repr(module)
    step = sg.train.TrainStep(module, sg.optim.Adam(0.01), loss, device="numpy")
    losses = [step(X, Y) for _ in range(5)]
    assert losses[-1] < losses[0]
    assert np.abs(sg.Model.of(step.model, {"x": (5, 2, 7, 6)}, device="numpy")(X) - model(X)).max() > 1e-3


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    module = sg.load_module(saved(tmp_path / "net.onnx"))
    for inputs, kind, text in (
        ([], sg.InputError, "got 0 inputs, expected x"),
        ([X[:, :1]], sg.ShapeError, r"x: got the shape \(5, 1, 7, 6\)"),
        ([X.astype(np.int32)], sg.DTypeError, "x: got int32, expected float32"),
    ):
        with pytest.raises(kind, match=text):
            module(*map(sg.tensor, inputs))
    sg.save(sg.load(tmp_path / "net.onnx", device="numpy"), tmp_path / "net.singe")
    with pytest.raises(sg.InputError, match="load_module reads ONNX files"):
        sg.load_module(tmp_path / "net.singe")
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])], "no weights", [value("x", onnx.TensorProto.FLOAT, [2])],
        [value("y", onnx.TensorProto.FLOAT, [2])],
    )  # fmt: skip
    onnx.save(onnx.helper.make_model(graph), tmp_path / "relu.onnx")
    with pytest.raises(sg.InputError, match="no weights to learn"):
        sg.load_module(tmp_path / "relu.onnx")
