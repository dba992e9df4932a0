"""When somebody speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....tensors.tensor import Tensor
from ...answers import Arrays
from ...sound.answers import Segment, Voices
from ...sound.forms import SoundFrame
from ...sound.medium import RATE, SOUND
from ...sound.voices import VoiceFollower, VoiceRules, voices_in
from ...spec import TaskSpec
from ..base import Asked, Head, Live, Shapes, TaskKind, Tensors, only

SCORE = "score"


def _is_score(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """One number for each row, of which there may be any count (0)."""
    return {} if sum(d != 1 for d in only(shapes)) <= 1 else None


def _score(outputs: Tensors, frame: SoundFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return {SCORE: only(outputs).reshape(-1).to(dtype="float32"), **frame.keep(outputs, ())}


def _answer(outputs: Arrays, spec: TaskSpec, sound: Any, settings: Mapping[str, Any]) -> Voices:
    facts = spec.preparation
    scores = outputs.get(SCORE, np.zeros(0, np.float32))
    rules = VoiceRules.of(settings, facts.rate, facts.step)
    segments = [
        Segment(a / facts.rate, b / facts.rate, float(scores[a // facts.step : -(-b // facts.step)].mean()))
        for a, b in voices_in(scores.tolist(), len(sound.samples), rules)
    ]
    return Voices(spec.kind, None, segments, scores, facts.step / facts.rate, None, sound)


def _live(spec: TaskSpec, settings: Mapping[str, Any]) -> Live:
    facts = spec.preparation
    follower = VoiceFollower(VoiceRules.of(settings, facts.rate, facts.step))

    def follow(parts: Sequence[Arrays], count: int, ends: bool) -> Voices:
        scores = np.concatenate([np.zeros(0, np.float32), *(part[SCORE] for part in parts)])
        ended = [follower.push(score) for score in scores.tolist()]
        if ends:
            ended.append(follower.end())
        segments = [Segment(x[0] / facts.rate, x[1] / facts.rate, x[2]) for x in ended if x is not None]
        since = None if follower.start is None else follower.start / facts.rate
        return Voices(spec.kind, None, segments, scores, facts.step / facts.rate, since)

    return follow


VOICES = TaskKind(
    "voices", "when somebody speaks", SOUND, (Head("score", "one number for each row of samples", _is_score, _score),), _answer,
    forms=("frames",),
    settings={"threshold": 0.5, "min_speech": 0.25, "min_silence": 0.1, "pad": 0.03, RATE: None}, live=_live,
)  # fmt: skip
