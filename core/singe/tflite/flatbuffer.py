"""FlatBuffers, read straight from a buffer: a FlatTable and what fields it may have in, plain Python values out.

A table's fields are a mapping of numbers to Fields, data that the reader of a format declares. Bytes become views of the
source and vectors of numbers arrays over it: nothing is copied.

The source is untrusted. Every offset, length and table is checked before use, and what is read in all, tables and elements
of vectors, is at most as much as the file has bytes: tables may share what they refer to, so a small file could name the same
one a million times. An error is a FormatError with the file, the byte and the path to the field:
`m.tflite: at byte 12, subgraphs[0].tensors[3].name: …`. Fields with unknown numbers are ignored, as FlatBuffers asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import FormatError
from ..late_dataclass import dataclass

_OFFSET, _SIGNED, _SHORT = Struct("<I"), Struct("<i"), Struct("<H")
VTABLE_HEADER: Final = 4
"""The bytes of a vtable before its entries: its size, and the size of the table."""


class Scalar(NamedTuple):
    """A number in the table itself, which is `default` if the table lacks it."""

    code: str
    default: Any = 0


class Vector(NamedTuple):
    """Numbers of one type: an array over the source, empty if the table lacks it."""

    code: str


class _FieldKind(NamedTuple):
    name: str


TEXT: Final = _FieldKind("text")
"""A string: empty if the table lacks it."""
BYTES: Final = _FieldKind("bytes")
"""A view of the source; None if the table lacks it."""
UNION: Final = _FieldKind("union")
"""A table whose fields another field decides: a FlatTable, or None."""


class Inner(NamedTuple):
    """A table: its fields by name, or None if it is lacking."""

    fields: Fields


class Tables(NamedTuple):
    """A vector of tables: a list of the fields of each."""

    fields: Fields


Fields = Mapping[int, tuple[str, "Scalar | Vector | _FieldKind | Inner | Tables"]]
"""The number of a field ↦ its name and what it holds."""


class TablePosition(NamedTuple):
    """The position of a table: a chain of fields up to the file, turned into text only for an error. `nth` counts within a vector,
    and is -1 otherwise."""

    up: TablePosition | None
    name: str
    nth: int = -1

    def __str__(self) -> str:
        position, parts = self, []
        while position.up is not None:
            parts.append(f"{position.name}[{position.nth}]" if position.nth >= 0 else position.name)
            position = position.up
        return ".".join(reversed(parts)) or "top level"

    def field(self, name: str, nth: int = -1) -> TablePosition:
        """The position of a field of this table, for errors in that field."""
        return TablePosition(self, name, nth)

    def fault(self, text: str, at: int | None = None, kind: type[FormatError] = FormatError) -> FormatError:
        """The error for a problem at this position."""
        root = self
        while root.up is not None:
            root = root.up
        return kind(f"{root.name}: {'' if at is None else f'at byte {at}, '}{self}: {text}")


@dataclass
class FlatSource:
    """The bytes of a file, and how many tables and elements may still be read of it."""

    data: memoryview
    left: int

    def spend(self, count: int, position: TablePosition, at: int | None = None) -> None:
        """Count what is read, or made of what is read."""
        self.left -= count
        if self.left < 0:
            raise position.fault(f"what is read by now is more than the file has bytes ({len(self.data)})", at)

    def number(self, form: Struct, at: int, position: TablePosition) -> int:
        """The number at a byte."""
        if not 0 <= at <= len(self.data) - form.size:
            raise position.fault(f"the file has {len(self.data)} bytes, expected {form.size} more here", at)
        return form.unpack_from(self.data, at)[0]

    def target(self, at: int, position: TablePosition) -> int:
        """The byte to which the offset at a byte points."""
        return at + self.number(_OFFSET, at, position)

    def vector(self, at: int, width: int, position: TablePosition) -> tuple[int, int]:
        """The first byte, and the number, of the elements of the vector to which the offset at a byte points."""
        start = self.target(at, position)
        count = self.number(_OFFSET, start, position)
        left = len(self.data) - start - _OFFSET.size
        if count * width > left:
            raise position.fault(f"a vector of {count} elements of {width} bytes; {left} bytes are left", start)
        return start + _OFFSET.size, count


@dataclass(frozen=True, eq=False)
class FlatTable:
    """A table in a file: the byte where it begins, and its position for errors."""

    source: FlatSource
    at: int
    position: TablePosition

    def read(self, fields: Fields) -> dict[str, Any]:
        """The values of these fields by name; a field that the table lacks has its default."""
        source, data = self.source, self.source.data
        source.spend(1, self.position, self.at)
        vtable = self.at - source.number(_SIGNED, self.at, self.position)
        size = source.number(_SHORT, vtable, self.position)
        length = source.number(_SHORT, vtable + _SHORT.size, self.position)
        if size < VTABLE_HEADER or size % 2 or vtable + size > len(data) or self.at + length > len(data):
            raise self.position.fault(
                f"a vtable of {size} bytes at byte {vtable} for a table of {length} does not fit the file's {len(data)}",
                self.at,
            )
        out: dict[str, Any] = {}
        for number, (name, kind) in fields.items():
            slot = VTABLE_HEADER + _SHORT.size * number
            offset = _SHORT.unpack_from(data, vtable + slot)[0] if slot + _SHORT.size <= size else 0
            width = np.dtype(kind.code).itemsize if isinstance(kind, Scalar) else _OFFSET.size
            if offset and offset + width > length:
                raise self.position.fault(f"{name!r} lies outside of its table of {length} bytes", self.at)
            out[name] = self._value(name, kind, self.at + offset if offset else None)
        return out

    def _value(self, name: str, kind: Any, at: int | None) -> Any:
        """The value of a field that is at this byte, or, for None, is lacking."""
        source, position = self.source, TablePosition(self.position, name)
        match kind:
            case Scalar(code, default):
                return default if at is None else Struct(f"<{code}").unpack_from(source.data, at)[0]
            case Vector(code):
                numbers = np.dtype(f"<{code}")
                if at is None:
                    return np.empty(0, numbers)
                start, count = source.vector(at, numbers.itemsize, position)
                source.spend(count, position, start)
                return np.frombuffer(source.data, numbers, count, start)
            case Inner(fields):
                return None if at is None else FlatTable(source, source.target(at, position), position).read(fields)
            case Tables(fields):
                return [] if at is None else self._tables(fields, at, position)
            case _:
                return self._bytes(kind, at, position)

    def _tables(self, fields: Fields, at: int, position: TablePosition) -> list[dict[str, Any]]:
        start, count = self.source.vector(at, _OFFSET.size, position)
        out = []
        for k in range(count):
            here = position._replace(nth=k)
            place = start + k * _OFFSET.size
            out.append(FlatTable(self.source, self.source.target(place, here), here).read(fields))
        return out

    def _bytes(self, kind: _FieldKind, at: int | None, position: TablePosition) -> Any:
        source = self.source
        if at is None:
            return "" if kind is TEXT else None
        if kind is UNION:
            return FlatTable(source, source.target(at, position), position)
        start, count = source.vector(at, 1, position)
        view = source.data[start : start + count]
        if kind is BYTES:
            return view
        source.spend(count, position, start)
        try:
            return str(view, "utf-8")
        except UnicodeDecodeError as e:
            raise position.fault(f"not UTF-8: {e.reason} at its byte {e.start}", start) from None


def root(data: memoryview, file: str) -> FlatTable:
    """The outermost table of a file; `file` is its name in errors."""
    position, source = TablePosition(None, file), FlatSource(data, len(data))
    return FlatTable(source, source.target(0, position), position)
