"""Elementwise rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def divide(a: Any, b: Any) -> Any:
    """a / b; integers are rounded toward zero, computed with Python's integers."""
    if a.dtype.kind == "f":
        return a / b
    exact = np.vectorize(lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), otypes=[object])
    return exact(a.astype(object), b.astype(object)).astype(a.dtype)


def cast(x: np.ndarray, to: Any) -> np.ndarray:
    """Floats go to integers toward zero, saturating at 32 or 64 bits, NaN to 0; integers wrap."""
    if x.dtype.kind != "f" or not to.is_int:
        return x.astype(to.numpy)
    limits = np.iinfo(np.int64 if to.size == 8 else np.int32)

    def one(v: float) -> int:
        if math.isnan(v):
            return 0
        return (
            limits.max if v == math.inf else limits.min if v == -math.inf else min(max(int(v), limits.min), limits.max)
        )

    return np.array([one(v) for v in x.ravel().tolist()], np.int64).astype(to.numpy).reshape(x.shape)


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))
