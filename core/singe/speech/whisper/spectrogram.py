"""The spectrogram that Whisper hears: of samples, the logarithm of their power in bands of frequencies."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...nn import Module
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor

RATE: Final = 16_000
STEP: Final = 160
"""Samples from one frame to the next."""
LENGTH: Final = 400
"""Samples of a frame."""
MARGIN: Final = LENGTH // 2
"""Samples of a frame before its time."""
_LEAST: Final = 1e-10


def band_weights(bands: int) -> np.ndarray:
    """How much each frequency of a frame counts in each band (frequencies, bands): triangles, evenly spaced up to 1000 Hz and by
    logarithm above, each of area 1."""
    linear, ratio = 3 / 200, np.log(6.4) / 27
    last = 1000 * linear + np.log(RATE / 2 / 1000) / ratio
    places = np.linspace(0, last, bands + 2)
    edges = np.where(places < 15, places / linear, 1000 * np.exp(ratio * (places - 15)))
    frequencies = np.fft.rfftfreq(LENGTH, 1 / RATE)[:, None]
    low, center, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (frequencies - low) / (center - low), (high - frequencies) / (high - center)
    return np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)


class BandPowers(Module, buffers=("window", "weights")):
    """Samples (STEP · n + LENGTH − STEP,) ↦ the base-10 logarithms of their power (n, bands)."""

    window: Tensor
    weights: Tensor

    def __init__(self, bands: int) -> None:
        turns = np.arange(LENGTH) / LENGTH
        self.window = tensor((0.5 - 0.5 * np.cos(2 * np.pi * turns)).astype(np.float32))
        self.weights = tensor(band_weights(bands).astype(np.float32))

    def forward(self, samples: Tensor) -> Tensor:
        parts = samples.reshape(1, -1, 1).stft(self.window, length=LENGTH, step=STEP)
        power = parts.square().sum(-1)[0]
        return (power @ self.weights).maximum(_LEAST).log10()


def frames_of(count: int) -> int:
    """How many frames so many samples have."""
    return count // STEP


def samples_for(samples: np.ndarray, first: int, count: int) -> np.ndarray:
    """The samples of `count` frames from the frame `first` on: before the sound it is mirrored, after it there is silence."""
    begin = first * STEP - MARGIN
    found = np.zeros(count * STEP + LENGTH - STEP, np.float32)
    inside = samples[max(begin, 0) : max(begin + len(found), 0)]
    found[max(-begin, 0) : max(-begin, 0) + len(inside)] = inside
    if begin < 0:
        mirrored = samples[1 : 1 - begin][::-1]
        found[-begin - len(mirrored) : -begin] = mirrored
    return found
