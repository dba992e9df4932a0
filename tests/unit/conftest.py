"""The devices on which Tensors are tested, eager and under Fusion. A missing device is a visible skip."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import singe as sg

DEVICES: dict[str, Callable[[], sg.Device]] = {
    "numpy": sg.Numpy,
    "fusion-numpy": lambda: sg.Fusion(sg.Numpy()),
    "wasm": sg.Wasm,
    "fusion-wasm": lambda: sg.Fusion(sg.Wasm()),
    "webgpu": sg.WebGpu,
    "fusion-webgpu": lambda: sg.Fusion(sg.WebGpu()),
}


@pytest.fixture(params=DEVICES)
def on(request: pytest.FixtureRequest) -> sg.Device:
    """Each device in turn."""
    try:
        return DEVICES[request.param]()
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")
