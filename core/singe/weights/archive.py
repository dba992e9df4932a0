"""ZIP archives of weights: the entries by name, as views of the archive where they are stored without compression.

Refused: two entries of one name, entries that lead out of the archive, are encrypted or overlap, and those whose sizes
cannot be as the archive says. No entry is decompressed before it is asked for.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Final

import numpy as np

from ..errors import FormatError

ZIP: Final = b"PK\x03\x04"
_EXPANSION: Final = 1032
"""Deflate makes at most this many bytes of one."""
_HEADER: Final = 30
_FOREIGN: Final = "is compressed or encrypted in a way that this format does not have"


def _is_stored(entry: zipfile.ZipInfo) -> bool:
    return entry.compress_type == zipfile.ZIP_STORED


class _Reader(io.RawIOBase):
    """A memoryview as a file: BytesIO would copy it."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, len(self._data))[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        part = self._data[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def is_archive(data: memoryview) -> bool:
    return data[: len(ZIP)] == ZIP


class Archive:
    """A ZIP archive in memory, whose entries are stored, or compressed by the method Deflate."""

    def __init__(self, data: memoryview, name: str) -> None:
        self._data, self._name = data, name
        try:
            self._zip = zipfile.ZipFile(io.BufferedReader(_Reader(data)))
        except Exception as e:  # zipfile raises many kinds of errors for damaged archives
            raise FormatError(f"{name}: the archive is damaged: {e or type(e).__name__}") from None
        entries = self._zip.infolist()
        self.entries: Final = {i.filename: i for i in entries}
        if len(self.entries) != len(entries):
            raise FormatError(f"{name}: two entries of the archive have one name")
        taken = 0
        for i in entries:
            what = f"{name}: the archive's entry {i.filename!r:.80}"
            parts = i.filename.split("/")
            if ".." in parts or parts[0] == "" or "\\" in i.filename:
                raise FormatError(f"{what} leads out of it")
            stored = _is_stored(i) and i.compress_size == i.file_size
            if i.flag_bits & 1 or not (stored or i.compress_type == zipfile.ZIP_DEFLATED):
                raise FormatError(f"{what} {_FOREIGN}")
            if i.file_size > _EXPANSION * i.compress_size + 64 or i.file_size < 0:
                raise FormatError(f"{what} cannot expand from {i.compress_size} to {i.file_size} bytes")
            taken += i.compress_size
        # Overlapping entries are how a small archive expands to a huge one.
        if taken > len(data):
            raise FormatError(f"{name}: the archive's entries are larger than the file")

    def __len__(self) -> int:
        """The archive's bytes."""
        return len(self._data)

    def refuse_compressed(self, but: str) -> None:
        """For formats that compress nothing but the entries whose names begin with this."""
        for i in self.entries.values():
            if not _is_stored(i) and not i.filename.startswith(but):
                raise FormatError(f"{self._name}: the archive's entry {i.filename!r:.80} {_FOREIGN}")

    def size(self, entry: str) -> int:
        return self.entries[entry].file_size

    def read(self, entry: str) -> memoryview:
        """The bytes of an entry, after a comparison with their checksum."""
        info = self.entries[entry]
        what = f"{self._name}: the archive's entry {entry!r:.80}"
        if _is_stored(info):
            start = info.header_offset
            head = self._data[start : start + _HEADER]
            if len(head) < _HEADER or head[:4] != ZIP:
                raise FormatError(f"{what} is damaged: there is no header at byte {start}")
            start += _HEADER + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            found = self._data[start : start + info.file_size]
            if len(found) != info.file_size or zlib.crc32(found) != info.CRC:
                raise FormatError(f"{what} is damaged: its bytes do not match their checksum")
            return found
        room = np.empty(info.file_size, np.uint8).data
        try:
            with self._zip.open(info) as file:
                at = 0
                while at < len(room) and (part := file.read(min(1 << 20, len(room) - at))):
                    room[at : at + len(part)] = part
                    at += len(part)
                whole = at == len(room) and not file.read(1)
        except Exception as e:
            raise FormatError(f"{what} is damaged: {e or type(e).__name__}") from None
        if not whole:
            raise FormatError(f"{what} is damaged: it ends after {at} of {len(room)} bytes")
        return room.toreadonly()

    def begin(self, entry: str, count: int) -> bytes:
        """The first bytes of an entry, at most `count`."""
        try:
            with self._zip.open(self.entries[entry]) as file:
                return file.read(count)
        except Exception as e:
            what = f"{self._name}: the archive's entry {entry!r:.80}"
            raise FormatError(f"{what} is damaged: {e or type(e).__name__}") from None
