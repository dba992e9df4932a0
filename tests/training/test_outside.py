"""What a loss function takes from variables outside it stays as it was when the step was compiled, or the step is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.train import TrainStep

X, Y = np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32)
VALUES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "number": (lambda: 0.5, lambda: 2.0),
    "NumPy number": (lambda: np.float32(0.5), lambda: np.float32(2)),
    "array": (lambda: np.ones(2, np.float32), lambda: np.zeros(2, np.float32)),
    "tensor": (lambda: sg.tensor([1.0, 1.0]), lambda: sg.tensor([1.0, 1.0])),
    "module": (
        lambda: nn.Linear(2, 2, rng=np.random.default_rng(0)),
        lambda: nn.Linear(2, 2, rng=np.random.default_rng(1)),
    ),
    "number in a module": (lambda: nn.Softplus(1.0), lambda: nn.Softplus(2.0)),
}
SAME = ("number", "NumPy number", "array", "number in a module")
"""Those of which another object may be the same value: a tensor is compared by what it refers to."""
scale: Any = 1.0


def used(value: Any, x: Any) -> Any:
    return value(x) if isinstance(value, nn.Module) else x * value


def by_global(model: Any, x: Any, y: Any) -> Any:
    return nn.MSELoss()(used(scale, model(x)), y)


def by_helper(model: Any, x: Any, y: Any) -> Any:
    return by_global(model, x, y)


def step_of(loss: Any) -> TrainStep:
    return TrainStep(nn.Linear(3, 2, rng=np.random.default_rng(0)), sg.optim.SGD(0.1), loss, device="numpy")


@pytest.mark.parametrize("loss", [by_global, by_helper, functools.partial(by_helper)])
def test_a_global_that_changes_is_refused(monkeypatch: pytest.MonkeyPatch, loss: Any) -> None:
    step = step_of(loss)
    step(X, Y)
    step(X, Y)
    monkeypatch.setattr("test_outside.scale", 2.0)
    with pytest.raises(sg.InputError, match="takes 'scale' from outside"):
        step(X, Y)
    assert step_of(loss)(X, Y) > 0  # another step has the new value


@pytest.mark.parametrize("kind", VALUES)
def test_a_captured_value_that_changes_is_refused(kind: str) -> None:
    first, second = VALUES[kind]
    value = first()

    def loss(model: Any, x: Any, y: Any) -> Any:
        return next(nn.MSELoss()(used(value, found), y) for found in [model(x)])  # also within a function of its own

    step = step_of(loss)
    step(X, Y)
    if kind in SAME:
        value = first()
        step(X, Y)
    value = second()
    with pytest.raises(sg.InputError, match="takes 'value' from outside"):
        step(X, Y)


def test_what_is_no_constant_may_change() -> None:
    seen: list[int] = []
    rng = np.random.default_rng(0)

    def loss(model: Any, x: Any, y: Any) -> Any:
        seen.append(int(rng.integers(9)))
        return nn.MSELoss()(model(x), y)

    step = step_of(loss)
    step(X, Y)
    rng = np.random.default_rng(1)
    seen = []
    step(X, Y)
    assert not seen  # traced once
