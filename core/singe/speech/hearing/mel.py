"""The power of sounds in bands of frequencies, as rows of the Graph: `fbank` is Kaldi's, `mel_power` librosa's.

Of samples from −1 to 1, `fbank` is within 2e-3 of kaldi-native-fbank and `mel_power` within 1e-5 of the loudest band of librosa, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Final

import numpy as np

from ...errors import InputError
from ...tensors.functions.creation import concat, stack, tensor
from ...tensors.tensor import Tensor

EPSILON: Final = float(np.finfo(np.float32).eps)
"""Kaldi's least power."""
_PREEMPHASIS: Final = 0.97
_LOWEST: Final = 20.0
"""Hertz, of Kaldi's bands."""
_WINDOW_POWERS: Final[Mapping[str, float]] = {"hanning": 1.0, "povey": 0.85}
"""Kaldi's windows ↦ to which power of Hann's they are."""


def slaney_bands(rate: int, length: int, bands: int) -> np.ndarray:
    """How much each frequency of a transform of so many samples counts in each band (frequencies, bands): triangles, evenly spaced up to
    1000 Hz and by logarithm above, each of area 1."""
    linear, ratio = 3 / 200, np.log(6.4) / 27
    last = 1000 * linear + np.log(rate / 2 / 1000) / ratio
    places = np.linspace(0, last, bands + 2)
    edges = np.where(places < 15, places / linear, 1000 * np.exp(ratio * (places - 15)))
    return _triangles(np.fft.rfftfreq(length, 1 / rate), edges) * 2 / (edges[2:] - edges[:-2])


def kaldi_bands(rate: int, length: int, bands: int) -> np.ndarray:
    """Triangles of height 1 (frequencies, bands), even on the scale 1127 ln(1 + f / 700), from _LOWEST to the highest frequency."""
    frequencies = 1127 * np.log1p(np.fft.rfftfreq(length, 1 / rate) / 700)
    ends = 1127 * np.log1p(np.array([_LOWEST, rate / 2]) / 700)
    return _triangles(frequencies, np.linspace(ends[0], ends[1], bands + 2))


def _triangles(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    low, center, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (places[:, None] - low) / (center - low), (high - places[:, None]) / (high - center)
    return np.maximum(0, np.minimum(rising, falling))


def kaldi_window(name: str, length: int) -> np.ndarray:
    """A row of _WINDOW_POWERS."""
    if name not in _WINDOW_POWERS:
        raise InputError(f"fbank: window {name!r:.40}, expected {' or '.join(_WINDOW_POWERS)}")
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))
    return hann ** _WINDOW_POWERS[name]


def frames_of(samples: Tensor, length: int, step: int) -> Tensor:
    """Of (rows, count): the frames that are complete, (rows, frames, length)."""
    part = gcd(length, step)
    rows, count = samples.shape
    frames = 1 + (int(count) - length) // step
    used = samples[:, : (frames - 1) * step + length].reshape(rows, -1, part)
    every = step // part
    shifted = [used[:, k : k + (frames - 1) * every + 1 : every] for k in range(length // part)]
    return stack(shifted, 2).reshape(rows, frames, length)


def fbank(samples: Tensor, rate: int, bands: int, window: str = "povey") -> Tensor:
    """The logarithms of the power in bands, (rows, frames, bands), of (rows, count), as Kaldi's fbank without dither: frames of 25 ms each
    10 ms, without their mean, with the high frequencies raised."""
    length, step = rate // 40, rate // 100
    size = 1 << (length - 1).bit_length()
    frames = frames_of(samples, length, step)
    frames = frames - frames.mean(2, keepdims=True)
    frames = frames - concat([frames[:, :, :1], frames[:, :, :-1]], 2) * _PREEMPHASIS
    weighed = (frames * tensor(kaldi_window(window, length).astype(np.float32))).pad(
        ((0, 0), (0, 0), (0, size - length))
    )
    power = _power(weighed) @ tensor(kaldi_bands(rate, size, bands).astype(np.float32))
    return power.maximum(EPSILON).log()


def mel_power(samples: Tensor, rate: int, length: int, step: int, bands: int) -> Tensor:
    """The power in bands, (rows, frames, bands), of (rows, count), as librosa's melspectrogram of a sound that has the margins already."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    weighed = frames_of(samples, length, step) * tensor(hann.astype(np.float32))
    return _power(weighed) @ tensor(slaney_bands(rate, length, bands).astype(np.float32))


def _power(frames: Tensor) -> Tensor:
    """Of (rows, frames, length): the power of each frequency."""
    rows, count, length = frames.shape
    transformed = frames.reshape(-1, length, 1).dft(axis=1, onesided=True)
    return transformed.square().sum(2).reshape(rows, count, length // 2 + 1)
