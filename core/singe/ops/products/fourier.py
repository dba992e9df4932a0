"""Discrete Fourier transforms as matrix products: dft and stft; and the matrix of mel filters.

Complex numbers are pairs along the last axis, which has length 1 for real numbers. A short transform is a product with
its matrix. A longer one of length p · q is q transforms of length p, then p of length q; one whose length has only large
factors is a convolution (Bluestein's algorithm), by transforms of a power of two. A transform of open length is a product
with a matrix that the run computes.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...dtypes import FLOATS, float32, int32
from ...errors import ShapeError
from ...shapes import Dim, Shape, axis_of, dim_min, floordiv, product, require, show
from ..kinds import OPEN_RESULT, Composite, Opaque, Results, Shaped, as_dtype, register
from ..movement.move import amount, numbered
from ..movement.move import inverse as undone

MAX_DIRECT_LENGTH: Final = 128
"""The longest transform that is one product."""
MAX_PRIME_LENGTH: Final = 512
"""The longest transform of prime length that is one product."""
MAX_MEL: Final = 1 << 26
"""The most elements of a matrix of mel filters."""


def _pairs(z: np.ndarray) -> np.ndarray:
    return np.stack([np.real(z), np.imag(z)], -1)


def _matrix(length: int, parts: int, sign: int) -> np.ndarray:
    """The transform as a matrix of reals: rows are the numbers of a signal, of `parts` parts each, columns those of its
    transform, of two parts each."""
    turns = np.outer(np.arange(length), np.arange(length)) % length
    z = np.exp(sign * 2j * np.pi * turns / length)
    rows = np.stack([_pairs(z), _pairs(1j * z)], 1)  # (length, part, length, part)
    return rows[:, :parts].reshape(length * parts, 2 * length)


def _times(b: Any, x: Any, z: np.ndarray) -> Any:
    """Complex numbers, or real ones, times complex constants."""
    if x.shape[-1] == 1:
        return b.mul(x, b.const(_pairs(z), x.dtype))
    rank = len(x.shape)
    swapped = b.slice(x, starts=(*(0,) * (rank - 1), 1), steps=(*(1,) * (rank - 1), -1), sizes=x.shape)
    same, crossed = np.stack([np.real(z), np.real(z)], -1), np.stack([-np.imag(z), np.imag(z)], -1)
    return b.add(b.mul(x, b.const(same, x.dtype)), b.mul(swapped, b.const(crossed, x.dtype)))


def _first(b: Any, x: Any, axis: int, count: Dim) -> Any:
    """The first elements of an axis, with zeros after it if it is shorter."""
    rank, d = len(x.shape), x.shape[axis]
    least, none = dim_min(d, count), (0,) * rank
    if least != d:
        x = b.slice(x, starts=none, steps=(1,) * rank, sizes=_with(x.shape, axis, least))
    if least == count:
        return x
    return b.pad(x, b.const(0, x.dtype), before=none, after=_with(none, axis, count - least), mode="constant")


def _with(shape: Shape, axis: int, d: Dim) -> Shape:
    return (*shape[:axis], d, *shape[axis + 1 :])


def _transform(b: Any, x: Any, sign: int) -> Any:
    """The transforms of signals (rows, length, parts), as (rows, length, 2), without a factor."""
    rows, length, parts = x.shape
    if not isinstance(length, int):
        return _open(b, x, sign)
    first = _factor(length)
    if first == 1 and length <= MAX_PRIME_LENGTH:
        flat = b.reshape(x, shape=(rows, length * parts))
        return b.reshape(b.dot(flat, b.const(_matrix(length, parts, sign), x.dtype)), shape=(rows, length, 2))
    if first == 1:
        return _by_convolution(b, x, sign)
    # Number a · second + c of the signal goes to number i + first · k of the transform.
    second = length // first
    x = b.transpose(b.reshape(x, shape=(rows, first, second, parts)), perm=(0, 2, 1, 3))
    x = b.dot(b.reshape(x, shape=(rows, second, first * parts)), b.const(_matrix(first, parts, sign), x.dtype))
    turns = np.outer(np.arange(second), np.arange(first))
    x = _times(b, b.reshape(x, shape=(rows, second, first, 2)), np.exp(sign * 2j * np.pi * turns / length))
    x = b.reshape(b.transpose(x, perm=(0, 2, 1, 3)), shape=(rows * first, second, 2))
    x = b.reshape(_transform(b, x, sign), shape=(rows, first, second, 2))
    return b.reshape(b.transpose(x, perm=(0, 2, 1, 3)), shape=(rows, length, 2))


def _factor(length: int) -> int:
    """The length of the first of two shorter transforms: the divisor nearest the root; 1: the transform is not divided."""
    if length <= MAX_DIRECT_LENGTH:
        return 1
    divisors = [d for d in range(2, min(MAX_DIRECT_LENGTH, math.isqrt(length)) + 1) if length % d == 0]
    return max(divisors, default=1)


def _by_convolution(b: Any, x: Any, sign: int) -> Any:
    """From 2·n·k = n² + k² − (k − n)², the transform is a convolution between two multiplications."""
    length = x.shape[1]
    size = 1 << (2 * length - 2).bit_length()
    squares = np.arange(length, dtype=np.int64) ** 2 % (2 * length)
    chirp = np.exp(sign * 1j * np.pi * squares / length)
    response = np.zeros(size, complex)
    response[:length] = chirp.conj()
    response[size - length + 1 :] = chirp[:0:-1].conj()
    x = _first(b, _times(b, x, chirp), 1, size)
    x = _times(b, _transform(b, x, -1), np.fft.fft(response) / size)
    return _times(b, _first(b, _transform(b, x, 1), 1, length), chirp)


def _open(b: Any, x: Any, sign: int) -> Any:
    rows, length, parts = x.shape
    numbers = numbered(b, length)
    turns = b.mul(b.reshape(numbers, shape=(length, 1)), numbers)
    turns = b.sub(turns, b.mul(b.div(turns, b.const(length, int32)), b.const(length, int32)))
    # As sines of angles up to a right one, so that zeros are exact: turns / length is a part of a whole turn.
    whole = b.const(length, int32)
    back = b.sub(whole, turns)
    twice = b.mul(b.minimum(turns, back), b.const(2, int32))
    half_sine, cosine = b.minimum(twice, b.sub(whole, twice)), b.sub(whole, b.mul(twice, b.const(2, int32)))
    side = b.where(b.less(back, turns), b.const(-sign, x.dtype), b.const(sign, x.dtype))
    unit = b.div(b.const(math.pi / 2, x.dtype), amount(b, length, x.dtype))
    imaginary = b.mul(side, b.sin(b.mul(b.cast(b.mul(half_sine, b.const(2, int32)), to=x.dtype), unit)))
    real = b.sin(b.mul(b.cast(cosine, to=x.dtype), unit))
    real, imaginary = (b.reshape(v, shape=(length, 1, length, 1)) for v in (real, imaginary))
    matrix = b.concat(real, imaginary, axis=3)
    if parts == 2:
        matrix = b.concat(matrix, b.concat(b.neg(imaginary), real, axis=3), axis=1)
    matrix = b.reshape(matrix, shape=(length * parts, length * 2))
    return b.reshape(b.dot(b.reshape(x, shape=(rows, length * parts)), matrix), shape=(rows, length, 2))


def _mirrored(b: Any, x: Any, length: Dim) -> Any:
    """The transform (rows, length, 2) of a real signal from its first half: the rest are conjugates, backwards."""
    rows, half, _ = x.shape
    rest = length - half
    back = b.slice(x, starts=(0, rest, 0), steps=(1, -1, 1), sizes=(rows, rest, 2))
    return b.concat(x, b.mul(back, b.const(np.array([1, -1]), x.dtype)), axis=1)


def _dft(
    b: Any, x: Any, *, axis: int = -2, length: Dim | None = None, inverse: bool = False, onesided: bool = False
) -> Any:
    rank = len(x.shape)
    axis = axis_of(axis, rank, "dft")
    parts = x.shape[-1]
    text = f"dft: axis {axis} of {show(x.shape)}; expected an axis before the last, which has 1 or 2 parts"
    if axis == rank - 1:
        raise ShapeError(text)
    for room in (parts - 1, 2 - parts):
        require(room, text)
    if not isinstance(parts, int):
        x, parts = _first(b, x, rank - 1, 2), 2
    whole = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    count = whole if length is None else length
    if isinstance(count, int) and count < 1:
        raise ShapeError(f"dft: the length is {count}, expected at least 1")
    kind = x.dtype
    x = as_dtype(b, x, kind.compute)
    half = floordiv(count, 2) + 1
    perm = (*(i for i in range(rank) if i != axis and i != rank - 1), axis, rank - 1)
    x = b.transpose(x, perm=perm)
    others = x.shape[:-2]
    x = b.reshape(x, shape=(product(others), *x.shape[-2:]))
    x = _first(b, x, 1, half if inverse and onesided else count)
    if inverse and onesided:
        x = _mirrored(b, x if parts == 2 else _first(b, x, 2, 2), count)
    x = _transform(b, x, 1 if inverse else -1)
    if inverse:
        x = b.div(x, amount(b, count, x.dtype))
        x = _first(b, x, 2, 1) if onesided else x
    elif onesided:
        x = _first(b, x, 1, half)
    x = b.reshape(x, shape=(*others, *x.shape[1:]))
    return as_dtype(b, b.transpose(x, perm=undone(perm)), kind)


def _stft(b: Any, x: Any, window: Any = None, *, length: Dim, step: Dim, onesided: bool = True) -> Any:
    """x (batch, numbers, parts) in windows of `length` numbers that begin every `step` numbers, each transformed:
    (batch, windows, frequencies, 2)."""
    if len(x.shape) != 3:
        raise ShapeError(f"stft: got {show(x.shape)}, expected (batch, numbers, parts)")
    kind = x.dtype
    x = as_dtype(b, x, kind.compute)
    x = b.transpose(b.unfold(x, axis=1, length=length, step=step), perm=(0, 1, 3, 2))
    if window is not None:
        if len(window.shape) != 1:
            raise ShapeError(f"stft: the window is {show(window.shape)}, expected a vector")
        weights = _first(b, as_dtype(b, window, x.dtype), 0, length)
        x = b.mul(x, b.reshape(weights, shape=(length, 1)))
    return as_dtype(b, b.dft(x, axis=2, onesided=onesided), kind)


# --- mel filters -----------------------------------------------------------------------------------------------------


def _mel_shapes(bins: Shaped, length: Shaped, rate: Shaped, low: Shaped, high: Shaped) -> Results:
    for x in (bins, length, rate, low, high):
        if product(x.shape) != 1:
            raise ShapeError(f"mel_weight_matrix: an input is {show(x.shape)}, expected one number")
    return (((None, None), float32),)


def _mel(bins: np.ndarray, length: np.ndarray, rate: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The weights (frequencies, bins) of triangles that are evenly spaced on the mel scale."""
    count, numbers, hertz = (int(v.reshape(-1)[0]) for v in (bins, length, rate))
    rows = numbers // 2 + 1
    if count < 0 or numbers < 0 or hertz < 1 or count * rows > MAX_MEL:
        raise ShapeError(f"mel_weight_matrix: {count} bins of transforms of {numbers} numbers at {hertz} hertz")
    first, last = (2595 * np.log10(1 + float(v.reshape(-1)[0]) / 700) for v in (low, high))
    mels = first + np.arange(count + 2) * (last - first) / (count + 2)
    edges = np.floor((numbers + 1) * 700 * (10 ** (mels / 2595) - 1) / hertz)
    begin, top, end = edges[:-2], edges[1:-1], edges[2:]
    at = np.arange(rows)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.where(top == begin, at == top, (at - begin) / (top - begin))
        falling = (end - at) / (end - top)
    weights = np.where((at >= begin) & (at <= top), rising, 0)
    return np.where((at >= top) & (at < end), falling, weights).astype(np.float32)


register(
    Composite(name="dft", doc="discrete Fourier transforms along an axis; the last axis has the real and the imaginary part",
              dtypes=FLOATS, lower=_dft, tolerance=64, floor=2e-4),
    Composite(name="stft", doc="the transforms of overlapping parts of signals, each part weighted by a window", dtypes=FLOATS,
              lower=_stft, tolerance=64, floor=2e-4),
    Opaque(name="mel_weight_matrix", doc="weights that make bins on the mel scale of the frequencies of a transform", host=OPEN_RESULT,
        no_gradient="its inputs are a number of bands, a length and a rate",
           results=_mel_shapes, on_host=_mel),
)  # fmt: skip
