"""PyTorch's special functions, scans and scatters that are composed of other methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import float32, int64
from ...errors import InputError, ShapeError
from ...ir.scalar import Number
from ...shapes import axis_of, show
from ..tensor import Tensor, TensorLike, apply
from .attach import alias, method
from .order import Ordered

_ASYMPTOTIC: Final = 4.0
"""From here on, the series of lgamma and digamma have float32's precision; smaller numbers are moved here."""
_ERFINV_NEAR: Final = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
    1.50140941,
)  # fmt: skip
_ERFINV_FAR: Final = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406,
    2.83297682,
)  # fmt: skip
"""Polynomials by M. Giles, "Approximating the erfinv function": erfinv(x) / x in w − 2.5 and in √w − 3, w = −log(1 − x²)."""


def _floating(x: Tensor) -> Tensor:
    return x if x.dtype.is_float else x.cast(float32)


@method
def lgamma(x: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
    x = _floating(x)
    mirrored = x < 0.5
    y = (1 - x).where(mirrored, x)
    small = y < _ASYMPTOTIC
    z = (y + 4).where(small, y)
    below = (y * (y + 1) * (y + 2) * (y + 3)).where(small, 1.0)
    i = 1 / z
    series = i * (1 / 12 - i * i * (1 / 360 - i * i * (1 / 1260 - i * i / 1680)))
    value = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series - below.log()
    value = value.masked_fill(y == math.inf, math.inf)
    turn = ((x - x.floor()).where(mirrored, 0.5) * math.pi).sin()
    return (math.log(math.pi) - turn.abs().log() - value).where(mirrored, value)


@method
def digamma(x: Tensor) -> Tensor:
    """The derivative of lgamma."""
    x = _floating(x)
    mirrored = x < 0.5
    y = (1 - x).where(mirrored, x)
    small = y < _ASYMPTOTIC
    z = (y + 4).where(small, y)
    below = 1 / y + 1 / (y + 1) + 1 / (y + 2) + 1 / (y + 3)
    i = 1 / (z * z)
    series = i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i / 240)))
    value = z.log() - 0.5 / z - series - below.where(small, 0.0)
    part = x - x.floor()
    turn = part.where(mirrored, 0.5) * math.pi
    found = (value - math.pi * turn.cos() / turn.sin()).where(mirrored, value)
    whole = mirrored.logical_and(part == 0)
    return found.masked_fill(whole, math.nan).masked_fill(x == 0, -math.inf)


@method
def erfinv(x: Tensor) -> Tensor:
    """The inverse of erf."""
    x = _floating(x)
    w = -((1 - x) * (1 + x)).log()
    near = w < 5
    t = (w - 2.5).where(near, w.clip(5.0, 100.0).sqrt() - 3)
    low, high = t * _ERFINV_NEAR[0], t * _ERFINV_FAR[0]
    for a, b in zip(_ERFINV_NEAR[1:-1], _ERFINV_FAR[1:-1], strict=True):
        low, high = (low + a) * t, (high + b) * t
    value = x * (low + _ERFINV_NEAR[-1]).where(near, high + _ERFINV_FAR[-1])
    return value.masked_fill(x == 1, math.inf).masked_fill(x == -1, -math.inf).masked_fill(x.abs() > 1, math.nan)


@method
def logcumsumexp(x: Tensor, axis: int) -> Tensor:
    """The logarithm of the sum of the exponentials of all elements up to each one along an axis."""
    at = axis_of(axis, x.ndim, "logcumsumexp")
    y, count, step = _floating(x), x.shape[at], 1
    if not isinstance(count, int):
        raise ShapeError(f"logcumsumexp: axis {at} of {show(x.shape)} has no number until a run; give it one")
    while step < count:
        head, tail = y.narrow(at, 0, step), y.narrow(at, step, count - step)
        y = _joined([head, tail.logaddexp(y.narrow(at, 0, count - step))], at)
        step *= 2
    return y


def _joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    return apply(lambda b, *nodes: b.concat(*nodes, axis=axis), *parts)


@method
def mode(x: Tensor, axis: int = -1, keepdims: bool = False) -> Ordered:
    """The most frequent element along an axis, the least of several, and its last index."""
    at = axis_of(axis, x.ndim, "mode")
    y = x.movedim(at, -1)
    counts = (y.unsqueeze(-1) == y.unsqueeze(-2)).sum(-1)
    ordered = y.argsort(-1)
    values = y.take_along_dim(ordered, -1)
    first = counts.take_along_dim(ordered, -1).argmax(-1, keepdims=True)
    value = values.take_along_dim(first, -1)
    last = y.shape[-1] - 1 - (y == value).flip(-1).cast(int64).argmax(-1, keepdims=True)
    found = Ordered(value.movedim(-1, at), last.movedim(-1, at))
    return found if keepdims else Ordered(*(part.squeeze(at) for part in found))


@method
def nanmedian(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN where all are."""
    if axis is None:
        return x.flatten().nanmedian(0).values
    at = axis_of(axis, x.ndim, "nanmedian")
    values, indices = x.sort(at)
    middle = ((_counted(x, at) - 1) // 2).clip(0)
    found = Ordered(values.take_along_dim(middle, at), indices.take_along_dim(middle, at))
    return found if keepdims else Ordered(*(part.squeeze(at) for part in found))


@method
def nanquantile(x: Tensor, q: float | Sequence[float], axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where all are."""
    if np.ndim(q):
        return apply(
            lambda b, *nodes: b.concat(*nodes, axis=0),
            *(x.nanquantile(float(share), axis, keepdims).unsqueeze(0) for share in np.asarray(q)),
        )
    if not 0 <= float(q) <= 1:  # pyright: ignore[reportArgumentType]
        raise InputError(f"nanquantile: q is {q!r}, expected a number from 0 to 1, or some")
    if axis is None:
        found = x.flatten().nanquantile(q, 0)
        return found.reshape((1,) * x.ndim) if keepdims else found
    at = axis_of(axis, x.ndim, "nanquantile")
    values = x.sort(at).values
    place = ((_counted(x, at) - 1).clip(0) * q).cast(x.dtype)
    low, high = (values.take_along_dim(p.cast(int64), at) for p in (place.floor(), place.ceil()))
    found = low.lerp(high, place - place.floor())
    return found if keepdims else found.squeeze(at)


def _counted(x: Tensor, axis: int) -> Tensor:
    """How many elements along an axis are not NaN."""
    return x.isnan().logical_not().sum(axis, keepdims=True)


@method
def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:  # fmt: skip
    """The elements, or slices along an axis, that differ from the one before; the place of each in the result, and how many
    are equal."""
    y = x.flatten() if axis is None else x.movedim(axis, 0)
    rows = y.reshape(y.shape[0], -1)
    new = (rows[1:] != rows[:-1]).any(1)
    first = _joined([new[:0].logical_not(), new], 0) if not y.shape[0] else _joined([new.new_ones((1,)), new], 0)
    places = first.cast(int64).cumsum(0) - 1
    starts = first.nonzero().flatten()
    kept = y.take(starts, 0)
    found = [kept if axis is None else kept.movedim(0, axis)]
    if return_inverse:
        found.append(places.reshape(x.shape) if axis is None else places)
    if return_counts:
        found.append(_joined([starts, starts.new_full((1,), y.shape[0])], 0).diff())
    return found[0] if len(found) == 1 else tuple(found)


# --- parts replaced --------------------------------------------------------------------------------------------------


@method
def slice_scatter(
    x: Tensor, src: TensorLike, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:  # fmt: skip
    """The tensor with a slice along an axis replaced."""
    at = axis_of(axis, x.ndim, "slice_scatter")
    return x.at[(slice(None),) * at + (slice(start, end, step),)].set(src)


@method
def select_scatter(x: Tensor, src: TensorLike, axis: int, index: int) -> Tensor:
    """The tensor with the slice at an index along an axis replaced."""
    return x.at[(slice(None),) * axis_of(axis, x.ndim, "select_scatter") + (index,)].set(src)


@method
def index_put(x: Tensor, indices: Sequence[Any], values: TensorLike, accumulate: bool = False) -> Tensor:
    """The tensor with the elements at indices, one tensor for each axis, replaced, or with values added to them."""
    place = x.at[tuple(indices)]
    return place.add(values) if accumulate else place.set(values)


@method
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with elements where a mask holds replaced by those of another, in order."""
    holds = mask.broadcast_to(x.shape)
    places = holds.flatten().cast(int64).cumsum(0).reshape(x.shape) - 1
    return source.flatten().take(places.clip(0)).where(holds, x)


# --- products --------------------------------------------------------------------------------------------------------


@method
def addr(x: Tensor, vec1: TensorLike, vec2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · the products of each element of a vector with each of another."""
    y = vec2.new_tensor(vec1).outer(vec2) if not isinstance(vec1, Tensor) else vec1.outer(vec2)
    return (x * beta if beta else x.new_zeros(x.shape)) + y * alpha


@method
def matrix_power(x: Tensor, n: int) -> Tensor:
    """Every matrix of a stack times itself, n factors; of the inverse, if n is negative."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: got {show(x.shape)}, expected square matrices")
    square = x if n >= 0 else x.inverse()
    found: Tensor | None = None
    for bit in reversed(f"{abs(n):b}"):
        if bit == "1":
            found = square if found is None else found @ square
        square = square @ square
    return _unit(x) if found is None else found


def _unit(x: Tensor) -> Tensor:
    """Unit matrices of a stack's shape."""
    return x.new_ones(x.shape).tril().triu()


@method
def logdet(x: Tensor) -> Tensor:
    """The logarithm of the determinant of every matrix."""
    return x.det().log()


@method
def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements on a diagonal."""
    return x.flatten().diag(offset)


@method
def cosine_similarity(x: Tensor, other: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosines of the angles between vectors along an axis."""
    dots, first, second = ((a * b).sum(axis) for a, b in ((x, other), (x, x), (other, other)))
    return dots / (first.sqrt().clip(eps) * second.sqrt().clip(eps))


# --- pieces and names ------------------------------------------------------------------------------------------------


@method
def hsplit(x: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 1, of a vector along axis 0."""
    return x.tensor_split(sections, 1 if x.ndim > 1 else 0)


@method
def vsplit(x: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 0."""
    return x.tensor_split(sections, 0)


@method
def dsplit(x: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along axis 2."""
    return x.tensor_split(sections, 2)


@method
def rsub(x: Tensor, other: TensorLike, alpha: Number = 1) -> Tensor:
    """other − alpha · x."""
    return other - x * alpha  # pyright: ignore[reportReturnType]


@method
def cumulative_trapezoid(x: Tensor, dx: Number = 1, axis: int = -1) -> Tensor:
    """The integral up to each point along an axis, by the trapezoidal rule, of points that are dx apart."""
    at = axis_of(axis, x.ndim, "cumulative_trapezoid")
    whole = (slice(None),) * at
    return ((x[(*whole, slice(1, None))] + x[(*whole, slice(None, -1))]) * (dx / 2)).cumsum(at)


@method
def is_nonzero(x: Tensor) -> bool:
    """Whether the only element is not 0."""
    return bool(x.item())


@method
def selu(x: Tensor) -> Tensor:
    """Scaled exponential linear units."""
    return 1.0507009873554805 * x.where(x > 0, 1.6732632423543772 * x.clip(None, 0.0).expm1())


@method
def threshold(x: Tensor, threshold: Number, value: Number) -> Tensor:
    """The elements above a threshold; a value in place of the others."""
    return x.where(x > threshold, value)


@method
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """The elements above 0; the others times a weight, of which there is one for all or one for each channel (axis 1)."""
    slope = weight.reshape(-1, *(1,) * (x.ndim - 2)) if weight.size > 1 and x.ndim > 1 else weight
    return x.where(x > 0, x * slope)


@method
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Channels spread over r × r pixels each: (…, C · r², H, W) → (…, C, H · r, W · r)."""
    *lead, c, h, w = x.shape
    r, n = upscale_factor, len(x.shape) - 3
    y = x.reshape(*lead, c // (r * r), r, r, h, w)
    return y.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // (r * r), h * r, w * r)


@method
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """What undoes pixel_shuffle."""
    *lead, c, h, w = x.shape
    r, n = downscale_factor, len(x.shape) - 3
    y = x.reshape(*lead, c, h // r, r, w // r, r)
    return y.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r)


alias("ger", Tensor.outer)
