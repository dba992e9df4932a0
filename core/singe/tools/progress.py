"""What a command is doing, on standard error, if it takes long: on a terminal one line that is written anew, with the seconds that
have passed; elsewhere a plain line, and another one each time that FACTOR times as many seconds have passed.

A thread of its own writes, so that the work is not delayed; for what ends within PATIENCE seconds nothing is written.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ..report import clean
from ..texts import say

PATIENCE: Final = 1.0
PERIOD: Final = 0.5
"""Seconds from one state of a terminal's line to the next."""
FACTOR: Final = 5
SHOWN: Final = 2.0
"""Seconds from which on the time is shown."""


class ProgressWork:
    """A piece of work; calling it says what part of it has begun. seconds: how long it took, once it has ended."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.seconds = 0.0
        self._start = time.perf_counter()
        self._ended = threading.Event()
        self._shown = False
        self._stream = sys.stderr
        self._moves = self._stream.isatty()
        self._thread = threading.Thread(target=self._run, name="singe progress", daemon=True)
        self._thread.start()

    def __call__(self, what: str) -> None:
        self.what = what

    def end(self) -> None:
        """Stop the time, and clear the line."""
        self.seconds = time.perf_counter() - self._start
        self._ended.set()
        self._thread.join(timeout=1)  # what is printed next begins a line

    def _run(self) -> None:
        pause = PATIENCE
        while not self._ended.wait(pause):
            if _under_way[-1:] == [self]:
                self._show()
            pause = PERIOD if self._moves else pause * FACTOR
        if self._moves and self._shown:
            self._write("\r\x1b[K")

    def _show(self) -> None:
        passed = time.perf_counter() - self._start
        after = f" {passed:.0f} s" if passed >= SHOWN else ""
        text = f"{clean(self.what)} …{after}"
        self._shown = True
        self._write(f"\r\x1b[K{text}" if self._moves else f"{text}\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # what reads it has ended
            self._stream.write(text)
            self._stream.flush()


_under_way: Final[list[ProgressWork]] = []
"""The works of this process, each a part of the one before."""


@contextmanager
def doing(what: str) -> Iterator[ProgressWork]:
    """A piece of work in this block."""
    work = ProgressWork(what)
    _under_way.append(work)
    try:
        yield work
    finally:
        _under_way.remove(work)
        work.end()


class _Notes(logging.Handler):
    """Shows log messages: warnings as lines, others as what is being done."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            sys.stderr.write("\r\x1b[K" if sys.stderr.isatty() else "")
            say(f"singe: {text}", file=sys.stderr)
        elif _under_way:
            _under_way[-1](text)


@contextmanager
def notes() -> Iterator[None]:
    """Show the messages of the logger "singe" on standard error."""
    log, handler = logging.getLogger("singe"), _Notes()
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)  # which also makes loggers forget what they knew of it
        log.propagate = propagate
