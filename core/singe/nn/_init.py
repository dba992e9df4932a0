"""Initial weights: PyTorch's defaults, from a random generator that the caller may pass."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..frontend.creation import tensor
from ..frontend.tensor import Tensor

Rng: TypeAlias = "np.random.Generator | int | None"
"""A generator, shared by several layers; or a seed for a new one; or None for a random seed."""


def uniform(rng: Rng, shape: tuple[int, ...], bound: float) -> Tensor:
    """Uniform within ±bound."""
    return tensor(np.random.default_rng(rng).uniform(-bound, bound, shape).astype(np.float32))


def kaiming_uniform(rng: Rng, shape: tuple[int, ...], fan_in: int) -> Tensor:
    """Uniform within ±1/√fan_in: PyTorch's default for weights and bias of Linear and Conv."""
    return uniform(rng, shape, fan_in**-0.5 if fan_in else 0.0)


def xavier_uniform(rng: Rng, shape: tuple[int, int]) -> Tensor:
    """Uniform within ±√(6 / (inputs + outputs)): PyTorch's default for the projections of attention."""
    return uniform(rng, shape, (6 / sum(shape)) ** 0.5)


def normal(rng: Rng, shape: tuple[int, ...]) -> Tensor:
    """Of mean 0 and variance 1: PyTorch's default for embeddings."""
    return tensor(np.random.default_rng(rng).standard_normal(shape, np.float32))
