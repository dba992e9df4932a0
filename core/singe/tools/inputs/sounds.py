"""Sounds as inputs of models: the samples of a .wav file as float32 from −1 to 1, one channel, at the rate of the model."""

from __future__ import annotations

import wave
from math import ceil
from typing import Final

import numpy as np

from ...errors import InputError

SUFFIX: Final = ".wav"
CROSSINGS: Final = 16
"""How many zero crossings of the sinc function are used on each side of a sample."""
CHUNK: Final = 1 << 12
"""How many samples are made at a time."""


def read_sound(path: str, rate: int | None) -> np.ndarray:
    """The samples of a file of integers, the mean of its channels, at this rate (None: that of the file)."""
    try:
        with wave.open(path, "rb") as file:
            width, channels, own = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except OSError as e:
        raise InputError(f"{path}: {e.strerror or e}") from e
    except (wave.Error, EOFError, ValueError) as e:
        raise InputError(f"{path}: not a .wav file of integers: {e or 'it ends too early'}") from e
    if not own or not channels or width not in (1, 2, 3, 4):
        raise InputError(f"{path}: {channels} channels of {8 * width} bits at {own} Hz; expected 8, 16, 24 or 32 bits")
    samples = _numbers(data[: len(data) // (width * channels) * width * channels], width)
    return resample(samples.reshape(-1, channels).mean(1), own, rate or own).astype(np.float32)


def _numbers(data: bytes, width: int) -> np.ndarray:
    """Integers of `width` bytes as numbers from −1 to 1. Those of one byte are unsigned."""
    raw = np.frombuffer(data, np.uint8).reshape(-1, width)
    if width == 1:
        raw = raw ^ 128
    wide = np.zeros((len(raw), 4), np.uint8)
    wide[:, 4 - width :] = raw
    return wide.view("<i4")[:, 0] / 2.0**31


def resample(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """The samples at another rate, by a sinc function in a Hann window. What is too high for the new rate is left out."""
    if rate == wanted or not samples.size:
        return samples
    step = rate / wanted
    cutoff = min(1.0, 1 / step)  # of the frequencies of `samples`
    reach = ceil(CROSSINGS / cutoff)
    padded = np.pad(samples, reach)
    around = np.arange(-reach + 1, reach + 1)
    count = ceil(len(samples) * wanted / rate)
    found = np.empty(count)
    for first in range(0, count, CHUNK):
        at = np.arange(first, min(first + CHUNK, count)) * step
        places = np.floor(at).astype(np.int64)[:, None] + around
        distance = (places - at[:, None]) * cutoff
        window = np.cos(np.clip(distance / CROSSINGS, -1, 1) * (np.pi / 2)) ** 2
        found[first : first + CHUNK] = (padded[places + reach] * np.sinc(distance) * window).sum(1) * cutoff
    return found
