"""Collects the weights of a Program while it is compiled: one block of bytes, written piece by piece.

A large block goes to an unnamed temporary file, which is then mapped: the system can drop its pages once the weights
are on a device, and no piece is held in memory twice. If the disk has no room, the block stays in memory.

The Programs of one Model share blocks: a piece that is in a block of another Program (SharedBlocks) is not written again.
"""

from __future__ import annotations

import mmap
import sys
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Final
from zlib import crc32

import numpy as np

from ..files import in_parts
from .container import align
from .elements import aligned
from .program import Buffer, ProgramData

MAX_BYTES_IN_MEMORY: Final = 1 << 26
"""Bytes that are held in memory before they go to a file."""
SHARED: Final = 1 << 40
"""The first offset of other Programs' blocks, beyond any block of the Program itself."""
_ANY: Final = sys.maxsize
_HAS_DISK: Final = sys.platform != "emscripten"  # a page's files lie in memory


def _key(piece: np.ndarray, kind: str) -> tuple[str, bytes]:
    """What equal pieces of a kind have in common. A cryptographic hash would take four times as long as this and a comparison."""
    return kind, piece.size.to_bytes(8, "little") + crc32(piece.data).to_bytes(4, "little")


class SharedBlocks:
    """Finds pieces in the blocks of a Model's Programs. A block is forgotten once no Program holds it. The dicts are never changed, as
    another thread may read them."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, bytes], tuple[weakref.ref[np.ndarray], int]] = {}
        self._named: dict[str, weakref.ref[np.ndarray]] = {}  # blocks that are kept from process to process, by digest

    def find(self, key: tuple[str, bytes]) -> tuple[np.ndarray, int] | None:
        """The block that holds a piece of this key, and the piece's offset in it."""
        block, at = self._places.get(key, (lambda: None, 0))
        found = block()
        return None if found is None else (found, at)

    def enter(self, block: np.ndarray, pieces: Mapping[tuple[str, bytes], int]) -> None:
        """Add a complete block, with the offsets of its pieces."""
        held = weakref.ref(block)
        others = {k: place for k, place in self._places.items() if place[0]() is not None}
        self._places = others | {key: (held, at) for key, at in pieces.items()}

    def pieces(self, block: np.ndarray) -> dict[tuple[str, bytes], int]:
        """The offsets of a block's pieces, by their keys."""
        return {key: at for key, (held, at) in self._places.items() if held() is block}

    def digest(self, block: np.ndarray) -> str:
        """The digest of a block, by which `named` finds it."""
        found = next((digest for digest, held in self._named.items() if held() is block), None)
        if found is not None:
            return found
        import hashlib  # noqa: PLC0415 (see sha256_of)

        made = hashlib.blake2b(digest_size=32)
        for _, part in in_parts(block.data):
            made.update(part)
        return self.name(block, made.hexdigest())

    def name(self, block: np.ndarray, digest: str) -> str:
        """Note the digest of a block."""
        others = {k: held for k, held in self._named.items() if held() is not None}
        self._named = others | {digest: weakref.ref(block)}
        return digest

    def named(self, digest: str) -> np.ndarray | None:
        """The block of this digest, if a Program holds it."""
        return self._named.get(digest, lambda: None)()


class BlockWriter:
    """See the module's docstring. `others`: the blocks of other Programs that it refers to, by their start offset."""

    def __init__(self, spill: int = MAX_BYTES_IN_MEMORY, shared: SharedBlocks | None = None) -> None:
        self._shared = shared
        self.others: dict[int, np.ndarray] = {}
        self._spill = spill if _HAS_DISK else _ANY
        self._file: IO[bytes] | None = None
        self._written = 0
        self._pieces: dict[int, np.ndarray] = {}  # those in memory, by their offsets
        self._known: dict[tuple[str, bytes], int] = {}  # the key of a piece ↦ its offset
        self.size = 0

    def add(self, piece: np.ndarray, kind: str = "") -> int:
        """Add bytes, a contiguous uint8 array that must not change afterwards; returns their offset in the block.

        Equal pieces of one kind are stored once.
        """
        key = _key(piece, kind)
        found = self._found(piece, key)
        if found is not None:
            return found
        start = self._known[key] = self.size
        self._pieces[start] = piece
        self.size += align(piece.size)
        if self.size - self._written > self._spill:
            self._write()
        return start

    def find(self, piece: np.ndarray, kind: str = "") -> int | None:
        """Where such bytes lie already."""
        return self._found(piece, _key(piece, kind))

    def _found(self, piece: np.ndarray, key: tuple[str, bytes]) -> int | None:
        at = self._known.get(key)
        if at is not None:
            return at if np.array_equal(self._at(at, piece.size), piece) else None
        block, place = (self._shared and self._shared.find(key)) or (None, 0)
        if block is None or not np.array_equal(block[place : place + piece.size], piece):
            return None
        at = self._known[key] = self._start(block) + place
        return at

    def _at(self, at: int, size: int) -> np.ndarray:
        """The bytes that were added, or that another Program holds, at an offset."""
        if at in self._pieces:
            return self._pieces[at]
        start, block = next(((s, b) for s, b in self.others.items() if s <= at < s + b.size), (0, None))
        return (self._mapped() if block is None else block)[at - start : at - start + size]

    def _start(self, block: np.ndarray) -> int:
        """The start offset given to a block of another Program."""
        for start, other in self.others.items():
            if other is block:
                return start
        start = max((start + align(other.size) for start, other in self.others.items()), default=SHARED)
        self.others[start] = block
        return start

    def _write(self) -> None:
        """Move the pieces to the file."""
        try:
            if self._file is None:
                from tempfile import TemporaryFile  # noqa: PLC0415 (what is loaded needs none)

                self._file = TemporaryFile()  # noqa: SIM115 (closed with the writer; its mapping lives on)
                weakref.finalize(self, self._file.close)
            self._file.seek(self._written)
            for piece in self._pieces.values():
                self._file.write(piece.data)
                self._file.write(bytes(align(piece.size) - piece.size))
            self._file.flush()
        except OSError:
            self._spill = _ANY
            return
        self._written = self.size
        self._pieces.clear()

    def block(self) -> np.ndarray:
        """The whole block. Nothing may be added afterwards."""
        block = self._block()
        if self._shared:
            self._shared.enter(block, {key: at for key, at in self._known.items() if at < SHARED})
        return block

    def _block(self) -> np.ndarray:
        if self._file is not None and self._pieces and self._spill != _ANY:
            self._write()
        start = self._mapped()
        if self._written == self.size and self.size:
            return start
        out = aligned(self.size)
        out[: self._written] = start
        for at, piece in self._pieces.items():
            out[at : at + piece.size] = piece
        self._pieces.clear()
        return out

    def _mapped(self) -> np.ndarray:
        """The contents of the file, mapped."""
        if self._file is None or not self._written:
            return np.zeros(0, np.uint8)
        return np.frombuffer(mmap.mmap(self._file.fileno(), self._written, access=mmap.ACCESS_READ), np.uint8)


def alone(program: ProgramData) -> ProgramData:
    """The same Program with all of its weights in one block, for files and runners that take only one."""
    if not program.shared:
        return program
    writer = BlockWriter()

    def moved(buffers: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        return tuple(
            replace(b, place=("weights", writer.add(program.view(b), b.dtype.name))) if b.place[0] == "weights" else b
            for b in buffers
        )

    buffers = moved(program.buffers)
    specialised = tuple(replace(s, buffers=moved(s.buffers)) for s in program.specialised)
    return replace(program, buffers=buffers, specialised=specialised, weights=writer.block(), shared={})
