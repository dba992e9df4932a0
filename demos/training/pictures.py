"""Pictures of four shapes, for fine_tuning.py, page.py and pretrain_torch.py."""

from __future__ import annotations

import numpy as np

SHAPES = ("rings", "crosses", "squares", "bars")
SIZE = 16


def pictures(count: int, seed: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (count, 1, 16, 16) of bright shapes on dark, somewhere and of some size, and the place of each in SHAPES.
    noise: added to each pixel, its standard deviation."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, len(SHAPES), count)
    x, y = (rng.uniform(5.5, 9.5, (count, 1, 1)) for _ in range(2))
    radius = rng.uniform(3.0, 5.5, (count, 1, 1))
    dx, dy = np.abs(np.arange(SIZE) - x), np.abs(np.arange(SIZE)[:, None] - y)
    square = np.maximum(dx, dy)
    drawn = np.stack([
        np.abs(np.hypot(dx, dy) - radius) < 0.9,
        (np.minimum(dx, dy) < 0.9) & (square < radius),
        np.abs(square - radius) < 0.9,
        (dx < radius) & (dy < 1.6),
    ])  # fmt: skip
    found = drawn[kinds, np.arange(count)].astype(np.float32)
    found += rng.normal(0, noise, found.shape).astype(np.float32)
    return found[:, None], kinds
