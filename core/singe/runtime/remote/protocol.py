"""The messages between the client and the server of a device elsewhere, and the frames that carry them.

Messages travel in batches. A batch is the length of its header (uint32 little-endian), the header (JSON, UTF-8: a list of messages, each
a list of a name and values), and the bytes that the messages announce, in order. It begins with a frame of its own, which holds the
whole header; what does not fit goes on in the following frames. Tensors are raw little-endian elements, strings a JSON list.

The tables CALLS and REPLIES have all messages. What comes from the other side is checked by them before anything is done, and no
memory is taken for bytes before `room` has agreed to their count. Ids of arrays, programs and blocks, and the numbers of questions, are
chosen by the client. Only what has a question's number is answered.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ... import errors
from ...dtypes import DType, dtype, strings
from ...dtypes import string as TEXT
from ...errors import DeviceError, SingeError
from ...late_dataclass import dataclass
from ...program.container import PROGRAM, checking, count, dtype_named, string
from ...program.elements import aligned
from ...shapes import MAX_ELEMENTS

VERSION: Final = f"singe-remote/1 {PROGRAM}"
"""Of the messages, and of the Programs in them; the two sides must have the same."""
MAX_HEADER_BYTES: Final = 1 << 18
MAX_FRAME_BYTES: Final = (1 << 20) + MAX_HEADER_BYTES
MAX_RANK: Final = 64
MAX_FRAMES_UNDER_WAY: Final = 48
"""How many frames a client sends before it waits until the server has taken some of them."""
FRAMES_PER_ACK: Final = 16
"""After so many frames the server says that it has taken them, if it has nothing else to say."""
NAME: Final = "remote"
PORT: Final = 3000
TOKEN_VARIABLE: Final = "SINGE_REMOTE_TOKEN"
"""The variable of the environment that has the token, for both sides."""
_LENGTH: Final = struct.Struct("<I")
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False)

Bytes: TypeAlias = "bytes | memoryview"
Check: TypeAlias = Callable[[Any], Any]
"""Data of JSON ↦ the value, or an error."""


class MessageRow(NamedTuple):
    """A message: a check for each of its values, and the counts of the bytes that follow, by the values."""

    checks: tuple[Check, ...]
    parts: Callable[[Sequence[Any]], Sequence[int]] = lambda values: ()


@dataclass(frozen=True)
class RemoteMessage:
    """A message that came. parts: its bytes, which may be read-only; None in place of those for which there was no room."""

    name: str
    values: tuple[Any, ...]
    parts: tuple[np.ndarray | None, ...] = ()


def _listed(data: Any) -> list[Any]:
    if type(data) is not list:
        raise ValueError(f"expected a list, got {data!r:.40}")
    return data


def _list(check: Check) -> Check:
    return lambda data: tuple(map(check, _listed(data)))


def _row(*checks: Check) -> Check:
    return lambda data: tuple(check(v) for check, v in zip(checks, _listed(data), strict=True))


def _maybe(check: Check) -> Check:
    return lambda data: None if data is None else check(data)


def _seconds(data: Any) -> float:
    if type(data) not in (int, float) or not 0 <= data < math.inf:
        raise ValueError(f"expected seconds, got {data!r:.40}")
    return float(data)


def _facts(data: Any) -> Mapping[str, Any]:
    if type(data) is not dict:
        raise ValueError(f"expected an object, got {data!r:.40}")
    return data


def _shape(data: Any) -> tuple[int, ...]:
    shape = IDS(data)
    if len(shape) > MAX_RANK or math.prod(shape) > MAX_ELEMENTS:
        raise ValueError(f"the shape {list(shape)!s:.80} has more than {MAX_ELEMENTS} elements or {MAX_RANK} axes")
    return shape


def _flag(data: Any) -> bool:
    if type(data) is not bool:
        raise ValueError(f"expected true or false, got {data!r:.40}")
    return data


IDS: Final = _list(count)
_ARRAY: Final = (dtype_named, _shape, count)

CALLS: Final[Mapping[str, MessageRow]] = {
    # version, token, name of the session that is resumed or ""
    "hello": MessageRow((string, string, string)),
    # id, dtype, shape, bytes
    "upload": MessageRow((count, *_ARRAY), lambda v: (v[3],)),
    # id, bytes of the header, [name, whether it is text, bytes] of each module, [start, id, bytes, whether they follow] of each block
    "program": MessageRow(
        (count, count, _list(_row(string, _flag, count)), _list(_row(count, count, count, _flag))),
        lambda v: (v[1], *(n for _, _, n in v[2]), *(n for _, _, n, follows in v[3] if follows)),
    ),
    # question, id for a block, the hashes of files: whether the server has these weights of a bundle; "facts" say how many bytes
    "weights": MessageRow((count, count, string)),
    # id of the program, ids of inputs and states, ids for the outputs (null: it lies in a donated input), question or null
    "run": MessageRow((count, IDS, IDS, _list(_maybe(count)), _maybe(count))),
    # id of the program, ids for its states
    "states": MessageRow((count, IDS)),
    "free": MessageRow((IDS,)),
    # ids of programs
    "drop": MessageRow((IDS,)),
    # question, id
    "read": MessageRow((count, count)),
    # question
    "sync": MessageRow((count,)),
    "describe": MessageRow((count,)),
    "leave": MessageRow(()),
}
"""What a client says."""

REPLIES: Final[Mapping[str, MessageRow]] = {
    # name of the session, the device's name, its target and that one's settings, seconds for which a session outlives its link, batches done
    "ready": MessageRow((string, string, string, _facts, _seconds, count)),
    # question, dtype, shape, bytes
    "value": MessageRow((count, *_ARRAY), lambda v: (v[3],)),
    # question, the shapes of a run's outputs
    "shapes": MessageRow((count, _list(_shape))),
    # question
    "done": MessageRow((count,)),
    # question, facts
    "facts": MessageRow((count, _facts)),
    # question, class of the error, its text
    "error": MessageRow((count, string, string)),
    # batches done, frames taken from this link
    "ack": MessageRow((count, count)),
    # class of the error, its text: the session has ended
    "bye": MessageRow((string, string)),
}
"""What a server says."""

ERRORS: Final[Mapping[str, type[SingeError]]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, SingeError)
}
"""The classes of errors that travel."""


def error_of(kind: str, text: str) -> SingeError:
    """The error that the other side had."""
    return ERRORS.get(kind, DeviceError)(text)


class Batch:
    """Messages that will travel together, and their bytes, which must not change before `keep`."""

    def __init__(self) -> None:
        self._messages: Final[list[bytes]] = []
        self._parts: Final[list[Bytes]] = []
        self.bytes = 0
        """Of the parts."""
        self.header_bytes = 2

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, name: str, *values: Any, parts: Iterable[Bytes] = ()) -> None:
        text = _ENCODER.encode((name, *values)).encode()
        if self.header_bytes + len(text) >= MAX_HEADER_BYTES:
            raise DeviceError(
                f"{NAME}: a message {name!r} takes {len(text)} bytes, and at most {MAX_HEADER_BYTES} may be sent at once: it names too much"
            )
        self._messages.append(text)
        self.header_bytes += len(text) + 1
        for part in parts:
            self._parts.append(part)
            self.bytes += len(part)

    def keep(self) -> None:
        """Copy the bytes that are others'."""
        self._parts[:] = map(bytes, self._parts)

    def frames(self) -> Iterator[Bytes]:
        """The frames that carry it."""
        header = b"[" + b",".join(self._messages) + b"]"
        start = _LENGTH.pack(len(header)) + header
        room = MAX_FRAME_BYTES - len(start)
        pieces: list[Bytes] = [start]
        for part in self._parts:
            rest = memoryview(part)
            while len(rest) > room:
                yield b"".join((*pieces, rest[:room])) if pieces else rest[:room]
                rest, pieces, room = rest[room:], [], MAX_FRAME_BYTES
            pieces.append(rest)
            room -= len(rest)
        yield b"".join(pieces)


class BatchReader:
    """Makes batches of frames: the bytes of one that is a single frame stay in its memory.
    A frame that is wrong is a FormatError, after which nothing more can be read.

    room: whether there is memory for the bytes of a message, by its name, its values and the count; if not, they are left out.
    """

    def __init__(
        self, table: Mapping[str, MessageRow], room: Callable[[str, tuple[Any, ...], int], bool], peer: str
    ) -> None:
        self._table: Final = table
        self._room: Final = room
        self._peer: Final = peer
        self._rows: list[tuple[str, tuple[Any, ...], list[np.ndarray | None]]] = []
        self._wanted: list[tuple[np.ndarray | None, int]] = []  # where the coming bytes go, the next ones last
        self._filled = 0  # bytes of the next one that are there

    def feed(self, frame: Bytes) -> list[RemoteMessage] | None:
        """The messages of the batch that ends with this frame; None: more of it is to come."""
        rest = memoryview(frame)
        with checking(f"{NAME}: what the {self._peer} sent"):
            if not self._wanted:
                rest = self._begin(rest)
            elif not rest:
                raise ValueError("an empty frame")
            self._fill(rest)
        if self._wanted:
            return None
        return [RemoteMessage(name, values, tuple(parts)) for name, values, parts in self._rows]

    def _begin(self, frame: memoryview) -> memoryview:
        """Read the header; returns what follows it."""
        if len(frame) < _LENGTH.size:
            raise ValueError(f"a frame of {len(frame)} bytes")
        (length,) = _LENGTH.unpack_from(frame)
        end = _LENGTH.size + length
        if length > MAX_HEADER_BYTES or end > len(frame):
            raise ValueError(f"a header of {length} bytes in a frame of {len(frame)}")
        self._rows = []
        wanted: list[tuple[Sequence[int], bool]] = []
        for data in _listed(json.loads(bytes(frame[_LENGTH.size : end]))):
            name, *given = _listed(data)
            if not isinstance(name, str) or name not in self._table:
                raise ValueError(f"a message {name!r:.40}, expected one of {', '.join(self._table)}")
            row = self._table[name]
            if len(given) != len(row.checks):
                raise ValueError(f"{name} has {len(given)} values, expected {len(row.checks)}")
            values = tuple(check(v) for check, v in zip(row.checks, given, strict=True))
            sizes = row.parts(values)
            fits = not sizes or self._room(name, values, sum(sizes))
            wanted.append((sizes, fits))
            self._rows.append((name, values, []))
        rest = frame[end:]
        whole = sum(n for sizes, _ in wanted for n in sizes) == len(rest)
        at = 0
        for (_, _, parts), (sizes, fits) in zip(self._rows, wanted, strict=True):
            for n in sizes:
                if not fits:
                    parts.append(None)
                elif whole:
                    parts.append(np.frombuffer(rest[at : at + n], np.uint8))
                else:
                    parts.append(aligned(n))
                at += n
        if whole:
            return rest[:0]
        given = (
            (part, n)
            for (_, _, parts), (sizes, _) in zip(self._rows, wanted, strict=True)
            for part, n in zip(parts, sizes, strict=True)
        )
        self._wanted, self._filled = [pair for pair in given if pair[1]][::-1], 0
        return rest

    def _fill(self, rest: memoryview) -> None:
        while rest:
            if not self._wanted:
                raise ValueError(f"{len(rest)} bytes more than the header says")
            part, size = self._wanted[-1]
            taken = min(size - self._filled, len(rest))
            if part is not None:
                part[self._filled : self._filled + taken] = np.frombuffer(rest[:taken], np.uint8)
            self._filled += taken
            rest = rest[taken:]
            if self._filled == size:
                self._wanted.pop()
                self._filled = 0


# --- arrays -----------------------------------------------------------------------------------------------------------


def to_wire(array: np.ndarray) -> Bytes:
    """An array's elements as bytes, which may be those of the array itself."""
    kind = dtype(array.dtype)
    if kind is TEXT:
        return json.dumps(array[kind.name].reshape(-1).tolist()).encode()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def from_wire(raw: np.ndarray, kind: DType, shape: tuple[int, ...]) -> np.ndarray:
    """The array of bytes that came, in their memory, which may be read-only; ValueError if they do not fit."""
    size = math.prod(shape)
    if kind is TEXT:
        values = _list(string)(json.loads(raw.tobytes()))
        if len(values) != size:
            raise ValueError(f"{len(values)} strings for the shape {list(shape)}")
        return strings(np.array(values, object).reshape(shape))
    if raw.size != size * kind.size:
        raise ValueError(f"{raw.size} bytes for {kind}{list(shape)}")
    if kind.name == "bool":
        return (raw != 0).reshape(shape)
    return raw.view(kind.numpy).reshape(shape)
