"""What a dashboard knows of a run: its events, taken one at a time, as curves and numbers of bounded size."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...best_value import Mode, best_mode
from ...events import PHASES, BatchEnded, CheckpointSaved, EpochBegan, EpochEnded, Event, Note, Phase, RunBegan, Stopped

Point: TypeAlias = tuple[float, float]
RECENT: Final = 400
"""Points of a curve that are kept one by one."""
BUCKETS: Final = 2048
"""Buckets that hold the whole of a curve; when all are full, neighbours are joined."""
WINDOW: Final = 200
"""Batches over which a speed is measured."""


class Curve:
    """Values of one metric over time, of which the x never falls: the latest one by one, and all as averages of buckets."""

    def __init__(self) -> None:
        self.recent: deque[Point] = deque(maxlen=RECENT)
        self._size = 1
        self._full: list[Point] = []
        self._open: list[Point] = []

    def add(self, x: float, y: float) -> None:
        """Add a value; one that is not finite has no place in a plot."""
        if not math.isfinite(y):
            return
        self.recent.append((x, y))
        self._open.append((x, y))
        if len(self._open) == self._size:
            self._full.append(_mean(self._open))
            self._open.clear()
        if len(self._full) == BUCKETS:
            self._full = [_mean(self._full[i : i + 2]) for i in range(0, BUCKETS, 2)]
            self._size *= 2

    def whole(self) -> list[Point]:
        """The curve from its beginning, in at most `BUCKETS` points."""
        return [*self._full, _mean(self._open)] if self._open else list(self._full)


def _mean(points: list[Point]) -> Point:
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


@dataclass(slots=True)
class MetricHistory:
    """One metric of a run."""

    curves: dict[Phase, Curve] = field(default_factory=lambda: {phase: Curve() for phase in PHASES})
    """Of "train" the batches, or the epochs if no batch has the metric; of "valid" the epochs. x is in epochs."""
    batches: bool = False
    """Whether batches have the metric in training."""
    latest: dict[Phase, float] = field(default_factory=dict)
    """The average over the batches of the epoch so far, then what the epoch says; of a rate the latest value."""
    running: dict[Phase, tuple[float, int]] = field(default_factory=dict)
    """The sum over the batches of the present epoch, and how many they are."""
    best: tuple[float, int] | None = None
    """The best value of an epoch, and the epoch."""


@dataclass(slots=True)
class History:
    """All that is shown of a run."""

    clock: Callable[[], float] = time.monotonic
    run: str = ""
    device: str = ""
    folder: str | None = None
    epochs: int = 0
    batches: Mapping[Phase, int | None] = field(default_factory=dict)
    chosen: str = "loss"
    """The metric by which the best epoch is chosen."""
    modes: Mapping[str, Mode | None] = field(default_factory=dict)
    epoch: int = 0
    ended: int = 0
    """The epoch that ended last."""
    phase: Phase = "train"
    batch: int = 0
    """Batches of the present phase that have ended."""
    memory: int | None = None
    """Bytes in use on the device, if it tells."""
    resident: int | None = None
    """Bytes that this process has in use."""
    best: int | None = None
    """The best epoch."""
    saved: int | None = None
    """The epoch of the latest checkpoint."""
    note: str = ""
    stopped: Stopped | None = None
    metrics: dict[str, MetricHistory] = field(default_factory=dict)
    events: int = 0
    _first: float = 0.0
    _done: float = 0.0
    _began: float | None = None
    _pace: dict[Phase, deque[tuple[int, float]]] = field(default_factory=dict)
    _warm: set[Phase] = field(default_factory=set)

    def __call__(self, event: Event) -> None:
        self.events += 1
        match event:
            case RunBegan():
                self.run, self.device, self.folder = event.run, event.device, event.folder
                self.epochs, self.batches, self.chosen = event.epochs, event.batches, event.best[0]
                self.modes = {**event.modes, self.chosen: event.best[1]}
                self.epoch, self.batch, self._began = event.epoch, event.batch, self.clock()
                self._first = self.progress() or 0.0
            case EpochBegan():
                self.epoch, self.phase, self.batch = event.epoch, "train", 0
                for metric in self.metrics.values():
                    metric.running.clear()
            case BatchEnded():
                self._batch(event)
            case EpochEnded():
                self._epoch(event)
            case CheckpointSaved():
                self.saved = event.epoch
            case Note():
                self.note = event.text
            case Stopped():
                self.stopped = event

    def _batch(self, event: BatchEnded) -> None:
        self.epoch, self.phase, self.batch = event.epoch, event.phase, event.batch
        self.memory = event.memory if event.memory is not None else self.memory
        pace = self._pace.setdefault(event.phase, deque(maxlen=WINDOW))
        if len(pace) == 1 and event.phase not in self._warm:  # the first batch compiled the step
            pace.clear()
            self._warm.add(event.phase)
        pace.append((event.items, event.seconds))
        for name, value in event.values.items():
            metric = self.metrics.setdefault(name, MetricHistory())
            total, count = metric.running.get(event.phase, (0.0, 0))
            metric.running[event.phase] = total + value, count + 1
            if event.phase == "train":
                metric.batches = True
                length = self.batches.get("train") or event.batch
                metric.curves["train"].add(event.epoch - 1 + event.batch / length, value)
            judged = best_mode(name, self.modes) is not None
            metric.latest[event.phase] = (total + value) / (count + 1) if judged else value

    def _epoch(self, event: EpochEnded) -> None:
        self.ended = event.epoch
        if event.best:
            self.best = event.epoch
        for phase, values in event.values.items():
            for name, value in values.items():
                metric = self.metrics.setdefault(name, MetricHistory())
                metric.latest[phase] = value
                if phase == "valid" or not metric.batches:
                    metric.curves[phase].add(event.epoch, value)
        judged = event.values.get("valid") or event.values.get("train") or {}
        for name, value in judged.items():
            best, way = self.metrics[name].best, best_mode(name, self.modes)
            if (
                way
                and math.isfinite(value)
                and (best is None or (value < best[0] if way == "least" else value > best[0]))
            ):
                self.metrics[name].best = value, event.epoch

    # --- time -------------------------------------------------------------------------------------------------------

    def length(self) -> int | None:
        """Batches of the present phase."""
        return self.batches.get(self.phase)

    def progress(self) -> float | None:
        """What part of the run is done; None where the length of an epoch is not known yet."""
        if self.stopped is not None and self.stopped.reason == "finished":
            return 1.0
        total = sum(n or 0 for n in self.batches.values())
        if not self.epochs:
            return None
        if self.ended >= self.epoch or not total:
            return min(1.0, max(self.ended, self.epoch - 1) / self.epochs)
        before = (self.batches.get("train") or 0) if self.phase == "valid" else 0
        return min(1.0, (self.epoch - 1 + min(1.0, (before + self.batch) / total)) / self.epochs)

    def elapsed(self) -> float:
        """Seconds since the run began."""
        if self.stopped is not None:
            return self.stopped.seconds
        return 0.0 if self._began is None else self.clock() - self._began

    def left(self) -> float | None:
        """An estimate of the seconds that are left, if every epoch takes as long as those so far."""
        done = (self.progress() or 0.0) - self._first
        if done <= 0 or self.stopped is not None:
            return None
        return self.elapsed() * (1 - self._first - done) / done

    def speed(self) -> tuple[float, str] | None:
        """Items a second in the present phase, or batches where items are not counted; and which of the two."""
        pace = self._pace.get(self.phase, ())
        items, seconds = sum(i for i, _ in pace), sum(s for _, s in pace)
        if seconds <= 0:
            return None
        return (items / seconds, "items/s") if items else (len(pace) / seconds, "batches/s")
