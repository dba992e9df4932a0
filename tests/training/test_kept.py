"""A model that keeps a tensor of a call in a list or dict is refused by the name of the place, and stays as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.train import DataParallel, Learner, TrainStep

X, Y = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)


class Masked(nn.Module):
    """A mask that is made when it is first needed."""

    def __init__(self) -> None:
        self.layer = nn.Linear(4, 4, rng=np.random.default_rng(0))
        self.cache: dict[int, Any] = {}

    def forward(self, x: Any) -> Any:
        if 4 not in self.cache:
            self.cache[4] = sg.ones(4, 4).tril()
        return self.layer(x) @ self.cache[4]


class Told(Masked):
    def forward(self, x: Any) -> Any:
        self.cache.setdefault("h", []).append(self.layer(x))  # type: ignore[call-overload]
        return x @ self.layer.weight


class Listed(nn.Module):
    def __init__(self) -> None:
        self.layer = nn.Linear(4, 4, rng=np.random.default_rng(0))
        self.acts: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.acts.append(self.layer(x))
        return self.acts[-1]


def loss(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


CASES = {"cache[4] of Masked;": Masked, "cache['h'][0] of Told;": Told, "acts[0] of Listed;": Listed}


WAYS: dict[str, Callable[[nn.Module, str], Any]] = {
    "step": lambda model, on: TrainStep(model, sg.optim.SGD(0.1), loss, device=on)(X, Y),
    "float16": lambda model, on: TrainStep(model, sg.optim.SGD(0.1), loss, device=on, precision="float16")(X, Y),
    "evaluate": lambda model, on: TrainStep(model, sg.optim.SGD(0.1), loss, device=on).evaluate(X, Y),
    "parallel": lambda model, on: DataParallel(model, sg.optim.SGD(0.1), loss, device=[on, on])(X, Y),
}


@pytest.mark.parametrize("place", CASES)
@pytest.mark.parametrize("device", ["numpy", "wasm"])
@pytest.mark.parametrize("way", WAYS)
def test_a_kept_tensor_is_refused_by_name(place: str, device: str, way: str) -> None:
    model = CASES[place]()
    with pytest.raises(sg.InputError, match=re.escape(f"keeps a Tensor in {place}")):
        WAYS[way](model, device)
    assert list(model.state_dict()) == ["layer.weight", "layer.bias"]


def test_the_layer_is_named_by_its_path() -> None:
    step = TrainStep(nn.Sequential(nn.ReLU(), Listed()), sg.optim.SGD(0.1), loss, device="numpy")
    with pytest.raises(sg.InputError, match=r"acts\[0\] of '1', a layer of Sequential; .* return it instead"):
        step(X, Y)


def test_a_learner_refuses_it() -> None:
    with pytest.raises(sg.InputError, match=r"keeps a Tensor in cache\[4\] of Masked"):
        Learner(Masked(), sg.optim.SGD(0.1), loss, device="numpy").fit([(X, Y)], epochs=1)


def test_a_tensor_in_a_dict_is_a_parameter_to_a_step_as_it_is_eagerly() -> None:
    model = Masked()
    model(sg.tensor(X))
    _, grads = sg.value_and_grad(loss)(model, sg.tensor(X), sg.tensor(Y))
    expected = model.cache[4].numpy() - 0.1 * dict(grads.items())["cache.4"].numpy()
    step = TrainStep(model, sg.optim.SGD(0.1), loss, device="numpy")
    step(X, Y)
    np.testing.assert_allclose(step.model.state_dict()["cache.4"].numpy(), expected, rtol=1e-5)


def test_a_compiled_module_names_the_place_from_itself() -> None:
    with pytest.raises(sg.InputError, match=r"keeps a Tensor in self\.acts\[0\]"):
        sg.compile(Listed(), sg.ones(4, 4))
