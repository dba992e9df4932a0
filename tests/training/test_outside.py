"""What a loss function takes from variables outside it is compared at each step; after a change the step is traced again."""

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
    "tensor": (lambda: sg.tensor([1.0, 1.0]), lambda: sg.tensor([3.0, 1.0])),
    "module": (
        lambda: nn.Linear(2, 2, rng=np.random.default_rng(0)),
        lambda: nn.Linear(2, 2, rng=np.random.default_rng(1)),
    ),
    "number in a module": (lambda: nn.Softplus(1.0), lambda: nn.Softplus(2.0)),
}
SAME = ("number", "NumPy number", "array", "number in a module")
"""Those of which another object may be the same value: a tensor is compared by what it refers to."""
scale: Any = 1.0
traces: list[str] = []


def used(value: Any, x: Any) -> Any:
    return value(x) if isinstance(value, nn.Module) else x * value


def by_global(model: Any, x: Any, y: Any) -> Any:
    traces.append("by_global")
    return nn.MSELoss()(used(scale, model(x)), y)


def by_helper(model: Any, x: Any, y: Any) -> Any:
    return by_global(model, x, y)


def step_of(loss: Any) -> TrainStep:
    return TrainStep(nn.Linear(3, 2, rng=np.random.default_rng(0)), sg.optim.SGD(0.1), loss, device="numpy")


@pytest.mark.parametrize("loss", [by_global, by_helper, functools.partial(by_helper)])
def test_a_global_that_changes_is_traced_again(monkeypatch: pytest.MonkeyPatch, loss: Any) -> None:
    step, expected = step_of(loss), step_of(loss)
    traces.clear()
    step(X, Y)
    step(X, Y)
    assert len(traces) == 1
    kept = step.state()
    monkeypatch.setattr("test_outside.scale", 2.0)
    found = step(X, Y)
    assert len(traces) == 2
    expected.resume(kept)
    assert found == expected(X, Y)  # the states went on
    monkeypatch.setattr("test_outside.scale", 1.0)
    step(X, Y)
    assert len(traces) == 3  # that of `expected` is one
    assert step.state().keys() == kept.keys()


@pytest.mark.parametrize("kind", VALUES)
def test_a_captured_value_that_changes_is_traced_again(kind: str) -> None:
    first, second = VALUES[kind]
    value = first()
    traced: list[int] = []

    def loss(model: Any, x: Any, y: Any) -> Any:
        traced.append(1)
        return next(nn.MSELoss()(used(value, found), y) for found in [model(x)])  # also within a function of its own

    step = step_of(loss)
    step(X, Y)
    if kind in SAME:
        value = first()
        step(X, Y)
        assert len(traced) == 1
    value = second()
    other = step_of(loss)
    other.resume(step.state())
    assert step(X, Y) == other(X, Y)
    assert len(traced) == 3  # one of them for the other step


def test_toggling_between_two_values_traces_each_once() -> None:
    cfg, traced = {"beta": 0.5}, list[float]()

    def loss(model: Any, x: Any, y: Any) -> Any:
        traced.append(cfg["beta"])
        return nn.MSELoss()(model(x), y) * cfg["beta"]

    step = step_of(loss)
    for k in range(6):
        cfg["beta"] = (0.5, 2.0)[k % 2]
        step(X, Y)
    assert traced == [0.5, 2.0]


def test_a_generator_s_number_is_no_number_of_the_program() -> None:
    rng = np.random.default_rng(0)

    def loss(model: Any, x: Any, y: Any) -> Any:
        return nn.MSELoss()(model(x), y) * float(rng.uniform())

    with pytest.raises(sg.InputError, match="rng"):
        step_of(loss)(X, Y)


def test_what_a_function_tells_a_list_of_its_own_is_left_alone() -> None:
    seen: list[int] = []

    def loss(model: Any, x: Any, y: Any) -> Any:
        seen.append(len(traces))
        return nn.MSELoss()(model(x), y)

    step = step_of(loss)
    for _ in range(3):
        step(X, Y)
    assert len(seen) == 1


class Gained(nn.Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(3, 2, rng=np.random.default_rng(0))
        self.table = {"gain": 2.0}
        self.gains = [1.0, [1.0]]
        self.log: list[float] = []
        self.parts = [nn.Linear(2, 2, rng=np.random.default_rng(1))]

    def forward(self, x: Any) -> Any:
        y = self.linear(x) * self.table["gain"] * self.gains[1][0]
        for part in self.parts:
            y = part(y)
        return y


def test_lists_and_dicts_of_the_model_are_those_of_each_step() -> None:
    model = Gained()
    step = TrainStep(model, sg.optim.SGD(0.0), lambda m, x, y: ((m(x) - y) ** 2).mean(), device="numpy")
    first = step.program(X, Y)
    for change in (
        lambda: model.log.append(1.0),
        lambda: model.table.update(gain=3.0),
        lambda: model.gains[1].__setitem__(0, 0.5),
        lambda: model.gains.__setitem__(1, [4.0]),
    ):
        change()
        expected = float(((model(sg.tensor(X)) - Y) ** 2).mean().item())
        for found in (step(X, Y), step.evaluate(X, Y), float(((step.model(sg.tensor(X)) - Y) ** 2).mean().item())):
            assert found == pytest.approx(expected, rel=1e-5)
        assert (step.program(X, Y) is first) == (model.table["gain"] == 2.0)  # the log is read by nobody
    model.parts[0] = nn.Linear(2, 2)
    for what in (lambda: step(X, Y), lambda: step.evaluate(X, Y), lambda: step.model):
        with pytest.raises(sg.InputError, match=r"tensor parts\.0\.weight is another one.*make a new TrainStep"):
            what()


def counted(forward: Callable[[Any], float]) -> Any:
    class Counted(nn.Module):
        def __init__(self) -> None:
            self.linear = nn.Linear(3, 2, rng=0)
            self.n = {"k": 0}
            self.list = [0]
            self.nested = [{"n": [0]}]
            self.log: list[float] = []
            self.parts = [nn.Linear(2, 2, rng=1), nn.Linear(2, 2, rng=2)]

        def forward(self, x: Any) -> Any:
            y = self.linear(x) * forward(self)
            for part in self.parts:
                y = part(y)
            return y

    return Counted()


def in_dict(m: Any) -> float:
    m.n["k"] += 1
    return m.n["k"]


def in_list(m: Any) -> float:
    m.list[0] += 1
    return m.list[0]


def in_nested(m: Any) -> float:
    m.nested[0]["n"][0] += 1
    return m.nested[0]["n"][0]


def by_length(m: Any) -> float:
    m.log.append(1.0)
    return len(m.log)


def not_at_all(m: Any) -> float:
    m.log.append(1.0)
    m.n["k"] += 1
    return 2.0


def first_time(m: Any) -> float:
    if not m.log:
        m.log.append(3.0)
    return m.log[0]


COUNTING = {in_dict: "model.n['k']", in_list: "model.list[0]", in_nested: "model.nested[0]['n'][0]", by_length: "model.log[0]"}  # fmt: skip


def mean_square(model: Any, x: Any, y: Any) -> Any:
    return nn.MSELoss()(model(x), y)


def eagerly(model: Any) -> float:
    return mean_square(model, sg.tensor(X), sg.tensor(Y)).item()


@pytest.mark.parametrize("forward", COUNTING)
@pytest.mark.parametrize("what", ["__call__", "evaluate", "share"])
def test_a_model_that_counts_in_its_lists_and_dicts_and_computes_with_it_is_refused(forward: Any, what: str) -> None:
    step = TrainStep(counted(forward), sg.optim.SGD(0.0), mean_square, device="numpy")
    with pytest.raises(sg.InputError) as refused:
        getattr(step, what)(X, Y)
    assert f"reads {COUNTING[forward]} and changes it" in str(refused.value)


@pytest.mark.parametrize("forward", [not_at_all, first_time])
def test_what_no_result_depends_on_may_be_kept_in_the_model(forward: Any) -> None:
    model = counted(forward)
    step = TrainStep(model, sg.optim.SGD(0.0), mean_square, device="numpy")
    expected = eagerly(counted(forward))
    for _ in range(3):
        assert step(X, Y) == pytest.approx(expected, rel=1e-6)
    assert len(model.log) == 1  # as after one call, however often it was traced


@pytest.mark.parametrize("forward", [*COUNTING, not_at_all, first_time])
def test_a_model_s_lists_and_dicts_count_in_value_and_grad_as_they_do_eagerly(forward: Any) -> None:
    model, other = counted(forward), counted(forward)
    for _ in range(3):
        assert sg.value_and_grad(mean_square)(model, X, Y)[0].item() == pytest.approx(eagerly(other), rel=1e-6)
    for name in ("n", "list", "nested", "log"):
        assert getattr(model, name) == getattr(other, name)


def test_an_order_that_forward_changes_is_that_of_the_model() -> None:
    def turned(m: Any) -> float:
        m.parts.reverse()
        return 1.0

    model = counted(turned)
    parts = [*model.parts]
    sg.value_and_grad(mean_square)(model, X, Y)
    assert all(a is b for a, b in zip(model.parts, reversed(parts), strict=True))
