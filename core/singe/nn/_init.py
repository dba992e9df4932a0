"""The weights that layers start with: PyTorch's defaults, drawn from a generator that the caller may give."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..frontend.creation import tensor
from ..frontend.tensor import Tensor

Rng: TypeAlias = "np.random.Generator | int | None"
"""A generator, which layers share so that each draws other numbers; a seed for one of its own; None: no two runs alike."""


def kaiming_uniform(rng: Rng, shape: tuple[int, ...], fan_in: int) -> Tensor:
    """Uniform within ±1/√fan_in: what PyTorch's Linear and Conv start with, weights and bias alike."""
    bound = fan_in**-0.5 if fan_in else 0.0
    return tensor(np.random.default_rng(rng).uniform(-bound, bound, shape).astype(np.float32))
