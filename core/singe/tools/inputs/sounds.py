"""Sounds as inputs of models: the samples of a .wav file as float32 from −1 to 1, one channel, at the rate of the model."""

from __future__ import annotations

import struct
from math import ceil
from pathlib import Path
from typing import Final

import numpy as np

from ...errors import InputError

SUFFIX: Final = ".wav"
HEAD: Final = struct.Struct("<HHIIHH")
"""The first fields of a format: kind, channels, rate, bytes a second, bytes a frame, bits."""
CROSSINGS: Final = 16
"""How many zero crossings of the sinc function are used on each side of a sample."""
CHUNK: Final = 1 << 12
"""How many samples are made at a time."""
INTEGERS: Final = 1
FLOATS: Final = 3
EXTENSIBLE: Final = 0xFFFE
"""How a .wav file names the kind of its samples; the last says that the kind stands at the end of the format."""
RATES: Final = range(1_000, 1_000_001)
"""The rates that files may have: others are damage, and would ask for any amount of memory."""
BITS: Final = {INTEGERS: (8, 16, 24, 32), FLOATS: (32, 64)}
LOUDEST: Final = 1e6
"""Samples of floats may exceed 1 somewhat; damaged ones do so by orders of magnitude."""


def read_sound(path: str, rate: int | None) -> np.ndarray:
    """The samples of a file, the mean of its channels, at this rate (None: that of the file)."""
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        raise InputError(f"{path}: {e.strerror or e}") from e
    chunks = _chunks(data)
    head, body = chunks.get(b"fmt ", b""), chunks.get(b"data")
    if len(head) < HEAD.size or body is None:
        raise InputError(
            f"{path}: not a .wav file, or it ends too early: no chunks of its format and its samples; expected PCM or float samples in a .wav file"
        )
    kind, channels, own, _, _, bits = HEAD.unpack_from(head)
    if kind == EXTENSIBLE and len(head) >= 26:
        kind = int.from_bytes(head[24:26], "little")
    if own not in RATES or not channels or bits not in BITS.get(kind, ()):
        raise InputError(
            f"{path}: {channels} channels of {bits} bits at {own} Hz, encoded as format {kind}; expected integers of 8, 16, "
            "24 or 32 bits (format 1) or floats of 32 or 64 (format 3): convert it, as with `ffmpeg -i FILE -c:a pcm_s16le NEW.wav`"
        )
    frame = bits // 8 * channels
    body = body[: len(body) // frame * frame]
    samples = np.frombuffer(body, f"<f{bits // 8}") if kind == FLOATS else _numbers(body, bits // 8)
    if not (np.abs(samples) <= LOUDEST).all():
        raise InputError(f"{path}: samples that are not finite, or above {LOUDEST:g}; expected numbers around −1 to 1")
    return resample(samples.reshape(-1, channels).mean(1), own, rate or own).astype(np.float32)


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """The chunks of a file by name, the first of each. A length beyond the end, as of a stream, means all that is left."""
    found: dict[bytes, bytes] = {}
    at = 12 if data[:4] == b"RIFF" and data[8:12] == b"WAVE" else len(data)
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        found.setdefault(data[at : at + 4], data[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found


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
