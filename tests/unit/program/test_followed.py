"""Programs and sessions of functions that are traced again: one object for all traces, which nothing keeps but its user."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.model import retrace

X = np.array([1.0, 2.0], np.float32)
DEVICES = ("numpy", "wasm", "webgpu")


@pytest.fixture
def without_gc() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def drawing(cfg: dict[str, Any]) -> Any:
    return lambda x: x * cfg["by"] + (sg.rand(2) if cfg["draws"] else 0.0)


@pytest.mark.usefixtures("without_gc")
def test_a_program_is_freed_with_its_last_reference() -> None:
    cfg = {"by": 1.0}
    program = sg.compile(lambda x: x * cfg["by"], X, device="numpy")
    cfg["by"] = 2.0
    program(X)
    held = weakref.ref(program), weakref.ref(program.executable)
    del program
    assert [x() for x in held] == [None, None]


@pytest.mark.usefixtures("without_gc")
def test_a_train_step_is_freed_with_its_last_reference() -> None:
    def loss(m: Any, x: Any, y: Any) -> Any:
        return ((m(x) - y) ** 2).mean()

    step = sg.train.TrainStep(sg.nn.Linear(2, 1), sg.optim.SGD(0.1), loss, device="numpy")
    batch = np.ones((2, 2), np.float32), np.zeros((2, 1), np.float32)
    step(*batch)
    step.evaluate(*batch)
    held = weakref.ref(step), weakref.ref(step.program(*batch).executable)
    del step
    assert [x() for x in held] == [None, None]


@pytest.mark.parametrize("device_name", DEVICES, indirect=True)
def test_a_program_that_is_disposed_of_runs_in_no_trace(device_name: str) -> None:
    cfg = {"by": 1.0, "draws": False}
    program = sg.compile(drawing(cfg), X, device=device_name)
    program(X)
    cfg["by"] = 2.0
    program(X)
    program.dispose()
    for cfg["by"] in (1.0, 2.0, 3.0):
        with pytest.raises(sg.DeviceError, match="disposed of"):
            program(X)


@pytest.mark.slow
@pytest.mark.parametrize("device_name", DEVICES, indirect=True)
def test_a_function_that_draws_since_a_later_trace_is_seeded(device_name: str) -> None:
    cfg = {"by": 0.0, "draws": False}
    program = sg.compile(drawing(cfg), X, device=device_name)
    model = sg.Model.of(drawing(cfg), {"x": (2,)}, device_name)
    early = program.session(), model.session()
    for each in (program, model, *early):
        with pytest.raises(sg.InputError, match="draws no random numbers"):
            each.seed(7)
        np.testing.assert_array_equal(each(X), 0 * X)
        assert not each.states
    cfg["draws"] = True
    found = []
    for each in (program, model, program.session(), model.session(), *early):
        each.seed(7)
        assert [s.name for s in each.states] == ["key"]
        cfg["by"] = 0.0
        first = each(X)
        cfg["by"] = 1.0  # another trace, which goes on with the same keys
        found.append((first, each(X) - X))
    for pair in found[1:]:
        np.testing.assert_allclose(pair, found[0], rtol=1e-5)
    assert not np.allclose(*found[0])


@pytest.mark.parametrize("device_name", DEVICES, indirect=True)
def test_a_copy_of_a_session_keeps_the_key_while_nothing_draws(device_name: str) -> None:
    cfg = {"by": 0.0, "draws": True}
    session = sg.Model.of(drawing(cfg), {"x": (2,)}, device_name).session()
    session.seed(7)
    session(X)
    cfg["draws"] = False
    session(X)
    copied = session.copy()
    np.testing.assert_array_equal(copied.read("key"), session.read("key"))
    cfg["draws"] = True
    np.testing.assert_array_equal(copied(X), session(X))


@pytest.mark.slow
@pytest.mark.usefixtures("without_gc")
def test_replaced_weights_are_kept_for_other_traces_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 10_000
    monkeypatch.setattr(retrace, "MOST_BYTES", 3 * 4 * size + 1000)
    box = {"w": sg.zeros(size)}
    model = sg.Model.of(lambda x: x + box["w"] + 1, {"x": (size,)}, "numpy")
    held = []
    for k in range(6):
        box["w"] = sg.full((size,), k)
        held.append(weakref.ref(box["w"]._value))
        assert model(np.zeros(size, np.float32))[0] == k + 1
    assert [x() is not None for x in held] == [False, False, True, True, True, True]


def test_a_value_that_changes_while_a_program_is_compiled_is_in_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = {"by": 1.0}
    model = sg.Model.of(lambda x: x * cfg["by"], {"x": ("N",)}, "numpy")
    model.specialise(N=2)
    graph = model.source.graph

    def changing(sizes: Any, values: Any) -> Any:
        cfg["by"] = 3.0
        return graph(sizes, values)

    monkeypatch.setattr(model.source, "graph", changing)
    program = model.program()
    for size in (2, 3):
        np.testing.assert_array_equal(program(np.ones(size, np.float32)), np.ones(size))
        np.testing.assert_array_equal(model(np.ones(size, np.float32)), np.full(size, 3))


def test_a_copy_of_gradients_is_by_the_same_tensors() -> None:
    x = sg.tensor(X)
    found = sg.grad(lambda x: (x * x).sum())(x)
    net = sg.nn.Linear(2, 1)
    of_net = sg.grad(lambda net: net(sg.tensor(X)).sum())(net)
    np.testing.assert_array_equal(copy.copy(found)[x].numpy(), 2 * X)
    np.testing.assert_array_equal(copy.copy(of_net)[net.weight].numpy(), [X])
