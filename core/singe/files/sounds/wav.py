"""Sounds in .wav files: integers of 8 to 32 bits, floats of 32 and 64, and the 8 bits of telephones (A-law and µ-law)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from ...errors import InputError
from .sound import RATES, Sound, mixed

MAGIC: Final = b"RIFF"
LONG: Final = b"RF64"
"""How files begin, and those that may be longer than 4 GB, whose chunk ds64 has the bytes of their samples."""
UNTOLD: Final = 0xFFFFFFFF
"""The length of a chunk whose length is written elsewhere, or nowhere."""
HEAD: Final = struct.Struct("<HHIIHH")
"""The first fields of a format: kind, channels, rate, bytes a second, bytes a frame, bits."""
INTEGERS: Final = 1
FLOATS: Final = 3
A_LAW: Final = 6
MU_LAW: Final = 7
EXTENSIBLE: Final = 0xFFFE
"""How a .wav file names the kind of its samples; the last says that the kind stands at the end of the format."""
BITS: Final = {INTEGERS: (8, 16, 24, 32), FLOATS: (32, 64), A_LAW: (8,), MU_LAW: (8,)}


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
            f"24 or 32 bits (format 1), floats of 32 or 64 (3), A-law (6) or µ-law (7), at {RATES[0]} to {RATES[-1]} Hz: "
            "convert it, as with `ffmpeg -i FILE -c:a pcm_s16le NEW.wav`"
        )
    width = bits // 8
    body = body[: len(body) // (width * channels) * width * channels]
    frames = np.frombuffer(body, np.uint8).reshape(-1, channels, width)
    numbers: Callable[[np.ndarray], np.ndarray] = _NUMBERS.get(kind, partial(_integers, width=width))
    return Sound(mixed(frames, numbers, name), rate)


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """The chunks of a file by name, the first of each. A length beyond the end, as of a stream, means all that is left."""
    found: dict[bytes, bytes] = {}
    at = 12 if data[:4] in (MAGIC, LONG) and data[8:12] == b"WAVE" else len(data)
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if size == UNTOLD and data[at : at + 4] == b"data" and len(found.get(b"ds64", b"")) >= 16:
            size = int.from_bytes(found[b"ds64"][8:16], "little")
        found.setdefault(data[at : at + 4], data[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found


def _floats(frames: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(frames).view(f"<f{frames.shape[2]}")[..., 0]


def _a_law(frames: np.ndarray) -> np.ndarray:
    bits = frames[..., 0].astype(np.int32) ^ 0x55
    power, rest = (bits >> 4) & 7, ((bits & 15) << 4) + 8
    size = np.where(power == 0, rest, (rest + 0x100) << np.maximum(power - 1, 0))
    return np.where(bits & 128, size, -size) / 2.0**15


def _mu_law(frames: np.ndarray) -> np.ndarray:
    bits = ~frames[..., 0].astype(np.int32)
    size = ((((bits & 15) << 3) + 0x84) << ((bits >> 4) & 7)) - 0x84
    return np.where(bits & 128, -size, size) / 2.0**15


_NUMBERS: Final[Mapping[int, Callable[[np.ndarray], np.ndarray]]] = {FLOATS: _floats, A_LAW: _a_law, MU_LAW: _mu_law}
"""What makes numbers of frames (count, channels, bytes), where they are no integers."""


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
