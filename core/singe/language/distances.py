"""The buckets in which T5 and its kin count how far two tokens are apart: what is added to their scores depends on the bucket."""

from __future__ import annotations

import numpy as np


def distance_buckets(apart: np.ndarray, count: int, farthest: int) -> np.ndarray:
    """The bucket of each distance, none below 0, in float32, whose rounding decides at their bounds: the first half of the buckets is of one
    distance each, and others are as wide as the logarithm of the distance is; from `farthest` on distances share the last."""
    single = count // 2
    ratio = np.log(np.maximum(apart, 1).astype(np.float32) / np.float32(single)) / np.float32(np.log(farthest / single))
    wide = single + (ratio * np.float32(count - single)).astype(np.int64)
    return np.where(apart < single, apart, np.minimum(wide, count - 1))


def two_sided_buckets(reach: int, count: int, farthest: int) -> np.ndarray:
    """Those of −reach to reach, of which half are of tokens that come later."""
    apart = np.arange(-reach, reach + 1)
    half = count // 2
    return np.where(apart > 0, half, 0) + distance_buckets(np.abs(apart), half, farthest)
