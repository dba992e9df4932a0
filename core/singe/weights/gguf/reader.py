"""GGUF files, versions 2 and 3: metadata, the places of tensors, and their elements.

Tensors of plain numbers are views of the mapped file; those in blocks (blocks.py, coded.py) become float32 when they are read,
or packed matrices (packed.py).
Axes are in PyTorch's order, the reverse of the file's. Every count is compared with the bytes that follow before it is
used, so memory is proportional to the file.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from ...dtypes import DTYPES, DType, float32
from ...errors import FormatError
from ...files.strings import MadeSequence
from ..stored import StoredArray, Weights, element_count, viewed
from .blocks import SCALED, BlockFormat
from .coded import CODED
from .packed import PARTS, packed_matrix

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
PLAIN: Final[Mapping[int, DType]] = {
    code: DTYPES[name]
    for code, name in {
        0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16",
    }.items()
}  # fmt: skip
"""The types of tensors that are not in blocks."""
FORMATS: Final[Mapping[int, BlockFormat]] = {**SCALED, **CODED}
"""The types of tensors in blocks."""
NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Types of numbers in metadata, as `struct` spells them."""
_STRING, _ARRAY = 8, 9
_LENGTH: Final = 8
"""The bytes before a text that say how many it has."""
_DEPTH: Final = 4
_AXES: Final = 4
_LEAST: Final = {**{code: struct.calcsize("<" + c) for code, c in NUMBERS.items()}, _STRING: 8, _ARRAY: 12}
"""The fewest bytes that a value of each type takes."""
ALIGNMENT: Final = "general.alignment"


def is_gguf(data: memoryview) -> bool:
    return data[:4] == MAGIC


class _Cursor:
    """Reads values one after the other; FormatError where the file ends."""

    def __init__(self, data: memoryview, name: str) -> None:
        self.data, self.name, self.at = data, name, 0

    def fault(self, text: str) -> FormatError:
        return FormatError(f"{self.name}, byte {self.at}: {text}")

    def take(self, count: int) -> memoryview:
        if count > len(self.data) - self.at:
            raise self.fault(f"{count} bytes expected, {len(self.data) - self.at} follow")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, layout: str) -> Any:
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))[0]

    def count(self, least: int) -> int:
        """A number of things, each of which takes at least so many bytes."""
        found = self.number("Q")
        if found * least > len(self.data) - self.at:
            raise self.fault(f"{found} things of at least {least} bytes, {len(self.data) - self.at} bytes follow")
        return found

    def text(self) -> str:
        return _decoded(bytes(self.take(self.count(1))))

    def texts(self, count: int) -> Sequence[str]:
        """So many texts, which stay as they are in the file until they are asked for."""
        first, starts = self.at, array("Q", [_LENGTH])
        for _ in range(count):
            self.take(self.count(1))
            starts.append(self.at + _LENGTH - first)
        held = bytes(self.data[first : self.at])
        return MadeSequence(count, lambda k: _decoded(held[starts[k] : starts[k + 1] - _LENGTH]))

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY or depth == _DEPTH:
            raise self.fault(f"metadata of the type {kind}, in {depth} arrays")
        inner = self.number("I")
        if inner not in _LEAST:
            raise self.fault(f"an array of the type {inner}")
        count = self.count(_LEAST[inner])
        if inner in NUMBERS:
            size = struct.calcsize("<" + NUMBERS[inner])
            return list(struct.unpack(f"<{count}{NUMBERS[inner]}", self.take(count * size)))
        return self.texts(count) if inner == _STRING else [self.value(inner, depth + 1) for _ in range(count)]


def _decoded(raw: bytes) -> str:
    """Tokens in metadata are bytes that need not be text."""
    return raw.decode("utf-8", "surrogateescape")


def read_gguf(data: memoryview, name: str) -> Weights:
    """The tensors of a file, and its metadata: numbers, strings, and sequences of them."""
    c = _Cursor(data, name)
    c.take(len(MAGIC))
    version = c.number("I")
    if version not in VERSIONS:
        raise FormatError(f"{name}: version {version} of GGUF, expected one of {VERSIONS}, little-endian")
    tensors = c.count(24)
    metadata: dict[str, Any] = {}
    for _ in range(c.count(13)):
        key = c.text()
        if key in metadata:
            raise c.fault(f"the key {key!r:.80} comes twice")
        metadata[key] = c.value(c.number("I"))
    alignment = metadata.get(ALIGNMENT, 32)
    if type(alignment) is not int or not 0 < alignment <= 1 << 20 or alignment & alignment - 1:
        raise FormatError(f"{name}: {ALIGNMENT} is {alignment!r:.40}, expected a power of two")
    places: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(tensors):
        key = c.text()
        if key in places:
            raise c.fault(f"the tensor {key!r:.80} comes twice")
        axes = c.number("I")
        if axes > _AXES:
            raise c.fault(f"the tensor {key!r:.80} has {axes} axes, at most {_AXES} are possible")
        shape = tuple(c.number("Q") for _ in range(axes))[::-1]
        places[key] = shape, c.number("I"), c.number("Q")
    block = data[-(-c.at // alignment) * alignment :]
    stored = {k: _stored(block, *place, alignment, f"{name}: the tensor {k!r:.80}") for k, place in places.items()}
    taken = sum(taken for _, taken in stored.values())
    if taken > len(block):
        raise FormatError(f"{name}: its tensors take {taken} bytes, of which the file has {len(block)}: they overlap")
    return Weights({k: array for k, (array, _) in stored.items()}, metadata)


def _stored(
    block: memoryview, shape: tuple[int, ...], code: int, offset: int, alignment: int, what: str
) -> tuple[StoredArray, int]:
    """A tensor, and how many bytes it takes."""
    form = PLAIN.get(code) or FORMATS.get(code)
    if form is None:
        names = [*(d.name for d in PLAIN.values()), *(f.name for f in FORMATS.values())]
        raise FormatError(
            f"{what} is of GGUF's type {code}; those that Singe reads are {', '.join(names)}: quantise the model to one of them"
        )
    count = element_count(shape, what)
    group = form.count if isinstance(form, BlockFormat) else 1
    if group > 1 and (not shape or shape[-1] % group):
        raise FormatError(f"{what} of {shape} is in blocks of {group} elements, which do not divide its last axis")
    size = count // group * (form.layout.itemsize if isinstance(form, BlockFormat) else form.size)
    if offset % alignment or offset + size > len(block):
        raise FormatError(
            f"{what} has {size} bytes from byte {offset} of the data, expected a multiple of {alignment} "
            f"and an end before {len(block)}"
        )
    raw = block[offset : offset + size]
    if isinstance(form, DType):
        return viewed(raw, form, shape), size
    matrix = (
        partial(packed_matrix, form, raw, shape) if form.name in PARTS and len(shape) == 2 and 0 not in shape else None
    )
    return StoredArray(shape, float32, form.name, lambda: form.dequantised(raw, shape), matrix), size
