"""How long the work of a thread may take. What runs Programs looks at the limit between steps; engines that cannot look are stopped by
another thread.

    with limited(2.0):
        model(x)  # OutOfTime after two seconds, as soon as a step ends or the engine can be stopped
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .errors import DeviceError
from .late_dataclass import dataclass

LOOK_SECONDS: Final = 0.05
"""How often the thread that stops what is late looks whether something is."""
IDLE_LOOKS: Final = 20
"""After so many looks at nothing it waits to be woken."""
UNREACHED_SECONDS: Final = 1e9


class OutOfTime(DeviceError):
    """Work that was stopped, since it took longer than it may."""


@dataclass(frozen=True)
class TimeLimit:
    """end: when the work must have ended, by time.monotonic()."""

    end: float = math.inf

    @property
    def is_finite(self) -> bool:
        return self.end < math.inf

    def check(self) -> None:
        """An error if the work takes too long."""
        if time.monotonic() >= self.end:
            raise OutOfTime("the run was stopped, since it took longer than it may")


NO_LIMIT: Final = TimeLimit()
in_force: Final[list[TimeLimit]] = []
"""The finite limits of all threads: while there is none, nobody has to look for that of a thread."""
_current: Final = threading.local()


def time_limit() -> TimeLimit:
    """The limit of this thread's work. What is opened under a finite one can be stopped, even if that makes it slower."""
    return getattr(_current, "limit", NO_LIMIT)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Bound the time that this thread may spend in the block; a limit around it holds, too."""
    if seconds == math.inf:
        yield
        return
    before = time_limit()
    _current.limit = TimeLimit(min(before.end, time.monotonic() + seconds))
    in_force.append(_current.limit)
    try:
        yield
    finally:
        in_force.remove(_current.limit)
        _current.limit = before


@contextmanager
def opened_for(seconds: float) -> Iterator[None]:
    """Have what is opened in the block be such that work of at most so many seconds can be stopped."""
    with limited(math.inf if seconds == math.inf else UNREACHED_SECONDS):
        yield


# --- stopping what cannot look -----------------------------------------------------------------------------------------

_lock: Final = threading.Lock()
_watched: Final[dict[object, tuple[float, Callable[[], object]]]] = {}
_wake: Final = threading.Event()
_watchers: Final[list[threading.Thread]] = []


@contextmanager
def stopped_by(stop: Callable[[], object], end: float) -> Iterator[None]:
    """Have another thread call `stop`, which must not wait for anything, if the block still runs at `end`, by time.monotonic()."""
    if end == math.inf:
        yield
        return
    key = object()
    with _lock:
        _watched[key] = end, stop
        if not any(thread.is_alive() for thread in _watchers):  # in a forked process there is none
            _watchers[:] = [threading.Thread(target=_watch, name="singe time limits", daemon=True)]
            _watchers[0].start()
        _wake.set()
    try:
        yield
    finally:
        with _lock:  # `stop` is not called any more
            _watched.pop(key, None)


def _watch() -> None:
    idle = 0
    while True:
        _wake.wait()
        time.sleep(LOOK_SECONDS)
        with _lock:
            now = time.monotonic()
            for key, (end, stop) in list(_watched.items()):
                if end <= now:
                    del _watched[key]
                    stop()
            idle = 0 if _watched else idle + 1
            if idle >= IDLE_LOOKS:
                idle = 0
                _wake.clear()
