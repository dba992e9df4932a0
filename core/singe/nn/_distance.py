"""Distances between vectors."""

from __future__ import annotations

from ..frontend.calls import call_row
from ..frontend.creation import where
from ..frontend.tensor import Tensor
from ..ops import ROWS
from ._module import Module


class CosineSimilarity(Module):
    """x1 · x2 / (|x1| · |x2|) along an axis, where no length is less than eps."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        def unit(x: Tensor) -> Tensor:
            length = (x * x).sum(self.dim, keepdims=True).sqrt()
            return x / where(length > self.eps, length, self.eps)

        return (unit(x1) * unit(x2)).sum(self.dim)


class PairwiseDistance(Module):
    """The p-norm of x1 − x2 + eps along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        power = ROWS["pow"]
        sums = call_row(power, (abs(x1 - x2 + self.eps), self.p)).sum(-1, keepdims=self.keepdim)
        return call_row(power, (sums, 1 / self.p))
