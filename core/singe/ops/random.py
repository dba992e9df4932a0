"""Random numbers: NumPy's MT19937, which gives the same numbers for the same seed everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import INTS, float32
from ..shapes import Shape, product
from ._row import Opaque, Shaped, register


def _shapes(seed: Shaped, shape: Shape) -> Any:
    return ((shape, float32),)


def _uniform(seed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    state = np.random.RandomState(int(seed.reshape(-1)[0]) & 0xFFFFFFFF)
    return state.random_sample(product(shape)).astype(np.float32).reshape(shape)  # pyright: ignore[reportCallIssue, reportArgumentType]


register(
    Opaque(name="random_uniform", doc="random numbers from 0 to 1 in a given shape, from a seed", dtypes=INTS, shapes=_shapes, whole=_uniform),
)  # fmt: skip
