"""Runs as their folders tell them: what they are (run.json), their epochs (epochs.csv) and batches (batches.sqlite)."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ....errors import FormatError, InputError, SingeError
from ....files import inside, reason
from ....late_dataclass import dataclass
from ...best_value import Mode, best_mode
from ...events import Phase
from ...folder import EPOCHS, FACTS, FORMAT
from .batches import Point, batch_averages, batch_names

DEEP: Final = 3
"""How many folders below the one that is named runs are looked for."""
LARGEST: Final = 16 * 2**20
"""Bytes of a file of text that is read."""
MOST_SETTINGS: Final = 10_000
MOST_COLUMNS: Final = 1000
LONGEST_NAME: Final = 1000
"""What settings and values there may be, and how long the name of a setting may be."""
DEEPEST: Final = 50
"""How many settings a setting may be within."""
MOST: Final = 10**9
"""Epochs, and seconds."""
DRAWN: Final = 1e300
"""The largest value that is drawn: the difference of two is a number."""


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
class RunRecord:
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
        return [(x, y) for x, y in found if abs(y) <= DRAWN]

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
        return list(dict.fromkeys([*self.metrics, *batch_names(self.folder)]))

    @cached_property
    def _averages(self) -> dict[int, Mapping[str, list[Point]]]:
        """What `batches` has read, by its count."""
        return {}

    def batches(self, metric: str, count: int) -> list[Point]:
        """A metric over the batches trained on, as averages of at most about `count` parts; x is in epochs."""
        if count not in self._averages:
            self._averages[count] = batch_averages(self.folder, count)
        return self._averages[count].get(metric, [])


# --- reading ----------------------------------------------------------------------------------------------------------


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run."""
    return any(os.path.isfile(folder / name) for name in (FACTS, EPOCHS))  # no error where one may not look


def find_runs(folder: Path, tell: Callable[[SingeError], object] | None = None) -> list[RunRecord]:
    """The run of a folder, or those in the folders below it; the earliest first. tell: gets the error of each of these that
    cannot be read, which is left out then."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder in which runs are, or that of a run")
    if is_run(folder):
        return [read_run(folder)]
    found: list[RunRecord] = []
    for path in _below(folder):
        try:
            found.append(read_run(path))
        except SingeError as e:
            if tell is None:
                raise
            tell(e)
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


def read_run(folder: Path) -> RunRecord:
    """The run of a folder."""
    if not is_run(folder):
        raise InputError(
            f"{folder}: not the folder of a run: it has no {FACTS} and no {EPOCHS}; give a folder that a Learner wrote with run=…"
        )
    facts = _facts(folder)
    epochs = _epochs(folder)
    modes = facts.get("modes", {})
    return RunRecord(
        folder,
        facts.get("run") or folder.name,
        facts.get("device", ""),
        _date(facts.get("began", "")),
        facts.get("seconds") or sum(e.seconds for e in epochs),
        facts.get("epochs", 0),
        facts.get("reason", "running"),
        facts.get("message", ""),
        facts.get("settings", {}),
        {name: mode for name, mode in modes.items() if mode in ("least", "most", None)},
        facts.get("best", "loss"),
        epochs,
    )


KINDS: Final[Mapping[str, Any]] = {
    "run": str, "device": str, "began": str, "seconds": (int, float), "epochs": int, "reason": str, "message": str,
    "settings": dict, "modes": dict, "best": str,
}  # fmt: skip
"""The facts that are read, with their types in JSON."""


def _facts(folder: Path) -> dict[str, Any]:
    """The facts of a run; settings by name, as texts."""
    path = folder / FACTS
    if not path.is_file():
        return {}
    try:
        found = json.loads(_bytes(folder, FACTS))
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{path}: not JSON: {e}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FormatError(f"{path}: expected an object whose format is {FORMAT!r}")
    for name, kind in KINDS.items():
        value = found.get(name)
        wrong = name in found and (not isinstance(value, kind) or isinstance(value, bool))
        if wrong or (isinstance(value, (int, float)) and not 0 <= value <= MOST):
            raise FormatError(f"{path}: {name} is {json.dumps(value)[:40]}")
    if "settings" in found:
        found["settings"] = _flat(found["settings"], path)
    return found


def _epochs(folder: Path) -> list[Epoch]:
    path = folder / EPOCHS
    if not path.is_file():
        return []
    try:
        table = csv.DictReader(_bytes(folder, EPOCHS).decode().splitlines())
        if len(table.fieldnames or ()) > MOST_COLUMNS:
            raise FormatError(f"{path}: has {len(table.fieldnames or ())} columns, expected at most {MOST_COLUMNS}")
        return [_epoch(row) for row in table]
    except FormatError:
        raise
    except (ValueError, TypeError, KeyError, csv.Error) as e:
        raise FormatError(f"{path}: not a table of epochs: {e}") from None


def _epoch(row: Mapping[str | None, Any]) -> Epoch:
    if None in row:
        raise ValueError("a row has more values than there are columns")
    values: dict[Phase, dict[str, float]] = {"train": {}, "valid": {}}
    for column, text in row.items():
        phase, _, name = str(column).partition(".")
        if name and text and (phase == "train" or phase == "valid"):
            values[phase][name] = float(text)
    epoch, seconds = int(row["epoch"]), float(row["seconds"])
    if not (0 <= epoch <= MOST and 0 <= seconds <= MOST):
        raise ValueError(f"the epoch {row['epoch']!r:.20} took {row['seconds']!r:.20} seconds")
    return Epoch(epoch, seconds, values)


def _bytes(folder: Path, name: str) -> bytes:
    """A file of a run's folder; a link that leads out of this is refused."""
    path = folder / name
    inside(folder, name)
    try:
        if path.stat().st_size > LARGEST:
            raise FormatError(f"{path}: has {path.stat().st_size:,} bytes, expected at most {LARGEST:,}")
        return path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot read {path}: {reason(e)}") from e


def _date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        found.timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return found


def _flat(settings: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Settings as texts by name; those within others have names with dots."""
    found: dict[str, str] = {}
    left: list[tuple[str, Any, int]] = [("", settings, 0)]
    while left:
        name, value, depth = left.pop()
        if isinstance(value, dict):
            parts = [(f"{name}.{k}" if depth else k, v, depth + 1) for k, v in list(value.items())[:MOST_SETTINGS]]
            left.extend(reversed(parts))
        else:
            found[name] = (
                value if isinstance(value, str) else f"{value:.12g}" if isinstance(value, float) else json.dumps(value)
            )
        if len(name) > LONGEST_NAME or depth > DEEPEST or len(found) + len(left) > MOST_SETTINGS:
            raise FormatError(
                f"{path}: its settings are more than {MOST_SETTINGS}, or deeper in each other than {DEEPEST}, "
                f"or have longer names than {LONGEST_NAME} characters"
            )
    return found


# --- several ----------------------------------------------------------------------------------------------------------


def titles(runs: Sequence[RunRecord]) -> list[str]:
    """A name for each run that no other has: its own, or that of its folder, or its whole path."""
    names = [run.name for run in runs]
    folders = [run.folder.resolve().name for run in runs]
    for found in (names, folders):
        if len(set(found)) == len(found):
            return found
    return [str(run.folder) for run in runs]


def differing(runs: Sequence[RunRecord]) -> list[str]:
    """The names of settings that are not the same in all runs that have them."""
    there = dict.fromkeys(name for run in runs for name in run.settings)
    return [name for name in there if len({run.settings[name] for run in runs if name in run.settings}) > 1]
