"""The lock of a device: threads take turns, and a forked process does not wait for threads that it lacks.

In a forked process only the thread that forked lives on. A lock that another thread held would stay held for ever, and its
device may be in the middle of a run. Where a backend keeps nothing between runs (`Backend.renews`), the lock is made anew; on
others, who takes it gets an error.
"""

from __future__ import annotations

import os
import threading
from typing import Final
from weakref import WeakSet

from ..errors import DeviceError

_made: Final[WeakSet[DeviceLock]] = WeakSet()


class DeviceLock:
    """`renews`: a forked process may take it anew. `survives`: a forked process may use the device if no thread did."""

    def __init__(self, name: str, renews: bool = False, survives: bool = True) -> None:
        self.name: Final = name
        self.renews: Final = renews
        self.survives: Final = survives
        self._lock = threading.RLock()
        self._refused = ""
        _made.add(self)

    def __enter__(self) -> None:
        if self._refused:
            raise DeviceError(self._refused)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def forked(self) -> None:
        """Called in a forked process."""
        free = self._lock.acquire(blocking=False)
        if free:
            self._lock.release()
        elif self.renews:
            self._lock = threading.RLock()
        if self.renews or (free and self.survives):
            return
        why = "another thread was using it" if self.survives else "a GPU stays with the process that opened it"
        self._refused = f"{self.name}: this process was forked, and {why}; start processes with multiprocessing.get_context('spawn')"


def _after_fork() -> None:
    for lock in list(_made):
        lock.forked()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
