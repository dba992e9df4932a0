"""Ctrl-C and SIGTERM while a Learner trains: the first one asks for an end; the next one, or one after an end was asked for
otherwise, is a KeyboardInterrupt. Where nothing would be lost, as before the first batch has ended, the first one is, too."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ..awaitables import IN_PAGE
from ..ending import OrderlyEnd, in_order, interrupt
from .events import Reason

REASONS: Final[Mapping[int, Reason]] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""Signals that end training in order, and the reason that a run has then."""
DEFAULTS: Final = (signal.default_int_handler, signal.SIG_DFL)
"""Handlers that are replaced; another one was set by a program, which decides itself what a signal does."""


@contextmanager
def interruptible(ask: Callable[[Reason], bool], order: OrderlyEnd) -> Iterator[Callable[[], None]]:
    """In this block, the first of these signals asks for an end. Only the main thread gets signals; a process that is forked in
    the block has the handlers of before. ask: returns whether an end had been asked for already. order: what an end at once
    would lose. Gives what does as Ctrl-C does, for any thread, or nothing where Ctrl-C is not for this block."""
    if IN_PAGE or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    home = os.getpid()

    def handle(number: int, _: Any) -> None:
        if os.getpid() != home:
            signal.signal(number, before[number])
            signal.raise_signal(number)
            return
        again = ask(REASONS[number])
        if (again and not order.ended) or (not again and not order.lost()):
            raise KeyboardInterrupt

    found = {number: signal.getsignal(number) for number in REASONS}
    before = {number: handler for number, handler in found.items() if handler in DEFAULTS}
    for number in before:
        signal.signal(number, handle)
    try:
        with in_order(order):
            yield interrupt if signal.SIGINT in before else lambda: None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
