"""The linear layer, and the bilinear one."""

from __future__ import annotations

import numpy as np

from ..frontend.tensor import Tensor
from ._module import Module
from .init import Rng, by_inputs


class Linear(Module):
    """x @ weight.T + bias along the last axis; weight is (outputs, inputs)."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, rng: Rng = None) -> None:
        rng = np.random.default_rng(rng)
        self.weight = by_inputs((out_features, in_features), in_features, rng=rng)
        self.bias = by_inputs((out_features,), in_features, rng=rng) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return projected(x, self.weight, self.bias)


class Bilinear(Module):
    """x1 · weight[k] · x2 + bias[k] for each output k; weight is (outputs, inputs of x1, inputs of x2)."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *, rng: Rng = None
    ) -> None:
        rng = np.random.default_rng(rng)
        self.weight = by_inputs((out_features, in1_features, in2_features), in1_features, rng=rng)
        self.bias = by_inputs((out_features,), in1_features, rng=rng) if bias else None

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        outputs, first, second = self.weight.shape
        rows = x1 @ self.weight.transpose(1, 0, 2).reshape(first, outputs * second)
        y = (rows.reshape(*x1.shape[:-1], outputs, second) * x2.unsqueeze(-2)).sum(-1)
        return y if self.bias is None else y + self.bias


def projected(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x @ weight.T + bias."""
    y = x @ weight.T
    return y if bias is None else y + bias
