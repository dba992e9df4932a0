"""Errors end in the user's line: in a process of its own, as in a page or a notebook, nothing else is set for it."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import data, nn, optim, train
from singe.tracebacks import shorten

X = np.ones((2, 3), np.float32)


class Net(nn.Module):
    """Two layers that do not fit."""

    def __init__(self) -> None:
        self.parts = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(5, 2, rng=1))

    def forward(self, x: Any) -> Any:
        return self.parts(x)  # in forward


class Faulty(nn.Module):
    """A layer whose own code fails."""

    def __init__(self) -> None:
        self.linear = nn.Linear(3, 3, rng=0)

    def forward(self, x: Any) -> Any:
        return {"a": self.linear(x)}["b"]  # in forward


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SINGE_TRACEBACK")


def lines(call: Callable[[], Any], error: type[Exception] = sg.SingeError) -> list[str]:
    """The lines of an error's traceback behind that of `call()`."""
    with pytest.raises(error) as raised:
        call()
    return [f.line or "" for f in traceback.extract_tb(raised.value.__traceback__)[1:]]


def compiled() -> Any:
    return sg.compile(lambda x: x + 1, X, device="numpy")


def loader() -> Any:
    return data.Loader(data.Dataset.of((X, X)), 2)


CALLS: dict[str, Callable[[Any], Any]] = {
    "operator": lambda x: x + x[:, :2],
    "method": lambda x: x.sum(dim=5),
    "many arguments": lambda x: x.reshape(7),
    "function": lambda x: sg.concat([x, x[:, :2]]),
    "truth": bool,
    "array": lambda x: np.add(x.numpy(), (x @ x).numpy()),
    "key": lambda x: x[9],
    "constructor": lambda x: nn.Linear("a", 2),  # pyright: ignore[reportArgumentType]
    "layer": lambda x: nn.Conv2d(3, 3, 3)(x * 1),
    "state": lambda x: nn.Linear(3, 3).with_state({}),
    "file": lambda x: sg.load("none.onnx"),
    "device": lambda x: sg.device("none"),
    "run": lambda x: compiled()(X[:, :2]),
    "model": lambda x: sg.Model.of(nn.Linear(3, 3), {"x": ("N", 3)}, device="numpy")(X[:, :2]),
    "shapes": lambda x: sg.Model.of(nn.Linear(3, 3), ("N", 3)),  # pyright: ignore[reportArgumentType]
    "random": lambda x: sg.random.normal(0, -1),
    "linalg": lambda x: sg.linalg.inv(x * 1),
    "metric": lambda x: sg.metrics.BLEU().count(["a"], []),
    "optimizer": lambda x: optim.SGD("a"),  # pyright: ignore[reportArgumentType]
    "a language model": lambda x: sg.language.load("none.gguf"),
    "export": lambda x: sg.export(3, "none"),  # pyright: ignore[reportArgumentType]
    "onnx": lambda x: sg.onnx.save(3, "none.onnx"),  # pyright: ignore[reportArgumentType]
}
"""Calls that are refused."""


@pytest.mark.parametrize("name", CALLS)
def test_an_error_ends_in_the_line_that_called(name: str) -> None:
    x = sg.tensor(X, device="numpy")
    found = lines(lambda: CALLS[name](x))
    assert found[0] == "found = lines(lambda: CALLS[name](x))"
    assert len(found) == (1 if name == "truth" else 2), found
    assert name == "truth" or f'"{name}": lambda x:' in found[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda net: net(sg.tensor(X, device="numpy")),
        lambda net: sg.compile(net, X, device="numpy"),
        lambda net: sg.value_and_grad(lambda n: n(sg.tensor(X, device="numpy")).sum())(net)[1],
        lambda net: net.summary((2, 3)),
        lambda net: train.TrainStep(net, optim.SGD(0.1), nn.MSELoss(), device="numpy")(X, X),
        lambda net: train.Learner(net, optim.SGD(0.1), nn.MSELoss(), device="numpy").fit(loader(), epochs=1),
    ],
    ids=["call", "compile", "gradient", "summary", "step", "fit"],
)
def test_between_the_users_lines_there_are_none_of_singes(call: Callable[[Any], Any]) -> None:
    for net, error in ((Net(), sg.ShapeError), (Faulty(), KeyError)):
        found = lines(lambda net=net: call(net), error)
        assert found[-1].endswith("# in forward")
        assert all("net" in line or "lambda" in line for line in found[:-1]), found
        assert len(found) <= 4


def test_the_layer_is_named_that_refuses() -> None:
    with pytest.raises(sg.ShapeError, match=r"inner sizes 4 and 5 differ.* \(in the layer 'parts\.2', Linear\)$") as e:
        Net()(sg.tensor(X))
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)
    with pytest.raises(sg.ShapeError, match=r"\(in the layer '2', Linear\)$"):
        sg.compile(Net().parts, X)


def test_arguments_that_do_not_fit_a_function_end_in_the_line_that_gives_them() -> None:
    assert len(lines(lambda: sg.load(device="numpy"), TypeError)) == 1  # pyright: ignore[reportCallIssue]
    assert len(lines(lambda: nn.Linear(3), TypeError)) == 1  # pyright: ignore[reportCallIssue]


def test_a_fault_of_singe_keeps_its_frames() -> None:
    def fail() -> None:
        nn.init.xavier_normal(3)  # pyright: ignore[reportArgumentType]

    assert len(lines(fail, TypeError)) > 2


def test_a_switch_keeps_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGE_TRACEBACK", "full")
    assert len(lines(lambda: sg.tensor(X) @ sg.tensor(X))) > 8


def test_asynchronous_calls_end_in_the_line_that_awaits() -> None:
    model = sg.Model.of(nn.Linear(3, 3), {"x": ("N", 3)}, device="numpy")

    async def run() -> None:
        await model.run_async(X[:, :2])  # here

    found = lines(lambda: asyncio.run(run()))
    assert found[-1].endswith("# here")


def test_causes_are_told_once(tmp_path: Path) -> None:
    """A cause that the message repeats goes; another one stays, without Singe's frames."""
    with pytest.raises(sg.InputError) as e:
        sg.load_module(tmp_path / "none.onnx")
    assert isinstance(e.value.__cause__, FileNotFoundError)
    assert e.value.__cause__.__traceback__ is None
    again = sg.InputError("a: b")
    again.__cause__ = sg.ShapeError("b")
    shorten(again)
    assert again.__cause__ is None


def test_errors_that_are_handled_lose_no_frames_of_the_user() -> None:
    def refuse() -> None:
        raise ValueError  # mine

    try:
        refuse()
    except ValueError as mine:
        with pytest.raises(sg.ShapeError):
            sg.tensor(X) @ sg.tensor(X)
        frames = traceback.extract_tb(mine.__traceback__)
    assert frames[-1].line == "raise ValueError  # mine"
