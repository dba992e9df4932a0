"""Gradients by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

STEP = 1e-6


def away_from_kinks(x: np.ndarray) -> np.ndarray:
    """Values at distinct odd multiples of a small step, so that none is at a kink, a jump or a tie,
    and all are further apart than STEP."""
    order = np.argsort(np.argsort(x.ravel(), kind="stable"), kind="stable").reshape(x.shape)
    low, high = (x.min(), x.max()) if x.size else (0, 0)
    spread = low + (high - low) * (order + 0.5) / max(1, x.size) + 0.00137
    return np.asarray(spread, x.dtype)


def differences(
    loss: Callable[[Sequence[np.ndarray]], float], arrays: list[np.ndarray], k: int, step: float = STEP
) -> np.ndarray:
    """The gradient of a loss by array number k, by differences, element by element."""
    out = np.zeros(arrays[k].shape)
    for place in np.ndindex(*out.shape):
        at = []
        for move in (step, -step):
            moved = [a.copy() for a in arrays]
            moved[k][place] += move
            at.append(loss(moved))
        out[place] = (at[0] - at[1]) / (2 * step)
    return out
