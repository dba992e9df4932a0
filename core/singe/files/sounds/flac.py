"""Sounds in .flac files: the header, and the frames in groups that are restored together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ...errors import InputError
from ...late_dataclass import dataclass
from .flac_frames import FlacFrame, FlacReader, restored
from .sound import RATES, Sound, check_frames, mixed

MAGIC: Final = b"fLaC"
STREAM_INFO_BYTES: Final = 34
MAX_TOGETHER: Final = 1 << 20
"""So many samples are restored together."""


@dataclass(frozen=True)
class FlacFacts:
    """total: the frames of one sample for each channel, 0 if unknown."""

    rate: int
    channels: int
    bits: int
    total: int


def read_flac(data: bytes, name: object) -> Sound:
    """The sound in the bytes of a file; name: how errors name it. Each frame is compared with its checksum."""
    info, start = _stream_info(data, name)
    if info.rate not in RATES or not 4 <= info.bits <= 32:
        raise InputError(
            f"{name}: {info.bits} bits at {info.rate} Hz; expected 4 to 32 bits, at {RATES[0]} to {RATES[-1]} Hz"
        )
    check_frames(info.total, name)
    parts: list[np.ndarray] = [np.zeros(0, np.float32)]
    count = 0
    scale = 2.0 ** (1 - info.bits)
    for group in _groups(FlacReader(data, start, info.channels, info.bits, name), info.total):
        for samples in restored(group, info.bits, name):
            count += len(samples)
            check_frames(count, name)
            parts.append(mixed(samples, lambda x: x * scale, name))
    if info.total and count != info.total:
        raise InputError(f"{name}: has {count} samples of the {info.total} that it names; expected a whole .flac file")
    return Sound(np.concatenate(parts), info.rate)


def _stream_info(data: bytes, name: object) -> tuple[FlacFacts, int]:
    """The facts at the beginning, and where the frames begin."""
    at, found = len(MAGIC), None
    while True:
        head = data[at : at + 4]
        size = int.from_bytes(head[1:], "big")
        if len(head) < 4 or at + 4 + size > len(data) or (at == len(MAGIC)) != (head[0] & 127 == 0):
            raise InputError(f"{name}: its header ends too early, or has no facts; expected a whole .flac file")
        if found is None:
            if size != STREAM_INFO_BYTES:
                raise InputError(f"{name}: {size} bytes of facts, expected the {STREAM_INFO_BYTES} of a .flac file")
            packed = int.from_bytes(data[at + 14 : at + 22], "big")
            found = FlacFacts(
                packed >> 44, (packed >> 41 & 7) + 1, (packed >> 36 & 31) + 1, packed & ((1 << 36) - 1)
            )  # fmt: skip
        at += 4 + size
        if head[0] & 128:
            return found, at


def _groups(reader: FlacReader, total: int) -> Iterator[list[FlacFrame]]:
    """The frames in groups of equal length."""
    group: list[FlacFrame] = []
    count = 0
    while not reader.ended and (not total or count < total):
        frame = reader.read()
        count += frame.length
        if group and (frame.length != group[0].length or len(group) * len(frame.parts) * frame.length > MAX_TOGETHER):
            yield group
            group = []
        group.append(frame)
    if group:
        yield group
