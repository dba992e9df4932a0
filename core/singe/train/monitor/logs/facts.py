"""What a run is, beside its values: run.json in its folder, which `singe runs` and reports read.

It is written when the run begins and after each epoch, so that it is there of a run that was killed, too. Of a run that goes on
from a checkpoint, the first beginning stays, and the seconds add up.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from ....files import write
from ...config import in_json
from ...events import EpochEnded, Event, RunBegan, Stopped
from ...folder import FORMAT


class FactsLog:
    """A JSON object: the run's name, device, settings, dates, seconds, and why it ended ("running" before it has)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._facts: dict[str, Any] = {}
        self._before = 0.0
        self._start = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case RunBegan():
                now = datetime.now().astimezone().isoformat(timespec="milliseconds")
                old = self._old() if event.step or event.epoch > 1 or event.batch else {}
                self._start, self._before = time.monotonic(), old.get("seconds", 0.0)
                self._facts = {
                    "format": FORMAT, "run": event.run, "device": event.device, "epochs": event.epochs, "began": old.get("began", now),
                    "settings": dict(event.settings), "modes": {**event.modes, event.best[0]: event.best[1]}, "best": event.best[0],
                }  # fmt: skip
                self._write("running", "")
            case EpochEnded():
                self._write("running", "")
            case Stopped():
                self._write(event.reason, event.message)
            case _:
                pass

    def _old(self) -> dict[str, Any]:
        """What the file says of the part of the run that has been."""
        try:
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and isinstance(found.get("seconds"), (int, float)) else {}

    def _write(self, reason: str, message: str) -> None:
        seconds = round(self._before + time.monotonic() - self._start, 3)
        ended = datetime.now().astimezone().isoformat(timespec="milliseconds")
        facts = {**self._facts, "ended": ended, "seconds": seconds, "reason": reason, "message": message}
        write(self.path, [json.dumps(facts, indent=1, default=in_json).encode(), b"\n"])
