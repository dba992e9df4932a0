"""Datasets of HDF5 files: their shapes and dtypes, and their elements in one piece or in chunks, compressed or not.

The place of every chunk is known, and checked, before an array is read. What was never written is refused: an array takes
at most as many bytes as those in the file can expand to.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import DTYPES, DType
from ...errors import FormatError
from ...late_dataclass import dataclass
from ...shapes import MAX_RANK
from ..stored import StoredArray, element_count
from .objects import AGAIN, ATTRIBUTE, FILTERS, LAYOUT, NOWHERE, SPACE, TYPE, File, Message, leaves

FLOATS: Final[Mapping[tuple[int, ...], str]] = {
    (2, 15, 10, 5, 0, 10, 15): "float16",
    (2, 15, 7, 8, 0, 7, 127): "bfloat16",
    (4, 31, 23, 8, 0, 23, 127): "float32",
    (8, 63, 52, 11, 0, 52, 1023): "float64",
}
"""Bytes, where the sign, the exponent (and its bits) and the mantissa (and its bits) are, the exponent's bias ↦ the dtype."""
_INTEGER, _FLOAT, _OPAQUE, _ENUM = 0, 1, 5, 8
_CLASSES: Final = {
    2: "times", 3: "strings", 4: "bits", 5: "opaque bytes", 6: "records", 7: "references", 9: "lists", 10: "arrays",
}  # fmt: skip
DEFLATE, SHUFFLE = 1, 2
_EXPANSION: Final = 1032
"""Deflate makes at most this many bytes of one."""


@dataclass(frozen=True)
class _Chunk:
    """Stored bytes, the numbers of the filters that they went through, and where the chunk begins in the array."""

    raw: memoryview
    filters: tuple[int, ...]
    start: tuple[int, ...]


def dataset(file: File, messages: Sequence[Message], at: int, what: str) -> StoredArray:
    """The dataset whose header, at this address, has these messages."""
    held = {m.kind: m for m in messages}
    if not {SPACE, TYPE, LAYOUT} <= held.keys():
        raise file.fault(at, f"{what} is neither a group nor a dataset; {AGAIN}")
    shape = _shape(held[SPACE], what)
    if _is_bfloat16(held[TYPE], messages):
        kind, turned = DTYPES["bfloat16"], False
    else:
        kind, turned = _dtype(held[TYPE], what)
    size = element_count(shape, what) * kind.size
    m = held[LAYOUT]
    version, form = m.number(0, 1), m.number(1, 1)
    if version not in (3, 4) or form > 2 or (version, form) == (4, 2):
        raise m.fault(f"{what} is stored by version {version} and class {form} of layouts; {AGAIN}")
    filters = _filters(held[FILTERS], what) if FILTERS in held else ()
    if form == 2:
        chunk, chunks = _chunks(m, shape, kind, filters, what)
        read = lambda: _joined(chunks, chunk, shape, kind, turned, what)
    else:
        if filters:
            raise m.fault(f"{what} has filters and no chunks")
        raw = _piece(m, form, size, what)
        read = lambda: _ready(np.frombuffer(raw, _stored(kind, turned)).reshape(shape), kind)
    return StoredArray(shape, kind, kind.name, read)


def _piece(m: Message, form: int, size: int, what: str) -> memoryview:
    """The bytes of a dataset in its header, or in one piece elsewhere."""
    if form == 0:
        found = m.data[4 : 4 + m.number(2, 2)]
    else:
        place, told = m.number(2, 8), m.number(10, 8)
        if place == NOWHERE and size:
            raise m.fault(f"{what} was never written: leave it out, or write its elements")
        if told != size:
            raise m.fault(f"{what} has {told} bytes, its shape needs {size}")
        found = m.file.take(place, size, what).data if size else memoryview(b"")
    if len(found) != size:
        raise m.fault(f"{what} has {len(found)} bytes, its shape needs {size}")
    return found


def _shape(m: Message, what: str) -> tuple[int, ...]:
    version, rank = m.number(0, 1), m.number(1, 1)
    if version not in (1, 2) or rank > MAX_RANK:
        raise m.fault(f"{what}: version {version} of shapes, of {rank} axes, at most {MAX_RANK} are possible")
    if version == 2 and m.number(3, 1) > 1:
        raise m.fault(f"{what} has no elements and no shape: leave it out")
    first = 8 if version == 1 else 4
    return tuple(m.number(first + 8 * k, 8) for k in range(rank))


def _dtype(m: Message, what: str) -> tuple[DType, bool]:
    """The dtype, and whether its bytes are in the other order."""
    form, size = m.number(0, 1) & 15, m.number(4, 4)
    if form == _ENUM:
        if m.number(8, 1) & 15 != _INTEGER:
            raise m.fault(f"{what} has an enumeration of no integers; {AGAIN}")
        kind, turned = _dtype(Message(m.file, m.data[8:], m.at + 8, TYPE), what)
        rest = bytes(m.data[20:])
        return (DTYPES["bool"], False) if size == 1 and b"FALSE\0" in rest and b"TRUE\0" in rest else (kind, turned)
    flags = m.number(1, 3)
    turned = bool(flags & 1)
    # An integer or a float has all bits of its bytes: from bit 0, 8 for each byte.
    whole = form in (_INTEGER, _FLOAT) and m.number(8, 4) == size * 8 << 16
    if whole and form == _INTEGER and size in (1, 2, 4, 8):
        return DTYPES[f"{'int' if flags & 8 else 'uint'}{8 * size}"], turned
    if whole and form == _FLOAT and not flags & 0x40:
        parts = (*(m.number(k, 1) for k in range(12, 16)), m.number(16, 4))
        name = FLOATS.get((size, flags >> 8 & 255, *parts))
        if name is not None:
            return DTYPES[name], turned
    raise m.fault(
        f"{what} has elements of {size} bytes, {_CLASSES.get(form, f'class {form}')}; read are integers of 1 to 8 bytes, "
        f"bools, and {', '.join(FLOATS.values())}: leave it out, or store it as one of these",
    )


def _is_bfloat16(m: Message, messages: Sequence[Message]) -> bool:
    """Whether Keras wrote bfloat16: two opaque bytes, and an attribute "dtype"."""
    told = any(a.kind == ATTRIBUTE and b"dtype\0" in bytes(a.data[8:15]) for a in messages)
    return told and bytes(m.data[4:8]) == b"\2\0\0\0" and m.data[0] & 15 == _OPAQUE


def _filters(m: Message, what: str) -> tuple[int, ...]:
    """The filters that stored bytes went through, the first first."""
    version, count = m.number(0, 1), m.number(1, 1)
    if version not in (1, 2):
        raise m.fault(f"{what}: version {version} of filters, expected 1 or 2")
    at, found = (8 if version == 1 else 2), list[int]()
    for _ in range(count):
        kind = m.number(at, 2)
        named = version == 1 or kind >= 256
        length = m.number(at + 2, 2) if named else 0
        at += 2 + 2 * named
        values = m.number(at + 2, 2)
        at += 4 + length + 4 * values + (4 * (values % 2) if version == 1 else 0)
        if kind not in (DEFLATE, SHUFFLE) or kind in found:
            raise m.fault(
                f"{what} went through the filters {[*found, kind]}; read are 1 (gzip) and 2 (shuffle), once each"
            )
        found.append(kind)
    return tuple(found)


def _chunks(
    m: Message, shape: tuple[int, ...], kind: DType, filters: tuple[int, ...], what: str
) -> tuple[tuple[int, ...], list[_Chunk]]:
    """The shape of chunks, and the chunks, of which there is one at each place of the grid."""
    rank = len(shape)
    if m.number(2, 1) != rank + 1 or rank == 0:
        raise m.fault(f"{what} has {rank} axes and chunks of {m.number(2, 1) - 1}")
    chunk = tuple(m.number(11 + 4 * k, 4) for k in range(rank))
    if 0 in chunk or m.number(11 + 4 * rank, 4) != kind.size:
        raise m.fault(f"{what} has chunks of {chunk}, which are none, or of elements of another size")
    tree = m.number(3, 8)
    whole = math.prod(chunk) * kind.size
    grid = tuple(-(-n // k) for n, k in zip(shape, chunk, strict=True))
    found: dict[tuple[int, ...], _Chunk] = {}
    for place, key in leaves(m.file, tree, 1, 16 + 8 * rank) if tree != NOWHERE and 0 not in shape else ():
        size, mask = key.number(0, 4), key.number(4, 4)
        start = tuple(key.number(8 + 8 * k, 8) for k in range(rank))
        used = tuple(f for k, f in enumerate(filters) if not mask >> k & 1)
        if start in found or any(s % k or s >= n for s, k, n in zip(start, chunk, shape, strict=True)):
            raise key.fault(f"{what} has a chunk at {start}, which is beside its grid, or comes twice")
        if size != whole if DEFLATE not in used else whole > _EXPANSION * size + 64:
            raise key.fault(f"{what} has a chunk of {size} bytes, which cannot become {whole}")
        found[start] = _Chunk(m.file.take(place, size, what).data, used, start)
    if len(found) != math.prod(grid):
        raise m.fault(
            f"{what} has {len(found)} of {math.prod(grid)} chunks, the others were never written: write all elements",
        )
    return chunk, list(found.values())


def _joined(
    chunks: Sequence[_Chunk], chunk: tuple[int, ...], shape: tuple[int, ...], kind: DType, turned: bool, what: str
) -> np.ndarray:
    given = _stored(kind, turned)
    made = np.empty(shape, given)
    for c in chunks:
        raw = _expanded(c, math.prod(chunk) * kind.size, kind.size, what)
        ends = [min(s + k, n) for s, k, n in zip(c.start, chunk, shape, strict=True)]
        inside = tuple(slice(0, e - s) for s, e in zip(c.start, ends, strict=True))
        made[tuple(itertools.starmap(slice, zip(c.start, ends, strict=True)))] = np.frombuffer(raw, given).reshape(
            chunk
        )[inside]
    return _ready(made, kind)


def _expanded(c: _Chunk, size: int, item: int, what: str) -> bytes | memoryview:
    raw: bytes | memoryview = c.raw
    for kind in reversed(c.filters):
        if kind == SHUFFLE:  # the first bytes of all elements, then the second ones
            raw = np.frombuffer(raw, np.uint8).reshape(item, -1).T.tobytes() if len(raw) % item == 0 else b""
        else:
            try:
                inflating = zlib.decompressobj()
                raw = inflating.decompress(raw, size + 1)
                if not inflating.eof:
                    raise zlib.error("its stream does not end")
            except zlib.error as e:
                raise FormatError(f"{what}: a chunk at {c.start} is damaged: {e}") from None
    if len(raw) != size:
        raise FormatError(f"{what}: a chunk at {c.start} is damaged: {len(raw)} bytes, expected {size}")
    return raw


def _stored(kind: DType, turned: bool) -> np.dtype[Any]:
    """How elements lie in the file."""
    name = "uint8" if kind.kind == "bool" else kind.held or kind.name
    return np.dtype(name).newbyteorder(">" if turned else "<")


def _ready(elements: np.ndarray, kind: DType) -> np.ndarray:
    if kind.kind == "bool":
        made = elements != 0
    else:
        made = np.require(elements, elements.dtype.newbyteorder("="), ["C", "A"])
        made = made.view(kind.numpy) if kind.held else made
    made.flags.writeable = False
    return made
