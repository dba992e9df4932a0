"""Steps whose loss or gradients are not finite, or whose indices are out of range: what they change, and what is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.errors import NonFinite, OutOfRange
from singe.train.steps.step import TrainStep

on_devices = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
X, Y = np.ones((4, 3), np.float32), np.array([0, 1, 2, 1])


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4, rng=0), nn.Linear(4, 3, rng=1))


def loss(model: Any, x: Any, y: Any, scale: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x) * scale, y)


def steep(model: Any, x: Any) -> Any:
    """Of which the norm of the gradients, not the value, is infinite."""
    return model(x).sum() * 1e25


def step(device: str, how: Any, loss: Any = loss, **options: Any) -> TrainStep:
    return TrainStep(network(), sg.optim.AdamW(0.1), loss, device=device, nonfinite=how, **options)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> list[str]:
    """The states that are the same."""
    return [name for name in a if np.array_equal(a[name], b[name], equal_nan=True)]


GOOD, BAD = np.float32(1), np.float32(np.inf)


@on_devices
def test_a_step_that_stops_changes_nothing(device_name: str) -> None:
    one = step(device_name, "stop")
    first = one(X, Y, GOOD)
    before = one.state()
    with pytest.raises(NonFinite, match="the loss is nan"):
        one(X, Y, BAD)
    assert set(before) - set(same(before, one.state())) == {"key"}
    other = step(device_name, "ignore")
    assert (first, one(X, Y, GOOD)) == pytest.approx((other(X, Y, GOOD), other(X, Y, GOOD)), rel=1e-6)


@on_devices
def test_gradients_count_beside_the_loss(device_name: str) -> None:
    one = step(device_name, "stop", steep)
    before = one.state()
    with pytest.raises(NonFinite, match="the norm of the gradients is"):
        one(X)
    assert set(before) - set(same(before, one.state())) == {"key"}


@on_devices
def test_a_step_is_skipped(device_name: str) -> None:
    one, other = step(device_name, "skip"), step(device_name, "ignore")
    one(X, Y, GOOD)
    assert np.isnan(one(X, Y, BAD))
    other(X, Y, GOOD)
    assert one(X, Y, GOOD) == pytest.approx(other(X, Y, GOOD), rel=1e-6)


def test_who_does_not_look_has_no_more_to_compute() -> None:
    one = step("numpy", "ignore")
    assert np.isnan(one(X, Y, BAD))
    assert np.isnan(one(X, Y, GOOD)), "the weights are none any more"
    assert [p.name for p in one.program(X, Y, GOOD).outputs] == ["loss"]


def test_what_is_checked_is_read_with_the_loss() -> None:
    """One array more would be one more round trip to a GPU."""
    one = step("numpy", "stop")
    one(X, Y, GOOD)
    (program,) = one._programs.values()
    assert [(p.name, p.shape) for p in program.outputs] == [("checks", (3,))]


def test_a_model_that_is_exported_tells_its_loss_alone() -> None:
    made = step("numpy", "stop").as_model(X, Y, GOOD)
    assert [p.name for p in made.outputs] == ["loss"]


def test_halves_stop_too() -> None:
    one = step("numpy", "stop")
    share = one.share(X, Y, GOOD)
    before = one.state()
    with pytest.raises(NonFinite, match="the norm of the gradients is"):
        one.update(share.gradients * np.float32(np.nan), share.buffers)
    assert set(before) - set(same(before, one.state())) == {"key"}
    several = sg.train.DataParallel(network(), sg.optim.AdamW(0.1), loss, device=["numpy", "numpy"], nonfinite="stop")
    several(X, Y, np.ones((4, 1), np.float32))
    with pytest.raises(NonFinite):
        several(X, Y, np.full((4, 1), BAD))


def test_an_overflow_of_half_precision_is_what_its_scale_is_for() -> None:
    one = step("numpy", "stop", precision="float16")
    one._first["scale"][0] = 2.0**40
    scales = []
    for _ in range(3):
        one(X, Y, GOOD)
        scales.append(float(one.state()["scale"][0]))
    assert scales == [2.0**39, 2.0**38, 2.0**37]


@on_devices
def test_classes_of_a_batch_are_checked_before_the_step(device_name: str) -> None:
    one = step(device_name, "ignore")
    one(X, np.array([0, 1, 2, -100]), GOOD)
    before = one.state()
    with pytest.raises(OutOfRange, match=r"input 'y': nll_loss: .*got 3, expected from 0 to 2, or -100"):
        one(X, np.array([0, 1, 2, 3]), GOOD)
    assert len(same(before, one.state())) == len(before)


class Shifted(nn.Module):
    """Looks up what is next to what is asked for."""

    def __init__(self) -> None:
        self.table = nn.Embedding(5, 3, rng=0)

    def forward(self, x: Any) -> Any:
        return self.table(x + 1)


def picked(model: Any, x: Any) -> Any:
    return model(x).sum()


def classes(model: Any, x: Any) -> Any:
    """Their numbers come from what the model gives."""
    rows = model(x - 1)
    return nn.CrossEntropyLoss()(rows, (rows.argmax(1) * 0 + x))


@on_devices
@pytest.mark.slow
@pytest.mark.parametrize("what", [picked, classes])
def test_the_step_tells_what_only_the_device_finds_out_of_range(device_name: str, what: Any) -> None:
    one = TrainStep(Shifted(), sg.optim.SGD(0.1), what, device=device_name)
    wrong, text = (4, "axis 0 of .5, 3.") if what is picked else (3, "CrossEntropyLoss: the target")
    assert np.isfinite(one(np.array([0, 1])))
    before = one.state()
    with pytest.raises(OutOfRange, match=f"{text}: what the device computed is out of range"):
        one(np.array([0, wrong]))
    assert set(before) - set(same(before, one.state())) == {"key"}
    assert np.isfinite(one(np.array([0, 1])))


def test_another_way_is_refused() -> None:
    with pytest.raises(sg.InputError, match="nonfinite: got 'halt', expected one of 'stop', 'skip', 'ignore'"):
        step("numpy", "halt")
