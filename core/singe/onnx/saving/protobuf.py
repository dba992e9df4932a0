"""Protobuf's wire format, written by hand: a WireMessage collects fields in order, and gives the bytes of all of them as pieces.

Bytes of arrays are kept as views, and no piece is copied into a larger one: a model's weights are in memory once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack
from typing import Any, Final

from ..wire import I32, LEN, VARINT, WORD

MOST_BYTES: Final = 2**31 - 1
"""The most bytes of a message: readers refuse larger ones."""


def varint(number: int) -> bytes:
    """A number of 64 bits; a negative one as its two's complement."""
    number &= WORD
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


class WireMessage:
    """The fields of a message, in the order in which they were added."""

    def __init__(self) -> None:
        self.pieces: Final[list[Any]] = []
        self.size = 0

    def _add(self, *pieces: Any) -> None:
        self.pieces.extend(pieces)
        self.size += sum(map(len, pieces))

    def number(self, field: int, value: int) -> None:
        self._add(varint(field << 3 | VARINT) + varint(value))

    def numbers(self, field: int, values: Iterable[int]) -> None:
        for value in values:
            self.number(field, value)

    def real(self, field: int, value: float) -> None:
        self._add(varint(field << 3 | I32) + pack("<f", value))

    def data(self, field: int, value: bytes | memoryview) -> None:
        """Bytes; of a memoryview, whose items are bytes."""
        self._add(varint(field << 3 | LEN) + varint(len(value)), value)

    def text(self, field: int, value: str) -> None:
        self.data(field, value.encode())

    def texts(self, field: int, values: Sequence[str]) -> None:
        for value in values:
            self.text(field, value)

    def message(self, field: int, value: WireMessage) -> None:
        self._add(varint(field << 3 | LEN) + varint(value.size))
        self.pieces.extend(value.pieces)
        self.size += value.size
