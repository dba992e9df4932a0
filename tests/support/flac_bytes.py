"""Writes .flac files of any of the format's ways, for tests of the reader: how a channel is predicted, what is left in which code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass
class Bits:
    text: str = ""

    def add(self, value: int, width: int) -> None:
        self.text += format(value & ((1 << width) - 1), f"0{width}b") if width else ""

    def bytes(self) -> bytes:
        return bytes(int(self.text[k : k + 8].ljust(8, "0"), 2) for k in range(0, len(self.text), 8))


@dataclass
class Way:
    """How channels are written. kind: "constant", "verbatim", "fixed" or "predicted"; weights: of the latest samples; side: the code of
    two channels that are written by their difference; escaped: numbers as they are, in place of Rice's code."""

    kind: str
    weights: Sequence[int] = ()
    shift: int = 0
    side: int = -1
    wasted: int = 0
    partitions: int = 0
    method: int = 0
    escaped: bool = False


def crc(data: bytes, polynomial: int, width: int) -> int:
    value = 0
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1) ^ (polynomial if value >> (width - 1) & 1 else 0)
    return value & ((1 << width) - 1)


def flac(
    samples: np.ndarray, rate: int, bits: int, way: Way, length: int = 64, total: int | None = None
) -> bytes:  # fmt: skip
    """samples: whole numbers (count, channels)."""
    channels = samples.shape[1]
    count = len(samples) if total is None else total
    packed = rate << 44 | (channels - 1) << 41 | (bits - 1) << 36 | count
    info = length.to_bytes(2, "big") * 2 + bytes(6) + packed.to_bytes(8, "big") + bytes(16)
    frames = [frame(samples[k : k + length], k // length, bits, way) for k in range(0, len(samples), length)]
    return b"fLaC" + bytes([0, 0, 0, len(info)]) + info + bytes([0x81, 0, 0, 3]) + b"\0\0\0" + b"".join(frames)


def frame(samples: np.ndarray, number: int, bits: int, way: Way) -> bytes:
    held = samples.astype(int).tolist()
    out = Bits()
    out.add(0xFFF8, 16)
    out.add(7, 4)  # the length follows in two bytes
    out.add(0, 4)
    out.add(way.side if way.side >= 0 else samples.shape[1] - 1, 4)
    out.add(0, 4)
    if number < 128:
        out.add(number, 8)
    else:
        out.add(0xC0 | number >> 6, 8)
        out.add(0x80 | number & 63, 8)
    out.add(len(samples) - 1, 16)
    out.add(crc(out.bytes(), 0x07, 8), 8)
    columns = [list(c) for c in zip(*held, strict=True)]
    wide = [bits] * len(columns)
    if way.side == 8:
        columns, wide = [columns[0], [a - b for a, b in zip(*columns, strict=True)]], [bits, bits + 1]
    elif way.side == 9:
        columns, wide = [[a - b for a, b in zip(*columns, strict=True)], columns[1]], [bits + 1, bits]
    elif way.side == 10:
        pairs = list(zip(*columns, strict=True))
        columns, wide = [[(a + b) >> 1 for a, b in pairs], [a - b for a, b in pairs]], [bits, bits + 1]
    for column, width in zip(columns, wide, strict=True):
        _channel(out, column, width, way)
    out.text += "0" * (-len(out.text) % 8)
    return out.bytes() + crc(out.bytes(), 0x8005, 16).to_bytes(2, "big")


def _channel(out: Bits, values: list[int], bits: int, way: Way) -> None:
    order = len(way.weights)
    kinds = {"constant": 0, "verbatim": 1, "fixed": 8 + order, "predicted": 31 + order}
    out.add(kinds[way.kind], 7)
    out.add(1 if way.wasted else 0, 1)
    if way.wasted:
        out.add(1, way.wasted)
        values, bits = [v >> way.wasted for v in values], bits - way.wasted
    if way.kind in ("constant", "verbatim"):
        for value in values[: 1 if way.kind == "constant" else None]:
            out.add(value, bits)
        return
    for value in values[:order]:
        out.add(value, bits)
    if way.kind == "predicted":
        out.add(11, 4)  # weights of 12 bits
        out.add(way.shift, 5)
        for weight in way.weights:
            out.add(weight, 12)
    out.add(way.method, 2)
    out.add(way.partitions, 4)
    left = [
        values[k] - (sum(w * values[k - 1 - j] for j, w in enumerate(way.weights)) >> way.shift)
        for k in range(order, len(values))
    ]
    size, at, width = len(values) >> way.partitions, 0, 4 + way.method
    for part in range(1 << way.partitions):
        mine = left[at : at + size - (order if part == 0 else 0)]
        at += len(mine)
        if way.escaped:
            out.add((1 << width) - 1, width)
            out.add(bits + 6, 5)
            for value in mine:
                out.add(value, bits + 6)
            continue
        parameter = min(30 if way.method else 14, max(0, max((abs(v) for v in mine), default=0).bit_length() - 2))
        out.add(parameter, width)
        for value in mine:
            folded = value << 1 if value >= 0 else (-value << 1) - 1
            out.text += "0" * (folded >> parameter) + "1"
            out.add(folded, parameter)
