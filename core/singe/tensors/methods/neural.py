"""Functions of neural networks without state, with the names and arguments of torch.nn.functional.

Layers of `singe.nn` call them. What draws random numbers or keeps statistics, and losses, are layers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError, ShapeError
from ...ir.scalar import Number
from ...ops import ROWS
from ...shapes import Dim, axis_of, product, same_form, show
from ..arithmetic import compute
from ..calls import apply_row
from ..tensor import Tensor, TensorLike, home_of, value_on
from .attach import method
from .folds import root

SELU_ALPHA: Final = 1.6732632423543772
SELU_SCALE: Final = 1.0507009873554805
_SAMPLING: Final = {"bilinear": "linear", "bicubic": "cubic"}
"""PyTorch's modes of grid_sample ↦ the row's."""


# --- activations -----------------------------------------------------------------------------------------------------


@method
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x · Φ(x), where Φ is the normal distribution; approximate="tanh" computes it by tanh."""
    if approximate not in ("none", "tanh"):
        raise InputError(f"gelu: approximate is {approximate!r}, expected 'none' or 'tanh'")
    return apply_row(ROWS["gelu" if approximate == "none" else "gelu_tanh"], (x,))


@method
def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half of an axis, times the sigmoid of the second half."""
    length = x.shape[axis_of(axis, x.ndim, "glu")]
    if not isinstance(length, int) or length % 2:
        raise ShapeError(f"glu: axis {axis} of {show(x.shape)} is {length}, expected an even number")
    value, gate = x.split([length // 2] * 2, axis)
    return value * gate.sigmoid()


@method
def hardsigmoid(x: Tensor) -> Tensor:
    """x / 6 + 1/2, clipped to 0 … 1."""
    return apply_row(ROWS["hard_sigmoid"], (x,), alpha=1 / 6, beta=0.5)


@method
def hardswish(x: Tensor) -> Tensor:
    """x · hardsigmoid(x)."""
    return apply_row(ROWS["hard_swish"], (x,))


@method
def hardtanh(x: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """x, clipped to min_val … max_val."""
    return x.clip(min_val, max_val)


@method
def logsigmoid(x: Tensor) -> Tensor:
    """The logarithm of sigmoid."""
    return -(-x).softplus()


@method
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """The elements above 0; the others times a weight, of which there is one for all or one for each channel (axis 1)."""
    slope = weight.reshape(-1, *(1,) * (x.ndim - 2)) if weight.size > 1 and x.ndim > 1 else weight
    return x.where(x >= 0, x * slope)


@method
def relu6(x: Tensor) -> Tensor:
    """max(x, 0), at most 6."""
    return x.clip(0, 6)


@method
def selu(x: Tensor) -> Tensor:
    """A scaled elu whose results keep mean 0 and variance 1."""
    return apply_row(ROWS["elu"], (x,), alpha=SELU_ALPHA) * SELU_SCALE


@method
def softmin(x: Tensor, axis: int = -1) -> Tensor:
    """The softmax of −x."""
    return (-x).softmax(axis)


@method
def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta · x)) / beta; x where beta · x is above the threshold."""
    if (beta, threshold) == (1.0, 20.0):  # beyond it the row gives x, too
        return apply_row(ROWS["softplus"], (x,))
    scaled = x * beta
    return x.where(scaled > threshold, apply_row(ROWS["softplus"], (scaled,)) / beta)


@method
def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 in −lambd … lambd."""
    return x - x.clip(-lambd, lambd)


@method
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return x / (1 + x.abs())


@method
def tanhshrink(x: Tensor) -> Tensor:
    """x − tanh(x)."""
    return x - x.tanh()


@method
def threshold(x: Tensor, threshold: Number, value: Number) -> Tensor:
    """The elements above a threshold; a value in place of the others."""
    return x.where(x > threshold, value)


# --- products and distances ------------------------------------------------------------------------------------------


@method
def linear(x: Tensor, weight: Tensor, bias: TensorLike | None = None) -> Tensor:
    """x @ weight.T + bias along the last axis; weight is (outputs, inputs)."""
    home = home_of((x, weight))
    if weight.device is not home:  # in a trace: the transpose of weights is no copy there
        weight = Tensor(home, value_on(home, weight))
    y = x @ weight.T
    return y if bias is None else y + bias


@method
def bilinear(x: Tensor, other: Tensor, weight: Tensor, bias: TensorLike | None = None) -> Tensor:
    """x · weight[k] · other + bias[k] for each output k; weight is (outputs, inputs of x, inputs of the other)."""
    outputs, first, second = weight.shape
    rows = x @ weight.transpose(1, 0, 2).reshape(first, outputs * second)
    y = (rows.reshape(*x.shape[:-1], outputs, second) * other.unsqueeze(-2)).sum(-1)
    return y if bias is None else y + bias


@method
def embedding(x: Tensor, weight: Tensor) -> Tensor:
    """The rows of a matrix at indices: x.embedding(weight), or sg.embedding(x, weight)."""
    if not x.dtype.is_int:
        raise InputError(f"embedding: got indices {x.dtype}, expected integers; it is indices.embedding(weight)")
    return weight.take(x, 0)


@method
def normalize(x: Tensor, p: float = 2.0, axis: Any = 1, eps: float = 1e-12) -> Tensor:
    """x, divided by its p-norm along an axis, or by eps where that is less."""
    return x / x.norm(p, axis, keepdims=True).clip(eps)


@method
def cosine_similarity(x: Tensor, other: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosines of the angles between vectors along an axis; no length counts as less than eps."""

    def unit(y: Tensor) -> Tensor:
        length = root((y * y).sum(axis, keepdims=True))
        return y / length.where(length > eps, eps)

    return (unit(x) * unit(other)).sum(axis)


@method
def pairwise_distance(x: Tensor, other: Tensor, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Tensor:
    """The p-norm of x − other + eps along the last axis."""
    return (x - other + eps).norm(p, -1, keepdims)


@method
def cdist(x: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    """The distance, by the p-norm, of each row of a matrix to each of another."""
    if p == 2:
        return apply_row(ROWS["cdist"], (x, other))
    return (x.unsqueeze(-2) - other.unsqueeze(-3)).norm(p, -1)


@method
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows of a matrix, as a vector."""
    if x.ndim != 2 or not isinstance(x.shape[0], int):
        raise ShapeError(f"pdist: got {show(x.shape)}, expected a matrix of a known number of rows")
    first, second = np.triu_indices(x.shape[0], 1)
    return x.cdist(x, p)[first, second]


@method
def scaled_dot_product_attention(
    x: Tensor, key: Tensor, value: Tensor, attn_mask: TensorLike | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(scale · x · keyᵀ + mask) · value for each head, of (…, heads, length, size); a mask of bools says which keys
    are seen. scale: 1 / √size, if none is given."""
    if dropout_p:
        raise InputError(
            "scaled_dot_product_attention: dropout_p is not 0; nn.MultiheadAttention(dropout=…) drops weights"
        )
    if not enable_gqa and x.ndim > 3 and not same_form(x.shape[-3], key.shape[-3]):
        raise ShapeError(
            f"scaled_dot_product_attention: {show(x.shape)} with keys {show(key.shape)}: expected as many heads of both; for fewer of keys give enable_gqa=True"
        )
    if scale == 0:  # the row's 0 is 1 / √size
        x, scale = x * 0, 1.0
    return apply_row(ROWS["attention"], (x, key, value, attn_mask), scale=scale or 0.0, causal=is_causal)


# --- norms -----------------------------------------------------------------------------------------------------------


@method
def layer_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:  # fmt: skip
    """(x − mean) / √(variance + eps) · weight + bias over the last axes, which have the given shape."""
    axis = _first_normalized("layer_norm", x, normalized_shape)
    return normalised(x, axis, eps, weight, bias)


@method
def rms_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / √(mean of x² + eps) · weight over the last axes, which have the given shape; eps: by default the dtype's."""
    axis = _first_normalized("rms_norm", x, normalized_shape)
    epsilon = float(np.finfo(x.dtype.compute.numpy).eps) if eps is None else eps
    return apply_row(ROWS["rms_norm"], (x,) if weight is None else (x, weight), axis=axis, epsilon=epsilon)


@method
def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x − mean) / √(variance + eps) for each group of channels (axis 1), then · weight + bias for each channel."""
    channels = x.shape[1] if x.ndim > 1 else 0
    if num_groups < 1 or not channels or not isinstance(channels, int) or channels % num_groups:
        raise ShapeError(f"group_norm: the channels of {show(x.shape)} cannot be divided into {num_groups} groups")
    each, space = (num_groups, channels // num_groups), x.shape[2:]
    affine = (None if t is None else t.reshape(*each, *(1,) * len(space)) for t in (weight, bias))
    return normalised(x.reshape(x.shape[0], *each, *space), 2, eps, *affine).reshape(*x.shape)


@method
def batch_norm(
    x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x − mean) / √(variance + eps) · weight + bias for each channel (axis 1), by given statistics."""
    if training:
        raise InputError("batch_norm: a tensor does not change; nn.BatchNorm2d(…).train() collects running statistics")
    scale = running_mean.new_ones(running_mean.shape) if weight is None else weight
    shift = running_mean.new_zeros(running_mean.shape) if bias is None else bias
    return apply_row(ROWS["batch_norm"], (x, scale, shift, running_mean, running_var), epsilon=eps)


@method
def local_response_norm(x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha · the mean of x² over `size` neighbouring channels) ^ beta; outside there are zeros."""
    if x.ndim < 3:
        raise ShapeError(f"local_response_norm: got {show(x.shape)}, expected (batch, channels, …space)")
    squares = (x * x).reshape(x.shape[0], 1, x.shape[1], product(x.shape[2:]))
    squares = squares.pad([(0, 0), (0, 0), (size // 2, (size - 1) // 2), (0, 0)])
    mean = squares.avg_pool((size, 1), 1).reshape(*x.shape)
    return x / compute("pow", k + alpha * mean, beta)


def _first_normalized(what: str, x: Tensor, argument: int | Sequence[Dim]) -> int:
    """The first of the last axes, which have a shape."""
    shape = (argument,) if isinstance(argument, int) else tuple(argument)
    first = x.ndim - len(shape)
    if first < 0 or not same_form(x.shape[first:], shape):
        raise ShapeError(f"{what}: got {show(x.shape)}, expected the last axes to be {shape}")
    return first


def normalised(x: Tensor, axis: int, eps: float, *affine: Tensor | None) -> Tensor:
    """(x − mean) / √(variance + eps) · weight + bias over the axes from `axis` on."""
    scale, shift = affine
    if scale is None and shift is not None:
        return normalised(x, axis, eps, None, None) + shift
    return apply_row(ROWS["layer_norm"], (x, *(t for t in affine if t is not None)), axis=axis, epsilon=eps)


# --- pixels ----------------------------------------------------------------------------------------------------------


@method
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """(…, c · r², h, w) to (…, c, h · r, w · r): channels become the pixels between."""
    r = upscale_factor
    *before, c, h, w = _pixels("pixel_shuffle", x)
    if r < 1 or c % (r * r):
        raise ShapeError(f"pixel_shuffle: {c} channels cannot become {r} × {r} pixels each")
    c = c // (r * r)
    return x.reshape(*before, c, r, r, h, w).movedim((-4, -3), (-3, -1)).reshape(*before, c, h * r, w * r)


@method
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """(…, c, h · r, w · r) to (…, c · r², h, w): the inverse of pixel_shuffle."""
    r = downscale_factor
    *before, c, h, w = _pixels("pixel_unshuffle", x)
    if r < 1 or (isinstance(h, int) and isinstance(w, int) and (h % r or w % r)):
        raise ShapeError(
            f"pixel_unshuffle: {h} × {w} pixels are not multiples of {r}; expected multiples: crop or pad them"
        )
    h, w = h // r, w // r
    return x.reshape(*before, c, h, r, w, r).movedim((-3, -1), (-4, -3)).reshape(*before, c * r * r, h, w)


@method
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels (axis 1), taken from each of the groups in turn."""
    n, c, *space = x.shape
    if groups < 1 or c % groups:
        raise ShapeError(f"channel_shuffle: {c} channels cannot be divided into {groups} groups")
    return x.reshape(n, groups, c // groups, -1).transpose(0, 2, 1, 3).reshape(n, c, *space)


def _pixels(what: str, x: Tensor) -> tuple[Any, ...]:
    if x.ndim < 3:
        raise ShapeError(f"{what}: got {show(x.shape)}, expected (…, channels, height, width)")
    return x.shape


@method
def grid_sample(
    x: Tensor, grid: TensorLike, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:  # fmt: skip
    """The elements at places of a grid, from −1 to 1 along each axis of space. mode: bilinear, nearest or bicubic;
    padding_mode: zeros, border or reflection."""
    facts = {"mode": _SAMPLING.get(mode, mode), "padding": padding_mode, "align_corners": bool(align_corners)}
    return apply_row(ROWS["grid_sample"], (x, grid), **facts, by_element=facts["mode"] == "cubic")


@method
def affine_grid(x: Tensor, size: Sequence[Dim], align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample that affine maps, (batch, axes, axes + 1), give for pictures of a size (batch, channels,
    …space)."""
    if len(size) != x.ndim + x.shape[-2] - 1 or not same_form(x.shape[0], size[0]):
        raise ShapeError(
            f"affine_grid: got maps {show(x.shape)} for {show(tuple(size))}, expected (batch, channels, …space)"
        )
    return apply_row(ROWS["affine_grid"], (x,), space=tuple(size[2:]), align_corners=bool(align_corners))
