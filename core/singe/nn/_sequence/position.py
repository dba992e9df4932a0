"""Positions in sequences: added to embeddings, or as rotations of queries and keys."""

from __future__ import annotations

import math

import numpy as np

from ...errors import InputError, ShapeError
from ...ops import ROWS
from ...shapes import show
from ...tensors.calls import apply_row
from ...tensors.functions.creation import arange, tensor
from ...tensors.tensor import Tensor
from .._module import Module


class SinusoidalPositions(Module, buffers=("pe",)):
    """x plus sines and cosines of the positions, as in "Attention is all you need": x is (…, length, size), or (length,
    batch, size) with batch_first=False. max_len: the greatest length."""

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, batch_first: bool = True) -> None:
        if d_model % 2:
            raise InputError(f"SinusoidalPositions: d_model is {d_model}, expected an even number")
        angles = np.arange(max_len)[:, None] * np.exp(np.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(max_len, d_model)
        self.pe = tensor(table.astype(np.float32))
        self.batch_first = batch_first

    def forward(self, x: Tensor, position: int | Tensor = 0) -> Tensor:
        """position: of the first element."""
        length = x.shape[-2] if self.batch_first else x.shape[0]
        fixed = isinstance(position, int) and position == 0
        rows = self.pe[:length] if fixed else self.pe.take(arange(length, device=x.device) + position, 0)
        return x + (rows if self.batch_first else rows.unsqueeze(1))


class RotaryEmbedding(Module):
    """Rotates pairs of elements by angles that grow with the position: element k with k + size / 2, or, if interleaved, 2k
    with 2k + 1. x is (…, length, size); only the first `dim` elements of each vector are rotated."""

    def __init__(self, dim: int, base: float = 10000.0, interleaved: bool = False, scale: float = 1.0) -> None:
        if dim % 2:
            raise InputError(f"RotaryEmbedding: dim is {dim}, expected an even number")
        self.dim, self.base, self.interleaved, self.scale = dim, base, interleaved, scale

    def forward(self, x: Tensor, position: int | Tensor = 0) -> Tensor:
        """position: of the first element, or of each element (a vector, or (batch, length) for x (batch, heads, …))."""
        if x.ndim < 2 or x.shape[-1] < self.dim:
            raise ShapeError(f"RotaryEmbedding: got {show(x.shape)}, expected (…, length, {self.dim} or more)")
        places = position
        if isinstance(position, int) or position.ndim == 0:
            places = arange(x.shape[-2], device=x.device) + position
        elif position.ndim == 2:
            places = position.reshape(position.shape[0], *(1,) * (x.ndim - 3), position.shape[1])
        rates = (self.scale * self.base ** (-np.arange(0, self.dim, 2) / self.dim)).astype(np.float32)
        angles = places.unsqueeze(-1).cast("float32") * rates  # pyright: ignore[reportAttributeAccessIssue]
        return apply_row(ROWS["rotary_embedding"], (x, angles.cos(), angles.sin()), interleaved=self.interleaved)
