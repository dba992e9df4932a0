"""What a training came to: a table of values by epoch, printed as last and best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...late_dataclass import dataclass
from ..best_value import Mode, best_mode
from ..events import ENDS, Phase, Reason
from .plot_scales import duration, number


@dataclass(frozen=True)
class EpochLine:
    """An epoch."""

    epoch: int
    step: int
    seconds: float
    values: Mapping[Phase, Mapping[str, float]]


@dataclass(frozen=True)
class Summary:
    """What `fit` returns; print it to read it."""

    reason: Reason
    """Why training ended."""
    message: str
    step: int
    """Batches trained on, in all."""
    seconds: float
    """Of training and validation, in all, also before a resume."""
    rows: Sequence[EpochLine]
    modes: Mapping[str, Mode | None]
    """Which value of a metric is the best; one that is not named is judged by its name."""
    folder: Path | None
    skipped: int = 0
    """Of the steps those that changed no weight, with nonfinite="skip"."""

    @property
    def last(self) -> dict[str, float]:
        """The values of the last epoch: "train.loss", "valid.accuracy", …"""
        return flat(self.rows[-1].values) if self.rows else {}

    def best(self, name: str) -> tuple[float, int]:
        """The best of a value such as "valid.loss", and its epoch; (nan, 0) if there is none, as of a learning rate."""
        mode = best_mode(name.partition(".")[2], self.modes)
        if mode is None:
            return math.nan, 0
        sign = 1 if mode == "least" else -1
        found = [(sign * v, row.epoch) for row in self.rows for k, v in flat(row.values).items() if k == name]
        value, epoch = min((pair for pair in found if not math.isnan(pair[0])), default=(math.nan, 0))
        return sign * value, epoch

    def __str__(self) -> str:
        rows = [("", "last", "best", "in epoch"), *self._lines()] if self.rows else []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        epochs = len(self.rows)
        left_out = f" ({self.skipped} skipped, as they were not finite)" if self.skipped else ""
        steps = f"{self.step} steps{left_out} in {duration(self.seconds)}"
        head = f"{epochs} epoch{'s' * (epochs != 1)}, {steps}: {ENDS[self.reason]}"
        head += f" ({self.message})" if self.message else ""
        return "\n".join([head, *(line.rstrip() for line in table), *([f"in {self.folder}"] if self.folder else [])])

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for name, value in self.last.items():
            best, epoch = self.best(name)
            yield (name, number(value), number(best), str(epoch)) if epoch else (name, number(value), "", "")


def flat(values: Mapping[Phase, Mapping[str, float]]) -> dict[str, float]:
    """Values of training and validation under one name each: "train.loss"."""
    return {f"{phase}.{name}": v for phase, found in values.items() for name, v in found.items()}


def not_finite(values: Mapping[Phase, Mapping[str, float]]) -> str:
    """The first value of an epoch that is NaN or infinite, in words; a class of a metric that counts each by itself may be NaN."""
    for name, value in flat(values).items():
        if not math.isfinite(value) and not name.rpartition(".")[2].isdigit():
            return f"{name} is {value}"
    return ""
