"""What is heard: the classes of a sound, the mean over its windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....errors import InputError
from ....tensors.tensor import Tensor
from ...answers import Arrays, Finding, Findings
from ...sound.forms import SoundFrame
from ...sound.medium import RATE, SOUND
from ...spec import TaskSpec
from ..base import Asked, Head, Shapes, TaskKind, Tensors, only

SCORES = "scores"


def _is_row(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Scores of classes for each row."""
    shape = only(shapes)
    return {} if len(shape) == 2 and shape[1] > 1 and asked.labels in (None, shape[1]) else None


def _decoded(chances: Callable[[Tensor], Tensor]) -> Any:
    def decode(outputs: Tensors, frame: SoundFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
        return {SCORES: chances(only(outputs).to(dtype="float32")), **frame.keep(outputs, ())}

    return decode


def _answer(outputs: Arrays, spec: TaskSpec, sound: Any, settings: Mapping[str, Any]) -> Findings:
    top = settings["top"]
    if type(top) is not int or top < 0:
        raise InputError(f"{spec.kind}: top is {top!r:.40}, expected how many to give; 0 gives all")
    if not len(sound.samples):
        return Findings(spec.kind, None, [])
    scores, step = outputs[SCORES], spec.preparation.step
    # What is shorter than the margin is no window of its own.
    count = max(1, len(sound.samples) - spec.preparation.after)
    weights = np.clip(count - np.arange(len(scores)) * step, 0, step) / count
    mean = (scores * weights[:, None]).sum(0)
    order = np.argsort(-mean, kind="stable")[: top or None]
    return Findings(
        spec.kind,
        None,
        [Finding(spec.label(int(k)), float(mean[k]), int(k)) for k in order],
        windows=int((weights > 0).sum()),
    )


SOUNDS = TaskKind(
    "sounds", "what is heard", SOUND,
    (Head("one", "scores of classes, of which one is right, (rows, classes)", _is_row, _decoded(lambda row: row.softmax(1))),
     Head("several", "scores of classes, of which several may be right", _is_row, _decoded(lambda row: row.sigmoid())),
     Head("given", "the chances of classes as they are", _is_row, _decoded(lambda row: row))),
    _answer, forms=("log bands", "waves"), labels="config.json", settings={"top": 5, RATE: None}, network="sounds",
)  # fmt: skip
