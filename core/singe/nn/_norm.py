"""Normalisation over batches, groups, layers and instances.

A layer cannot be changed, so training cannot update running statistics in place. They are collected, and used to make a new
module:

    with nn.observing() as seen:
        y = model(x)                  # the model is in training mode
    model = model.with_modules(seen)  # its running statistics are updated

In a function that is traced they are tensors of the trace, which it returns: `dict(model.with_modules(seen).named_buffers())`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from ..errors import InputError, ShapeError
from ..shapes import Dim, Size, same_form, show, whole
from ..tensors.functions.creation import full, ones, tensor, zeros
from ..tensors.methods.neural import normalised
from ..tensors.tensor import Tensor
from ._module import Module
from .init import check_sizes

M = TypeVar("M", bound=Module)
_seen: Final[ContextVar[dict[Module, Module] | None]] = ContextVar("seen", default=None)


@contextmanager
def observing() -> Iterator[dict[Module, Module]]:
    """Collects, for each norm with running statistics that runs in this block, a new layer with updated ones."""
    seen: dict[Module, Module] = {}
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


def latest(layer: M) -> M:
    """The layer with what it reported last to `observing`."""
    return (_seen.get() or {}).get(layer, layer)  # pyright: ignore[reportReturnType]


def report(layer: Module, updated: Module) -> None:
    """Give `observing`, if there is such a block, a layer with updated statistics."""
    seen = _seen.get()
    if seen is not None:
        seen[layer] = updated


class _Running(Module, buffers=("running_mean", "running_var", "num_batches_tracked")):
    """A norm of channels (axis 1) with `spaces` axes behind them, that may keep running statistics."""

    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    eps: float
    momentum: float | None
    training: bool
    _ranks: ClassVar[tuple[int, ...]] = ()

    def __init_subclass__(cls, ranks: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._ranks = ranks or cls._ranks

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:  # fmt: skip
        check_sizes(self, num_features=num_features)
        self.weight = ones(num_features) if affine else None
        self.bias = zeros(num_features) if affine else None
        self.running_mean = zeros(num_features) if track_running_stats else None
        self.running_var = ones(num_features) if track_running_stats else None
        self.num_batches_tracked = tensor(0) if track_running_stats else None
        self.eps, self.momentum = eps, momentum
        self.training = False

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in self._ranks:
            raise ShapeError(
                f"{type(self).__name__}: got {show(x.shape)}, expected {' or '.join(map(str, self._ranks))} axes"
            )
        if self.training or self.running_mean is None or self.running_var is None:
            return self._by_own(x)
        return self._by(x, self.running_mean, self.running_var)

    def _by_own(self, x: Tensor) -> Tensor:
        """x normalised by its own statistics."""
        raise NotImplementedError

    def _by(self, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        return x.batch_norm(mean, variance, self.weight, self.bias, eps=self.eps)

    def _counted(self, x: Tensor, axes: Sequence[int]) -> Dim:
        """How many elements on these axes are normalised together: of one alone nothing would be left."""
        count = math.prod(x.shape[a] for a in axes)
        if self.training and isinstance(count, int) and count < 2:
            raise ShapeError(
                f"{type(self).__name__}: got {show(x.shape)}, in training expected two elements or more of each channel"
            )
        return count

    def _observe(self, mean: Tensor, variance: Tensor, count: Dim) -> None:
        """Report the statistics of `count` elements of each channel to `observing`."""
        if _seen.get() is None or self.running_mean is None:
            return
        number_of = full((), count, self.running_mean.dtype, mean.device) if isinstance(count, Size) else float(count)
        mean, variance = mean.cast(self.running_mean.dtype), variance.cast(self.running_mean.dtype)
        unbiased = variance * (number_of / (number_of - 1))
        before = latest(self)
        number, old_mean, old_variance = before.num_batches_tracked, before.running_mean, before.running_var
        assert number is not None
        assert old_mean is not None
        assert old_variance is not None
        share = 1 / (number + 1).cast(mean.dtype) if self.momentum is None else self.momentum
        updated = before.replace(
            running_mean=old_mean + (mean - old_mean) * share,
            running_var=old_variance + (unbiased - old_variance) * share,
            num_batches_tracked=number + 1,
        )
        report(self, updated)


class _BatchNorm(_Running):
    """(x − mean) / √(variance + eps) · weight + bias for each channel: by running statistics, or in training (and without
    track_running_stats) by the batch's own. momentum: the share of a batch in them; None: all batches count the same."""

    def _by_own(self, x: Tensor) -> Tensor:
        axes = tuple(a for a in range(x.ndim) if a != 1)
        count = self._counted(x, axes)
        mean = x.mean(axes, keepdims=True)
        variance = ((x - mean) ** 2).mean(axes)
        self._observe(mean.flatten(), variance, count)
        return self._by(x, mean.flatten(), variance)


class BatchNorm1d(_BatchNorm, ranks=(2, 3)):
    """Batch normalisation of (batch, channels) or (batch, channels, length)."""


class BatchNorm2d(_BatchNorm, ranks=(4,)):
    """Batch normalisation of (batch, channels, height, width)."""


class BatchNorm3d(_BatchNorm, ranks=(5,)):
    """Batch normalisation of (batch, channels, depth, height, width)."""


class _InstanceNorm(_Running):
    """(x − mean) / √(variance + eps) for each channel of each instance; with track_running_stats, by running statistics
    out of training. The batch may be left out."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def forward(self, x: Tensor) -> Tensor:
        alone = x.ndim == min(self._ranks)
        y = super().forward(x.unsqueeze(0) if alone else x)
        return y.squeeze(0) if alone else y

    def _by_own(self, x: Tensor) -> Tensor:
        axes = tuple(range(2, x.ndim))
        if self.running_mean is not None:
            count = self._counted(x, axes)
            mean = x.mean(axes, keepdims=True)
            variance = ((x - mean) ** 2).mean(axes)
            self._observe(mean.mean(0).flatten(), variance.mean(0), count)
        after = (1,) * len(axes)
        affine = (None if t is None else t.reshape(-1, *after) for t in (self.weight, self.bias))
        return normalised(x, 2, self.eps, *affine)


class InstanceNorm1d(_InstanceNorm, ranks=(2, 3)):
    """Instance normalisation of (batch, channels, length)."""


class InstanceNorm2d(_InstanceNorm, ranks=(3, 4)):
    """Instance normalisation of (batch, channels, height, width)."""


class InstanceNorm3d(_InstanceNorm, ranks=(4, 5)):
    """Instance normalisation of (batch, channels, depth, height, width)."""


class _LastAxes(Module):
    """A norm over the last axes, which have the shape `normalized_shape`."""

    weight: Tensor | None
    normalized_shape: tuple[int, ...]
    eps: Any

    def _set(self, normalized_shape: int | Sequence[int], eps: Any, affine: bool) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.weight = ones(shape) if affine else None


class LayerNorm(_LastAxes):
    """(x − mean) / √(variance + eps) · weight + bias over the last axes."""

    bias: Tensor | None

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True
    ) -> None:  # fmt: skip
        self._set(normalized_shape, eps, elementwise_affine)
        self.bias = zeros(self.normalized_shape) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        return x.layer_norm(self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_LastAxes):
    """x / √(mean of x² + eps) · weight over the last axes; eps: by default the dtype's."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True
    ) -> None:
        self._set(normalized_shape, eps, elementwise_affine)

    def forward(self, x: Tensor) -> Tensor:
        return x.rms_norm(self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """(x − mean) / √(variance + eps) for each group of channels (axis 1), then · weight + bias for each channel."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        if whole(num_channels, "GroupNorm", "num_channels") % whole(num_groups, "GroupNorm", "num_groups"):
            raise InputError(f"GroupNorm: {num_channels} channels cannot be divided into {num_groups} groups")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = ones(num_channels) if affine else None
        self.bias = zeros(num_channels) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or not same_form(x.shape[1], self.num_channels):
            raise ShapeError(f"GroupNorm: got {show(x.shape)}, expected {self.num_channels} channels on axis 1")
        return x.group_norm(self.num_groups, self.weight, self.bias, self.eps)


class CrossMapLRN2d(Module):
    """x / (k + alpha / size · the sum of x² over the channels around) ^ beta, of (batch, channels, height, width).

    LocalResponseNorm, as Lua's Torch had it. As in PyTorch, the first channel counts among those around every channel from
    (size + 1) / 2 on, too; gradients are those of this function.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            raise ShapeError(f"CrossMapLRN2d: got {show(x.shape)}, expected (batch, channels, height, width)")
        reach = int((self.size - 1) / 2 + 1)
        channel = np.arange(x.shape[1])
        counted = abs(channel[:, None] - channel) < reach
        counted[reach:, 0] = True
        sums = x.new_tensor(counted) @ (x * x).flatten(2)
        return x / (self.k + self.alpha / self.size * sums.reshape(x.shape)) ** self.beta


class LocalResponseNorm(Module):
    """x / (k + alpha · the mean of x² over `size` neighbouring channels) ^ beta; outside there are zeros."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        return x.local_response_norm(self.size, self.alpha, self.beta, self.k)
