"""Distances between vectors."""

from __future__ import annotations

from ..tensors.tensor import Tensor
from ._module import Module


class CosineSimilarity(Module):
    """x1 · x2 / (|x1| · |x2|) along an axis, where no length is less than eps."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return x1.cosine_similarity(x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 − x2 + eps along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return x1.pairwise_distance(x2, self.p, self.eps, self.keepdim)
