"""Python's collector of cyclic garbage rests while a Program is compiled: the trees of the compiler stay until it ends, and looking through
them again and again takes a tenth of the time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LOCK: Final = threading.Lock()
_resting: list[bool] = []
"""For each thread that compiles: whether the collector was at work when the first of them began."""


@contextmanager
def collector_resting() -> Iterator[None]:
    """A context in which there are no collections, in any thread, but those that are asked for."""
    with _LOCK:
        _resting.append(_resting[0] if _resting else gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            if _resting.pop() and not _resting:
                gc.enable()
