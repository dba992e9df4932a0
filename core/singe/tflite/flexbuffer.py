"""FlexBuffers, the form in which the options of custom ops are written: a map of names to numbers, texts and vectors of numbers.

The source is untrusted: every place and length is checked before use, what refers to what is read two levels deep, and time and memory
are linear in the bytes present.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ..errors import FormatError

NULL, INT, UINT, FLOAT, KEY, STRING, INDIRECT_INT, INDIRECT_UINT, INDIRECT_FLOAT, MAP = range(10)
VECTORS: Final = {11: "i", 12: "u", 13: "f"}
"""The type of a vector of numbers of one kind ↦ the kind."""
BOOL: Final = 26
KINDS: Final = {INT: "i", UINT: "u", FLOAT: "f", INDIRECT_INT: "i", INDIRECT_UINT: "u", INDIRECT_FLOAT: "f", BOOL: "u"}
"""The type of a number ↦ its kind."""
INDIRECT: Final = frozenset({INDIRECT_INT, INDIRECT_UINT, INDIRECT_FLOAT})
FLOAT_WIDTHS: Final = (2, 4, 8)

Option = bool | int | float | str | list[float] | None


class _Slot(NamedTuple):
    """A value: where it, or the offset to it, is, in how many bytes, and its type with the bytes of what it refers to."""

    at: int
    width: int
    packed: int


class _FlexReader:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, at: int, width: int, kind: str) -> int | float:
        if (
            width not in (1, 2, 4, 8)
            or not 0 <= at <= len(self.data) - width
            or (kind == "f" and width not in FLOAT_WIDTHS)
        ):
            raise FormatError(f"{width} bytes at byte {at} are no number of {len(self.data)} bytes")
        return np.frombuffer(self.data, f"<{kind}{width}", 1, at)[0].item()

    def target(self, slot: _Slot) -> int:
        """The byte to which a value refers: an offset counts backwards from itself."""
        return slot.at - int(self.number(slot.at, slot.width, "u"))

    def length(self, at: int, width: int) -> int:
        """The number of elements of a vector, which stands before them."""
        count = int(self.number(at - width, width, "u"))
        if count * width > len(self.data) - at:
            raise FormatError(f"a vector of {count} elements at byte {at} is longer than the {len(self.data)} bytes")
        return count

    def text(self, at: int) -> str:
        """The text from a byte to the next 0."""
        end = self.data.find(b"\0", at) if 0 <= at < len(self.data) else -1
        if end < 0:
            raise FormatError(f"a name at byte {at} has no end")
        return self.data[at:end].decode("utf-8", "replace")

    def value(self, slot: _Slot) -> Option:
        kind, width = slot.packed >> 2, 1 << (slot.packed & 3)
        if kind == NULL:
            return None
        if kind in KINDS:
            at, width = (self.target(slot), width) if kind in INDIRECT else (slot.at, slot.width)
            number = self.number(at, width, KINDS[kind])
            return bool(number) if kind == BOOL else number
        if kind in (KEY, STRING):
            return self.text(self.target(slot))
        if kind in VECTORS:
            at = self.target(slot)
            count, form = self.length(at, width), VECTORS[kind]
            if form == "f" and width not in FLOAT_WIDTHS:
                raise FormatError(f"floats of {width} bytes at byte {at}")
            return np.frombuffer(self.data, f"<{form}{width}", count, at).tolist()
        raise FormatError(f"a value of type {kind}; expected a number, a text or a vector of numbers")

    def options(self) -> dict[str, Option]:
        """The map that the last bytes name."""
        if len(self.data) < 3:
            raise FormatError(f"{len(self.data)} bytes; expected a map")
        width, packed = self.data[-1], self.data[-2]
        root = _Slot(len(self.data) - 2 - width, width, packed)
        if packed >> 2 != MAP:
            raise FormatError(f"a value of type {packed >> 2}; expected a map")
        at, width = self.target(root), 1 << (packed & 3)
        count = self.length(at, width)
        names = _Slot(at - 3 * width, width, 0)
        start, step = self.target(names), int(self.number(at - 2 * width, width, "u"))
        if self.length(start, step) != count or at + count * width + count > len(self.data):
            raise FormatError(f"{count} values at byte {at} do not have as many names")
        out: dict[str, Option] = {}
        for k in range(count):
            name = self.text(self.target(_Slot(start + k * step, step, 0)))
            out[name] = self.value(_Slot(at + k * width, width, self.data[at + count * width + k]))
        return out


def read_options(data: bytes) -> dict[str, Option]:
    """The options of a custom op; empty if there are no bytes."""
    return _FlexReader(data).options() if data else {}
