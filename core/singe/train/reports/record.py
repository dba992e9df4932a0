"""Runs as their folders tell them: what they are (run.json), their epochs (epochs.csv) and batches (batches.sqlite)."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from ...errors import FormatError, InputError
from ...runtime.files import reason
from ..events import Phase
from ..folder import BATCHES, EPOCHS, FACTS, FORMAT
from ..watching import Mode, best_mode

DEEP: Final = 3
"""How many folders below the one that is named runs are looked for."""
LARGEST: Final = 64 * 2**20
"""Bytes of a file of text that is read."""
Point: TypeAlias = tuple[float, float]
T = TypeVar("T")


@dataclass(frozen=True)
class Epoch:
    """An epoch that has ended."""

    number: int
    seconds: float
    values: Mapping[Phase, Mapping[str, float]]

    def value(self, phase: Phase, metric: str) -> float:
        """The value of a metric; NaN if there is none."""
        return self.values.get(phase, {}).get(metric, math.nan)


@dataclass(frozen=True)
class Run:
    """A run that was recorded."""

    folder: Path
    name: str
    """As the run was called; `titles` tells runs of one name apart."""
    device: str
    began: datetime | None
    seconds: float
    """Of training and validation, in all."""
    planned: int
    reason: str
    """Why it ended, or "running"; so it is called, too, if it was killed."""
    message: str
    settings: Mapping[str, str]
    """By name; those within others have names with dots."""
    modes: Mapping[str, Mode | None]
    chosen: str
    """The metric by which the best epoch is chosen."""
    epochs: Sequence[Epoch]

    @cached_property
    def metrics(self) -> list[str]:
        """Their names: the one that chooses first, then as they came."""
        found = dict.fromkeys(name for epoch in self.epochs for values in epoch.values.values() for name in values)
        return sorted(found, key=lambda name: name != self.chosen)

    def points(self, phase: Phase, metric: str) -> list[Point]:
        """A metric by epoch; x is the end of the epoch for "valid", and its middle for "train", as these are averages over it."""
        back = 0.5 if phase == "train" else 0.0
        found = ((e.number - back, e.value(phase, metric)) for e in self.epochs)
        return [(x, y) for x, y in found if math.isfinite(y)]

    def judged(self, metric: str) -> Phase:
        """The phase whose values of a metric count: "valid", where there are some."""
        return "valid" if self.points("valid", metric) else "train"

    def best(self, metric: str) -> tuple[float, int] | None:
        """The best value of a metric, and its epoch; None if its values are neither good nor bad, or there are none."""
        mode, points = best_mode(metric, self.modes), self.points(self.judged(metric), metric)
        if mode is None or not points:
            return None
        x, y = (min if mode == "least" else max)(points, key=lambda point: point[1])
        return y, math.ceil(x)

    @cached_property
    def plotted(self) -> list[str]:
        """The metrics, and what only batches have, such as the learning rate."""
        command = "SELECT DISTINCT name FROM batches WHERE phase = 'train' ORDER BY name"
        names = self._ask(lambda file: [str(name) for (name,) in file.execute(command)])
        return list(dict.fromkeys([*self.metrics, *names]))

    def batches(self, metric: str, count: int) -> list[Point]:
        """A metric over the batches trained on, as averages of at most about `count` parts; x is in epochs."""
        return self._ask(lambda file: _averages(file, metric, count))

    def _ask(self, question: Callable[[Any], list[T]]) -> list[T]:
        """What the table of batches answers; nothing where there is none."""
        path = self.folder / BATCHES
        if not path.is_file():
            return []
        try:
            import sqlite3  # noqa: PLC0415
        except ImportError:  # it is not part of every Python
            return []
        try:
            # Nothing is written; but what a run that was killed left beside the file goes only if this could be.
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as file:
                return question(file)
        except sqlite3.Error as e:
            raise FormatError(f"{path}: cannot be read as a run's batches: {e}") from None


def _averages(file: Any, metric: str, count: int) -> list[Point]:
    where = "FROM batches WHERE phase = 'train' AND name = ?"
    most, rows = file.execute(f"SELECT MAX(batch), COUNT(*) {where}", (metric,)).fetchone()
    if not rows or not most or most < 1:
        return []
    x = "(epoch - 1 + batch * 1.0 / ?)"
    first, last = file.execute(f"SELECT MIN{x}, MAX{x} {where}", (most, most, metric)).fetchone()
    part = max((last - first) / count, 1e-9)
    rows = file.execute(
        f"SELECT AVG{x}, AVG(value) {where} AND value IS NOT NULL GROUP BY CAST(({x} - ?) / ? AS INTEGER) ORDER BY 1",
        (most, metric, most, first, part),
    )
    return [(x, y) for x, y in rows if isinstance(y, float) and math.isfinite(y)]


# --- reading ----------------------------------------------------------------------------------------------------------


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run."""
    return (folder / FACTS).is_file() or (folder / EPOCHS).is_file()


def find_runs(folder: Path) -> list[Run]:
    """The run of a folder, or those in the folders below it; the earliest first."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder in which runs are, or that of a run")
    found = [read_run(path) for path in ([folder] if is_run(folder) else _below(folder))]
    return sorted(found, key=lambda run: (run.began.timestamp() if run.began else 0.0, str(run.folder)))


def _below(folder: Path) -> Iterator[Path]:
    for at, folders, _ in os.walk(folder):
        path = Path(at)
        if is_run(path):
            folders.clear()  # what is in a run's folder is no run
            yield path
        elif len(path.relative_to(folder).parts) == DEEP:
            folders.clear()
        folders.sort()


def read_run(folder: Path) -> Run:
    """The run of a folder."""
    if not is_run(folder):
        raise InputError(f"{folder}: not the folder of a run: it has no {FACTS} and no {EPOCHS}")
    facts = _facts(folder / FACTS)
    epochs = _epochs(folder / EPOCHS)
    modes = facts.get("modes", {})
    return Run(
        folder,
        facts.get("run") or folder.name,
        facts.get("device", ""),
        _date(facts.get("began", "")),
        facts.get("seconds") or sum(e.seconds for e in epochs),
        facts.get("epochs", 0),
        facts.get("reason", "running"),
        facts.get("message", ""),
        dict(_flat(facts.get("settings", {}))),
        {name: mode for name, mode in modes.items() if mode in ("least", "most", None)},
        facts.get("best", "loss"),
        epochs,
    )


KINDS: Final[Mapping[str, Any]] = {
    "run": str, "device": str, "began": str, "seconds": (int, float), "epochs": int, "reason": str, "message": str,
    "settings": dict, "modes": dict, "best": str,
}  # fmt: skip
"""The facts that are read, with their types in JSON."""


def _facts(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(_bytes(path))
    except ValueError as e:
        raise FormatError(f"{path}: not JSON: {e}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FormatError(f"{path}: expected an object whose format is {FORMAT!r}")
    for name, kind in KINDS.items():
        if name in found and not isinstance(found[name], kind):
            raise FormatError(f"{path}: {name} is {found[name]!r:.40}")
    return found


def _epochs(path: Path) -> list[Epoch]:
    if not path.is_file():
        return []
    try:
        rows = list(csv.DictReader(_bytes(path).decode().splitlines()))
        return [_epoch(row) for row in rows]
    except (ValueError, TypeError, KeyError, csv.Error) as e:
        raise FormatError(f"{path}: not a table of epochs: {e}") from None


def _epoch(row: Mapping[str, str]) -> Epoch:
    values: dict[Phase, dict[str, float]] = {"train": {}, "valid": {}}
    for column, text in row.items():
        phase, _, name = column.partition(".")
        if name and text and (phase == "train" or phase == "valid"):
            values[phase][name] = float(text)
    return Epoch(int(row["epoch"]), float(row["seconds"]), values)


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise FormatError(f"{path}: has {path.stat().st_size:,} bytes, expected at most {LARGEST:,}")
        return path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot read {path}: {reason(e)}") from e


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield (
                f"{before}{name}",
                value if isinstance(value, str) else f"{value:.12g}" if isinstance(value, float) else json.dumps(value),
            )


# --- several ----------------------------------------------------------------------------------------------------------


def titles(runs: Sequence[Run]) -> list[str]:
    """A name for each run that no other has: its own, or that of its folder, or its whole path."""
    names = [run.name for run in runs]
    folders = [run.folder.resolve().name for run in runs]
    for found in (names, folders):
        if len(set(found)) == len(found):
            return found
    return [str(run.folder) for run in runs]


def differing(runs: Sequence[Run]) -> list[str]:
    """The names of settings that are not the same in all runs that have them."""
    there = dict.fromkeys(name for run in runs for name in run.settings)
    return [name for name in there if len({run.settings[name] for run in runs if name in run.settings}) > 1]
