"""Weights of CTranslate2: the `model.bin` of a folder that its converters write, of the versions 2 to 6.

A version, the name of what the model is, its revision, then arrays, each with name, shape, type and bytes; last, other names for some.
"""

from __future__ import annotations

import struct
from typing import Final

from ..dtypes import DType, bfloat16, float16, float32, int8, int16, int32
from ..errors import FormatError
from .stored import StoredArray, Weights, element_count, viewed

_VERSIONS: Final = range(2, 7)
_TYPES: Final[tuple[DType, ...]] = (float32, int8, int16, int32, float16, bfloat16)
"""By the number that the file has for them."""
_SPEC: Final = b"Spec\0"
MAX_NAME: Final = 1 << 10
MAX_ARRAYS: Final = 1 << 16


def is_ctranslate2(data: memoryview) -> bool:
    """Whether bytes begin like such a file: a version, and a name that ends in "Spec"."""
    if len(data) < 6:
        return False
    version, length = struct.unpack_from("<IH", data)
    return version in _VERSIONS and len(_SPEC) < length <= MAX_NAME and bytes(data[6 : 6 + length]).endswith(_SPEC)


def read_ctranslate2(data: memoryview, name: str) -> Weights:
    """The arrays, under their own names; metadata: `spec`, what the model is, and `revision`."""
    fields = _Fields(data, name)
    _, spec, revision = fields.number("I"), fields.text(), fields.number("I")
    stored: dict[str, StoredArray] = {}
    for _ in range(fields.count()):
        key = fields.text()
        if key in stored:
            raise FormatError(f"{name}: the array {key!r:.80} comes twice")
        shape = tuple(fields.number("I") for _ in range(fields.number("B")))
        kind, size = fields.number("B"), fields.number("I")
        if kind >= len(_TYPES):
            raise FormatError(f"{name}: {key!r:.80} has the type {kind}, expected one of 0 to {len(_TYPES) - 1}")
        expected = element_count(shape, f"{name}: {key!r:.80}") * _TYPES[kind].size
        if size != expected:
            raise FormatError(f"{name}: {key!r:.80} has {size} bytes, expected {expected} for {_TYPES[kind]}{shape}")
        stored[key] = viewed(fields.bytes(size), _TYPES[kind], shape)
    for _ in range(fields.count()):
        alias, key = fields.text(), fields.text()
        if key not in stored or alias in stored:
            raise FormatError(f"{name}: {alias!r:.80} is said to be {key!r:.80}, which is not there, or comes twice")
        stored[alias] = stored[key]
    if fields.place != len(data):
        raise FormatError(f"{name}: {len(data) - fields.place} bytes after the end, expected none")
    return Weights(stored, {"spec": spec, "revision": revision})


class _Fields:
    """Reads what follows, with checks."""

    def __init__(self, data: memoryview, name: str) -> None:
        self._data, self._name = data, name
        self.place = 0

    def bytes(self, size: int) -> memoryview:
        if size > len(self._data) - self.place:
            raise FormatError(
                f"{self._name}: {size} bytes at {self.place} of {len(self._data)}: the file ends before; fetch it again"
            )
        self.place += size
        return self._data[self.place - size : self.place]

    def number(self, form: str) -> int:
        (found,) = struct.unpack(f"<{form}", self.bytes(struct.calcsize(f"<{form}")))
        return found

    def count(self) -> int:
        found = self.number("I")
        if found > MAX_ARRAYS:
            raise FormatError(f"{self._name}: {found} arrays, at most {MAX_ARRAYS} are read")
        return found

    def text(self) -> str:
        size = self.number("H")
        held = bytes(self.bytes(size))
        if not 1 < size <= MAX_NAME or held[-1:] != b"\0":
            raise FormatError(f"{self._name}: a name of {size} bytes at {self.place - size}, expected 1 to {MAX_NAME}")
        try:
            return held[:-1].decode()
        except UnicodeDecodeError:
            raise FormatError(f"{self._name}: a name at {self.place - size} is not UTF-8") from None
