"""Sound: the samples of one channel, and how many of them there are in a second. What all readers of this room share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ...errors import InputError
from ...late_dataclass import dataclass
from .resampling import resample

MAX_FRAMES: Final = 1 << 28
"""The most frames of a sound, which has a sample for each channel in each: an hour and a half at 48,000 a second. Files that
claim more are refused before memory is taken."""
RATES: Final = range(1_000, 1_000_001)
"""The rates that sounds may have: others are damage, and would ask for any amount of memory."""
LOUDEST: Final = 100.0
"""Samples of floats may exceed 1 somewhat; damaged ones, and integers that became floats, do so by orders of magnitude."""
PART: Final = 1 << 20
"""So many frames are converted at a time."""


@dataclass(frozen=True)
class Sound:
    """samples: float32, around −1 to 1, of one channel. rate: samples a second."""

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    def at(self, rate: int) -> Sound:
        """The same sound with `rate` samples a second."""
        return self if rate == self.rate else Sound(resample(self.samples, self.rate, rate), rate)


def check_frames(count: int, name: object) -> None:
    if count > MAX_FRAMES:
        raise InputError(f"{name}: {count} samples, more than the {MAX_FRAMES} that are read; cut it into parts")


def mixed(frames: np.ndarray, numbers: Callable[[np.ndarray], np.ndarray], name: object) -> np.ndarray:
    """The mean of the channels of frames (count, channels), as float32. numbers: makes floats of what they are in."""
    check_frames(len(frames), name)
    found = np.empty(len(frames), np.float32)
    for first in range(0, len(frames), PART):
        values = numbers(frames[first : first + PART])
        if not (np.abs(values) <= LOUDEST).all():
            raise InputError(
                f"{name}: samples that are not finite, or above {LOUDEST:g}; expected numbers around −1 to 1; give int16 as it is"
            )
        found[first : first + PART] = values.mean(1, dtype=np.float64)
    return found
