"""Products with packed weights, for the tests of the targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ops.products.blocks import packed, unpacked
from singe.shapes import size

N = size("N")
CASES = [
    # rows, depth, columns, bits, block, one zero
    (1, 64, 64, 4, 32, True),
    (1, 100, 37, 4, 32, False),
    (1, 7, 20, 4, 16, False),
    (1, 45, 21, 8, 16, False),
    (2, 96, 24, 4, 32, False),
    (3, 77, 33, 8, 16, True),
    (12, 129, 40, 4, 64, False),
    (13, 129, 40, 4, 64, False),
    (40, 50, 19, 8, 32, False),
    (33, 40, 3, 4, 8, True),
    (50, 600, 400, 4, 256, True),
]


def made(
    rows: Any, depth: int, columns: int, bits: int, block: int, one: bool, row: str = "dot_blocks"
) -> tuple[Graph, np.ndarray]:
    """A product with a bias, and the matrix that its weights stand for."""
    rng = np.random.default_rng(depth)
    words = packed(rng.integers(0, 1 << bits, (depth, columns)), bits)
    scale = rng.uniform(0.01, 0.1, (-(-depth // block), columns)).astype(np.float32)
    zero = np.float32(1 << bits - 1) if one else rng.uniform(0, 1 << bits, scale.shape).astype(np.float32)
    bias = rng.normal(size=columns).astype(np.float32)
    b = Builder()
    x = b.input("x", (rows, depth), float32)
    y = getattr(b, row)(x, *(b.const(a) for a in (words, scale, np.asarray(zero))), bits=bits, block=block)
    matrix = unpacked(NUMPY_ARRAYS, words, scale, np.asarray(zero), bits, block)[:depth]
    return Graph((x,), (b.add(y, b.const(bias)),), ("y",)), np.concatenate([matrix, bias[None]])
