"""A model that changes its own containers and computes with them: each kind of step refuses it by name, and `sg.value_and_grad`
counts as the same lines do eagerly."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from devices import few

import singe as sg
from singe import nn
from singe.gradients import checkpoint
from singe.train import DataParallel, Learner, TrainStep

X, Y = np.ones((4, 2), np.float32), np.zeros((4, 2), np.float32)
CALLS = 3


class Counting(nn.Module):
    """counted: changes what `held` is, and gives a number of it."""

    def __init__(self, held: Any, counted: Callable[[Any], float]) -> None:
        self.layer = nn.Linear(2, 2, rng=0)
        self.held = held
        self.counted = counted

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.counted(self.held)


def item(held: Any) -> float:
    held["k"] += 1
    return held["k"]


def place(held: Any) -> float:
    held[0] += 1
    return held[0]


def nested(held: Any) -> float:
    held[0]["n"][0] += 1
    return held[0]["n"][0]


def length(held: Any) -> float:
    held.append(1.0)
    return len(held)


def size(held: Any) -> float:
    held.add(len(held))
    return len(held)


def another(held: Any) -> float:
    """Two names of one dict."""
    held[0]["k"] += 1
    return held[1]["k"]


def twice() -> list[Any]:
    one = {"k": 0}
    return [one, one]


def beside_a_layer() -> dict[str, Any]:
    return {"layer": nn.Linear(2, 2, rng=1), "k": 0}


CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], float], str]] = {
    "dict": (lambda: {"k": 0}, item, "held['k']"),
    "OrderedDict": (lambda: OrderedDict(k=0), item, "held['k']"),
    "Counter": (Counter, item, "held['k']"),
    "defaultdict": (lambda: defaultdict(int), item, "held['k']"),
    "beside a layer": (beside_a_layer, item, "held['k']"),
    "list": (lambda: [0], place, "held[0]"),
    "nested": (lambda: [{"n": [0]}], nested, "held[0]['n'][0]"),
    "in a tuple": (lambda: ({"n": [0]},), nested, "held[0]['n'][0]"),
    "append": (list, length, "held[0]"),
    "deque": (deque, length, "held[0]"),
    "set": (set, size, "held"),
    "two names": (twice, another, "held[1]['k']"),
}


def counting(case: str) -> Counting:
    held, counted, _ = CASES[case]
    return Counting(held(), counted)


def loss(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


def with_other(model: Any, x: Any, y: Any, other: Any) -> Any:
    return ((model(x) * 0 + other(x) - y) ** 2).mean()


def with_several(model: Any, x: Any, y: Any, others: Any) -> Any:
    return with_other(model, x, y, others["a"])


def step_of(model: nn.Module, of: Any = loss, **settings: Any) -> TrainStep:
    return TrainStep(model, sg.optim.SGD(0.0), of, device="numpy", **settings)


def fit(model: nn.Module) -> None:
    Learner(model, sg.optim.SGD(0.0), loss, device="numpy", dashboard=None).fit([(X, Y)], epochs=2)


def in_parallel(model: nn.Module) -> None:
    DataParallel(model, sg.optim.SGD(0.0), loss, device=["numpy", "numpy"])(X, Y)


WAYS: dict[str, tuple[str, Callable[[nn.Module], Any]]] = {
    "step": ("model.", lambda m: step_of(m)(X, Y)),
    "float16": ("model.", lambda m: step_of(m, precision="float16")(X, Y)),
    "evaluate": ("model.", lambda m: step_of(m).evaluate(X, Y)),
    "share": ("model.", lambda m: step_of(m).share(X, Y)),
    "exported": ("model.", lambda m: step_of(m).as_model(X, Y)),
    "within": ("model.layers[1].", lambda m: step_of(nn.Sequential(nn.ReLU(), m))(X, Y)),
    "parallel": ("model.", in_parallel),
    "learner": ("model.", fit),
    "batch": ("other.", lambda m: step_of(nn.Linear(2, 2, rng=2), with_other)(X, Y, m)),
    "batch, evaluate": ("other.", lambda m: step_of(nn.Linear(2, 2, rng=2), with_other).evaluate(X, Y, m)),
    "dict of a batch": (
        "others['a'].",
        lambda m: step_of(nn.Linear(2, 2, rng=2), with_several, precision="float16")(X, Y, {"a": m}),
    ),
}


@few(25, ("case", "way"), product(CASES, WAYS))
def test_a_model_that_computes_with_what_it_changes_is_refused_by_name(case: str, way: str) -> None:
    path, run = WAYS[way]
    with pytest.raises(sg.InputError, match=re.escape(f"reads {path}{CASES[case][2]} and changes it")):
        run(counting(case))


def by_first(model: Any, x: Any, y: Any) -> Any:
    return sg.value_and_grad(loss)(model, x, y)[0]


def by_another(model: Any, x: Any, y: Any) -> Any:
    return sg.value_and_grad(lambda w, m: loss(m, x, y) * w.sum())(sg.ones(1), model)[0]


def by_name(model: Any, x: Any, y: Any) -> Any:
    return sg.value_and_grad(lambda w, *, m: loss(m, x, y) * w.sum())(sg.ones(1), m=model)[0]


def by_checkpoint(model: Any, x: Any, y: Any) -> Any:
    return checkpoint(loss)(model, x, y)


@few(13, ("case", "way"), product(CASES, [by_first, by_another, by_name, by_checkpoint]))
def test_what_is_differentiated_counts_as_it_does_eagerly(case: str, way: Any) -> None:
    model, other = counting(case), counting(case)
    x, y = sg.tensor(X), sg.tensor(Y)
    found = [way(model, x, y).item() for _ in range(CALLS)]
    assert found == pytest.approx([loss(other, x, y).item() for _ in range(CALLS)], rel=1e-5)
    assert found[0] < found[1] < found[2]
    if case != "beside a layer":
        assert model.held == other.held


def test_a_layer_that_is_there_twice_counts_for_both() -> None:
    def model() -> nn.Module:
        layer = counting("dict")
        return nn.Sequential(layer, layer)

    one, two = model(), model()
    for _ in range(CALLS):
        assert by_first(one, X, Y).item() == pytest.approx(loss(two, sg.tensor(X), sg.tensor(Y)).item(), rel=1e-5)


def logged(held: Any) -> float:
    held.append(1.0)
    return 2.0


@pytest.mark.parametrize("way", WAYS)
def test_what_is_only_written_is_taken(way: str) -> None:
    WAYS[way][1](Counting([], logged))


def test_numbers_are_written_where_tensors_are_left_out() -> None:
    held = {"k": 0, "kept": None}

    def both(of: Any) -> float:
        of["k"] += 1
        of["kept"] = of["new"] = sg.ones(2)
        return of["k"]

    by_first(Counting(held, both), X, Y)
    assert held == {"k": 1, "kept": None}


def test_a_layer_that_forward_keeps_is_that_of_the_model() -> None:
    class Choosing(nn.Module):
        def __init__(self) -> None:
            self.layers = [nn.Linear(2, 2, rng=0), nn.Linear(2, 2, rng=1)]
            self.chosen: dict[str, Any] = {}

        def forward(self, x: Any) -> Any:
            self.chosen["last"] = self.layers[1]
            return self.layers[1](x)

    model = Choosing()
    by_first(model, X, Y)
    assert model.chosen["last"] is model.layers[1]


def test_a_module_of_a_batch_is_traced_as_it_was_given() -> None:
    def scaled(k: float) -> Counting:
        return Counting({"k": k}, lambda held: held["k"])

    first, second, factor = scaled(1.0), scaled(1.0), [1.0]
    step = step_of(nn.Linear(2, 2, rng=2), lambda m, x, y, other: with_other(m, x, y, other) * factor[0])
    once = step(X, Y, first)
    first.held["k"] = 5.0
    factor[0] = 2.0
    assert step(X, Y, second) == pytest.approx(2 * once, rel=1e-5)
