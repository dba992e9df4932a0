"""A run while it trains, on a terminal or as lines of text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, TypeAlias

from ....errors import InputError
from ...events import Listener
from .dashboard import Dashboard
from .plain import ProgressLines
from .plain import try_to_say as try_to_say
from .terminal import usable

Kind: TypeAlias = Literal["auto", "terminal", "plain"]


def dashboard(kind: Kind, stop: Callable[[], None], at_once: Callable[[], None]) -> AbstractContextManager[Listener]:
    """What shows a run: a listener to open before its first event and to close after its last, or when an exception ends it.

    "terminal" fills the terminal, "plain" prints a line for each epoch, "auto" is "terminal" where there is one. stop: asks for
    the end of the run after the present batch; at_once: ends it; both are called in another thread.
    """
    there = usable(sys.stdout, sys.stdin)
    if kind == "plain" or (kind == "auto" and not there):
        return ProgressLines()
    if kind not in ("auto", "terminal"):
        raise InputError(f'dashboard is {kind!r}, expected "auto", "terminal" or "plain"')
    if not there:
        raise InputError(
            'dashboard="terminal" needs a terminal that shows Unicode, in the foreground, as standard input and output; '
            'use dashboard="plain" or "auto"'
        )
    return Dashboard(stop, at_once, sys.stdout, sys.stdin)
