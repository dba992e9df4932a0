"""The devices on which Tensors are tested, eager and under Fusion. A missing device is a visible skip; `make quick` takes
one device eagerly, and one under Fusion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest
from devices import MORE, slow

import singe as sg

DEVICES: dict[str, Callable[[], sg.Device]] = {
    "numpy": sg.Numpy,
    "fusion-numpy": lambda: sg.Fusion(sg.Numpy()),
    "wasm": sg.Wasm,
    "fusion-wasm": lambda: sg.Fusion(sg.Wasm()),
    "webgpu": sg.WebGpu,
    "fusion-webgpu": lambda: sg.Fusion(sg.WebGpu()),
    **{name: partial(sg.device, name) for name in MORE},
    **{f"fusion-{name}": partial(sg.Fusion, name) for name in MORE},
}
SLOW: Final = [name for name in DEVICES if name not in ("numpy", "fusion-wasm")]


@pytest.fixture(params=["numpy", "fusion-wasm", *slow(*SLOW)])
def on(request: pytest.FixtureRequest) -> sg.Device:
    """Each device in turn."""
    try:
        return DEVICES[request.param]()
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")
