"""The features of TensorFlow's micro frontend, to the integer: what wake words for microcontrollers hear.

Samples are integers of 16 bits. Each frame is weighed, transformed and summed in bands in fixed point; the noise that lasts is subtracted, loud
and quiet are brought together, and the logarithm is taken, all with the roundings and the tables of the C library, so that the features are
the same integers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ...tensors.functions.creation import concat, stack, tensor, where
from ...tensors.tensor import Tensor

RATE: Final = 16_000
STEP: Final = 160
"""Samples from one frame to the next."""
LENGTH: Final = 480
"""Samples of a frame."""
BANDS: Final = 40
SCALE: Final = 0.0390625
"""What a feature is multiplied with for the models."""

_SIZE: Final = 512
"""Numbers of a transform."""
_LOWEST, _HIGHEST = 125.0, 7500.0
_WEIGHT_BITS: Final = 12
_FRACTION: Final = 15
"""The bits behind the point in the transform."""
_SMOOTHING_BITS: Final = 10
_NOISE_BITS: Final = 14
_SMOOTHING: Final = (0.025, 0.06)
"""How fast the noise is learnt, in even and in odd bands."""
_REMAINS: Final = 0.05
"""What is left of a band at least."""
_GAIN_BITS, _GAIN_OFFSET, _GAIN_STRENGTH = 21, 80.0, -0.95
_CORRECTION: Final = 3
"""The bits by which sums of bands are smaller than the samples."""
_SNR_BITS, _OUTPUT_BITS = 12, 6
_LOG_BITS: Final = 16
_LOG_SEGMENTS: Final = 7
_LOG_E: Final = 45426
"""The natural logarithm of 2, with 16 bits behind the point."""
_PART_BITS: Final = 15
"""Of the lower part of the noise that is known: float32 holds it in two parts."""


def _window() -> np.ndarray:
    """In float32, as the library has it: 0.5 of a unit decides what one weight is."""
    turns = (np.float32(2 * np.pi / LENGTH) * (np.arange(LENGTH, dtype=np.float32) + np.float32(0.5))).astype(
        np.float32
    )
    half = np.float32(0.5)
    return np.floor((half - half * np.cos(turns)).astype(np.float64) * (1 << _WEIGHT_BITS) + 0.5).astype(np.int32)


def _turns(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cosines and sines of minus so many parts of a turn."""
    most = (1 << _FRACTION) - 1
    angles = -2 * np.pi * places
    return tuple(np.floor(0.5 + most * f(angles)).astype(np.int32) for f in (np.cos, np.sin))  # pyright: ignore[reportReturnType]


def _mel(frequency: float) -> np.float32:
    return np.float32(np.float32(1127) * np.log1p(np.float32(frequency) / np.float32(700)))


def _bands() -> np.ndarray:
    """How much each frequency counts in each band (frequencies, bands)."""
    low, high = _mel(_LOWEST), _mel(_HIGHEST)
    width = np.float32((high - low) / np.float32(BANDS + 1))
    centers = [np.float32(low + width * np.float32(k + 1)) for k in range(BANDS + 1)]
    weights = np.zeros((_SIZE // 2 + 1, BANDS + 2), np.int64)
    hertz = RATE / _SIZE
    place = int(1.5 + _LOWEST / hertz)
    for band, center in enumerate(centers):
        before = low if band == 0 else centers[band - 1]
        while (mel := _mel(place * hertz)) <= center:
            share = np.float32((center - mel) / (center - before))
            weights[place, band] += int(np.floor(float(share) * (1 << _WEIGHT_BITS) + 0.5))
            weights[place, band + 1] += int(np.floor(float(np.float32(1) - share) * (1 << _WEIGHT_BITS) + 0.5))
            place += 1
    return weights[:, 1 : BANDS + 1]


def _gain(x: int) -> int:
    level = np.float32(np.float32(x) / np.float32(1 << (_SMOOTHING_BITS - _CORRECTION))) + np.float32(_GAIN_OFFSET)
    gain = np.float32(1 << _GAIN_BITS) * np.power(level, np.float32(_GAIN_STRENGTH), dtype=np.float32)
    return min(int(gain + np.float32(0.5)), (1 << 15) - 1)


def _gains() -> np.ndarray:
    """The gain of noise as a parabola for each count of bits."""
    rows = [(_gain(0), 0, 0), (_gain(1), 0, 0)]
    for bits in range(2, 33):
        start = 1 << (bits - 1)
        y = [_gain(x) for x in (start, start + start // 2, 2 * start - (bits == 32))]
        slope = 4 * (y[1] - y[0]) - (y[2] - y[0])
        rows.append((y[0], slope, y[2] - y[0] - slope))
    return np.array(rows, np.int64)


def _logarithms() -> np.ndarray:
    """By how much the base-2 logarithm of 1 + x is more than x."""
    x = np.arange((1 << _LOG_SEGMENTS) + 1) / (1 << _LOG_SEGMENTS)
    return np.append(np.round((np.log2(1 + x) - x) * (1 << _LOG_BITS)), 0).astype(np.int64)


def _bit_count(x: Tensor, most: int) -> Tensor:
    """The bits that numbers from 0 to 2 ** most − 1 have."""
    return (x.unsqueeze(-1) >= tensor(1 << np.arange(most, dtype=np.int64))).to(dtype="int64").sum(-1)


_POWERS: Final = 1 << np.arange(48, dtype=np.int64)


def _up(x: Tensor, bits: Tensor) -> Tensor:
    return x * tensor(_POWERS)[bits.maximum(0)]


def _down(x: Tensor, bits: Tensor) -> Tensor:
    """Of numbers from 0 on."""
    return x // tensor(_POWERS)[bits.maximum(0)]


# --- the spectrum -----------------------------------------------------------------------------------------------------


Pair = tuple[Tensor, Tensor]
"""Real and imaginary parts."""


def _rounded(x: Tensor) -> Tensor:
    return (x + (1 << (_FRACTION - 1))) >> _FRACTION


def _divided(x: Pair, by: int) -> Pair:
    most = ((1 << _FRACTION) - 1) // by
    return _rounded(x[0] * most), _rounded(x[1] * most)


def _product(a: Pair, b: Pair) -> Pair:
    return _rounded(a[0] * b[0] - a[1] * b[1]), _rounded(a[0] * b[1] + a[1] * b[0])


def _sum(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _transform(x: Pair, count: int) -> Pair:
    """Of (rows, blocks, count): each block's transform, divided by its count; by fours, the first step of the smallest parts first."""
    if count == 1:
        return x
    rows, blocks = x[0].shape[0], x[0].shape[1]
    quarter = count // 4

    def dealt(part: Tensor) -> Tensor:
        return part.reshape(rows, blocks, quarter, 4).permute(0, 1, 3, 2).reshape(rows, blocks * 4, quarter)

    real, imaginary = _transform((dealt(x[0]), dealt(x[1])), quarter)
    real, imaginary = (part.reshape(rows, blocks, 4, quarter) for part in (real, imaginary))
    parts = [_divided((real[:, :, k], imaginary[:, :, k]), 4) for k in range(4)]
    places = np.arange(quarter) / count
    turned = [
        _product(parts[k], (tensor(turn[0]), tensor(turn[1]))) for k in (1, 2, 3) for turn in (_turns(k * places),)
    ]
    even, odd = _sum(parts[0], turned[1]), _difference(parts[0], turned[1])
    both, apart = _sum(turned[0], turned[2]), _difference(turned[0], turned[2])
    quarters = (
        _sum(even, both), (odd[0] + apart[1], odd[1] - apart[0]), _difference(even, both), (odd[0] - apart[1], odd[1] + apart[0])
    )  # fmt: skip
    return concat([q[0] for q in quarters], -1), concat([q[1] for q in quarters], -1)


def _energies(frames: Tensor) -> Tensor:
    """Of integers (rows, _SIZE): the power of each frequency (rows, _SIZE / 2 + 1)."""
    half = _SIZE // 2
    pairs = frames.reshape(-1, half, 2).unsqueeze(1)
    x = tuple(part.squeeze(1) for part in _transform((pairs[..., 0], pairs[..., 1]), half))
    first = _divided((x[0][:, :1], x[1][:, :1]), 2)
    ends = first[0] + first[1], first[0] - first[1]
    middle = half // 2
    forward = _divided((x[0][:, 1 : middle + 1], x[1][:, 1 : middle + 1]), 2)
    mirrored = tuple(part[:, middle:].flip(1) for part in x)
    backward = _divided((mirrored[0], -mirrored[1]), 2)
    even, odd = _sum(forward, backward), _difference(forward, backward)
    turns = _turns((np.arange(1, middle + 1) / half + 0.5) / 2)
    turned = _product(odd, (tensor(turns[0]), tensor(turns[1])))
    lower = [(even[k] + turned[k]) >> 1 for k in range(2)]
    upper = [(even[0] - turned[0]) >> 1, (turned[1] - even[1]) >> 1]
    power = [part[0] * part[0] + part[1] * part[1] for part in (lower, upper)]
    # the frequency in the middle is in both halves, and the library writes that of the upper one last
    return concat([ends[0] * ends[0], power[0][:, :-1], power[1].flip(1), ends[1] * ends[1]], 1)


def _root(x: Tensor) -> Tensor:
    """The nearest integer to the square root of integers under 2 ** 48."""
    root = x.to(dtype="float32").sqrt().to(dtype="int64")
    for _ in range(2):
        rest = x - root * root
        root = root + (rest > root).to(dtype="int64") - (rest <= -root).to(dtype="int64") * (root > 0).to(dtype="int64")
    return root


# --- the features -----------------------------------------------------------------------------------------------------


def _logged(x: Tensor) -> Tensor:
    """64 times the natural logarithm."""
    bits = _bit_count(x, 32) - 1
    rest = x - tensor(_POWERS)[bits.maximum(0)]
    rest = _down(_up(rest, _LOG_BITS - bits), bits - _LOG_BITS).maximum(0)
    segment = rest >> (_LOG_BITS - _LOG_SEGMENTS)
    table = tensor(_logarithms())
    here, there = table[segment], table[segment + 1]
    between = ((there - here) * (rest - (segment << (_LOG_BITS - _LOG_SEGMENTS)))) >> _LOG_BITS
    base2 = bits * (1 << _LOG_BITS) + rest + here + between
    half = 1 << (_LOG_BITS - 1)
    logarithm = (_LOG_E * base2 + half) >> _LOG_BITS
    return ((logarithm << _OUTPUT_BITS) + half) >> _LOG_BITS


def micro_features(samples: Tensor, frames: int, noise: Tensor) -> tuple[Tensor, Tensor]:
    """The features (frames, BANDS), as numbers for a model, of samples (STEP · frames + LENGTH − STEP,) from −1 to 1, and the noise that is
    known then; noise: (2, BANDS), zeros at the beginning: what is known before, in parts that float32 holds."""
    whole = (samples * 32768.0).round().clip(-32768.0, 32767.0).to(dtype="int32")
    rows = stack([whole[k * STEP : k * STEP + LENGTH] for k in range(frames)], 0)
    weighed = (rows * tensor(_window())) >> _WEIGHT_BITS
    loudest = weighed.abs().minimum((1 << _FRACTION) - 1).amax(1, keepdims=True).to(dtype="int64")
    shift = _FRACTION - _bit_count(loudest, _FRACTION + 1)
    lifted = _up(weighed.to(dtype="int64"), shift).to(dtype="int32").pad(((0, 0), (0, _SIZE - LENGTH)))
    sums = _energies(lifted).to(dtype="int64") @ tensor(_bands())
    signal = _down(_root(sums), shift)

    scaled = signal << _SMOOTHING_BITS
    smoothing = tensor(np.array([int(_SMOOTHING[k % 2] * (1 << _NOISE_BITS)) for k in range(BANDS)], np.int64))
    known = (noise[0].to(dtype="int64") << _PART_BITS) + noise[1].to(dtype="int64")
    learnt: list[Tensor] = []
    for k in range(frames):
        known = (scaled[k] * smoothing + known * ((1 << _NOISE_BITS) - smoothing)) >> _NOISE_BITS
        learnt.append(known)
    estimate = stack(learnt, 0)
    least = (signal * int(_REMAINS * (1 << _NOISE_BITS))) >> _NOISE_BITS
    signal = ((scaled - estimate.minimum(scaled)) >> _SMOOTHING_BITS).maximum(least)

    bits = _bit_count(estimate, 32)
    place = _down(_up(estimate, 11 - bits), bits - 11) & 0x3FF
    parabola = tensor(_gains())[bits]
    gain = (((parabola[..., 2] * place) >> 5) + (parabola[..., 1] << 5)) * place
    gain = ((gain + (1 << 14)) >> 15) + parabola[..., 0]
    ratio = (signal * gain) >> (_GAIN_BITS - _CORRECTION - _SNR_BITS)
    small = (ratio.minimum(2 << _SNR_BITS) * ratio.minimum(2 << _SNR_BITS)) >> (2 + 2 * _SNR_BITS - _OUTPUT_BITS)
    large = (ratio >> (_SNR_BITS - _OUTPUT_BITS)) - (1 << _OUTPUT_BITS)
    shrunk = where(ratio < (2 << _SNR_BITS), small, large) << _CORRECTION

    features = where(shrunk > 1, _logged(shrunk.maximum(1)), 0).minimum((1 << 16) - 1)
    kept = stack([known >> _PART_BITS, known & ((1 << _PART_BITS) - 1)], 0).to(dtype="float32")
    return features.to(dtype="float32") * SCALE, kept
