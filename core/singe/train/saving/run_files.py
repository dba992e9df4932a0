"""What a run keeps in its folder: checkpoints, the weights of its best epoch, its settings. Without a folder, nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...files import reason as why
from ..config import write_config
from ..folder import BEST, CHECKPOINTS, CONFIG
from .checkpoints import Checkpoint, CheckpointFolder, read_arrays, write_arrays


class RunFiles:
    """The files of a run, and what of it is in none of them. tell: is called with a text when one could not be written."""

    def __init__(self, folder: Path | None, keep: int, config: object, tell: Callable[[str], object]) -> None:
        self.folder: Final = folder
        self.checkpoints: Final = folder and CheckpointFolder(folder / CHECKPOINTS, keep)
        self._config: Final = config
        self._tell: Final = tell
        self._saved = 0, 0.0  # the step of the last checkpoint, or of the start, and when that was

    def begin(self, step: int) -> None:
        """Training goes on after this step, up to which nothing is lost."""
        self._saved = step, time.perf_counter()

    def found(self, resume: bool) -> tuple[Checkpoint | None, list[str]]:
        """The checkpoint from which training goes on, and notes about damaged ones. A folder with checkpoints begins no new run."""
        notes: list[str] = []
        if self.checkpoints is None:
            return None, notes
        found = self.checkpoints.newest(notes.append) if resume else None
        if found is None and self.checkpoints.steps():
            what = (
                "are damaged"
                if resume
                else "are there already; resume=True (--resume on a command line) goes on from the newest"
            )
            raise InputError(
                f"fit: checkpoints in {self.checkpoints.folder} {what}, and another folder begins a new run: give run=…"
            )
        return found, notes

    def write_settings(self) -> None:
        """Write the configuration, if there is one."""
        if self.folder is not None and self._config is not None:
            write_config(self.folder / CONFIG, self._config)

    def write_checkpoint(self, checkpoint: Checkpoint) -> str:
        """The path of a checkpoint that was written; "" if none was."""
        files = self.checkpoints
        if files is None or not self._written(files.path(checkpoint.step), lambda _: files.write(checkpoint)):
            return ""
        self._saved = checkpoint.step, time.perf_counter()
        return str(files.path(checkpoint.step))

    def write_best(self, state: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Write the weights of the best epoch."""
        if self.folder is not None:
            self._written(self.folder / BEST, lambda path: write_arrays(path, state, facts))

    def best(self) -> Mapping[str, np.ndarray] | None:
        """The weights of the best epoch, of a run that was resumed."""
        return None if self.folder is None else read_arrays(self.folder / BEST)[0]

    def _written(self, path: Path, write: Callable[[Path], object]) -> bool:
        """Whether a file could be written; if not, a Note says so, and training goes on."""
        try:
            write(path)
        except OSError as e:
            self._tell(f"{path} could not be written, and training goes on without it: {why(e)}")
            return False
        return True

    def newest(self) -> str:
        """The newest checkpoint, for an error."""
        return self.checkpoints.newest_in_words() if self.checkpoints is not None else ""

    def lost(self, step: int) -> float:
        """The seconds of training up to a step that are in no checkpoint. Without a folder, all that was trained is in the model."""
        saved, since = self._saved
        if self.checkpoints is None:
            return math.inf
        return 0.0 if saved == step else time.perf_counter() - since

    def kept(self, step: int) -> str:
        """What is on the disk of a run that was ended early, after a step."""
        if self.checkpoints is None:
            return "kept: the model in memory; nothing is on the disk, as the Learner has no folder (run=…)"
        return self.checkpoints.kept(step)
