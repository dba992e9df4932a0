"""The devices on which Tensors are tested, eager and under Fusion. A missing device is a visible skip; `make quick` takes
one device eagerly, and one under Fusion."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from devices import slow

import singe as sg

DEVICES: dict[str, Callable[[], sg.Device]] = {
    "numpy": sg.Numpy,
    "fusion-numpy": lambda: sg.Fusion(sg.Numpy()),
    "wasm": sg.Wasm,
    "fusion-wasm": lambda: sg.Fusion(sg.Wasm()),
    "webgpu": sg.WebGpu,
    "fusion-webgpu": lambda: sg.Fusion(sg.WebGpu()),
}


@pytest.fixture(params=["numpy", "fusion-wasm", *slow("fusion-numpy", "wasm", "webgpu", "fusion-webgpu")])
def on(request: pytest.FixtureRequest) -> sg.Device:
    """Each device in turn."""
    try:
        return DEVICES[request.param]()
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")
