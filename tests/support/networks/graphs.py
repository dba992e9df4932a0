"""Graphs that tests of several folders use."""

from __future__ import annotations

import numpy as np

from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.shapes import Dim, size


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


def pooled_conv(x: tuple[Dim, ...], outputs: int) -> Graph:
    """The maximum over 2×2 windows of relu(conv 3×3), padded by one, of images of the shape x."""
    b = Builder()
    images, w = b.input("x", x, float32), b.input("w", (3, 3, x[-1], outputs), float32)
    space = {"strides": (1, 1), "dilations": (1, 1), "before": (1, 1), "after": (1, 1), "group": 1}
    window = {
        "window": (1, 2, 2, 1),
        "strides": (1, 2, 2, 1),
        "dilations": (1,) * 4,
        "before": (0,) * 4,
        "after": (0,) * 4,
    }
    y = b.max_pool(b.relu(b.conv_last(images, w, **space)), **window)
    return Graph((images, w), (y,), ("y",))
