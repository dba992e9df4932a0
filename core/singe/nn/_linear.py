"""The linear layer."""

from __future__ import annotations

import numpy as np

from ..frontend.tensor import Tensor
from ._init import Rng, kaiming_uniform
from ._module import Module


class Linear(Module):
    """x @ weight.T + bias along the last axis; weight is (outputs, inputs)."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, rng: Rng = None) -> None:
        rng = np.random.default_rng(rng)
        self.weight = kaiming_uniform(rng, (out_features, in_features), in_features)
        self.bias = kaiming_uniform(rng, (out_features,), in_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias
