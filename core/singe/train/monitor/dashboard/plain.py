"""The progress of a run as lines of text: one for each epoch, and on a terminal one that moves."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TextIO

from ....texts import say
from ...events import BatchEnded, EpochEnded, Event, Note, RunBegan
from ..plot_scales import duration, number
from .history import History

SECONDS: Final = 0.2
"""From one state of the moving line to the next."""
BAR: Final = 20


class ProgressLines:
    """A listener that prints."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._moves = self._stream.isatty()
        self._clock = clock
        self._shown = 0.0
        self.history = History(clock)

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *_: object) -> None:
        if self._moves:
            self._print("", end="")

    def __call__(self, event: Event) -> None:
        self.history(event)
        match event:
            case RunBegan():
                self._print(_began(event))
            case BatchEnded():
                if self._moves and self._clock() - self._shown >= SECONDS:
                    self._shown = self._clock()
                    self._print(self._line(), end="\r")
            case EpochEnded():
                self._print(epoch_line(event, self.history.epochs))
            case Note():
                self._print(f"note: {event.text}")
            case _:
                pass

    def _print(self, text: str, end: str = "\n") -> None:
        try_to_say(text, end=end, stream=self._stream, before="\r\x1b[K" if self._moves else "")

    def _line(self) -> str:
        """The moving line."""
        now = self.history
        length, left, speed = now.length(), now.left(), now.speed()
        parts = [f"epoch {now.epoch} of {now.epochs}"]
        if length:
            full = round(BAR * min(1.0, now.batch / length))
            parts.append(f"[{'#' * full}{'.' * (BAR - full)}]")
        parts.append(f"{now.phase} {now.batch}" + (f"/{length}" if length else ""))
        for name, metric in now.metrics.items():
            if now.phase in metric.latest:
                parts.append(f"{name} {number(metric.latest[now.phase])}")
        if speed is not None:
            parts.append(f"{number(speed[0]) if speed[0] < 100 else f'{speed[0]:,.0f}'} {speed[1]}")
        if left is not None:
            parts.append(f"{duration(left)} left")
        return "  ".join(parts)[: shutil.get_terminal_size().columns - 1]


def try_to_say(text: str, end: str = "\n", stream: TextIO | None = None, before: str = "") -> None:
    """`say`, after what moves the cursor. Where that cannot be, on a disk that is full or in a pipe that was closed,
    training goes on all the same."""
    with suppress(OSError):
        print(before, end="", file=stream)
        say(text, end, stream)


def _began(event: RunBegan) -> str:
    start = f", from epoch {event.epoch}" if event.epoch > 1 or event.batch else ""
    folder = f"; folder {event.folder}" if event.folder else ""
    return f"{event.run}: {event.epochs} epoch{'s' * (event.epochs != 1)} on {event.device}{start}{folder}"


def epoch_line(event: EpochEnded, epochs: int) -> str:
    """An epoch in a line."""
    width = len(str(epochs))
    parts = [f"epoch {event.epoch:{width}} of {epochs}"]
    parts += [f"{phase} {_values(values)}" for phase, values in event.values.items() if values]
    parts.append(f"{event.seconds:.1f} s")
    if event.items and event.seconds > 0:
        parts.append(f"{event.items / event.seconds:,.0f} items/s")
    return "  ".join([*parts, *(["best so far"] if event.best else [])])


def _values(values: Mapping[str, float]) -> str:
    return " ".join(f"{name} {number(value)}" for name, value in values.items())
