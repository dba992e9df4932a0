"""Python's collector of cyclic garbage rests while Singe's modules are imported, while a device is opened and a model loaded, while a Program
is compiled and while it runs for the first time: what is made stays, and looking through it again and again takes a tenth of the time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LOCK: Final = threading.Lock()
_resting: list[bool] = []
"""For each context that is open: whether the collector was at work when the first of them began."""


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
