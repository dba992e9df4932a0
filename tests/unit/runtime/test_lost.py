"""A device that went away: its name opens another one, on which training goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.errors import DeviceError, DeviceLost
from singe.runtime import devices
from singe.runtime.eager import EagerDevice


@pytest.fixture
def gpu() -> Iterator[sg.Device]:
    """A WebGPU device of this test's own."""
    before = devices._devices.pop("webgpu", None)
    try:
        found = sg.device("webgpu")
    except DeviceError as e:
        pytest.skip(str(e))
    yield found
    devices._devices.pop("webgpu").backend.dispose()
    if before is not None:
        devices._devices["webgpu"] = before


def lose(device: sg.Device) -> None:
    """As a driver does that resets the GPU."""
    assert isinstance(device, EagerDevice)
    backend: Any = device.backend
    backend.gpu.device.destroy()


def step_on(device: sg.Device) -> sg.train.TrainStep:
    model = nn.Linear(3, 1, rng=0)
    return sg.train.TrainStep(model, sg.optim.AdamW(0.1), nn.MSELoss(), device=device)


@pytest.mark.slow
def test_training_goes_on_upon_a_new_device(gpu: sg.Device) -> None:
    x, y = np.ones((4, 3), np.float32), np.zeros((4, 1), np.float32)
    unbroken, step = step_on(sg.device("numpy")), step_on(gpu)
    expected = [unbroken(x, y) for _ in range(3)]
    assert step(x, y) == pytest.approx(expected[0], rel=1e-5)
    state = step.state()
    lose(gpu)
    with pytest.raises(DeviceLost, match="opens another one"):
        step(x, y)
    again = sg.device("webgpu")
    assert again is not gpu
    assert sg.device("webgpu") is again
    step = step_on(again)
    step.resume(state)
    assert [step(x, y), step(x, y)] == pytest.approx(expected[1:], rel=1e-4)


@pytest.mark.parametrize("what", ["a known op", "a new op", "upload", "download", "wait"])
def test_whatever_finds_the_loss_gives_way_to_a_new_device(gpu: sg.Device, what: str) -> None:
    x = sg.tensor([1.0, 2.0], device=gpu)
    assert (x + 1).numpy().tolist() == [2, 3]
    lose(gpu)
    use = {
        "a known op": lambda: sg.add(x, 1).numpy(),
        "a new op": lambda: sg.floor(x * 7).numpy(),
        "upload": lambda: sg.tensor([1.0], device=gpu),
        "download": x.numpy,
        "wait": gpu.synchronize,
    }[what]
    with pytest.raises(DeviceLost, match="lost"):
        use()
    assert (sg.tensor([1.0], device="webgpu") * 7).numpy().tolist() == [7]
