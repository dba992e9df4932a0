"""NumPy's `.npz` archives, compressed or not: one `.npy` file for each array. Object arrays, which are pickles, are refused."""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy

from ..dtypes import DType, dtype, own
from ..errors import DTypeError, FormatError
from .archive import Archive
from .stored import StoredArray, Weights, element_count

SUFFIX: Final = ".npy"
_HEADERS: Final = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_MOST: Final = 10_000 + 16
"""The most bytes of a header that NumPy reads, with what is before it."""


def is_npz(archive: Archive) -> bool:
    return bool(archive.entries) and all(entry.endswith(SUFFIX) for entry in archive.entries)


def read_npz(archive: Archive, name: str) -> Weights:
    """The arrays of an archive, without the suffix in their names."""
    return Weights({e.removesuffix(SUFFIX): _stored(archive, e, f"{name}: {e!r:.80}") for e in archive.entries})


def _stored(archive: Archive, entry: str, what: str) -> StoredArray:
    shape, turned, given, start = _header(archive.begin(entry, _MOST), what)
    try:
        kind: DType = dtype(given)
    except DTypeError as e:
        lost = given.kind == "V" and not given.names
        why = (
            f"elements of {given.itemsize} bytes of no type: NumPy's files lose the types of ml_dtypes; "
            "write such arrays as .safetensors"
        )
        raise FormatError(f"{what}: {why if lost else e}") from None
    if given.hasobject or kind.size != given.itemsize:
        raise FormatError(
            f"{what}: elements of {given}, expected numbers; object arrays are pickles, which are not read"
        )
    need = start + element_count(shape, what) * given.itemsize
    if need != archive.size(entry):
        raise FormatError(f"{what}: {archive.size(entry)} bytes, its header needs {need}")

    def read() -> np.ndarray:
        flat = np.frombuffer(archive.read(entry)[start:], given)
        made = flat.reshape(shape[::-1]).T if turned else flat.reshape(shape)
        made = own(np.require(made, given.newbyteorder("="), ["C", "A"]))
        made.flags.writeable = False
        return made

    return StoredArray(shape, kind, kind.name, read)


def _header(head: bytes, what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """(shape, whether it is in Fortran's order, dtype, where the elements begin)."""
    file = io.BytesIO(head)
    try:
        version = npy.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the format")
        shape, turned, given = _HEADERS[version](file)
    except Exception as e:  # NumPy evaluates the header as a literal, which may fail in any way
        raise FormatError(f"{what}: not NumPy's format: {str(e)[:200] or type(e).__name__}") from None
    if not all(type(n) is int for n in shape):
        raise FormatError(f"{what}: the shape {shape!r:.80}, expected numbers")
    return shape, turned, given, file.tell()
