"""Methods over windows of tensors in the layout (batch, channels, …space), with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from ..nodes import spatial
from ..nodes.spatial import Ints, Padding
from ..tensor import Tensor, TensorLike, apply
from .attach import method


@method
def conv(
    x, weight: TensorLike, bias: TensorLike | None = None, *, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:  # fmt: skip
    """Convolution with weights (outputs, channels per group, …window). padding: numbers, "same" or "valid"."""
    return apply(lambda b, x, w, c: spatial.conv(b, x, w, c, stride, padding, dilation, groups), x, weight, bias)


@method
def conv_transpose(
    x, weight: TensorLike, bias: TensorLike | None = None, *,
    stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0, dilation: Ints = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The transpose of a convolution, with weights (channels, outputs per group, …window)."""
    return apply(
        lambda b, x, w, c: spatial.conv_transpose(b, x, w, c, stride, padding, output_padding, dilation, groups),
        x, weight, bias,
    )  # fmt: skip


@method
def max_pool(
    x, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False
) -> Tensor:  # fmt: skip
    """The largest element of each window; the default stride is the window's size."""
    return apply(lambda b, x: spatial.max_pool(b, x, kernel_size, stride, padding, dilation, ceil_mode), x)


@method
def avg_pool(
    x, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False, count_include_pad: bool = True
) -> Tensor:  # fmt: skip
    """The mean of each window."""
    return apply(lambda b, x: spatial.avg_pool(b, x, kernel_size, stride, padding, ceil_mode, count_include_pad), x)


@method
def adaptive_avg_pool(x: Tensor, output_size: Ints) -> Tensor:
    """Means over windows, of about equal sizes, that give the requested output size."""
    return apply(lambda b, x: spatial.adaptive_avg_pool(b, x, output_size), x)


@method
def interpolate(
    x, size: Ints | None = None, scale: Any = None, mode: str = "nearest", align_corners: bool = False
) -> Tensor:  # fmt: skip
    """Spatial axes resampled to a size or by a scale. mode:
    nearest, nearest-exact, linear, bilinear, trilinear, bicubic."""
    return apply(lambda b, x: spatial.interpolate(b, x, size, scale, mode, align_corners), x)
