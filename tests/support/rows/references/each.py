"""Arrays made element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Index = tuple[int, ...]


def each(shape: Sequence[int], kind: Any, element: Callable[[Index], Any]) -> np.ndarray:
    """The array whose element at every place is element(place)."""
    out = np.empty(tuple(shape), kind)
    for place in np.ndindex(*shape):
        out[place] = element(place)
    return out
