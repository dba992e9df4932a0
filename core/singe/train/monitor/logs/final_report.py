"""The report of a run as a page in its folder, when the run ends."""

from __future__ import annotations

from pathlib import Path

from ....files import write
from ...events import Event, Stopped


class ReportLog:
    """An HTML page, made of what the other logs of the folder have written; so it comes after them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stopped):
            from ..reports import read_run, report  # noqa: PLC0415 (needed at the end only)

            write(self.path, [report([read_run(self.path.parent)]).encode()])
