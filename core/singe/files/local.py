"""Files as read-only memory, files that replace others which may be mapped, and files that another file names."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import FormatError, InputError
from ..lazy_names import LateModule

if TYPE_CHECKING:
    import numpy as np

    from .. import ending

    Bytes = TypeVar("Bytes", memoryview, np.ndarray)
else:
    ending = LateModule("ending")

_BESIDE: Final = ".singe-"
"""What the name of a folder begins with while files of the folder around it are being written."""
_PART: Final = ".part"
"""What the name of a file ends with while it is being written."""
_PART_BYTES: Final = 1 << 20
"""Bytes of a mapped file that are read before they are let go of."""


def mapped(path: Path) -> memoryview:
    """The bytes of a regular file, mapped where the file system can map; it must not change while they are used."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # an empty file, or a file system that cannot map
            return memoryview(file.read())


def let_go(view: Any) -> None:
    """Let the system take back the memory in which it holds what was read of a mapped file, of which a memoryview or an array shows a
    part; what is used again is read again."""
    while isinstance(view, memoryview) or hasattr(view, "base"):
        view = view.obj if isinstance(view, memoryview) else view.base
    if isinstance(view, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        with memoryview(view) as whole:
            is_read_only = whole.readonly  # changes of a private mapping would be lost
        if is_read_only:
            view.madvise(mmap.MADV_DONTNEED)


def in_parts(view: Bytes) -> Iterator[tuple[int, Bytes]]:
    """Consecutive parts of bytes, with their offsets; each is let go of before the next, so that a file is never in memory whole."""
    for at in range(0, len(view), _PART_BYTES):
        yield at, view[at : at + _PART_BYTES]
        let_go(view)


def sha256_of(data: bytes | memoryview[Any]) -> str:
    """The SHA-256 of bytes."""
    import hashlib  # noqa: PLC0415 (its import takes 3 ms, for OpenSSL)

    return hashlib.sha256(data).hexdigest()


def digest_of(path: Path) -> str:
    """The SHA-256 of a regular file, which is not held whole."""
    import hashlib  # noqa: PLC0415 (see sha256_of)

    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def inside(folder: Path, name: str) -> Path:
    """Where the file of this relative name is, or would be, in a folder. The name was read from a file, and is not trusted:
    a FormatError if it is no relative name of a file on every system, or if it or a link leads out of the folder."""
    forms = PurePosixPath(name), PureWindowsPath(name)
    text = "\0" not in name and not any("\ud800" <= c <= "\udfff" for c in name)
    if not text or any(not p.parts or p.anchor or ".." in p.parts for p in forms):
        raise FormatError(f"{name!r:.200} is not a path inside the folder of the file that names it")
    try:
        try:
            found = (folder / name).resolve(strict=True)
        except FileNotFoundError:
            found = (folder / name).resolve()
        within = found.is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError) as e:  # RuntimeError: a cycle of links, before Python 3.13
        raise FormatError(f"{name!r:.200} cannot be read: {reason(e)}") from None
    if not within:
        raise FormatError(f"{name!r:.200} leads out of the folder of the file that names it")
    return found


def reason(error: Exception) -> str:
    """Why a file cannot be read."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def write(path: Path, pieces: Iterable[Any], durable: bool = False, mode: int | None = None) -> None:
    """Write a file from consecutive bytes. One that was there stays as it is for those who have mapped it, and if writing fails.

    mode: who may read and write it (by default as the process makes files).
    durable: the bytes are on the disk when this returns; after a loss of power, too, the path has the old file or the new one.
    """
    if path.exists() and not path.is_file():  # a pipe or a device, in whose place there shall be no file
        with path.open("wb") as file:
            file.writelines(pieces)
        return
    part = path.with_name(f"{path.name}.{os.urandom(4).hex()}{_PART}")  # of this writer alone
    try:
        with ending.at_end(lambda: part.unlink(missing_ok=True)):
            with part.open("wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                for piece in pieces:
                    file.write(piece)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(part, path)
    except BaseException as e:
        with contextlib.suppress(OSError):  # where nothing can be written
            part.unlink(missing_ok=True)
        if isinstance(e, OSError) and e.errno and e.filename in (None, str(part), part):
            raise OSError(e.errno, e.strerror, str(path)) from e  # the name that the caller knows
        raise
    if durable and os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_as(path: str | Path, forms: Mapping[str, Callable[[], bytes]]) -> None:
    """Write a file of the form that the end of its name says. forms: the end of a name ↦ what gives the bytes."""
    form = forms.get(Path(path).suffix.lower())
    if form is None:
        raise InputError(f"{path}: expected a name that ends with {', '.join(forms)}")
    write(Path(path), [form()])


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Write files into a folder, which is made if need be: all of them beside those that are there, which then go, the last
    first, before the new ones come, the first first. If that fails, or is interrupted, what was there comes back, and nothing
    else is left. A process that is killed meanwhile leaves no mixture either, if the last file is that without which the
    others are not read."""
    own = [p for p in (folder, *folder.parents) if not p.exists()]  # which are removed again, if they stay empty
    beside = folder / f"{_BESIDE}{os.urandom(4).hex()}"
    new, old = beside / "new", beside / "old"
    placed: list[str] = []
    done = False

    def clear() -> None:
        if done:
            shutil.rmtree(beside, ignore_errors=True)
        else:
            shutil.rmtree(new, ignore_errors=True)  # first: this may be another thread than the one that places files
            for name in files:
                with contextlib.suppress(OSError):
                    if name in placed:
                        (folder / name).unlink(missing_ok=True)
                    if os.path.lexists(old / name):
                        os.replace(old / name, folder / name)
            with contextlib.suppress(OSError):
                old.rmdir()  # it stays if a file in it cannot come back
                beside.rmdir()
        with contextlib.suppress(OSError):
            for path in own:
                path.rmdir()

    with ending.at_end(clear):
        try:
            for path in (new, old):
                path.mkdir(parents=True)
            for name, data in files.items():
                (new / name).write_bytes(data)
            for name in reversed(list(files)):
                if (folder / name).is_symlink() or (folder / name).is_file():
                    os.replace(folder / name, old / name)
            for name in files:
                placed.append(name)
                os.replace(new / name, folder / name)
            done = True
        except OSError as e:
            raise OSError(e.errno, e.strerror, str(folder)) from e
        finally:
            clear()


def clear_parts(folder: Path) -> None:
    """Remove what processes that were killed left of files that they wrote in a folder; nobody may be writing there."""
    with contextlib.suppress(OSError):
        for left in folder.glob(f"*{_PART}"):
            left.unlink(missing_ok=True)
