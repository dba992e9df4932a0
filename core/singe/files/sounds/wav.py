"""Sounds in .wav files: integers of 8 to 32 bits, and floats of 32 and 64."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from ...errors import InputError
from .sound import RATES, Sound, mixed

MAGIC: Final = b"RIFF"
HEAD: Final = struct.Struct("<HHIIHH")
"""The first fields of a format: kind, channels, rate, bytes a second, bytes a frame, bits."""
INTEGERS: Final = 1
FLOATS: Final = 3
EXTENSIBLE: Final = 0xFFFE
"""How a .wav file names the kind of its samples; the last says that the kind stands at the end of the format."""
BITS: Final = {INTEGERS: (8, 16, 24, 32), FLOATS: (32, 64)}


def read_wav(data: bytes, name: object) -> Sound:
    """The sound in the bytes of a file; name: how errors name it. A file that ends early has what is there, as a stream has."""
    chunks = _chunks(data)
    head, body = chunks.get(b"fmt ", b""), chunks.get(b"data")
    if len(head) < HEAD.size or body is None:
        raise InputError(
            f"{name}: not a .wav file, or it ends too early: no chunks of its format and its samples; expected PCM or float samples in a .wav file"
        )
    kind, channels, rate, _, _, bits = HEAD.unpack_from(head)
    if kind == EXTENSIBLE and len(head) >= 26:
        kind = int.from_bytes(head[24:26], "little")
    if rate not in RATES or not channels or bits not in BITS.get(kind, ()):
        raise InputError(
            f"{name}: {channels} channels of {bits} bits at {rate} Hz, encoded as format {kind}; expected integers of 8, 16, "
            "24 or 32 bits (format 1) or floats of 32 or 64 (format 3): convert it, as with `ffmpeg -i FILE -c:a pcm_s16le NEW.wav`"
        )
    width = bits // 8
    body = body[: len(body) // (width * channels) * width * channels]
    frames = np.frombuffer(body, np.uint8).reshape(-1, channels, width)
    numbers: Callable[[np.ndarray], np.ndarray] = _floats if kind == FLOATS else partial(_integers, width=width)
    return Sound(mixed(frames, numbers, name), rate)


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """The chunks of a file by name, the first of each. A length beyond the end, as of a stream, means all that is left."""
    found: dict[bytes, bytes] = {}
    at = 12 if data[:4] == MAGIC and data[8:12] == b"WAVE" else len(data)
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        found.setdefault(data[at : at + 4], data[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found


def _floats(frames: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(frames).view(f"<f{frames.shape[2]}")[..., 0]


def _integers(frames: np.ndarray, width: int) -> np.ndarray:
    """Integers of `width` bytes as numbers from −1 to 1. Those of one byte are unsigned."""
    wide = np.zeros((*frames.shape[:2], 4), np.uint8)
    wide[..., 4 - width :] = frames ^ 128 if width == 1 else frames
    return wide.view("<i4")[..., 0] / 2.0**31


def wav_bytes(samples: np.ndarray, rate: int) -> bytes:
    """A .wav file of one channel in 16 bits, as all players read it. samples: numbers from −1 to 1; what is louder is clipped."""
    body = np.rint(np.clip(np.asarray(samples, np.float64), -1, 1) * 32767).astype("<i2").tobytes()
    head = struct.pack("<4sI", b"fmt ", HEAD.size) + HEAD.pack(INTEGERS, 1, rate, rate * 2, 2, 16)
    rest = b"WAVE" + head + struct.pack("<4sI", b"data", len(body)) + body
    return struct.pack("<4sI", MAGIC, len(rest)) + rest
