"""Two-dimensional pooling: (batch, channels, height, width). The arguments are PyTorch's."""

from __future__ import annotations

from ..frontend.spatial import Ints
from ..frontend.tensor import Tensor
from ._module import Module


class MaxPool2d(Module):
    """The maximum of each window; the default stride is the window's size."""

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return x.max_pool(self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool2d(Module):
    """The mean of each window."""

    def __init__(
        self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:  # fmt: skip
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        return x.avg_pool(self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AdaptiveAvgPool2d(Module):
    """Means over equal windows, chosen to give the requested output size; 1 is the global mean."""

    def __init__(self, output_size: Ints) -> None:
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        return x.adaptive_avg_pool(self.output_size)
