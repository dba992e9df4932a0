"""When a word is said for which a model listens, as the packages of microWakeWord and openWakeWord hear it: when the mean of the last scores,
of which the latter takes one, is over a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....errors import InputError
from ....tensors.tensor import Tensor
from ...answers import Arrays
from ...sound.answers import WakeWord, WakeWords
from ...sound.forms import SoundFrame
from ...sound.medium import RATE, SOUND
from ...spec import TaskSpec
from ..base import Asked, Head, Live, Shapes, TaskKind, Tensors, only

SCORE = "score"
MEAN_OF = 5
THRESHOLD = 0.9
"""Where no file beside the model says them."""


def _is_chance(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """One number for each row."""
    return {"threshold": THRESHOLD, "mean_of": MEAN_OF} if all(d == 1 for d in only(shapes)) else None


def _chance(outputs: Tensors, frame: SoundFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    score = only(outputs)
    scale = 1.0 if score.dtype.is_float else 1 / 256  # integers of 8 bits are parts of 256
    return {SCORE: score.reshape(1).to(dtype="float32") * scale, **frame.keep(outputs, ())}


class WordFollower:
    """Scores as they come. means: of the last scores, 0 until there are so many; a word is heard at the first that is over the threshold."""

    def __init__(self, spec: TaskSpec, settings: Mapping[str, Any]) -> None:
        self._spec = spec
        self._count = int(spec.options["mean_of"])
        given = settings["threshold"]
        self._threshold = spec.options["threshold"] if given is None else given
        if type(self._threshold) not in (int, float) or not 0 <= self._threshold < 1:
            raise InputError(f"{spec.kind}: threshold is {self._threshold!r:.40}, expected a number from 0 to under 1")
        self._scores: list[float] = []
        self._rows = 0
        self._heard = False

    def push(self, scores: Sequence[float]) -> tuple[list[WakeWord], list[float]]:
        """The words that are heard now, and the means."""
        facts = self._spec.preparation
        words: list[WakeWord] = []
        means: list[float] = []
        for score in scores:
            self._rows += 1
            self._scores = [*self._scores, score][-self._count :]
            mean = sum(self._scores) / self._count if len(self._scores) == self._count else 0.0
            means.append(mean)
            if mean > self._threshold and not self._heard:
                at = (self._rows * facts.step + facts.after) / facts.rate
                words.append(WakeWord(self._spec.label(0), mean, at))
            self._heard = mean > self._threshold
        return words, means


def _found(spec: TaskSpec, follower: WordFollower, scores: np.ndarray, sound: Any = None) -> WakeWords:
    words, means = follower.push(scores.tolist())
    facts = spec.preparation
    return WakeWords(spec.kind, None, words, np.array(means, np.float32), facts.step / facts.rate, sound)


def _answer(outputs: Arrays, spec: TaskSpec, sound: Any, settings: Mapping[str, Any]) -> WakeWords:
    return _found(spec, WordFollower(spec, settings), outputs.get(SCORE, np.zeros(0, np.float32)), sound)


def _live(spec: TaskSpec, settings: Mapping[str, Any]) -> Live:
    follower = WordFollower(spec, settings)

    def follow(parts: Sequence[Arrays], count: int, ends: bool) -> WakeWords:
        return _found(spec, follower, np.concatenate([np.zeros(0, np.float32), *(part[SCORE] for part in parts)]))

    return follow


WAKE_WORD = TaskKind(
    "wake-word", "when a word is said for which a model listens", SOUND,
    (Head("chance", "one number for each row of samples", _is_chance, _chance),), _answer,
    forms=("micro features", "speech vectors"), settings={"threshold": None, RATE: None}, live=_live,
)  # fmt: skip
