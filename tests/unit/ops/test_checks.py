"""The row of a step's checks: three numbers, and whether they are fine."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from singe.dtypes import float32
from singe.graph import Builder, Graph


@pytest.mark.slow
@pytest.mark.parametrize("finite", [True, False])
def test_checks_are_told_and_judged(finite: bool, run_graph: Any) -> None:
    b = Builder()
    inputs = [b.input(name, (), float32) for name in ("loss", "norm", "code")]
    graph = Graph(tuple(inputs), b.checks(*inputs, finite=finite), ("told", "fine"))
    for given in itertools.product((1.5, np.nan, np.inf, -np.inf), (2.5, np.nan, np.inf), (0.0, 3.0)):
        told, fine = run_graph(graph, [np.float32(x).reshape(()) for x in given])
        np.testing.assert_array_equal(told, np.array(given, np.float32))
        assert bool(fine) == (given[2] == 0 and (not finite or bool(np.isfinite(given[:2]).all())))
