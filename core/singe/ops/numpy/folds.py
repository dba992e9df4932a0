"""Folds over NumPy's arrays: into one array, along lines of neighbours, or of numbers alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.arrays import NUMPY
from ...ir.arrays.numpy import NUMPY_ARRAYS
from ...ir.kernel import IDENTITY


def pool(word: str) -> Callable[..., np.ndarray]:
    """The fold over each window, all places of the window into one array."""
    function: Any = NUMPY[word]

    def over(x: np.ndarray, **facts: Any) -> np.ndarray:
        xp, wide = NUMPY_ARRAYS, NUMPY_ARRAYS.wide(x)
        windows = xp.windows(wide, IDENTITY[word](xp.dtype(wide)), **facts)
        out: np.ndarray | None = None
        for tap in itertools.product(*map(range, windows.shape[x.ndim :])):
            part = windows[(..., *tap)]
            out = part.copy() if out is None else function(out, part, out=out)
        assert out is not None
        return xp.cast(out, xp.dtype(x))

    return over


def joint_norm(*several: np.ndarray) -> np.ndarray:
    flat = [x.reshape(-1) for x in several]
    return np.asarray(np.sqrt(sum([np.dot(x, x) for x in flat], np.float32())))


def checks(loss: np.ndarray, norm: np.ndarray, code: np.ndarray, *, finite: bool) -> tuple[np.ndarray, np.ndarray]:
    numbers = loss.item(), norm.item(), code.item()
    fine = not numbers[2] and (not finite or (math.isfinite(numbers[0]) and math.isfinite(numbers[1])))
    return np.array(numbers, np.float32), np.array(fine)
