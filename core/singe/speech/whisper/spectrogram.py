"""The spectrogram that Whisper hears: of samples, the logarithm of their power in bands of frequencies."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...nn import Module
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from ..hearing.mel import slaney_bands

RATE: Final = 16_000
STEP: Final = 160
"""Samples from one frame to the next."""
LENGTH: Final = 400
"""Samples of a frame."""
MARGIN: Final = LENGTH // 2
"""Samples of a frame before its time."""
_LEAST: Final = 1e-10


class BandPowers(Module, buffers=("window", "weights")):
    """Samples (STEP · n + LENGTH − STEP,) ↦ the base-10 logarithms of their power (n, bands)."""

    window: Tensor
    weights: Tensor

    def __init__(self, bands: int) -> None:
        turns = np.arange(LENGTH) / LENGTH
        self.window = tensor((0.5 - 0.5 * np.cos(2 * np.pi * turns)).astype(np.float32))
        self.weights = tensor(slaney_bands(RATE, LENGTH, bands).astype(np.float32))

    def forward(self, samples: Tensor) -> Tensor:
        parts = samples.reshape(1, -1, 1).stft(self.window, length=LENGTH, step=STEP)
        power = parts.square().sum(-1)[0]
        return (power @ self.weights).maximum(_LEAST).log10()


def frames_of(count: int) -> int:
    """How many frames so many samples have."""
    return count // STEP


def sample_count(frames: int) -> int:
    """Samples of a window of so many frames, with those around it that its frames need."""
    return frames * STEP + LENGTH - STEP


def samples_for(samples: np.ndarray, first: int, count: int) -> np.ndarray:
    """The samples of `count` frames from the frame `first` on: before the sound it is mirrored, after it there is silence."""
    begin = first * STEP - MARGIN
    found = np.zeros(sample_count(count), np.float32)
    inside = samples[max(begin, 0) : max(begin + len(found), 0)]
    found[max(-begin, 0) : max(-begin, 0) + len(inside)] = inside
    if begin < 0:
        mirrored = samples[1 : 1 - begin][::-1]
        found[-begin - len(mirrored) : -begin] = mirrored
    return found
