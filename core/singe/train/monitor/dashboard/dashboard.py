"""The dashboard: a listener that shows a run on the whole of a terminal, in a thread of its own.

The thread that trains puts each event into a queue and goes on. The other thread takes them out, draws at most `RATE` times a
second and for no more than a twentieth of the processor's time, and reads the keys. What the program prints meanwhile is kept, and printed when
the terminal is given back.
"""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, TextIO, cast

from ...events import Event
from .history import History
from .screen import SCALES, SPANS, ScreenView, draw, names, selected
from .terminal import Terminal

RATE: Final = 8.0
SHARE: Final = 20.0
"""A frame is followed by a pause of this many times the processor's time that it took."""
QUIET: Final = 1.0
"""Seconds after which the time is drawn anew even if nothing happened."""


class Dashboard:
    """A context within which a run is shown."""

    def __init__(self, stop: Callable[[], None], at_once: Callable[[], None], screen: TextIO, keyboard: TextIO) -> None:
        self.history, self.view = History(), ScreenView()
        self._stop, self._at_once = stop, at_once
        self._terminal = Terminal(screen, keyboard)
        self._events: deque[Event] = deque()
        self._printed = _Printed(self.view)
        self._wake = os.pipe()
        self._ended = False
        self._colours = not os.environ.get("NO_COLOR")
        self._thread = threading.Thread(target=self._run, name="singe dashboard", daemon=True)
        self._open = ExitStack()

    def __call__(self, event: Event) -> None:
        self._events.append(event)

    def __enter__(self) -> Dashboard:
        self._open.callback(self._printed.print)
        self._open.enter_context(self._terminal)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and stream.isatty():
                self._open.callback(setattr, sys, name, stream)
                setattr(sys, name, self._printed.stream(stream))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        os.write(self._wake[1], b".")
        self._thread.join(timeout=2)  # a terminal that takes nothing must not keep the program from ending
        self._take()
        self._open.close()
        if not self._thread.is_alive():
            for file in self._wake:
                os.close(file)

    # --- the thread that draws --------------------------------------------------------------------------------------

    def _run(self) -> None:
        drawn = -QUIET
        pause, shown = 0.0, (0, 0)
        while not self._ended:
            pressed = self._terminal.keys(pause, self._wake[0])
            for key in pressed:
                press(key, self.history, self.view, self._stop, self._at_once, self._terminal.repaint)
            now, worked = time.monotonic(), time.thread_time()
            size = self._terminal.size()
            if self._take() or pressed or size != shown or now - drawn >= QUIET:
                self.history.resident = resident()
                self._terminal.show(draw(self.history, self.view, *size).lines(self._colours), size)
                drawn, shown = time.monotonic(), size
            pause = max(1 / RATE, SHARE * (time.thread_time() - worked))

    def _take(self) -> int:
        """Take the events out of the queue; returns how many there were."""
        count = len(self._events)
        for _ in range(count):
            self.history(self._events.popleft())
        return count


def resident() -> int | None:
    """Bytes of memory that this process has in use, where the system tells."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def press(
    key: str,
    history: History,
    view: ScreenView,
    stop: Callable[[], None],
    at_once: Callable[[], None],
    repaint: Callable[[], None] = lambda: None,
) -> None:
    """What a key does. stop, at_once: end the run after the present batch, or now."""
    if view.asking:
        if key in ("y", "Y", "enter"):
            view.asking, view.stopping = False, True
            stop()
        elif key in ("n", "N", "q", "escape"):
            view.asking = False
        return
    there, name = names(history), selected(history, view)
    match key:
        case "up" | "down" if name is not None:
            view.metric = there[(there.index(name) + (1 if key == "down" else -1)) % len(there)]
        case "left" | "right":
            view.span = SPANS[0] if key == "left" else SPANS[1]
        case "s":
            view.scale = SCALES[1 - SCALES.index(view.scale)]
        case "q" | "Q" if view.stopping:
            at_once()
        case "q" | "Q":
            view.asking = True
        case "repaint":
            repaint()
        case _:
            pass


class _Printed:
    """What the program prints while the screen is ours."""

    def __init__(self, view: ScreenView) -> None:
        self._view = view
        self._parts: list[tuple[TextIO, str]] = []

    def stream(self, of: TextIO) -> TextIO:
        """A stream that keeps what is written to it."""
        return cast(TextIO, _KeptLines(of, self))

    def add(self, stream: TextIO, text: str) -> None:
        self._parts.append((stream, text))
        lines = text.split("\n")
        if any(lines):
            self._view.message = next(line for line in reversed(lines) if line)

    def print(self) -> None:
        """Print what was kept, each part where it was to go."""
        for stream, text in self._parts:
            stream.write(text)
            stream.flush()
        self._parts.clear()


class _KeptLines(io.TextIOBase):
    def __init__(self, of: TextIO, printed: _Printed) -> None:
        self._of, self._printed = of, printed

    def write(self, text: str, /) -> int:
        self._printed.add(self._of, text)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._of.encoding

    def fileno(self) -> int:
        return self._of.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)
