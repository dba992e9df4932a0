"""Files as read-only memory, and files that replace others which may be mapped."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def mapped(path: Path) -> memoryview:
    """The bytes of a regular file, mapped where the file system can map; it must not change while they are used."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # an empty file, or a file system that cannot map
            return memoryview(file.read())


def reason(error: Exception) -> str:
    """Why a file cannot be read."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def write(path: Path, pieces: Iterable[Any]) -> None:
    """Write a file from consecutive bytes. One that was there stays as it is for those who have mapped it."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        for piece in pieces:
            file.write(piece)
    os.replace(part, path)
