"""Tables of vectors that are looked up by integers."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...errors import InputError, ShapeError
from ...runtime.random_keys import Rng
from ...shapes import same_form, show
from ...tensors.functions.creation import arange, tensor, where, zeros
from ...tensors.tensor import Tensor
from .._module import Module
from ..init import check_sizes, normal

MODES: Final = ("sum", "mean", "max")
_EPSILON: Final = 1e-7
"""PyTorch adds it to the norms by which it divides."""


def _table(count: int, size: int, padding_idx: int | None, rng: Rng) -> Tensor:
    """A random table; the row of the padding is zero."""
    made = normal((count, size), rng=rng)
    if padding_idx is None:
        return made
    rows = made.numpy()
    rows[padding_idx] = 0
    return tensor(rows)


class Embedding(Module):
    """weight[x]; weight is (num_embeddings, embedding_dim). padding_idx: the row that starts as zeros, and
    has no gradient in training.

    max_norm: rows whose norm, of the order norm_type, is larger are scaled to it. Where PyTorch changes the weight, this
    layer scales the rows that it gives, and leaves the weight as it is; gradients are those of the scaled rows, as there.
    """

    weight: Tensor

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if max_norm is not None and not max_norm >= 0:
            raise InputError(f"Embedding: max_norm is {max_norm}, expected a number of 0 or more, or None")
        self.padding_idx, self.training = padding_idx, False
        self.max_norm, self.norm_type = max_norm, norm_type
        self.weight = _table(num_embeddings, embedding_dim, padding_idx, rng)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.weight.take(x, 0)
        if self.max_norm is not None:
            rows = rows + (_shortened(rows, self.max_norm, self.norm_type) - rows).detach()
        if self.padding_idx is None or not self.training:
            return rows
        padding = x == self.padding_idx % self.weight.shape[0]
        return where(padding.unsqueeze(-1), rows.detach(), rows)


def _shortened(rows: Tensor, most: float, order: float) -> Tensor:
    """Vectors, of which the longer ones are scaled to the norm `most`."""
    size = rows.norm(order, -1, keepdims=True)
    return where(size > most, rows * (most / (size + _EPSILON)), rows)


class EmbeddingBag(Module):
    """The sum, mean or maximum of the rows that each bag names; an empty bag gives zeros.

    Bags are the rows of x (bags, indices), or parts of a vector x that begin at `offsets`. Elements equal to padding_idx
    do not count.
    """

    weight: Tensor

    def __init__(
        self, num_embeddings: int, embedding_dim: int, mode: str = "mean", include_last_offset: bool = False,
        padding_idx: int | None = None, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        if mode not in MODES:
            raise InputError(f"EmbeddingBag: mode is {mode!r}, expected one of {', '.join(MODES)}")
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.mode, self.include_last_offset, self.padding_idx = mode, include_last_offset, padding_idx
        self.weight = _table(num_embeddings, embedding_dim, padding_idx, rng)

    def forward(self, x: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """per_sample_weights: factors of the elements, only for sums."""
        if per_sample_weights is not None and self.mode != "sum":
            raise InputError(f"EmbeddingBag: per_sample_weights with the mode {self.mode!r}, expected 'sum'")
        if (x.ndim, offsets is None) not in ((2, True), (1, False)):
            raise ShapeError(f"EmbeddingBag: got {show(x.shape)}, expected (bags, indices), or a vector and offsets")
        if same_form(x.shape[-1], 0):
            bags = x.shape[0] if offsets is None else offsets.shape[0] - self.include_last_offset
            return zeros((bags, self.weight.shape[1]), self.weight.dtype, x.device)
        padding = self.padding_idx
        counted = None if padding is None else x != padding % self.weight.shape[0]
        rows = self.weight.take(x, 0)  # (…, indices, size)
        if offsets is not None:
            inside = self._inside(x, offsets)  # (bags, indices)
            counted = inside if counted is None else inside & counted
        if self.mode == "max":
            return _largest(rows, counted)
        factors = per_sample_weights
        if counted is not None:
            ones = counted.cast(rows.dtype)
            factors = ones if factors is None else ones * factors
        if factors is None:
            return rows.sum(1) if self.mode == "sum" else rows.mean(1)
        total = (factors @ rows) if offsets is not None else (factors.unsqueeze(1) @ rows).squeeze(1)
        if self.mode == "sum":
            return total
        count = factors.sum(-1, keepdims=True)
        return total / where(count > 0, count, 1.0)

    def _inside(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Whether each element of a vector is in each bag."""
        places = arange(x.shape[0], device=x.device)
        starts = (offsets[:-1] if self.include_last_offset else offsets).unsqueeze(1)
        begun = places >= starts
        if self.include_last_offset:
            return begun & (places < offsets[1:].unsqueeze(1))
        # An element is in the last bag that has begun.
        order = arange(starts.shape[0], device=x.device).unsqueeze(1)
        return begun & (order == (begun.cast("int64").sum(0, keepdims=True) - 1))


def _largest(rows: Tensor, counted: Tensor | None) -> Tensor:
    if counted is None:
        return rows.amax(1)
    least = float(np.finfo(np.float32).min)
    found = where(counted.unsqueeze(-1), rows if rows.ndim == 3 else rows.unsqueeze(0), least).amax(1)
    return where(counted.cast("int64").sum(-1, keepdims=True) > 0, found, 0.0)
