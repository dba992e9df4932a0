"""`sg.debug`: the first number that is not finite, with its op, its layer and its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn

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


def test_what_was_compiled_before_knows_its_ops() -> None:
    model = sg.Model.of(Net(), {"x": ("N", 3)}, "numpy")
    model(X)
    with sg.debug(nonfinite=True), pytest.raises(sg.NonFinite, match=r"log: its result .* holds NaN"):
        model(X)


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
