"""LBFGS: the places and the numbers of evaluations of PyTorch's, on functions whose gradients are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, slow
from recorded import recorded_cases

import singe as sg
from singe import nn, optim

CASES, ARRAYS = recorded_cases("optim")
LABELS = [label for label, case in CASES.items() if case["kind"] == "lbfgs"]
Evaluate = Callable[[Any], tuple[sg.Tensor, Mapping[str, sg.Tensor]]]


def rosenbrock(model: Mapping[str, sg.Tensor]) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
    x = model["x"]
    a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    zero = sg.zeros(1, dtype=x.dtype, device=x.device)
    slope = sg.cat([-400 * a * x[:-1] - 2 * b, zero]) + sg.cat([zero, 200 * a])
    return (100 * a**2 + b**2).sum(), {"x": slope}


def quartic(model: Mapping[str, sg.Tensor]) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
    x = model["x"]
    scale = sg.arange(1, 5, dtype=x.dtype, device=x.device)
    along = (x * scale).sum() - 2
    return (scale * (x - 1) ** 2).sum() + 0.1 * along**4, {"x": 2 * scale * (x - 1) + 0.4 * along**3 * scale}


FUNCTIONS: dict[str, Evaluate] = {"rosenbrock": rosenbrock, "quartic": quartic}


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_each_step_is_that_of_pytorch(label: str) -> None:
    case, evaluate = CASES[label], FUNCTIONS[CASES[label]["name"]]
    opt, calls = optim.LBFGS(**case["options"]), 0

    def counted(model: Any) -> Any:
        nonlocal calls
        calls += 1
        return evaluate(model)

    model = {"x": sg.tensor(case["start"], dtype="float64")}
    state = opt.init(model)
    for place, total in zip(ARRAYS[label], case["calls"], strict=True):
        model, state = opt.step(model, counted, state)
        np.testing.assert_allclose(model["x"].numpy(), place, rtol=1e-7, atol=1e-9)
        assert calls == total
    if case["options"].get("line_search_fn"):
        assert state["loss"].item() == pytest.approx(evaluate(model)[0].item())


@pytest.mark.slow
@RUNNERS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_minimum_is_found_on_every_device(name: str, device_name: str) -> None:
    opt = optim.LBFGS(max_iter=10, line_search_fn="strong_wolfe")
    model = {"x": sg.tensor([-0.5, 0.8, 0.3, 1.4], dtype="float32", device=device_name)}
    state = opt.init(model)
    for _ in range(8):
        model, state = opt.step(model, FUNCTIONS[name], state)
    loss, slope = FUNCTIONS[name](model)
    assert slope["x"].abs().amax().item() < 2e-2
    if name == "rosenbrock":
        assert loss.item() == pytest.approx(3.7014, abs=1e-3)  # its other minimum, beside that at 1, 1, 1, 1


@pytest.mark.slow
def test_a_module_of_several_parameters_is_fitted() -> None:
    rng = np.random.default_rng(0)
    x = sg.tensor(rng.normal(size=(30, 3)), dtype="float32")
    y = x @ sg.tensor([[1.0, -2.0], [0.5, 3.0], [0.0, 1.0]]) + sg.tensor([0.25, -4.0])

    def evaluate(model: nn.Module) -> Any:
        miss = model(x) - y
        return (miss**2).mean(), {"weight": miss.T @ x / 30, "bias": miss.sum(0) / 30}

    opt, model = optim.LBFGS(line_search_fn="strong_wolfe"), nn.Linear(3, 2, rng=0)
    model, state = opt.step(model, evaluate, opt.init(model))
    np.testing.assert_allclose(model.weight.numpy(), [[1, 0.5, 0], [-2, 3, 1]], atol=1e-4)
    np.testing.assert_allclose(model.bias.numpy(), [0.25, -4], atol=1e-4)
    assert state["loss"].item() < 1e-8


@pytest.mark.parametrize("recorded_by", [True, *slow(False)])
def test_gradients_may_come_from_either_way(recorded_by: bool) -> None:
    on = sg.Autodiff(sg.Numpy()) if recorded_by else sg.Numpy()
    x = sg.tensor(np.random.default_rng(0).normal(size=(30, 3)), dtype="float32", device=on)
    model = nn.Linear(3, 1, rng=0).to(on)

    def loss(model: nn.Linear) -> sg.Tensor:
        return ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()

    def backward(model: nn.Linear) -> Any:
        value = loss(model)
        return value, value.backward()

    model = model.map(sg.Tensor.require_grad) if recorded_by else model
    opt = optim.LBFGS(line_search_fn="strong_wolfe")
    model, state = opt.step(model, backward if recorded_by else sg.value_and_grad(loss), opt.init(model))
    np.testing.assert_allclose(model.weight.numpy(), [[1, 1, 1]], atol=1e-4)
    assert model.weight.requires_grad == recorded_by
    assert state["loss"].item() < 1e-8


def test_a_state_continues_where_it_was() -> None:
    """As PyTorch's: the history of one step serves the next one. A state that went through a file is the same state."""
    opt = optim.LBFGS(max_iter=3, max_eval=20, history_size=2, line_search_fn="strong_wolfe")
    model = {"x": sg.tensor([-0.5, 0.8, 0.3, 1.4], dtype="float64")}
    model, state = opt.step(model, quartic, opt.init(model))
    assert {"move.0", "move.1", "change.0", "change.1"} < set(state)
    assert "move.2" not in state
    saved = {name: sg.tensor(x.numpy(), dtype=x.dtype) for name, x in state.items()}
    again = [opt.step(model, quartic, given)[0]["x"].numpy() for given in (state, saved, opt.init(model))]
    np.testing.assert_array_equal(again[0], again[1])
    assert not np.array_equal(again[0], again[2])
