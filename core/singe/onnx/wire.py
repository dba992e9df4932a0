"""Protobuf's wire format, read straight from a buffer: bytes and a table of messages in, plain Python values out.

A format is a dict of Schemas: the fields of each message, and a function `build` that makes a value of the fields that
were found. `decode` knows nothing else. Bytes become views of the source and packed numbers arrays over it: nothing is
copied.

The source is untrusted. Every length, field number, wire type, varint and depth is checked before use; time and memory
are linear in the bytes present, whatever the bytes claim. An error is a FormatError with the file, the byte and the
path to the field: `m.onnx: at byte 12, graph.node[17].name: length 99999 …`. As in protobuf, unknown fields are skipped,
and if a singular field occurs twice the last one counts (messages are not merged). Groups are refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import FormatError
from ..late_dataclass import dataclass

VARINT, I64, LEN, I32 = 0, 1, 2, 5
FIXED_SIZE: Final = {I64: 8, I32: 4}

MAX_DEPTH: Final = 64
MAX_MESSAGES: Final = 4_000_000
VARINT_BYTES: Final = 10
SHORT_RUN: Final = 32
CHUNK: Final = 1 << 16
TOP: Final = "top level"
"""What errors call the place of the outermost message."""
WORD: Final = (1 << 64) - 1

Fields = dict[str, Any]


class Position(NamedTuple):
    """The position of a message: a chain of fields up to the file, turned into text only for an error.
    `nth` counts within a repeated field, and is -1 otherwise."""

    up: Position | None
    name: str
    nth: int
    at: int

    def __str__(self) -> str:
        position, parts = self, []
        while position.up is not None:
            parts.append(f"{position.name}[{position.nth}]" if position.nth >= 0 else position.name)
            position = position.up
        return ".".join(reversed(parts)) or TOP

    def fault(self, text: str, kind: type[FormatError] = FormatError) -> FormatError:
        """The error for a problem at this position."""
        root = self
        while root.up is not None:
            root = root.up
        return kind(f"{root.name}: at byte {self.at}, {self}: {text}")

    def field(self, name: str, nth: int = -1) -> Position:
        """The position of a field of this message, for errors in that field."""
        return Position(self, name, nth, self.at)


Constructor = Callable[[Fields, Position, Any], Any]


class Fault(ValueError):
    """A problem with a field; `decode` adds the file, the byte at which the field starts, and the path."""


@dataclass(frozen=True)
class WireKind:
    """The kind of a scalar field: its wire type, how to read one value and, for numbers, a packed run."""

    wire: int
    parse: Callable[[Any], Any]
    run: Callable[[memoryview], np.ndarray] | None = None
    code: str = ""


class Field(NamedTuple):
    """A row of a Schema. `kind` is a Kind, or the name of another Schema. `key` is the value's key for `build`: fields
    with the same key are a oneof, of which the last counts."""

    name: str
    kind: WireKind | str
    many: bool
    key: str


def one(name: str, kind: WireKind | str, key: str = "") -> Field:
    return Field(name, kind, False, key or name)


def many(name: str, kind: WireKind | str) -> Field:
    return Field(name, kind, True, name)


@dataclass(frozen=True)
class Schema:
    """A message: its fields by number, and `build`, which is called with the fields that were present (repeated ones
    as lists, repeated numbers as arrays), the Position, and the context passed to `decode`."""

    build: Constructor
    fields: Mapping[int, Field]


# --- scalars -------------------------------------------------------------------------------------------------------


def varint(data: memoryview, pos: int, end: int) -> tuple[int, int]:
    """The unsigned number at `pos`, and the position after it."""
    if pos < end and (byte := data[pos]) < 128:
        return byte, pos + 1
    value = shift = 0
    for at in range(pos, min(end, pos + VARINT_BYTES)):
        byte = data[at]
        if byte < 128:
            return (value | byte << shift) & WORD, at + 1
        value |= (byte & 127) << shift
        shift += 7
    if end - pos >= VARINT_BYTES:
        raise Fault(f"a varint is longer than {VARINT_BYTES} bytes")
    raise Fault(f"a varint runs past the end ({max(end - pos, 0)} bytes left)")


def varints(run: memoryview) -> np.ndarray:
    """A packed run of varints, as uint64: by byte columns, a chunk at a time to bound the memory in use."""
    if len(run) <= SHORT_RUN:
        few, at = array("Q"), 0
        while at < len(run):
            value, at = varint(run, at, len(run))
            few.append(value)
        return np.array(few, np.uint64)
    source = np.frombuffer(run, np.uint8)
    if source[-1] >= 128:
        raise Fault("a varint runs past the end of a packed run")
    out = np.empty(np.count_nonzero(source < 128), np.uint64)
    pos = done = 0
    while pos < len(source):
        part = source[pos : pos + CHUNK]
        last = np.flatnonzero(part < 128)
        if not len(last):
            raise Fault(f"a varint is longer than {VARINT_BYTES} bytes")
        sizes = np.diff(last, prepend=-1)
        if (widest := int(sizes.max())) > VARINT_BYTES:
            raise Fault(f"a varint is longer than {VARINT_BYTES} bytes")
        first = last - sizes + 1
        values = (part[first] & 127).astype(np.uint64)
        for column in range(1, widest):
            longer = np.flatnonzero(sizes > column)
            values[longer] |= (part[first[longer] + column] & 127).astype(np.uint64) << np.uint64(7 * column)
        out[done : done + len(values)] = values
        done += len(values)
        pos += int(last[-1]) + 1
    return out


def between_tags(run: memoryview, tag: int, size: int) -> tuple[bytes, int]:
    """What a run of fields with one tag, of one byte, holds, as a packed run, and where it ends: before a field with another tag, or
    one that is wrong or not whole. size: the bytes of a value; 0 for varints."""
    source = np.frombuffer(run, np.uint8)
    if size:
        rows = source[: len(source) // (1 + size) * (1 + size)].reshape(-1, 1 + size)
        rows = rows[: _before(rows[:, 0] != tag)]
        return rows[:, 1:].tobytes(), rows.size
    ends = np.flatnonzero(source < 128)  # of varints: a tag, its value, the next tag
    tags, values = ends[: len(ends) // 2 * 2].reshape(-1, 2).T
    starts = np.concatenate(([0], values[:-1] + 1))[: len(tags)]
    count = _before((tags != starts) | (source[tags] != tag) | (values - tags > VARINT_BYTES))
    stop = int(values[count - 1]) + 1 if count else 0
    return np.delete(source[:stop], tags[:count]).tobytes(), stop


def _before(wrong: np.ndarray) -> int:
    """How many come before the first that is wrong."""
    found = np.flatnonzero(wrong)
    return int(found[0]) if len(found) else len(wrong)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _text(payload: memoryview) -> str:
    try:
        return str(payload, "utf-8")
    except UnicodeDecodeError as error:
        raise Fault(f"not UTF-8: {error.reason} at its byte {error.start}") from None


def _fixed(code: str, wire: int) -> WireKind:
    def run(payload: memoryview) -> np.ndarray:
        if len(payload) % dtype.itemsize:
            raise Fault(f"a packed run of {len(payload)} bytes is not a whole number of {dtype.itemsize}-byte values")
        return np.frombuffer(payload, dtype)

    dtype, unpack = np.dtype("<" + code), Struct("<" + code).unpack
    return WireKind(wire, lambda payload: unpack(payload)[0], run, code)


TEXT: Final = WireKind(LEN, _text)
BYTES: Final = WireKind(LEN, lambda payload: payload)
INT64: Final = WireKind(VARINT, lambda n: signed(n, 64), lambda run: varints(run).view(np.int64), "q")
INT32: Final = WireKind(VARINT, lambda n: signed(n, 32), lambda run: varints(run).astype(np.uint32).view(np.int32), "i")
UINT64: Final = WireKind(VARINT, lambda n: n, varints, "Q")
FLOAT: Final = _fixed("f", I32)
DOUBLE: Final = _fixed("d", I64)


# --- messages ------------------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """The facts of a tag's field, in the order in which the decoder needs them."""

    name: str
    key: str
    many: bool
    kind: WireKind | None
    message: str
    packed: bool = False


def _entries(schema: Schema, names: Mapping[str, Schema]) -> dict[int, _Entry]:
    """A Schema by tag. A repeated number has two tags, one for each of its encodings."""
    table: dict[int, _Entry] = {}
    for number, (name, kind, many, key) in schema.fields.items():
        if isinstance(kind, str):
            if kind not in names:
                raise KeyError(f"field {name!r} is of an unknown message {kind!r}")
            table[number << 3 | LEN] = _Entry(name, key, many, None, kind)
            continue
        table[number << 3 | kind.wire] = entry = _Entry(name, key, many, kind, "")
        if many and kind.run:
            table[number << 3 | LEN] = entry._replace(packed=True)
    return table


class Format:
    """The messages of a format, by name, checked against each other once: `decode` reads any of them."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self.messages: Final = {name: (s.build, _entries(s, schemas)) for name, s in schemas.items()}

    def decode(self, data: memoryview, message: str, file: str, context: Any = None) -> Any:
        """The value built from the `message` in `data`; `file` is for errors, `context` for the builders."""
        return _Decoder(self, data, context).message(message, 0, len(data), Position(None, file, -1, 0), 1)


class _Decoder:
    def __init__(self, format: Format, data: memoryview, context: Any) -> None:
        self.messages = format.messages
        self.data = data
        self.context = context
        self.left = MAX_MESSAGES

    def message(self, message: str, pos: int, end: int, position: Position, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise position.fault(f"messages nest more than {MAX_DEPTH} deep")
        self.left -= 1
        if self.left < 0:
            raise position.fault(f"more than {MAX_MESSAGES} messages in one file")
        build, table = self.messages[message]
        found: Fields = {}
        at, entry = pos, None
        try:
            while pos < end:
                at, entry = pos, None
                tag, pos = varint(self.data, pos, end)
                entry = table.get(tag)
                pos = self.field(tag, entry, found, pos, end, position, depth)
        except Fault as fault:
            where = position._replace(at=at)
            if entry is not None:
                counted = entry.many and not entry.packed
                where = where.field(entry.name, len(found.get(entry.key, ())) if counted else -1)
            raise where.fault(str(fault)) from None
        return build(found, position, self.context)

    def field(
        self, tag: int, entry: _Entry | None, fields: Fields, pos: int, end: int, position: Position, depth: int
    ) -> int:
        """Put the value of the field at `pos` into `fields`; returns the position after it."""
        wire, number, stop = tag & 7, 0, pos
        if wire == LEN:
            size, pos = varint(self.data, pos, end)
            stop = pos + size
        elif wire == VARINT:
            number, stop = varint(self.data, pos, end)
        elif wire in FIXED_SIZE:
            stop = pos + FIXED_SIZE[wire]
        else:
            raise Fault(f"wire type {wire} of field {tag >> 3}: groups are not supported, 6 and 7 are not protobuf")
        if stop > end:
            raise Fault(f"length {stop - pos} runs past the end ({end - pos} bytes left)")
        if entry is None:
            if not 8 <= tag < 1 << 32:
                raise Fault(f"field number {tag >> 3} is out of range")
            return stop

        name, key, many, kind, message, packed = entry
        have = fields.get(key)
        if kind is None:
            nth = (len(have) if have else 0) if many else -1
            value = self.message(message, pos, stop, Position(position, name, nth, pos), depth + 1)
        elif packed:
            fields[key] = _joined(have, kind, self.data[pos:stop])
            return stop
        else:
            value = kind.parse(number if wire == VARINT else self.data[pos:stop])
        if many:
            have = fields[key] = _growable(have, kind.code if kind else "")
            have.append(value)
            if kind is not None and len(have) >= SHORT_RUN and tag < 128:
                return (self._more if kind.run else self._more_texts)(tag, kind, have, stop, end)
        else:
            fields[key] = value
        return stop

    def _more(self, tag: int, kind: WireKind, have: array[Any], pos: int, end: int) -> int:
        """Add the numbers of the fields of this tag that follow; returns the position after them."""
        room = 4 * SHORT_RUN
        while pos < end and self.data[pos] == tag:
            payload, used = between_tags(self.data[pos : min(end, pos + room)], tag, FIXED_SIZE.get(tag & 7, 0))
            if not used:
                break
            _joined(have, kind, memoryview(payload))
            pos, room = pos + used, min(2 * room, CHUNK)
        return pos

    def _more_texts(self, tag: int, kind: WireKind, have: list[Any], pos: int, end: int) -> int:
        """Add the short texts, whole and of this tag, that follow; returns the position after them."""
        data, parse = self.data, kind.parse
        while pos + 1 < end and data[pos] == tag and (size := data[pos + 1]) < 128 and pos + 2 + size <= end:
            try:
                have.append(parse(data[pos + 2 : pos + 2 + size]))
            except Fault:  # the caller meets it again, and says where
                break
            pos += 2 + size
        return pos


def _growable(have: Any, code: str) -> Any:
    """`have` as something with `append`. A lone packed run stays a view; it is copied once, if more follows."""
    if have is None:
        return array(code) if code else []
    return array(code, have.astype(code).tobytes()) if isinstance(have, np.ndarray) else have


def _joined(have: Any, kind: WireKind, payload: memoryview) -> Any:
    assert kind.run is not None
    values = kind.run(payload)
    if have is None and len(payload) > SHORT_RUN:
        return values
    have = _growable(have, kind.code)
    have.frombytes(values.astype(kind.code).tobytes())
    return have
