"""Pooling: (batch, channels, …space), where the batch may be left out. The arguments are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ...ops import ROWS
from ...tensors.calls import apply_row
from ...tensors.functions.creation import zeros_like
from ...tensors.nodes import spatial
from ...tensors.nodes.spatial import Ints, Sizes, per_axis
from ...tensors.tensor import Tensor, apply
from .._module import Module
from .conv import in_batches


class _Pool(Module):
    """A layer over windows of `spaces` axes of space; the default stride is the window's size."""

    _spaces: ClassVar[int]

    def __init_subclass__(cls, spaces: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if spaces is not None:
            cls._spaces = spaces

    def _check(self, **facts: Sizes) -> None:
        """Refuse what is neither a number nor one for each axis of space."""
        for name, given in facts.items():
            if given is not None:
                per_axis(given, self._spaces, name)  # pyright: ignore[reportArgumentType]

    def forward(self, x: Tensor) -> Any:
        return in_batches(x, self._spaces, self, self._pooled)

    def _pooled(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class _MaxPool(_Pool):
    """The maximum of each window; with return_indices also its place among the elements of its channel."""

    def __init__(
        self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode
        self._check(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)

    def forward(self, x: Tensor) -> Any:
        values = super().forward(x)
        return (values, in_batches(x, self._spaces, self, self._places)) if self.return_indices else values

    def _pooled(self, x: Tensor) -> Tensor:
        return x.max_pool(*self._window())

    def _places(self, x: Tensor) -> Tensor:
        return x.max_pool(*self._window(), return_indices=True).indices

    def _window(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode


class MaxPool1d(_MaxPool, spaces=1):
    """The maximum of each window of (batch, channels, length)."""


class MaxPool2d(_MaxPool, spaces=2):
    """The maximum of each window of (batch, channels, height, width)."""


class MaxPool3d(_MaxPool, spaces=3):
    """The maximum of each window of (batch, channels, depth, height, width)."""


class _MaxUnpool(Module):
    """Puts values back where MaxPool found them, by its indices; zeros elsewhere."""

    _spaces: ClassVar[int]

    def __init_subclass__(cls, spaces: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if spaces is not None:
            cls._spaces = spaces

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """output_size: of the axes of space; by default the smallest that has these windows."""
        window, strides, pads = (
            per_axis(v, self._spaces, "MaxUnpool")
            for v in (self.kernel_size, self.kernel_size if self.stride is None else self.stride, self.padding)
        )
        space = x.shape[-self._spaces :]
        least = tuple((d - 1) * s - 2 * p + w for d, w, s, p in zip(space, window, strides, pads, strict=True))
        wanted = least if output_size is None else tuple(output_size)[-self._spaces :]
        before = x.shape[: -self._spaces]
        rows = before[0] if len(before) == 1 else before[0] * before[1]
        room = zeros_like(x.reshape(rows, -1)[:, :1]).expand(rows, math.prod(wanted))
        places, values = indices.reshape(rows, -1), x.reshape(rows, -1)
        made = apply(lambda b, r, v, i: b.scatter_elements(r, v, i, axis=1), room, values, places)
        return made.reshape(*before, *wanted)


class MaxUnpool1d(_MaxUnpool, spaces=1):
    """The inverse of MaxPool1d."""


class MaxUnpool2d(_MaxUnpool, spaces=2):
    """The inverse of MaxPool2d."""


class MaxUnpool3d(_MaxUnpool, spaces=3):
    """The inverse of MaxPool3d."""


class _AvgPool(_Pool):
    """The mean of each window. divisor_override: what sums are divided by, in place of the number of elements."""

    def __init__(
        self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override
        self._check(kernel_size=kernel_size, stride=stride, padding=padding)

    def _pooled(self, x: Tensor) -> Tensor:
        if self.divisor_override is None:
            return x.avg_pool(self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return window_sums(x, self.kernel_size, self.stride, self.padding, self.ceil_mode) / self.divisor_override


class AvgPool1d(_AvgPool, spaces=1):
    """The mean of each window of (batch, channels, length)."""


class AvgPool2d(_AvgPool, spaces=2):
    """The mean of each window of (batch, channels, height, width)."""


class AvgPool3d(_AvgPool, spaces=3):
    """The mean of each window of (batch, channels, depth, height, width)."""


def window_sums(x: Tensor, kernel: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool) -> Tensor:
    """The sum of each window."""
    facts = kernel, stride, padding, 1, ceil_mode, "pool"
    return apply(lambda b, n: b.pool_sum(n, **spatial.window_of(n, *facts)), x)


class _LPPool(_Pool):
    """(Σ xᵖ)^(1/p) of each window; p = 1 is the sum."""

    def __init__(
        self, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode
        self._check(kernel_size=kernel_size, stride=stride)

    def _pooled(self, x: Tensor) -> Tensor:
        power = ROWS["pow"]
        sums = window_sums(apply_row(power, (x, self.norm_type)), self.kernel_size, self.stride, 0, self.ceil_mode)
        return apply_row(power, (sums, 1 / self.norm_type))


class LPPool1d(_LPPool, spaces=1):
    """The p-norm of each window of (batch, channels, length)."""


class LPPool2d(_LPPool, spaces=2):
    """The p-norm of each window of (batch, channels, height, width)."""


class LPPool3d(_LPPool, spaces=3):
    """The p-norm of each window of (batch, channels, depth, height, width)."""


class _AdaptivePool(_Pool):
    """Windows chosen to give the requested output size; None keeps the size of an axis."""

    def __init__(self, output_size: Sizes) -> None:
        self.output_size = output_size
        several = isinstance(output_size, (tuple, list))
        self._check(output_size=[1 if n is None else n for n in output_size] if several else output_size)


class _AdaptiveAvgPool(_AdaptivePool):
    """The mean of each window; output size 1 is the global mean."""

    def _pooled(self, x: Tensor) -> Tensor:
        return x.adaptive_avg_pool(self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool, spaces=1):
    """Means over windows of (batch, channels, length)."""


class AdaptiveAvgPool2d(_AdaptiveAvgPool, spaces=2):
    """Means over windows of (batch, channels, height, width)."""


class AdaptiveAvgPool3d(_AdaptiveAvgPool, spaces=3):
    """Means over windows of (batch, channels, depth, height, width)."""


class _AdaptiveMaxPool(_AdaptivePool):
    """The maximum of each window; output size 1 is the global maximum. With return_indices also its place among the elements
    of its channel."""

    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, x: Tensor) -> Any:
        values = super().forward(x)
        return (values, in_batches(x, self._spaces, self, self._places)) if self.return_indices else values

    def _pooled(self, x: Tensor) -> Tensor:
        return x.adaptive_max_pool(self.output_size)

    def _places(self, x: Tensor) -> Tensor:
        return x.adaptive_max_pool(self.output_size, return_indices=True).indices


class AdaptiveMaxPool1d(_AdaptiveMaxPool, spaces=1):
    """Maxima over windows of (batch, channels, length)."""


class AdaptiveMaxPool2d(_AdaptiveMaxPool, spaces=2):
    """Maxima over windows of (batch, channels, height, width)."""


class AdaptiveMaxPool3d(_AdaptiveMaxPool, spaces=3):
    """Maxima over windows of (batch, channels, depth, height, width)."""
