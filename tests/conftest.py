"""Fixtures that loop over the devices on which tests run, and hooks that make runs of many short tests shorter.

A missing device is a skip with its reason. Use -k to run one device, as in `pytest -k interpret`.
"""

from __future__ import annotations

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["SINGE_CACHE"] = "off"  # a test compiles what it tests
os.environ["SINGE_TRACEBACK"] = "full"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes most of a GPU, which other tests need

import full
import pytest
from _pytest.runner import runtestprotocol
from devices import DEVICES, Run
from progress import Progress

from singe.errors import DeviceError
from singe.runtime.devices import device as open_device
from singe.runtime.random_keys import manual_seed
from singe.tools import progress

NEED_NOTHING = ("array", "interpret")

# What is quick may take more than a second on a busy machine, and commands would say on standard error what they are doing;
# the tests of that have a patience of their own.
vars(progress)["PATIENCE"] = 3600.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--drawn", type=int, default=200, help="how many random models run beside onnxruntime")
    parser.addoption("--graphs", type=int, default=75, help="how many random graphs run on each device")


def pytest_configure(config: pytest.Config) -> None:
    if config.getvalue("tx") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    full.mark(items)
    if "nightly" not in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("nightly") and not item.get_closest_marker("full"):
                item.add_marker(pytest.mark.skip(reason="it installs large packages: `make nightly` runs it"))


def pytest_collection_finish() -> None:
    """All that was collected stays until the end, so collections of garbage, of which some tests ask for many, need not look
    at it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test draws the same numbers in every run, whatever ran before it."""
    manual_seed(0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker of pytest-xdist tells how a test went, and how its setup and teardown went only if they did not pass, or if
    --durations or --junitxml asks for them: to tell of all three takes longer than most tests."""
    options = item.config.option
    if not hasattr(item.config, "workerinput") or options.durations is not None or options.xmlpath is not None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


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
