"""What a run's folder records: listeners that write events to files. A disk that is full stops the records, not the training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...events import Event, Listener
from ...folder import BATCHES, EPOCHS, FACTS, LAYERS, REPORT, TENSORBOARD
from .facts import FactsLog as FactsLog
from .final_report import ReportLog as ReportLog
from .tables import CsvLog as CsvLog
from .tables import LayersLog as LayersLog
from .tables import SqliteLog as SqliteLog
from .tensorboard import TensorBoardLog as TensorBoardLog


class Log:
    """A listener that writes; when it cannot, it says so once, and tries again with the next event."""

    def __init__(self, listener: Listener, path: Path, tell: Callable[[str], object]) -> None:
        self._listener, self._path, self._tell = listener, path, tell
        self._failed = False

    def __call__(self, event: Event) -> None:
        try:
            self._listener(event)
        except Exception as e:  # OSError, and sqlite3's errors, which are not OSErrors
            if not self._failed:
                self._failed = True
                self._tell(f"{self._path} could not be written, and training goes on without it: {e}")


def logs_of(folder: Path, tell: Callable[[str], object]) -> list[Log]:
    """The logs of a run's folder. tell: is called with a text when one cannot be written."""
    kinds: dict[str, Callable[[Path], Listener]] = {
        FACTS: FactsLog, EPOCHS: CsvLog, BATCHES: SqliteLog, LAYERS: LayersLog, TENSORBOARD: TensorBoardLog,
        REPORT: ReportLog,
    }  # fmt: skip
    return [Log(kind(folder / name), folder / name, tell) for name, kind in kinds.items()]
