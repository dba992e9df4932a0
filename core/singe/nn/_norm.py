"""Batch normalisation, with running statistics for inference and with the batch's own in training.

A layer is frozen, so training cannot update its statistics in place. They are collected, and used to make a new module:

    with nn.observing() as seen:
        y = model(x)                  # the model is in training mode
    model = model.with_modules(seen)  # its running statistics are updated
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ..errors import ShapeError
from ..frontend.creation import ones, ones_like, tensor, zeros, zeros_like
from ..frontend.tensor import Tensor
from ..shapes import show
from ._module import Module

_seen: Final[ContextVar[dict[Module, Module] | None]] = ContextVar("seen", default=None)


@contextmanager
def observing() -> Iterator[dict[Module, Module]]:
    """Collects, for each batch norm that runs in this block, a new layer with updated statistics."""
    seen: dict[Module, Module] = {}
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


class BatchNorm2d(Module, buffers=("running_mean", "running_var", "num_batches_tracked")):
    """(x − mean) / √(variance + eps) · weight + bias for each channel of (batch, channels, height, width)."""

    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    eps: float
    momentum: float
    training: bool

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True) -> None:
        self.weight = ones(num_features) if affine else None
        self.bias = zeros(num_features) if affine else None
        self.running_mean = zeros(num_features)
        self.running_var = ones(num_features)
        self.num_batches_tracked = tensor(0)
        self.eps, self.momentum = eps, momentum
        self.training = False

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            raise ShapeError(f"BatchNorm2d: got {show(x.shape)}, expected (batch, channels, height, width)")
        mean, variance = self._observe(x) if self.training else (self.running_mean, self.running_var)
        weight = ones_like(mean) if self.weight is None else self.weight
        bias = zeros_like(mean) if self.bias is None else self.bias
        return x.batch_norm(weight, bias, mean, variance, epsilon=self.eps)

    def _observe(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The batch's mean and variance, reported to `observing`."""
        axes = (0, 2, 3)
        mean = x.mean(axes, keepdims=True)
        variance = ((x - mean) ** 2).mean(axes)
        mean = mean.flatten()
        seen = _seen.get()
        if seen is not None:
            count = math.prod(x.shape[a] for a in axes)
            unbiased = variance * (count / max(count - 1, 1))
            before = seen.get(self, self)
            assert isinstance(before, BatchNorm2d)
            seen[self] = before.replace(
                running_mean=before.running_mean + (mean - before.running_mean) * self.momentum,
                running_var=before.running_var + (unbiased - before.running_var) * self.momentum,
                num_batches_tracked=before.num_batches_tracked + 1,
            )
        return mean, variance
