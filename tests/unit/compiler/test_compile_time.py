"""Compiling takes time in proportion to the nodes of a graph."""

from __future__ import annotations

import time

import numpy as np
import pytest

from singe.compiler.build import compile_graph
from singe.compiler.target import find_target
from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.shapes import size

NODES = 400
MOST = 1.6
"""The allowed factor over four times the time, for four times the nodes."""


def chain(nodes: int) -> Graph:
    """Convolutions with separate weights, biases and residuals, and branches that are joined again."""
    rng = np.random.default_rng(0)
    b = Builder()
    space = {"strides": (1, 1), "dilations": (1, 1), "before": (0, 0), "after": (0, 0), "group": 1}
    x = y = b.input("x", (size("N"), 8, size("H"), 7), float32)
    for _ in range(nodes // 8):
        weight, bias = (b.const(rng.normal(size=shape).astype(np.float32)) for shape in ((8, 8, 1, 1), (8,)))
        z = b.add(b.relu(b.conv(y, weight, bias, **space)), y)
        y = b.add(b.mul(b.tanh(z), b.sigmoid(z)), z)
    return Graph((x,), (y,), ("y",))


def seconds(nodes: int, target: str) -> float:
    """CPU time, so that other processes do not count; the least of three."""
    graph = chain(nodes)
    taken = []
    for _ in range(3):
        start = time.process_time()
        compile_graph(graph, find_target(target))
        taken.append(time.process_time() - start)
    return min(taken)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["wasm", "wgsl"])
def test_four_times_the_nodes_take_four_times_as_long(target: str) -> None:
    few = seconds(NODES, target)
    assert seconds(4 * NODES, target) < MOST * 4 * few
