"""`sg.debug`: the first number that is not finite, with its op, its layer and its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.train.steps import fault

on_devices = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)


class Root(nn.Module):
    """The logarithm of what a layer gives, less 10."""

    def __init__(self) -> None:
        self.linear = nn.Linear(3, 3, rng=0)

    def forward(self, x: Any) -> Any:
        return (self.linear(x).abs() - 10).log()  # here


class Net(nn.Module):
    def __init__(self) -> None:
        self.blocks = [nn.Linear(3, 3, rng=1), Root()]

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x * 2


X = np.ones((2, 3), np.float32)
SAID = r"log: its result \(2, 3\) holds NaN; in the layer 'blocks.1', Root; .*test_debugging.py:\d+: return .*# here"


@on_devices
def test_an_op_is_named_eagerly(device_name: str) -> None:
    x = sg.tensor([1.0, 0.0], device=device_name)
    with sg.debug(nonfinite=True):
        assert (x + 1).numpy().tolist() == [2, 1]
        with pytest.raises(
            sg.NonFinite, match=r"(div|a / b): its result \(2,\) holds NaN; .*test_debugging.py:\d+: _ = x / x"
        ):
            _ = x / x
    assert np.isnan((x / x).numpy()[1])


@on_devices
def test_a_layer_is_named_eagerly(device_name: str) -> None:
    net, x = Net().to(device_name), sg.tensor(X, device=device_name)
    assert np.isnan(net(x).numpy()).all()
    with sg.debug(nonfinite=True), pytest.raises(sg.NonFinite, match=SAID):
        net(x)


@on_devices
@pytest.mark.slow
def test_what_is_compiled_within_the_block_knows_its_layers(device_name: str) -> None:
    with sg.debug(nonfinite=True):
        program = sg.compile(Net(), X, device=device_name)
        with pytest.raises(sg.NonFinite, match=SAID):
            program(X)
    assert np.isnan(program(X)).all()


@on_devices
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a function", "a model", "a step", "an evaluation", "a compiled graph"])
def test_what_was_traced_and_run_before_knows_its_layers(device_name: str, kind: str) -> None:
    bad, good = X, np.full((2, 3), 1e6, np.float32)
    run: Any
    if kind == "a function":
        run = sg.compile(Net(), good, device=device_name)
    elif kind == "a model":
        run = sg.Model.of(Net(), {"x": ("N", 3)}, device_name)
    elif kind == "a compiled graph":
        graph = sg.Model.of(Net(), {"x": (2, 3)}, "numpy").graph()
        run = sg.compile(graph, device=device_name)
    else:
        step = sg.train.TrainStep(Net(), sg.optim.SGD(0.0), lambda model, x: model(x).mean(), device=device_name)
        run = step if kind == "a step" else step.evaluate
    assert np.isfinite(run(good)).all()
    said = (
        r"log: its result \(2, 3\) holds NaN; its layer and line are not known$"
        if kind == "a compiled graph"
        else SAID.replace("2", "(2|N)")
    )
    for _ in range(2):
        with sg.debug(nonfinite=True), pytest.raises(sg.NonFinite, match=said):
            run(bad)
    assert np.isfinite(run(good)).all()


def test_a_trace_of_before_is_made_again_for_what_is_outside_now() -> None:
    """Also where another trace has run meanwhile."""
    least = [0.0]

    def f(x: Any) -> Any:
        return (x - least[0]).log()  # there

    run = sg.Model.of(f, {"x": (2,)}, "numpy")
    x = np.ones(2, np.float32)
    assert run(x).tolist() == [0, 0]
    least[0] = 2.0
    assert np.isnan(run(x)).all()
    least[0] = 0.0
    with sg.debug(nonfinite=True):
        assert run(x).tolist() == [0, 0]
        least[0] = 2.0
        with pytest.raises(sg.NonFinite, match=r"log: its result .* holds NaN; .*test_debugging.py:\d+: .*# there"):
            run(x)


@on_devices
def test_a_program_that_was_loaded_names_what_computes_the_result(device_name: str, tmp_path: Path) -> None:
    sg.compile(lambda x: (x - 2).log(), X, device=device_name).save(tmp_path / "p")
    program = sg.Program.load(tmp_path / "p", device_name)
    with (
        sg.debug(nonfinite=True),
        pytest.raises(sg.NonFinite, match=r"'output' holds NaN; the (op|kernel) '.*log.*' comp.* no Graph"),
    ):
        program(X)


@pytest.mark.parametrize("how", ["loaded", "compiled", "as a module"])
def test_a_node_of_an_onnx_file_is_named(how: str, tmp_path: Path) -> None:
    """Of a model that has run before, and where a function calls it."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"], "scaled"), helper.make_node("Log", ["m"], ["y"], "taken")]
    values = [helper.make_tensor_value_info(name, kind, ["N", 3]) for name in "xy"]
    weight = onnx.numpy_helper.from_array(np.ones(3, np.float32), "w")
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    if how == "as a module":
        module = sg.load_module(tmp_path / "m.onnx")
        run: Any = sg.compile(module, X, device="numpy")
    else:
        model = run = sg.load(tmp_path / "m.onnx", "numpy")
        if how == "compiled":
            run = sg.compile(model, X)
    assert np.isfinite(run(X)).all()
    with sg.debug(nonfinite=True), pytest.raises(sg.NonFinite, match=r"log: its .* NaN; in node 1 'taken' \(Log\)"):
        run(-X)


def test_a_gradient_names_the_line_that_it_is_of() -> None:
    def loss(w: Any) -> Any:
        return (w * 0.0).sqrt().sum()  # forward

    program = sg.compile(lambda w: sg.grad(loss)(w)[w], X[0], device="numpy")
    program(X[0])
    with sg.debug(nonfinite=True), pytest.raises(sg.NonFinite, match=r"infinity; the gradient of .*# forward"):
        program(X[0])


def test_a_learner_tells_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own observation of the step is left out."""
    monkeypatch.setattr(fault, "first_fault", lambda *_: pytest.fail("observed twice"))
    learner = sg.train.Learner(Net(), sg.optim.SGD(0.1), nn.MSELoss(), device="numpy", dashboard=None)
    with sg.debug(nonfinite=True):
        said = learner.fit([(X, X)]).message
    assert re.search(SAID, said)
    assert said.count("log") == 2  # the op, and the line of code


@on_devices
@pytest.mark.slow
def test_a_step_of_training_names_its_layer(device_name: str) -> None:
    step = sg.train.TrainStep(Net(), sg.optim.SGD(0.1), lambda model, x: model(x).mean(), device=device_name)
    with sg.debug(nonfinite=True), pytest.raises(sg.NonFinite, match=SAID):
        step(X)


def test_gradients_are_looked_at() -> None:
    def loss(w: Any) -> Any:
        return (w * 0.0).sqrt().sum()

    with sg.debug(nonfinite=True), pytest.raises(sg.NonFinite, match=r"holds (NaN|infinity)"):
        sg.value_and_grad(loss)(sg.tensor([1.0, 2.0]))


def test_states_are_those_of_before_the_run() -> None:
    def step(x: Any, *, total: Any) -> Any:
        total = total + x
        return x * 1, {"total": (6 - total).log() * 0 + total}

    model = sg.Model.of(step, {"x": ()}, "numpy", states={"total": ((), "float32")})
    with sg.debug(nonfinite=True):
        model(np.float32(5))
        with pytest.raises(sg.NonFinite, match=r"log: its result"):
            model(np.float32(5))


def test_infinity_that_is_meant_is_no_fault() -> None:
    """A mask adds minus infinity before softmax."""
    x, mask = sg.tensor(X), sg.tensor([True, False, True])
    with sg.debug(nonfinite=True):
        masked = sg.where(mask, x, -np.inf).softmax(1)
        np.testing.assert_allclose(masked.numpy()[0], [0.5, 0, 0.5])
        with pytest.raises(sg.NonFinite, match=r"exp: its result .* holds infinity"):
            (x * 1000).exp()


def test_lazy_devices_are_looked_at_when_they_compute() -> None:
    x = sg.tensor([1.0, 0.0], device=sg.Fusion("numpy"))
    with sg.debug(nonfinite=True):
        y = (x / x) + 1
        with pytest.raises(sg.NonFinite, match=r"(div|a / b): its result .* holds NaN"):
            y.numpy()
