"""A run's folder is written by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ...errors import InputError

try:
    import fcntl
except ImportError:  # Windows, and Python in a page
    fcntl = None

NAME: Final = ".lock"
"""The file that is locked. The system unlocks it when a process ends, however that happens."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """In this block no other Learner may train in the folder, which is made if it is not there. Where the system or the disk
    knows no locks, nothing is locked."""
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    try:
        file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # a disk that is full or cannot be written; the first file that matters says so
        yield
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(file, 20).decode("ascii", "replace").strip()
            raise InputError(
                f"fit: {folder} is in use by {f'process {owner}' if owner else 'another process'}, which trains in it; wait for its "
                "end, or give another folder: run=…"
            ) from None
        except OSError:  # a disk without locks
            pass
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        except OSError:  # a full disk: then a message cannot name this process
            pass
        yield
    finally:
        os.close(file)
