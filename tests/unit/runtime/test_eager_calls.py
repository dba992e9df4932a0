"""Eager calls that ran before: they build no Graph, and are those that were written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import slow

import singe as sg
from singe.errors import InputError, NonFinite, OutOfRange, ShapeError
from singe.graph import Builder
from singe.runtime import eager
from singe.runtime.devices import device
from singe.runtime.eager import EagerDevice

X = np.array([[0.5, -1.5, 2.0], [3.0, 0.0, -0.25]], np.float32)
CALLS: dict[str, Callable[[sg.Tensor], sg.Tensor]] = {
    "a function": lambda x: x.exp(),
    "an operator with a number": lambda x: x * 2.5,
    "two tensors": lambda x: x + x,
    "a reduction": lambda x: x.sum(dim=1),
    "a row with attributes": lambda x: x.softmax(1),
    "slices": lambda x: x[:, 1:],
    "a new axis": lambda x: x[:, None],
    "a product": lambda x: x @ x.T,
    "a shape": lambda x: x.reshape(-1, 1),
}
PAIRS: dict[str, tuple[Callable[[sg.Tensor], Any], Callable[[sg.Tensor], Any]]] = {
    "0.0 and -0.0": (lambda x: x.copysign(0.0), lambda x: x.copysign(-0.0)),
    "1 and True": (lambda x: x.cast(sg.bool) * 1, lambda x: x.cast(sg.bool) & True),
    "1 and 1.0": (lambda x: x.cast(sg.int32) * 1, lambda x: x.cast(sg.int32) * 1.0),
    "NaN and infinity": (lambda x: x + math.nan, lambda x: x + math.inf),
    "two axes": (lambda x: x.sum(dim=0), lambda x: x.sum(dim=1)),
    "two dtypes": (lambda x: x.cast(sg.int32), lambda x: x.cast(sg.int64)),
    "two operators": (lambda x: x + 2, lambda x: x - 2),
    "an operator and the reflected one": (lambda x: x - 2, lambda x: 2 - x),
    "two slices": (lambda x: x[:, 1:], lambda x: x[:, :-1]),
    "None and 0": (lambda x: x[None], lambda x: x[0]),
}


def built(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many nodes a call makes."""
    made: list[Any] = []
    with monkeypatch.context() as patch:
        node = Builder.node
        patch.setattr(Builder, "node", lambda *args, **attrs: (made.append(args), node(*args, **attrs))[1])
        call()
    return len(made)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("on", ["numpy", "wasm", *slow("webgpu")])
def test_a_call_that_ran_before_builds_nothing(on: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = sg.tensor(X, device=on)
    first = CALLS[name](x)
    assert built(lambda: CALLS[name](x), monkeypatch) == 0
    np.testing.assert_array_equal(CALLS[name](x).numpy(), first.numpy())
    assert built(lambda: CALLS[name](sg.tensor(np.eye(5, 3, dtype=np.float32) + 0.5, device=on)), monkeypatch) > 0


@pytest.mark.parametrize("name", PAIRS)
def test_calls_that_differ_give_their_own_results(name: str) -> None:
    backend = device("numpy")
    assert isinstance(backend, EagerDevice)
    alone = [call(sg.tensor(X, device=EagerDevice(backend.backend))).numpy() for call in PAIRS[name]]
    x = sg.tensor(X, device=EagerDevice(backend.backend))
    for _ in range(2):
        for call, expected in zip(PAIRS[name], alone, strict=True):
            found = call(x).numpy()
            assert found.dtype == expected.dtype
            assert found.tobytes() == expected.tobytes()


def test_what_a_users_function_makes_is_made_anew() -> None:
    factor = [2.0]

    scaled = sg.op("scaled_by_a_captured_number", lambda x: x * factor[0])
    x = sg.tensor(X)
    assert scaled(x).numpy()[0, 0] == 1.0
    factor[0] = 4.0
    assert scaled(x).numpy()[0, 0] == 2.0


class Rows(sg.nn.Module):
    """A layer that picks rows."""

    def __init__(self) -> None:
        self.rows = sg.tensor(X)


class Words(Rows):
    """One way to call it."""

    def forward(self, words: sg.Tensor) -> sg.Tensor:
        return self.rows[words]


class Places(Rows):
    """Another way, which makes the same calls."""

    def forward(self, places: sg.Tensor) -> sg.Tensor:
        return self.rows[places]


def test_a_users_function_may_belong_to_no_module() -> None:
    names: dict[str, Any] = {}
    exec("def twice(x):\n    return x * 2\n", names)
    names["twice"].__module__ = None
    doubled = sg.op("doubled_by_a_function_of_no_module", names["twice"])
    for _ in range(2):
        np.testing.assert_array_equal(doubled(sg.tensor(X)).numpy(), X * 2)


def test_an_index_out_of_range_is_refused_by_the_layer_that_got_it() -> None:
    words, places = Words(), Places()
    for _ in range(2):
        words(sg.tensor([0, 1]))
    with pytest.raises(OutOfRange, match="Places: its argument 'places': index: axis 0"):
        places(sg.tensor([0, 2]))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: sg.array_api.tile(x, (-2, 1)), r"the dimension -[24] must be at least 0"),
        (lambda x: x[0].diag(0.5), r"diag_embed: got 0.5, a float, as offset, expected an integer"),
    ],
    ids=["negative repeats", "half a place"],
)
def test_a_shape_that_cannot_be_is_refused(call: Callable[[sg.Tensor], Any], error: str) -> None:
    x = sg.tensor(X)
    for _ in range(2):
        with pytest.raises((ShapeError, InputError), match=error):
            call(x)


def test_debug_looks_at_a_call_that_ran_before() -> None:
    x = sg.tensor([1.0, 0.0])
    x.log()
    with sg.debug(nonfinite=True), pytest.raises(NonFinite, match="log"):
        x.log()


def test_the_least_recently_used_calls_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "MAX_CACHED_PROGRAMS", 8)
    backend = device("numpy")
    assert isinstance(backend, EagerDevice)
    x = sg.tensor(X, device=EagerDevice(backend.backend))
    for number in range(20):
        assert (x + number).numpy()[0, 0] == 0.5 + number
    assert isinstance(x.device, EagerDevice)
    assert len(x.device._programs) <= 8
    assert built(lambda: x + 19, monkeypatch) == 0
    assert built(lambda: x + 0, monkeypatch) > 0
