"""TensorBoard's event files: records of protocol buffers, each with its length and checksums.

A record is: length (uint64), checksum of the length (uint32), data, checksum of the data (uint32), all little-endian. The
checksum is a CRC-32C, rotated and shifted. The data is an Event: 1 wall_time (double), 2 step (int64), 3 file_version
(string), 5 summary, 7 session_log; a Summary: 1 value (repeated); a Value: 1 tag (string), 2 simple_value (float), 5 histo; a histogram: 1 min,
2 max, 3 num, 4 sum, 5 sum_squares (doubles), 6 bucket_limit and 7 bucket (packed doubles): how many numbers are up to each limit; a
SessionLog: 1 status (1: START, after which TensorBoard drops what it has of this step and later ones).
"""

from __future__ import annotations

import functools
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from ....tensors.layer_statistics import Figures
from ...events import BatchEnded, EpochEnded, Event, LayersObserved, RunBegan, Stopped

VERSION: Final = b"brain.Event:2"
_POLYNOMIAL: Final = 0x82F63B78


@functools.cache
def _table() -> tuple[int, ...]:
    made: list[int] = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        made.append(value)
    return tuple(made)


def checksum(data: bytes) -> int:
    """The masked CRC-32C of a record's parts."""
    table = _table()
    found = 0xFFFFFFFF
    for byte in data:
        found = table[(found ^ byte) & 0xFF] ^ found >> 8
    found ^= 0xFFFFFFFF
    return ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """The bytes of a record in a file."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", checksum(length)) + data + struct.pack("<I", checksum(data))


def event_of(seconds: float, step: int, body: bytes) -> bytes:
    """An Event; body: its other fields."""
    return b"\x09" + struct.pack("<d", seconds) + b"\x10" + _varint(step) + body


def summary_of(values: Mapping[str, float]) -> bytes:
    """The field of an Event that holds numbers by tag."""
    return _bytes(5, b"".join(_bytes(1, _bytes(1, tag.encode()) + b"\x15" + _float(v)) for tag, v in values.items()))


def histograms_of(rows: Mapping[str, Figures]) -> bytes:
    """The field of an Event that holds histograms by tag."""
    values = b""
    for tag, r in rows.items():
        if r.bins:
            wide = (r.most - r.least) / len(r.bins)
            limits = [r.least + wide * (k + 1) for k in range(len(r.bins))]
            count = sum(r.bins)
            facts = (r.least, r.most, count, r.mean * count, r.norm**2)
            heads = b"".join(bytes([k << 3 | 1]) + struct.pack("<d", x) for k, x in enumerate(facts, 1))
            packed = b"".join(_bytes(k, struct.pack(f"<{len(x)}d", *x)) for k, x in ((6, limits), (7, r.bins)))
            values += _bytes(1, _bytes(1, tag.encode()) + _bytes(5, heads + packed))
    return _bytes(5, values)


def _bytes(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def _float(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # beyond what float32 holds
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


class TensorBoardLog:
    """An event file in a folder: the tags batch/loss, …, for each step, and train/loss, valid/loss, …, for the last step of each epoch; of
    layers, where a Learner looks at them, "gradient norm/PATH" and the histogram gradient/PATH, and the same of "weight"."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: BinaryIO | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case BatchEnded(phase="train"):
                self._put(event.step, summary_of({f"batch/{name}": v for name, v in event.values.items()}))
            case EpochEnded():
                values = {f"{phase}/{name}": v for phase, found in event.values.items() for name, v in found.items()}
                self._put(event.step, summary_of(values))
            case LayersObserved():
                found = {"weight": event.weights, "gradient": event.gradients}
                norms = {f"{what} norm/{r.name}": r.norm for what, x in found.items() for r in x.rows}
                self._put(event.step, summary_of(norms))
                self._put(
                    event.step, histograms_of({f"{what}/{r.name}": r for what, x in found.items() for r in x.rows})
                )
            case RunBegan():
                self._begin(event)
            case Stopped():
                self._close()
            case _:
                pass

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, event: RunBegan) -> None:
        self._close()
        self.folder.mkdir(parents=True, exist_ok=True)
        number = time.time_ns()
        name = f"events.out.tfevents.{number // 10**9}.{socket.gethostname()}.{os.getpid()}.{number % 10**9}"
        self._file = (self.folder / name).open("xb")
        self._file.write(record(event_of(time.time(), 0, _bytes(3, VERSION))))
        if event.step:
            self._put(event.step + 1, _bytes(7, b"\x08\x01"))

    def _put(self, step: int, body: bytes) -> None:
        if self._file is not None:
            self._file.write(record(event_of(time.time(), step, body)))
            self._file.flush()
