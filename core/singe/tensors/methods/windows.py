"""Methods over windows of tensors in the layout (batch, channels, …space), with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ...errors import ShapeError
from ...shapes import show
from ..nodes import spatial
from ..nodes.spatial import Ints, Padding, Sizes
from ..tensor import Tensor, TensorLike, apply
from .attach import alias, method
from .sorting import Ordered


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
    x, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window; the default stride is the window's size. return_indices: also its place among the
    elements of its channel."""
    window = kernel_size, stride, padding, dilation, ceil_mode
    found = apply(lambda b, x: spatial.max_pool(b, x, *window), x)
    return Ordered(found, apply(lambda b, x: spatial.max_pool_places(b, x, *window), x)) if return_indices else found


@method
def avg_pool(
    x, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False, count_include_pad: bool = True
) -> Tensor:  # fmt: skip
    """The mean of each window."""
    return apply(lambda b, x: spatial.avg_pool(b, x, kernel_size, stride, padding, ceil_mode, count_include_pad), x)


@method
def adaptive_avg_pool(x: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis."""
    return apply(lambda b, x: spatial.adaptive_avg_pool(b, x, output_size), x)


@method
def adaptive_max_pool(x: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Maxima over windows, of about equal sizes, that give the requested output size; None keeps the size of an axis.
    return_indices: also the place of each among the elements of its channel."""
    found = apply(lambda b, x: spatial.adaptive_max_pool(b, x, output_size), x)
    if not return_indices:
        return found
    return Ordered(found, apply(lambda b, x: spatial.adaptive_max_places(b, x, output_size), x))


@method
def interpolate(
    x, size: Ints | None = None, scale: Any = None, mode: str = "nearest", align_corners: bool = False
) -> Tensor:  # fmt: skip
    """Spatial axes resampled to a size or by a scale. mode: nearest, nearest-exact, linear, bilinear, trilinear, bicubic, or
    area, which is adaptive_avg_pool."""
    return apply(lambda b, x: spatial.interpolate(b, x, size, scale, mode, align_corners), x)


# PyTorch's names, of each number of axes of space


def _of_spaces(name: str, function: Callable[..., Tensor], spaces: int) -> Callable[..., Any]:
    """The method for inputs with so many axes of space, of which the batch may be left out."""

    @wraps(function)
    def method(x: Tensor, *args: Any, **named: Any) -> Any:
        if x.ndim not in (spaces + 1, spaces + 2):
            raise ShapeError(f"{name}: got {show(x.shape)}, expected {spaces + 1} or {spaces + 2} axes")
        alone = x.ndim == spaces + 1
        found = function(x.unsqueeze(0) if alone else x, *args, **named)
        if not alone:
            return found
        return Ordered(*(part.squeeze(0) for part in found)) if isinstance(found, tuple) else found.squeeze(0)

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    return method


def _conv(
    x, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:  # fmt: skip
    """`conv`, of inputs with this number of axes of space."""
    return x.conv(weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


def _conv_transpose(
    x, weight: TensorLike, bias: TensorLike | None = None, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
    groups: int = 1, dilation: Ints = 1,
) -> Tensor:  # fmt: skip
    """`conv_transpose`, of inputs with this number of axes of space."""
    facts = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return x.conv_transpose(weight, bias, **facts, groups=groups)


for _n in (1, 2, 3):
    alias(f"conv{_n}d", _of_spaces(f"conv{_n}d", _conv, _n))
    alias(f"conv_transpose{_n}d", _of_spaces(f"conv_transpose{_n}d", _conv_transpose, _n))
    for _name, _pool in (
        ("max_pool", max_pool), ("avg_pool", avg_pool), ("adaptive_avg_pool", adaptive_avg_pool), ("adaptive_max_pool", adaptive_max_pool),
    ):  # fmt: skip
        alias(f"{_name}{_n}d", _of_spaces(f"{_name}{_n}d", _pool, _n))
