"""Graphs that tests of several folders use."""

from __future__ import annotations

import numpy as np

from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.shapes import size


def two_layers() -> Graph:
    """Two equal layers, a softmax, and the input added once more."""
    rng = np.random.default_rng(0)
    b = Builder()
    x = b.input("x", (size("N"), 16), float32)
    y = x
    for _ in range(2):
        weight = b.const(rng.standard_normal((16, 16)).astype(np.float32))
        y = b.relu(b.matmul(y, weight))
    return Graph((x,), (b.softmax(y, axis=1), x), ("y", "same"))
