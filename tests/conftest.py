"""Fixtures that loop over the devices on which tests run.

A missing device is a skip with its reason. Use -k to run one device, as in `pytest -k interpret`.
"""

from __future__ import annotations

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from devices import DEVICES, Run

from singe.errors import DeviceError
from singe.runtime.devices import device as open_device

NEED_NOTHING = ("array", "interpret")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--drawn", type=int, default=200, help="how many random models run beside onnxruntime")
    parser.addoption("--graphs", type=int, default=75, help="how many random graphs run on each device")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "nightly" not in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="it installs large packages: `make nightly` runs it"))


def pytest_collection_finish() -> None:
    """All that was collected stays until the end, so collections of garbage, of which some tests ask for many, need not look
    at it."""
    gc.collect()
    gc.freeze()


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
