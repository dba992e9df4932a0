"""A terminal for a screen that fills it: its size, its keys, and drawing what changed.

The terminal is given back as it was found however the program ends: when the context ends, at exit, when the process is told
to end (SIGTERM, SIGHUP), and while it is suspended (Ctrl-Z). Ctrl-C stays what it is.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any, Final, TextIO

from ....ending import at_end

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
"""The other screen, no cursor, no wrapping at the edge, cleared."""
LEAVE: Final = "\x1b[2J\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l"
BEGIN: Final = "\x1b[?2026h"
"""What follows appears at once, on terminals that can do that."""
END: Final = "\x1b[?2026l"
KEYS: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
    "k": "up", "j": "down", "l": "right", "h": "left", "\t": "down", "\x1b[Z": "up",
    "\x0c": "repaint", "\x1b": "escape", "\r": "enter", "\n": "enter",
}  # fmt: skip
ENDING: Final = ("SIGTERM", "SIGHUP")
LARGEST: Final = (500, 200)
"""Columns and rows that are used at most."""


def usable(screen: TextIO, keyboard: TextIO | None) -> bool:
    """Whether a screen can be drawn and keys be read: a terminal of this process, in the foreground, that shows Unicode."""
    try:
        import termios  # noqa: F401, PLC0415 (not on every system)

        if keyboard is None or not (screen.isatty() and keyboard.isatty()):
            return False
        if os.environ.get("TERM", "dumb") == "dumb" or "utf" not in (screen.encoding or "").lower():
            return False
        return os.tcgetpgrp(keyboard.fileno()) == os.getpgrp()
    except (ImportError, OSError, ValueError, AttributeError):
        return False


class Terminal:
    """A context within which a terminal shows a screen and gives its keys."""

    def __init__(self, screen: TextIO, keyboard: TextIO) -> None:
        self._screen, self._keyboard = screen.fileno(), keyboard.fileno()
        self._shown: list[str] = []
        self._size = (0, 0)
        self._mode: list[Any] | None = None
        self._lock = threading.Lock()
        self._handlers: dict[int, Any] = {}
        self._forced = ExitStack()

    def __enter__(self) -> Terminal:
        atexit.register(self._leave)
        self._forced.enter_context(at_end(self._leave))
        self._enter()
        if threading.current_thread() is threading.main_thread():
            for name in ENDING:
                number = getattr(signal, name)
                if signal.getsignal(number) is signal.SIG_DFL:  # who has a handler ends in order
                    self._handlers[number] = signal.signal(number, self._end)
            self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._suspend)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()
        self._leave()
        self._forced.close()
        atexit.unregister(self._leave)

    def _enter(self) -> None:
        import termios  # noqa: PLC0415
        import tty  # noqa: PLC0415

        if self._mode is None:
            self._mode = termios.tcgetattr(self._keyboard)
            tty.setcbreak(self._keyboard)
            self._shown, self._size = [], (0, 0)
            self._write(ENTER)

    def _leave(self) -> None:
        import termios  # noqa: PLC0415

        mode, self._mode = self._mode, None
        if mode is not None:
            # A drawing that waits for a terminal that takes nothing must not keep the program from ending.
            locked = self._lock.acquire(timeout=1)
            try:
                self._write(LEAVE)
                termios.tcsetattr(self._keyboard, termios.TCSADRAIN, mode)
            except OSError:  # the terminal is gone
                return
            finally:
                if locked:
                    self._lock.release()

    def _end(self, number: int, _: FrameType | None) -> None:
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _suspend(self, number: int, _: FrameType | None) -> None:
        self._leave()
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # returns when the process goes on
        signal.signal(number, handler)
        self._enter()

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            width, height = os.get_terminal_size(self._screen)
        except OSError:
            width, height = 80, 24
        return min(width or 80, LARGEST[0]), min(height or 24, LARGEST[1])

    def show(self, lines: Sequence[str], size: tuple[int, int]) -> None:
        """Draw the rows that differ from those on the screen; all of them if it had another size."""
        with self._lock:
            if self._mode is None:
                return
            before = self._shown if size == self._size else []
            parts = [] if before else ["\x1b[2J"]
            for row, line in enumerate(lines, 1):
                if row > len(before) or before[row - 1] != line:
                    parts.append(f"\x1b[{row};1H{line}\x1b[K")
            self._shown, self._size = list(lines), size
            if parts:
                self._write(BEGIN + "".join(parts) + END)

    def repaint(self) -> None:
        """Draw all rows next time: something else has written on the screen."""
        self._shown = []

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._screen, data) :]

    def keys(self, seconds: float, wake: int) -> list[str]:
        """The keys that were pressed; waits for one, or until the file `wake` can be read."""
        keyboard = [self._keyboard] if self._mode is not None else []
        ready, _, _ = select.select([*keyboard, wake], [], [], max(0.0, seconds))
        if self._keyboard not in ready:
            return []
        return keys_of(os.read(self._keyboard, 1024).decode("utf-8", "replace"))


def keys_of(text: str) -> list[str]:
    """What a terminal sent, as names of keys and characters."""
    found = []
    while text:
        size = next((n for n in (3, 1) if text[:n] in KEYS), 1)
        if (
            text.startswith(("\x1b[", "\x1bO")) and size == 1
        ):  # a key that is not in the table, up to its last character
            size = next((n for n, c in enumerate(text[2:], 3) if c.isalpha() or c == "~"), len(text))
            found.append("other")
        else:
            found.append(KEYS.get(text[:size], text[:size]))
        text = text[size:]
    return found


def standard() -> tuple[TextIO, TextIO | None]:
    """The screen and the keyboard of this process."""
    return sys.stdout, sys.stdin
