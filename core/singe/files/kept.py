"""What takes long to compute, kept in the cache folder from one process to the next: compiled Programs and machine code.

An entry is a file in the folder `compiled` of the cache folder, called by its kind and its key, which is a hash of all that it was
computed from. It begins with a checksum of its contents and with a line for people; a damaged one counts as none. So are hashes of files kept,
for as long as the system says that a file is the same: to read a model of 20 MB takes longer than to make it ready. An entry is
written whole or not at all, so that processes may share them. The least recently used go when there are too many. A thread writes it, which
the process, and whoever looks for entries in it, waits for: a first answer does not wait for what only the next process needs.

Entries may hold machine code, so they are trusted only in a folder of the user's own that nobody else can write to, which is checked at
each use. SINGE_CACHE=off keeps nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np

from ..awaitables import IN_PAGE
from ..late_dataclass import dataclass
from .folder import OFF, cache_folder, is_off
from .local import clear_parts, digest_of, in_parts, reason, write

try:
    from _blake2 import blake2b  # the one of hashlib, whose import takes 3 ms, for OpenSSL
except ImportError:
    from hashlib import blake2b

MAX_BYTES: Final = 4 << 30
"""Bytes that all entries take together."""
MAX_ENTRY_BYTES: Final = MAX_BYTES // 2
"""Bytes of an entry; a larger one, which would leave no room for others, is not kept."""
MAX_ENTRIES: Final = 4096
FREE_DISK_BYTES: Final = 1 << 30
"""Bytes that stay free on the disk."""
KEEPS_PER_TRIM: Final = 64
"""How many entries a process writes before it looks again whether there are too many."""
SETTLED_NS: Final = 60 * 10**9
"""How long ago a file was changed, in nanoseconds, before its hash is kept: a process that has mapped it may change it without another time
until the system has written it to the disk, after half a minute."""
_DIGEST_BYTES: Final = 32
_SUM: Final = 8
"""Bytes of the checksum. That nobody else wrote here is known by owner and mode."""
_CHUNK: Final = 4096
"""Bytes of which the checksum takes the sum."""
_LENGTH: Final = 4
_START: Final = 256
"""Where the contents of an entry begin."""
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class Entry:
    """An entry, for people: what it is, its bytes, and when it was last used, in seconds since the epoch."""

    kind: str
    text: str
    bytes: int
    used: float


def entry_key(*parts: Any) -> str:
    """A key: a hash of bytes and of data of JSON."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        raw = part if isinstance(part, (bytes, memoryview)) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def digest_as_kept(path: Path) -> str:
    """The SHA-256 of a regular file: that of an earlier process, if nobody has written to the file since, as far as the system tells."""
    before = _identity(path)
    key = entry_key(str(path.absolute()))
    found = recall_entry("digest", key)
    if found is not None:
        with contextlib.suppress(ValueError):
            told, digest = json.loads(bytes(found))
            if told == before:
                return digest
    digest = digest_of(path)
    if _identity(path) == before and time.time_ns() - max(before[-2:]) > SETTLED_NS:
        keep_entry("digest", key, f"the hash of {path.name}", [json.dumps([before, digest]).encode()])
    return digest


def _identity(path: Path) -> list[int]:
    """What changes with a file: nobody can set the last of these, the time of the last change."""
    status = path.stat()
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def recall_entry(kind: str, key: str) -> memoryview | None:
    """The contents of an entry; None if there is none, or if it cannot be trusted."""
    if not keeps():
        return None
    finish_keeping()
    try:
        with _opened(kept_folder()) as opened:
            file = os.open(_name(kind, key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
            try:
                return _checked(file, _name(kind, key))
            finally:
                os.close(file)
    except (OSError, _Distrusted) as e:
        _tell(e)
        return None


def keep_entry(kind: str, key: str, text: str, pieces: Iterable[Any]) -> None:
    """Keep an entry, in consecutive pieces of bytes, in a thread that also iterates over them. text: what it is, for people. Where it cannot
    be written, it is not kept."""
    if not keeps():
        return
    given = kept_folder(), _name(kind, key), text, pieces
    if isinstance(threading.current_thread(), _EntryWriter):
        _write(*given)
    else:
        _writers[:] = [w for w in _writers if w.is_alive()]
        writer = _EntryWriter(target=_write, args=given, daemon=False)
        try:
            writer.start()
        except RuntimeError:  # the process is about to end
            _write(*given)
        else:
            _writers.append(writer)


def finish_keeping() -> None:
    """Wait until the entries of this process are written."""
    if not isinstance(threading.current_thread(), _EntryWriter):
        for writer in list(_writers):
            writer.join()


class _EntryWriter(threading.Thread):
    """Writes an entry."""


_writers: Final[list[_EntryWriter]] = []


def _write(folder: Path, name: str, text: str, pieces: Iterable[Any]) -> None:
    try:
        with _opened(folder, make=True):
            raw = text.encode()[: _START - _SUM - _LENGTH]
            head = len(raw).to_bytes(_LENGTH, "little") + raw
            head += bytes(_START - _SUM - len(head))
            held, checksum = list(pieces), _Checksum()
            size = sum(map(len, held))
            if size > MAX_ENTRY_BYTES or shutil.disk_usage(folder).free < FREE_DISK_BYTES + size:
                return
            for part in chain([memoryview(head)], _parts(held)):
                checksum.add(part)
            write(folder / name, chain([checksum.bytes(), head], _parts(held)), mode=0o600)
        _trim_sometimes()
    except (OSError, _Distrusted) as e:
        _tell(e)


def _parts(pieces: Iterable[Any]) -> Iterator[memoryview]:
    return (part for piece in pieces for _, part in in_parts(memoryview(piece)))


class _Checksum:
    """CRC-32 of the sums of chunks: it finds bytes that are not what was written, five times as fast as CRC-32 of the bytes."""

    def __init__(self) -> None:
        self._of = 0
        self._rest = b""  # less than a chunk

    def add(self, part: memoryview) -> None:
        if self._rest:
            wanted = _CHUNK - len(self._rest)
            self._rest, part = self._rest + part[:wanted], part[wanted:]
            if len(self._rest) < _CHUNK:
                return
            self._take(memoryview(self._rest))
        whole = len(part) // _CHUNK * _CHUNK
        self._take(part[:whole])
        self._rest = bytes(part[whole:])

    def _take(self, chunks: memoryview) -> None:
        sums = np.frombuffer(chunks, np.uint64).reshape(-1, _CHUNK // 8).sum(1, np.uint64)
        self._of = crc32(sums.data, self._of)

    def bytes(self) -> bytes:
        return crc32(self._rest, self._of).to_bytes(_SUM, "little")


def entries() -> list[Entry]:
    """All entries, the latest used first."""
    finish_keeping()
    found: list[Entry] = []
    for path, status in _files():
        kind = path.name.partition("-")[0]
        with contextlib.suppress(OSError), path.open("rb") as file:
            head = file.read(_START)[_SUM:]
            length = int.from_bytes(head[:_LENGTH], "little")
            text = head[_LENGTH : _LENGTH + length].decode(errors="replace")
            found.append(Entry(kind, text, status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: -entry.used)


def clear() -> int:
    """Remove all entries; their bytes."""
    finish_keeping()
    removed = 0
    for path, status in _files():
        with contextlib.suppress(OSError):
            path.unlink()
            removed += status.st_size
    clear_parts(kept_folder())
    return removed


@cache
def code_version(package: str) -> str:
    """A hash of the code of a package that is imported: of the names, sizes and times of its files, as a checkout may change between two
    versions."""
    places = map(str, sys.modules[package].__path__)
    return entry_key(*("".join(sorted(_code_files(place))).encode() for place in places))


def _code_files(place: str) -> list[str]:
    files: list[str] = []
    folders = [place]
    for folder in folders:
        with os.scandir(folder) as found:
            for entry in found:
                name = entry.name
                if name.endswith(".py"):
                    status = entry.stat()
                    files.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}\n")
                elif name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return files


class _Distrusted(Exception):
    """A folder or a file that others can write to."""


def keeps() -> bool:
    """Whether anything is kept: where there are owners of files (elsewhere nothing says who can write to them), and not in a page, whose
    files go with it."""
    return os.name == "posix" and not IN_PAGE and not is_off()


def kept_folder() -> Path:
    """Where entries are."""
    return cache_folder() / "compiled"


def _name(kind: str, key: str) -> str:
    return f"{kind}-{key}"


@contextmanager
def _opened(folder: Path, make: bool = False) -> Iterator[int]:
    """The folder's descriptor, once it is known that only this user can write there."""
    if make:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check_owner(opened, f"the folder {folder}")
        yield opened
    finally:
        os.close(opened)


def _check_owner(descriptor: int, what: str) -> None:
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
        raise _Distrusted(f"{what} is not yours alone (owner {status.st_uid}, mode {status.st_mode & 0o777:03o})")


def _checked(file: int, name: str) -> memoryview | None:
    """The contents of an entry that is open; None if it is damaged. It is used now."""
    import mmap  # noqa: PLC0415 (`import singe` pays for nothing that is kept)

    _check_owner(file, f"the file {kept_folder() / name}")
    if os.fstat(file).st_size < _START:
        return None
    whole = memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ))
    checksum = _Checksum()
    for _, part in in_parts(whole[_SUM:]):
        checksum.add(part)
    if checksum.bytes() != whole[:_SUM]:
        return None
    with contextlib.suppress(OSError):
        os.utime(file)
    return whole[_START:]


def _files() -> list[tuple[Path, os.stat_result]]:
    """The files of entries, where there are some."""
    found: list[tuple[Path, os.stat_result]] = []
    with contextlib.suppress(OSError):
        for path in kept_folder().iterdir():
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    found.append((path, status))
    return found


_keeps_so_far: Final = count()
_reported: Final[set[str]] = set()


def _trim_sometimes() -> None:
    if next(_keeps_so_far) % KEEPS_PER_TRIM == 0:
        trim()


def trim(most_bytes: int = MAX_BYTES, most: int = MAX_ENTRIES) -> None:
    """Remove the least recently used entries that are too many."""
    held: Sequence[tuple[Path, os.stat_result]] = sorted(_files(), key=lambda pair: -pair[1].st_mtime)
    total = 0
    for k, (path, status) in enumerate(held):
        total += status.st_size
        if total > most_bytes or k >= most:
            with contextlib.suppress(OSError):
                path.unlink()


def _tell(error: Exception) -> None:
    """Say once why nothing is kept; that there is no entry is no reason. A folder that others can write to is a warning, one that cannot
    be written is what some machines want."""
    if isinstance(error, FileNotFoundError):
        return
    text = str(error) if isinstance(error, _Distrusted) else f"{kept_folder()}: {reason(error)}"
    if text not in _reported:
        import logging  # noqa: PLC0415 (it takes 3 ms, and is needed for a message only)

        _reported.add(text)
        level = logging.WARNING if isinstance(error, _Distrusted) else logging.INFO
        logging.getLogger("singe").log(
            level, "compiled code is not kept: %s; SINGE_CACHE names another folder, or is %r", text, OFF
        )
