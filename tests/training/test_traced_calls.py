"""What changes by training, running and drawing data is refused in a function that is traced, which would keep what it gave first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.errors import InputError

X, Y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)


def step_of(loss: Any) -> sg.train.TrainStep:
    return sg.train.TrainStep(nn.Linear(3, 3, rng=0), sg.optim.SGD(0.5), loss, device="numpy")


def counting() -> sg.Model:
    return sg.Model.of(
        lambda x, count: (x + count, {"count": count + 1}), {"x": (2, 3)}, states={"count": np.zeros(1, np.float32)}, device="numpy"
    )  # fmt: skip


def changing() -> dict[str, Callable[[], Any]]:
    """What gives something else later ↦ a call of it, for arrays."""
    step, data = step_of(nn.MSELoss()), sg.data.Dataset.of((X,))
    loader, drawing = sg.data.Loader(data, 1), sg.compile(lambda x: x + sg.rand(2, 3), X, device="numpy")
    model, session = counting(), counting().session()
    return {
        "step.model": lambda: step.model(sg.tensor(X)).numpy(),
        "step.state": lambda: float(step.state()["model.weight"][0, 0]),
        "step.skipped": lambda: step.skipped,
        "a step": lambda: step(X, Y),
        "step.evaluate": lambda: step.evaluate(X, Y),
        "a compiled function": lambda: drawing(X),
        "a model": lambda: model(X),
        "session.read": lambda: session.read("count")[0],
        "a loader": lambda: next(iter(loader))[0],
        "an order": lambda: data.shuffle()[0][0],
    }


@pytest.mark.parametrize("name", changing())
@pytest.mark.parametrize("way", ["compile", "TrainStep"])
def test_what_changes_is_refused_by_name_in_what_is_traced(name: str, way: str) -> None:
    call = changing()[name]
    call()
    step = step_of(lambda model, x: (model(x) + call()).sum())
    traced = {"compile": lambda: sg.compile(lambda x: x + call(), X, device="numpy"), "TrainStep": lambda: step(X)}
    with pytest.raises(InputError, match=r"in every run.*; .*(outside|before|itself)"):
        traced[way]()


def test_the_model_of_another_step_is_a_part_of_the_batch() -> None:
    """As in two steps of a GAN: each learns beside the present weights of the other."""
    critic = step_of(nn.MSELoss())
    step = step_of(lambda model, x, other: ((model(x) - other(x)) ** 2).mean())
    for _ in range(2):
        difference = (step.model(sg.tensor(X)) - critic.model(sg.tensor(X))).numpy()
        assert step(X, critic.model) == pytest.approx((difference**2).mean(), rel=1e-5)
        critic(X, Y)
