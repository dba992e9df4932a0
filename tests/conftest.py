"""The devices that tests run on: a table, and the fixture that goes through it.

A device that is absent here is a visible skip with its reason; run one alone with -k, as in `pytest -k interpret`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from devices import run_array, run_interpreted

Run = Callable[[Any, Sequence[np.ndarray]], list[np.ndarray]]
"""(graph, arrays) ↦ the graph's outputs."""

DEVICES: dict[str, Run] = {
    "array": run_array,
    "interpret": run_interpreted,
}


@pytest.fixture(params=DEVICES)
def run_graph(request: pytest.FixtureRequest) -> Run:
    """What runs a graph on each device in turn."""
    return DEVICES[request.param]
