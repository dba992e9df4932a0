"""What is drawn in steps of training, their bundles, bundles of functions, and by ONNX's ops: what the same lines draw eagerly
after the same `manual_seed`, run by run. test_drawing.py has the other ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS
from test_drawing import DRAWING, RUNS, X, eagerly

import singe as sg
from singe import nn

onnx = pytest.importorskip("onnx")
BUNDLED = ("wasm", "webgpu")
"""What a bundle has Programs for."""
OPS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "RandomNormal": ("", {"shape": [2, 3, 4]}),
    "RandomNormalLike": ("x", {"mean": 3.0}),
    "RandomUniform": ("", {"shape": [2, 3, 4]}),
    "RandomUniformLike": ("x", {"low": -1.0}),
    "Bernoulli": ("x", {}),
    "Multinomial": ("row", {"sample_size": 20}),
    "Dropout": ("x ratio on", {}),
}


def of_op(name: str, device: str) -> sg.Model:
    """A model of one op, and of what it needs, whose output is "y"."""
    inputs, attributes = OPS[name]
    constants = {"ratio": np.array(0.5, np.float32), "on": np.array(True), "row": np.zeros((1, 9), np.float32)}
    nodes = [
        onnx.helper.make_node("Constant", [], [key], value=onnx.numpy_helper.from_array(constants[key]))
        for key in inputs.split()
        if key != "x"
    ]
    nodes.append(onnx.helper.make_node(name, inputs.split(), ["y"], **attributes))
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape)
    graph = onnx.helper.make_graph(nodes, "g", [x], [onnx.helper.make_empty_tensor_value_info("y")])
    opsets = [onnx.helper.make_opsetid("", 21)]
    made = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return sg.load(made.SerializeToString(), device=device)


def step_of(function: Callable[[sg.Tensor], Any], device: str) -> sg.train.TrainStep:
    """A step that learns nothing and tells what a function draws."""

    def loss(model: nn.Module, x: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        return model(x).sum() * 0, {"drawn": function(x)}

    return sg.train.TrainStep(nn.Linear(4, 1, rng=0), sg.optim.SGD(0.1), loss, device=device)


def ways(
    function: Callable[[sg.Tensor], Any], device: str, folder: Path
) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """How a function may run, and what takes a seed."""
    step = step_of(function, device)
    yield "TrainStep", lambda x: step(x)[1]["drawn"], step
    model = step_of(function, device).as_model(X, names=["x"])
    yield "an exported step", lambda x: model(x)["drawn"], model
    if device not in BUNDLED:
        return
    for what, made, name in (
        ("a bundle", sg.Model.of(function, {"x": X.shape}, "numpy"), None),
        ("its bundle", model, "drawn"),
    ):
        sg.export(made, folder / what)
        loaded = sg.load(folder / what, device=device)
        yield what, (lambda x, loaded=loaded, name=name: loaded(x)[name] if name else loaded(x)), loaded


def check(want: list[np.ndarray], other: list[np.ndarray], what: str, run: Callable[..., Any], seeded: Any) -> None:
    """want, other: what is drawn after manual_seed(7), and of the seed 8."""
    assert len({y.tobytes() for y in (*want, *other)}) >= RUNS
    for seed, wanted in ((None, want), (8, other)):
        if seed is not None:
            seeded.seed(seed)
        sg.manual_seed(7)
        found = [np.asarray(run(X)) for _ in range(RUNS)]
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5, err_msg=f"{what}, seed {seed}")


@pytest.mark.slow
@RUNNERS
@pytest.mark.parametrize("name", DRAWING)
def test_steps_and_bundles_draw_as_the_lines_do_eagerly(name: str, device_name: str, tmp_path: Path) -> None:
    function = DRAWING[name]
    want, other = eagerly(function, 7), eagerly(function, 8)
    for what, run, seeded in ways(function, device_name, tmp_path):
        check(want, other, what, run, seeded)


@pytest.mark.slow
@RUNNERS
@pytest.mark.parametrize("name", OPS)
def test_ops_of_onnx_draw_the_same_in_every_way(name: str, device_name: str, tmp_path: Path) -> None:
    model = of_op(name, "numpy")
    drawn: list[list[np.ndarray]] = []
    for seed in (7, 8):
        sg.manual_seed(seed)
        drawn.append([model(X) for _ in range(RUNS)])
    on = of_op(name, device_name)
    check(*drawn, "Model", on, on)
    session = on.session()
    check(*drawn, "session", session, session)
    on.program().save(tmp_path / "op.singe")
    program = sg.Program.load(tmp_path / "op.singe", device_name)
    check(*drawn, "Program.load", program, program)
    if device_name in BUNDLED:
        sg.export(model, tmp_path / "bundle")
        loaded = sg.load(tmp_path / "bundle", device=device_name)
        check(*drawn, "a bundle", loaded, loaded)
