"""Two-dimensional convolution: (batch, channels, height, width)."""

from __future__ import annotations

import math

import numpy as np

from ..errors import ShapeError
from ..frontend.spatial import Ints, Padding, per_axis
from ..frontend.tensor import Tensor
from ._init import Rng, kaiming_uniform
from ._module import Module


class Conv2d(Module):
    """weight is (outputs, channels per group, height, width). padding: numbers, "same" (for stride 1) or "valid"."""

    weight: Tensor
    bias: Tensor | None
    stride: Ints
    padding: Padding
    dilation: Ints
    groups: int

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1,
        groups: int = 1, bias: bool = True, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        if in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"Conv2d: {in_channels} channels in and {out_channels} out cannot be divided into {groups} groups"
            )
        rng = np.random.default_rng(rng)
        window = per_axis(kernel_size, 2, "kernel_size")
        fan_in = in_channels // groups * math.prod(window)
        self.weight = kaiming_uniform(rng, (out_channels, in_channels // groups, *window), fan_in)
        self.bias = kaiming_uniform(rng, (out_channels,), fan_in) if bias else None
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups

    def forward(self, x: Tensor) -> Tensor:
        return x.conv(
            self.weight, self.bias, stride=self.stride, padding=self.padding, dilation=self.dilation, groups=self.groups
        )
