"""The container of the files that Singe writes, Programs and records: a header and a block of bytes.

A file is MAGIC, the header's length (uint32 little-endian), the header (JSON, UTF-8), zeros up to a multiple of ALIGN,
and the block, up to the file's end. The header's `format` says what the file is; its `sha256` is the block's.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from ..dtypes import DTYPES, DType
from ..errors import FormatError, ShapeError, SingeError
from ..files import sha256_of
from ..shapes import COMBINED, Dim, Size, size

MAGIC: Final = b"SINGE\x001\n"
ALIGN: Final = 256
PROGRAM: Final = "singe/3"
RECORD: Final = "singe-record/1"
FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    PROGRAM: ("program", "singe.load, singe.Program.load and `singe run` read it"),
    RECORD: ("record", "singe.load and the commands read it, or singe.load_weights where it holds weights alone"),
}
"""A header's `format` ↦ what the file is, and what reads it."""


def align(count: int) -> int:
    """Bytes rounded up to the alignment of every buffer."""
    return -(-count // ALIGN) * ALIGN


def format_of(path: str | Path | bytes) -> str | None:
    """The `format` in the header of a file, or of its bytes; None if the file is not one of ours or cannot be read."""
    try:
        with BytesIO(path) if isinstance(path, bytes) else Path(path).open("rb") as file:
            start = file.read(len(MAGIC) + 4)
            if start[: len(MAGIC)] != MAGIC:
                return None
            head = json.loads(file.read(int.from_bytes(start[len(MAGIC) :], "little")))
            return str(head.get("format"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


Bytes: TypeAlias = "bytes | memoryview"


class BlockPieces:
    """A block as a list of pieces, which are not copied."""

    def __init__(self) -> None:
        self.pieces: Final[list[Bytes]] = []
        self.size = 0

    def add(self, piece: Bytes) -> int:
        """Add a piece, which must not change until the file is written; returns its offset, a multiple of ALIGN."""
        start = align(self.size)
        self.pieces.extend((bytes(start - self.size), piece))
        self.size = start + len(piece)
        return start


def file_pieces(head: Mapping[str, Any], block: BlockPieces) -> list[Bytes]:
    """The bytes of a file, in consecutive pieces: the header, to which the block's sha256 is added, and the block."""
    import hashlib  # noqa: PLC0415 (see sha256_of)

    digest = hashlib.sha256()
    for piece in block.pieces:
        digest.update(piece)
    text = json.dumps({**head, "sha256": digest.hexdigest()}, separators=(",", ":")).encode()
    before = MAGIC + struct.pack("<I", len(text)) + text
    return [before, bytes(align(len(before)) - len(before)), *block.pieces]


def read(data: Bytes, name: str, kind: str, is_whole: bool = False) -> tuple[dict[str, Any], memoryview]:
    """The header and the block of a file of the format `kind`. Of their contents, only the hash is checked; is_whole: it need not be, as
    who has the data has checked it."""
    what = FORMATS[kind][0]
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError(f"{name}: not a Singe {what} (it starts with {bytes(data[:8])!r}, expected {MAGIC!r})")
    if len(data) < len(MAGIC) + 4:
        raise FormatError(f"{name}: ends within the first {len(MAGIC) + 4} bytes")
    (length,) = struct.unpack_from("<I", data, len(MAGIC))
    start = align(len(MAGIC) + 4 + length)
    if start > len(data):
        raise FormatError(f"{name}: the header says {length} bytes, the file has {len(data)}")
    try:
        head = json.loads(bytes(data[len(MAGIC) + 4 : len(MAGIC) + 4 + length]))
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{name}: the header is not JSON: {e}") from None
    with checking(name):
        found = head.get("format")
        if found != kind:
            if isinstance(found, str) and found in FORMATS:
                other, reader = FORMATS[found]
                raise FormatError(f"{name}: a {other}, expected a {what}: {reader}")
            raise FormatError(
                f"{name}: format {found!r:.40}, this version of Singe reads {kind!r}; compile, export or save the model again with this version"
            )
        block = memoryview(data)[start:]
        if not is_whole and sha256_of(block) != head["sha256"]:
            raise FormatError(f"{name}: the contents do not match their sha256: the file is damaged")
    return head, block


@contextmanager
def checking(name: str) -> Iterator[None]:
    """Turns any error that a malformed header causes into a FormatError that names the file."""
    try:
        yield
    except (
        SingeError, KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, ArithmeticError
    ) as e:  # fmt: skip
        if isinstance(e, FormatError) and str(e).startswith(name):
            raise
        if isinstance(e, SingeError):
            raise FormatError(f"{name}: {e}") from None
        raise FormatError(f"{name}: malformed header: {type(e).__name__}: {e!s:.200}") from None


def bytes_at(block: memoryview, at: Any, what: str) -> memoryview:
    """The bytes at [offset, count] of a block."""
    offset, count = at
    if not (type(offset) is int and type(count) is int and offset >= 0 and count >= 0 and offset + count <= len(block)):
        raise FormatError(f"{what} is at {at!r:.60}, but the file holds {len(block)} bytes")
    return block[offset : offset + count]


def count(value: Any) -> int:
    """A number that a header gives for a count, an index or an offset."""
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise ValueError(f"expected a count, got {value!r:.40}")
    return value


def whole(value: Any) -> int:
    """A whole number that a header gives, which may be negative."""
    if type(value) is not int or abs(value) >= 1 << 53:
        raise ValueError(f"expected a whole number, got {value!r:.40}")
    return value


def string(value: Any) -> str:
    """A name that a header gives."""
    if not isinstance(value, str):
        raise ValueError(f"expected a string, got {value!r:.40}")
    return value


def dtype_named(name: Any) -> DType:
    """The dtype of that name."""
    if not isinstance(name, str) or name not in DTYPES:
        raise FormatError(f"unknown dtype {name!r:.40}, expected one of {', '.join(DTYPES)}")
    return DTYPES[name]


def encode_dim(dim: Dim) -> Any:
    """The dimension as plain data: an int, or [[coefficient, atom…]…] with atom a name or [word, a, b]."""
    if isinstance(dim, int):
        return dim
    return [
        [v, *(a if isinstance(a, str) else [a[0], encode_dim(a[1]), encode_dim(a[2])] for a in k)] for k, v in dim.terms
    ]


def decode_dim(data: Any, depth: int = 0) -> Dim:
    """The dimension that `encode_dim` wrote; invalid data raises ShapeError."""
    if isinstance(data, int) and not isinstance(data, bool):
        return data
    if not isinstance(data, list) or depth > 32:
        raise ShapeError(f"a dimension must be a number or a list of terms, got {data!r:.80}")
    text = repr(data)
    found = _DECODED.get(text)
    if found is None:
        found = _decode_terms(data, depth)
        if len(_DECODED) < MAX_DECODED and len(text) <= MAX_DECODED_TEXT:
            _DECODED[text] = found
    return found


MAX_DECODED: Final = 1 << 12
MAX_DECODED_TEXT: Final = 1 << 10
_DECODED: Final[dict[str, Dim]] = {}
"""Dimensions by their data as text: a Program has a few dozen different ones, each in hundreds of places."""


def _decode_terms(data: list[Any], depth: int) -> Dim:
    total: Dim = 0
    for term in data:
        if not (isinstance(term, list) and term and isinstance(term[0], int)):
            raise ShapeError(f"a term of a dimension must be [number, atoms…], got {term!r:.80}")
        part: Dim = term[0]
        for atom in term[1:]:
            if isinstance(atom, str):
                part = part * size(atom)
            elif isinstance(atom, list) and len(atom) == 3 and isinstance(atom[0], str) and atom[0] in COMBINED:
                part = part * COMBINED[atom[0]](decode_dim(atom[1], depth + 1), decode_dim(atom[2], depth + 1))
            else:
                raise ShapeError(f"an atom of a dimension must be a name or [word, a, b], got {atom!r:.80}")
        total = total + part
    return total


def encode_attr(value: Any) -> Any:
    """An attribute as JSON data: Sizes, dtypes and tuples are tagged; infinities and NaN have names."""
    if isinstance(value, Size):
        return {"size": encode_dim(value)}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return [encode_attr(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    return value


def decode_attr(data: Any) -> Any:
    """The inverse of `encode_attr`."""
    if isinstance(data, list):
        return tuple(map(decode_attr, data))
    if isinstance(data, dict):
        ((kind, inner),) = data.items()
        return decode_dim(inner) if kind == "size" else dtype_named(inner) if kind == "dtype" else float(inner)
    return data
