"""Values as tables: one of epochs and one of layers as CSV, and epochs and batches in SQLite.

When a run goes on from a checkpoint, what was recorded after it is removed: it comes again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....files import write
from ...events import BatchEnded, EpochEnded, Event, LayersObserved, RunBegan, Stopped
from ..reports.batches import check_batches
from ..summary import flat

if TYPE_CHECKING:
    import sqlite3

KEYS: Final = ("epoch", "step", "seconds")
"""The first columns of the CSV table; then come values such as train.loss and valid.accuracy."""


OF_LAYERS: Final = (
    "step", "epoch", "what", "layer", "norm", "mean", "std", "min", "max", "zeros", "nan", "infinite",
)  # fmt: skip
"""The columns of the table of layers, where `what` is "weight" or "gradient"."""


class LayersLog:
    """A CSV file with a row for each parameter and each gradient, whenever a Learner looks at them; there is none before."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, event: Event) -> None:
        match event:
            case RunBegan():
                if self.path.is_file():
                    lines = self.path.read_text("utf-8").splitlines(keepends=True)
                    steps = [line.partition(",")[0] for line in lines]
                    kept = [
                        line
                        for line, k in zip(lines[1:], steps[1:], strict=True)
                        if k.isdigit() and int(k) <= event.step
                    ]
                    write(self.path, [self._line(OF_LAYERS), *(line.encode() for line in kept)])
            case LayersObserved():
                rows = [
                    (event.step, event.epoch, what, r.name, r.norm, r.mean, r.std, r.least, r.most, r.zeros, r.nan, r.infinite)
                    for what, found in (("weight", event.weights), ("gradient", event.gradients))
                    for r in found.rows
                ]  # fmt: skip
                head = [] if self.path.is_file() else [OF_LAYERS]
                with self.path.open("ab") as file:
                    file.write(b"".join(map(self._line, [*head, *rows])))
            case _:
                pass

    def _line(self, values: Sequence[object]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])
        return text.getvalue().encode()


class CsvLog:
    """A CSV file with one row an epoch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []

    def __call__(self, event: Event) -> None:
        match event:
            case RunBegan():
                self.rows = [row for row in self._read() if int(row["epoch"]) < event.epoch]
            case EpochEnded():
                facts = {"epoch": event.epoch, "step": event.step, "seconds": round(event.seconds, 3)}
                self.rows.append({name: str(v) for name, v in {**facts, **flat(event.values)}.items()})
                self._write()
            case _:
                pass

    def _read(self) -> list[dict[str, str]]:
        if not self.path.is_file():
            return []
        with self.path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [{k: v for k, v in row.items() if v} for row in rows if (row.get("epoch") or "").isdigit()]

    def _write(self) -> None:
        columns = dict.fromkeys([*KEYS, *(name for row in self.rows for name in row)])
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, list(columns), restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows)
        write(self.path, [text.getvalue().encode()])


class SqliteLog:
    """An SQLite file that others can read while it grows, with two tables: batches (phase, epoch, batch, step, name, value,
    seconds), a row for each value of each batch as it ends, and epochs (phase, epoch, step, name, value)."""

    TABLES: Final = """
        CREATE TABLE IF NOT EXISTS batches (
            phase TEXT, epoch INTEGER, batch INTEGER, step INTEGER, name TEXT, value REAL, seconds REAL,
            PRIMARY KEY (phase, epoch, batch, name)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS epochs (
            phase TEXT, epoch INTEGER, step INTEGER, name TEXT, value REAL,
            PRIMARY KEY (phase, epoch, name)) WITHOUT ROWID;
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: sqlite3.Connection | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case RunBegan():
                self._open().executescript(self.TABLES)
                self._put("DELETE FROM batches WHERE epoch > ? OR (epoch = ? AND (phase = 'valid' OR batch > ?))",
                          [(event.epoch, event.epoch, event.batch)])  # fmt: skip
                self._put("DELETE FROM epochs WHERE epoch >= ?", [(event.epoch,)])
            case BatchEnded():
                where = (event.phase, event.epoch, event.batch, event.step)
                rows = [(*where, name, value, event.seconds) for name, value in event.values.items()]
                self._put("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            case EpochEnded():
                rows = [
                    (phase, event.epoch, event.step, name, value)
                    for phase, values in event.values.items()
                    for name, value in values.items()
                ]
                self._put("INSERT OR REPLACE INTO epochs VALUES (?, ?, ?, ?, ?)", rows)
            case Stopped():
                self._close()
            case _:
                pass

    def _open(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 (not part of every Python)

        if self._file is None:
            check_batches(self.path)  # the folder of a run that goes on may come from elsewhere
            # Hooks are called by the thread that trains, which need not be the one that made this object.
            self._file = sqlite3.connect(self.path, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")  # a commit waits for no disk; what is read is consistent
        return self._file

    def _close(self) -> None:
        import sqlite3  # noqa: PLC0415

        if self._file is not None:
            with suppress(sqlite3.OperationalError):  # somebody reads at this moment
                self._file.execute(
                    "PRAGMA journal_mode=DELETE"
                )  # leaves one file, which may also be read where none can be written
            self._file.close()
            self._file = None

    def _put(self, command: str, rows: Sequence[tuple[object, ...]]) -> None:
        with self._open() as file:
            file.executemany(command, rows)
