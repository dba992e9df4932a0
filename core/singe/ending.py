"""Ctrl-C ends a command within a second, whatever it does: Python raises KeyboardInterrupt in the main thread only when code of
another language returns to it, which the compilation of a kernel may take many seconds to do.

After `end_by_interrupts()` a thread hears each Ctrl-C. If the process has not ended after INTERRUPT_SECONDS seconds, the thread
runs what `at_end` was given and ends the process. Work that ends in order by itself, such as a training that writes a
checkpoint first, says so by `in_order`: its first Ctrl-C is followed by a second one after ORDERLY_END_SECONDS seconds, unless too much work
would be lost.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from .awaitables import IN_PAGE
from .late_dataclass import dataclass
from .starting import INTERRUPTED

if TYPE_CHECKING:
    from socket import socket

ORDERLY_END_SECONDS: Final = 0.3
INTERRUPT_SECONDS: Final = 0.5
"""Seconds: for an end in order, and then for that which a KeyboardInterrupt makes; together less than one."""
MAX_LOST_SECONDS: Final = 30.0
"""The most seconds of work that an end within a second may lose."""


@dataclass(eq=False)
class OrderlyEnd:
    """Work that ends in order when it is asked to. lost: the seconds of work that an end at once would lose; if it is 0, the first
    Ctrl-C makes one. kept: what then stays, as a line.
    asked: whether Ctrl-C has asked for an end in order. ended: whether the work has ended, or only keeps what was done."""

    lost: Callable[[], float]
    kept: Callable[[], str]
    asked: bool = False
    ended: bool = False


_orders: Final[list[OrderlyEnd]] = []
_cleaning: Final[list[Callable[[], object]]] = []


@contextmanager
def in_order(order: OrderlyEnd) -> Iterator[None]:
    """In this block a handler of signals ends the work in order."""
    _orders.append(order)
    try:
        yield
    finally:
        _orders.remove(order)


@contextmanager
def at_end(clean: Callable[[], object]) -> Iterator[None]:
    """`clean` is called if the process is ended in this block by force; it is called in another thread."""
    _cleaning.append(clean)
    try:
        yield
    finally:
        _cleaning.remove(clean)


def end_by_interrupts() -> None:
    """From now on Ctrl-C ends this process, the main thread of which calls this: a command. That lasts until the process ends, so
    that threads which Python waits for at its end cannot keep it."""
    if IN_PAGE or threading.current_thread() is not threading.main_thread():
        return
    import signal  # noqa: PLC0415 (only commands need it and sockets, not `import singe`)
    import socket  # noqa: PLC0415

    hearing, told = socket.socketpair()  # Windows wakes sockets only
    told.setblocking(False)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):  # what a forked process hears is not for this one
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    threading.Thread(target=_hear, args=(hearing,), name="singe Ctrl-C", daemon=True).start()


def _hear(hearing: socket) -> None:
    from signal import SIGINT  # noqa: PLC0415

    while numbers := hearing.recv(64):
        for number in numbers:
            if number == SIGINT:
                _interrupted()


def _interrupted() -> None:
    order = _orders[-1] if _orders else None
    if order is None or order.asked or not order.lost():
        threading.Thread(target=_end, args=(order,), name="singe end", daemon=True).start()
        return
    order.asked = True
    time.sleep(ORDERLY_END_SECONDS)
    if order.ended:
        return
    if order.lost() <= MAX_LOST_SECONDS:
        interrupt()
        return
    _say(
        "ending after this batch, as an end at once would lose more than half a minute of work; Ctrl-C again ends at once"
    )


def interrupt() -> None:
    """Ctrl-C, for the main thread."""
    import signal  # noqa: PLC0415

    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # which also ends a wait of the main thread
    else:
        signal.raise_signal(signal.SIGINT)


def _end(order: OrderlyEnd | None) -> None:
    """End the process, if it does not end by itself."""
    time.sleep(INTERRUPT_SECONDS)
    for clean in reversed(_cleaning.copy()):
        with suppress(Exception):
            clean()
    if order is not None and order in _orders:
        _say(order.kept())
    os._exit(INTERRUPTED)


def _say(text: str) -> None:
    with suppress(OSError, ValueError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"\nsinge: {text}\n".encode())
