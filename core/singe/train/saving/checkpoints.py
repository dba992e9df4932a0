"""Checkpoints: all that training needs to go on exactly where it was, in one file each, which is whole or not there.

`step-00000120.safetensors` holds the arrays (weights, moments, what metrics have counted) and, as JSON in its metadata, the rest
(epoch, position in the data, history), with the SHA-256 of both. A file is written beside its final name, brought to the disk
and renamed; one that is torn nevertheless is recognised, and the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import FormatError, InputError
from ...files import clear_parts, mapped, reason, write
from ...late_dataclass import dataclass
from ...weights.safetensors import is_safetensors, read_safetensors, safetensors_pieces
from ..best_value import Mode, check_watched

FORMAT: Final = "singe-checkpoint/1"
_NAME: Final = re.compile(r"step-(\d+)\.safetensors")


@dataclass(frozen=True)
class Checkpoints:
    """When a run's folder gets checkpoints, and which of them stay."""

    every: int = 1
    """Epochs from one checkpoint to the next; the last epoch always gets one."""
    steps: int | None = None
    """Steps from one checkpoint to the next within an epoch; None: only ends of epochs get checkpoints."""
    keep: int = 2
    """How many of the newest stay. With 1, nothing is left if that file is damaged later."""
    best: str = "valid.loss"
    """The value whose best epoch's weights are kept as best.safetensors; without validation data, the train.loss is taken."""
    mode: Mode | None = None
    """Which value is the best; by default what the metric or its name says (`best_mode`)."""

    def __post_init__(self) -> None:
        check_watched("Checkpoints", self.best)
        for name in ("every", "steps", "keep"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"Checkpoints: {name} is {value}, expected at least 1")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a file holds: the arrays by name, and what can be written as JSON."""

    step: int
    arrays: Mapping[str, np.ndarray] = field(repr=False)
    facts: Mapping[str, Any]


class CheckpointFolder:
    """The checkpoints in a folder, which is made when the first is written."""

    def __init__(self, folder: str | Path, keep: int) -> None:
        self.folder, self.keep = Path(folder), keep

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step is, or would be."""
        return self.folder / f"step-{step:08}.safetensors"

    def steps(self) -> list[int]:
        """The steps of which there are files, the newest first."""
        names = (p.name for p in self.folder.iterdir()) if self.folder.is_dir() else ()
        return sorted((int(m[1]) for m in map(_NAME.fullmatch, names) if m), reverse=True)

    def newest_in_words(self) -> str:
        """The newest checkpoint, as the end of an error."""
        steps = self.steps()
        return f"; the last checkpoint is {self.path(steps[0])}" if steps else "; there is no checkpoint yet"

    def kept(self, step: int) -> str:
        """What of a run that ended early at a step is on the disk."""
        steps = self.steps()
        if not steps:
            return "kept: nothing, as no checkpoint was written yet"
        lost = step - steps[0]
        after = f"; {lost} step{'s' * (lost > 1)} after it {'are' if lost > 1 else 'is'} lost" if lost > 0 else ""
        return f"kept: the checkpoint of step {steps[0]}{after}"

    def write(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint and remove those that need not stay. An OSError leaves all as it was."""
        path = self.path(checkpoint.step)
        self.folder.mkdir(parents=True, exist_ok=True)
        clear_parts(self.folder)
        write_arrays(path, checkpoint.arrays, {"step": checkpoint.step, **checkpoint.facts})
        # A file of a later step is a damaged one that was passed over; training will write it again.
        for step in [s for s in self.steps() if s <= checkpoint.step][self.keep :]:
            self.path(step).unlink(missing_ok=True)
        return path

    def newest(self, tell: Callable[[str], object]) -> Checkpoint | None:
        """The newest checkpoint that is whole; None if there is none. tell: is called with a text about each that is not."""
        for step in self.steps():
            try:
                arrays, facts = read_arrays(self.path(step))
            except (FormatError, OSError, ValueError) as e:
                tell(f"the checkpoint {self.path(step)} is damaged, the one before it is used: {e}")
                continue
            return Checkpoint(step, arrays, facts)
        return None


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """A safetensors file with facts (JSON) and a hash in its metadata; it is on the disk when this returns."""
    text = json.dumps(facts)
    metadata = {"singe": FORMAT, "facts": text, "sha256": _digest(text, arrays), "written": f"{time.time():.3f}"}
    write(path, safetensors_pieces(arrays, metadata), durable=True)


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What `write_arrays` wrote; FormatError if it is not as it was written."""
    try:
        data = mapped(path)
    except OSError as e:
        raise InputError(f"cannot read {path}: {reason(e)}") from e
    if not is_safetensors(data):
        raise FormatError(f"{path}: not a safetensors file; it has {len(data)} bytes")
    weights = read_safetensors(data, str(path))
    metadata = weights.metadata
    if metadata.get("singe") != FORMAT:
        raise FormatError(f"{path}: the format is {metadata.get('singe', 'not named')!r:.40}, expected {FORMAT!r}")
    arrays = dict(weights)
    text = metadata.get("facts", "")
    if _digest(text, arrays) != metadata.get("sha256"):
        raise FormatError(f"{path}: its SHA-256 is not the one that was written into it")
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{path}: its facts are no JSON: {e}") from None
    if not isinstance(facts, dict):
        raise FormatError(f"{path}: its facts are {text:.40}, expected an object")
    return arrays, facts


def _digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    found = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        found.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()
