"""The devices that tests run on: a table, and a fixture that loops over it.

A missing device is a skip with its reason. Use -k to run one device, as in `pytest -k interpret`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from devices import run_array, run_interpreted, run_model

from singe.errors import DeviceError
from singe.runtime.devices import device as open_device

Run = Callable[[Any, Sequence[np.ndarray]], list[np.ndarray]]
"""(graph, arrays) ↦ the graph's outputs."""

DEVICES: dict[str, Run] = {
    "array": run_array,
    "interpret": run_interpreted,
    "numpy": partial(run_model, "numpy"),
    "wasm": partial(run_model, "wasm"),
    "webgpu": partial(run_model, "webgpu"),
}
NEED_NOTHING = ("array", "interpret")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--drawn", type=int, default=400, help="how many random models run beside onnxruntime")
    parser.addoption("--graphs", type=int, default=150, help="how many random graphs run on each device")


@pytest.fixture(params=DEVICES)
def device_name(request: pytest.FixtureRequest) -> str:
    """The name of each device in turn."""
    if request.param not in NEED_NOTHING:
        try:
            open_device(request.param)
        except DeviceError as e:
            pytest.skip(f"no {request.param} here: {e}")
    return request.param


@pytest.fixture
def run_graph(device_name: str) -> Run:
    """A function that runs a graph; for each device in turn."""
    return DEVICES[device_name]
