"""Sums of products with every rounding told: one product after the other is added, and each step is rounded once.

That is what a loop of fused multiply-adds gives. NumPy has none; but the product of two float32 is exact in float64, so
a step in float64 and a rounding to float32 come to the same (but for one case in some 2^29, where rounding twice shows).
"""

from __future__ import annotations

from typing import Final

import numpy as np

CHUNK: Final = 1 << 13
"""Sums that are worked on at a time: few enough to stay in the cache for all of the depth."""


def products_in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b of two float32 matrices, each sum in the order of the depth."""
    points, outputs = a.shape[0], b.shape[1]
    out = np.empty((points, outputs), np.float32)
    left, right = a.astype(np.float64), b.astype(np.float64)
    step = max(1, CHUNK // max(1, outputs))
    for at in range(0, points, step):
        rows = np.ascontiguousarray(left[at : at + step].T)
        total = np.zeros((outputs, rows.shape[1]), np.float32)
        term = np.empty(total.shape, np.float64)
        for row, column in zip(rows, right, strict=True):
            np.multiply(row, column[:, None], out=term)
            np.add(term, total, out=term)
            total[...] = term
        out[at : at + step] = total.T
    return out
