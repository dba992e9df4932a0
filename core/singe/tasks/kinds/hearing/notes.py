"""The notes of music."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....tensors.tensor import Tensor
from ...answers import Arrays
from ...sound.answers import Notes
from ...sound.forms import SoundFrame
from ...sound.medium import RATE, SOUND
from ...sound.notes import BINS, FRAMES_A_SECOND, KEYS, notes_in
from ...spec import TaskSpec
from ..base import Asked, Head, Shapes, TaskKind, Tensors

OVERLAP = 15
"""Frames at each end of a window that the window beside it has, too."""


def _are_keys(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Two of the keys, beginnings first, and one of fine pitches."""
    keys = [name for name, shape in shapes.items() if shape[-1:] == (KEYS,)]
    fine = [name for name, shape in shapes.items() if shape[-1:] == (BINS,)]
    return {"onsets": keys[0], "keys": keys[1], "contours": fine[0]} if (len(keys), len(fine)) == (2, 1) else None


def _inner(outputs: Tensors, frame: SoundFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return {
        role: outputs[name][:, OVERLAP:-OVERLAP].reshape(-1, outputs[name].shape[-1]) for role, name in options.items()
    }


def _answer(outputs: Arrays, spec: TaskSpec, sound: Any, settings: Mapping[str, Any]) -> Notes:
    count = len(sound.samples) * FRAMES_A_SECOND // spec.preparation.rate
    scores = {name: values[:count] for name, values in outputs.items()}
    return Notes(spec.kind, None, notes_in(**scores, settings=settings) if scores else [], sound)


NOTES = TaskKind(
    "notes", "the notes of music, with their times", SOUND,
    (Head("keys", f"windows of {KEYS} keys twice and of {BINS} pitches", _are_keys, _inner),), _answer,
    forms=("windows",), settings={"threshold": 0.3, "onset": 0.5, "min_length": 0.1277, RATE: None},
)  # fmt: skip
