"""Work in a process of its own, which may crash, take much memory, or never end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple


class Ended(NamedTuple):
    """What became of it: the text that it gave, the signal that ended it (0: none), and the most bytes that it held."""

    text: str
    signal: int
    bytes: int


def forked(work: Callable[[], str], seconds: int) -> Ended:
    """Call a function in a fork of this process, which SIGALRM ends after so many seconds. It must catch what it raises."""
    sys.stdout.flush()
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        os.write(there, work().encode(errors="replace")[:4000])
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    _, status, use = os.wait4(child, 0)
    return Ended(text, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, use.ru_maxrss * 1024)
