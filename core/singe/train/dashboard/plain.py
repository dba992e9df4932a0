"""The progress of a run as lines of text: one for each epoch, and on a terminal one that moves."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from ..events import BatchEnded, CheckpointSaved, EpochEnded, Event, Note, RunBegan, Stopped
from ..scales import duration, number
from .history import History

SECONDS: Final = 0.2
"""From one state of the moving line to the next."""
BAR: Final = 20
ENDS: Final = {
    "finished": "finished",
    "patience": "stopped early",
    "asked": "stopped when asked",
    "interrupted": "interrupted",
    "failed": "failed",
}


class Progress:
    """A listener that prints."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._moves = self._stream.isatty()
        self._clock = clock
        self._shown = 0.0
        self.history = History(clock)

    def __enter__(self) -> Progress:
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
                    self._print(f"{self._line()}\r", end="")
            case EpochEnded():
                self._print(epoch_line(event, self.history.epochs))
            case Note():
                self._print(f"note: {event.text}")
            case Stopped():
                self._print(end_line(self.history))
            case CheckpointSaved() | _:
                pass

    def _print(self, text: str, end: str = "\n") -> None:
        print(f"\r\x1b[K{text}" if self._moves else text, end=end, file=self._stream, flush=True)

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
        import shutil  # noqa: PLC0415

        return "  ".join(parts)[: shutil.get_terminal_size().columns - 1]


def _began(event: RunBegan) -> str:
    start = f", from epoch {event.epoch}" if event.epoch > 1 or event.batch else ""
    folder = f"; folder {event.folder}" if event.folder else ""
    return f"{event.run}: {event.epochs} epochs on {event.device}{start}{folder}"


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


def end_line(history: History) -> str:
    """How a run ended."""
    stopped = history.stopped
    if stopped is None:
        return f"{history.run}: ended in epoch {history.epoch}"
    parts = [f"{history.run}: {ENDS[stopped.reason]} after {duration(stopped.seconds)}, in epoch {stopped.epoch}"]
    if stopped.message:
        parts[0] += f": {stopped.message}"
    metric = history.metrics.get(history.chosen[0])
    if metric is not None and metric.best is not None:
        phase = "valid" if metric.curves["valid"].recent else "train"
        parts.append(f"best {phase} {history.chosen[0]} {number(metric.best[0])} in epoch {metric.best[1]}")
    return "; ".join(parts)
