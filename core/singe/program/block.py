"""The weights of a Program while it is put together: one block of bytes, written piece by piece.

A large block goes to a temporary file without a name, which is then mapped: its pages are the system's to drop as soon
as the weights are on a device, and no piece is held in memory twice. Without room on the disk it stays in memory.
"""

from __future__ import annotations

import hashlib
import mmap
import sys
import tempfile
import weakref
from typing import IO, Final

import numpy as np

from .container import align
from .program import aligned

SPILL: Final = 1 << 26
"""Bytes that are held in memory before they go to a file."""
_ANY: Final = sys.maxsize
_HAS_DISK: Final = sys.platform != "emscripten"  # a page's files lie in memory


class BlockWriter:
    """See the module's docstring."""

    def __init__(self, spill: int = SPILL) -> None:
        self._spill = spill if _HAS_DISK else _ANY
        self._file: IO[bytes] | None = None
        self._written = 0
        self._pieces: list[np.ndarray] = []
        self._known: dict[tuple[str, bytes], int] = {}  # the kind and digest of a piece ↦ where it lies
        self.size = 0

    def add(self, piece: np.ndarray, kind: str = "") -> int:
        """Where these bytes, a contiguous uint8 array, lie in the block; the array must not change any more.

        Equal pieces of one kind are held once.
        """
        key = kind, hashlib.blake2b(piece.data, digest_size=16).digest()
        if key in self._known:
            return self._known[key]
        start = self._known[key] = self.size
        self._pieces.append(piece)
        self.size += align(piece.size)
        if self.size - self._written > self._spill:
            self._write()
        return start

    def _write(self) -> None:
        """Move the pieces to the file."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the writer; its mapping lives on)
                weakref.finalize(self, self._file.close)
            self._file.seek(self._written)
            for piece in self._pieces:
                self._file.write(piece.data)
                self._file.write(bytes(align(piece.size) - piece.size))
            self._file.flush()
        except OSError:
            self._spill = _ANY
            return
        self._written = self.size
        self._pieces.clear()

    def block(self) -> np.ndarray:
        """The whole block; nothing is added after that."""
        if self._file is not None and self._pieces and self._spill != _ANY:
            self._write()
        start = self._mapped()
        if self._written == self.size and self.size:
            return start
        out = aligned(self.size)
        out[: self._written] = start
        at = self._written
        for piece in self._pieces:
            out[at : at + piece.size] = piece
            at += align(piece.size)
        self._pieces.clear()
        return out

    def _mapped(self) -> np.ndarray:
        """What is in the file."""
        if self._file is None or not self._written:
            return np.zeros(0, np.uint8)
        return np.frombuffer(mmap.mmap(self._file.fileno(), self._written, access=mmap.ACCESS_READ), np.uint8)
