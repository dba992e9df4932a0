"""Whose voice a sound is, as a vector to compare with others; and who spoke when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from ....errors import InputError
from ....tensors.tensor import Tensor
from ...answers import Answer, Arrays, TaskVector
from ...sound.answers import SpeakerTurn, SpeakerTurns
from ...sound.forms import SoundFrame
from ...sound.medium import RATE, SOUND
from ...sound.speakers import turns_of, windows_of
from ...spec import TaskSpec
from ..base import Asked, Head, Shapes, TaskKind, Tensors, only

VECTORS = "vectors"


def _is_vector(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    return {} if len(only(shapes)) == 2 else None


def _vectors(outputs: Tensors, frame: SoundFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """Of length 1."""
    x = only(outputs).to(dtype="float32")
    return {VECTORS: x / (x * x).sum(1, keepdims=True).sqrt().maximum(1e-12)}


def _heard(outputs: Arrays, spec: TaskSpec, sound: Any) -> np.ndarray:
    """The vectors of the windows that the sound fills."""
    if not len(sound.samples):
        raise InputError(f"{spec.kind}: the sound is empty; expected a voice")
    return outputs[VECTORS][: windows_of(len(sound.samples), spec.preparation)]


def _voice(outputs: Arrays, spec: TaskSpec, sound: Any, settings: Mapping[str, Any]) -> TaskVector:
    vectors = _heard(outputs, spec, sound)
    mean = vectors.mean(0)
    return TaskVector(spec.kind, None, mean / max(float(np.linalg.norm(mean)), 1e-12), len(vectors))


def _said(outputs: Arrays, spec: TaskSpec, sound: Any, settings: Mapping[str, Any]) -> SpeakerTurns:
    given, threshold, count = settings["segments"], settings["threshold"], settings["count"]
    if type(threshold) not in (int, float) or not -1 <= threshold <= 1 or type(count) is not int or count < 0:
        raise InputError(
            f"{spec.kind}: threshold {threshold!r:.40} and count {count!r:.40}, expected a cosine, and how many speak, 0 if it is unknown"
        )
    seconds = len(sound.samples) / spec.preparation.rate
    segments = [(0.0, seconds)] if given is None else [_segment(spec.kind, x) for x in given]
    turns = turns_of(_heard(outputs, spec, sound), segments, seconds, spec.preparation, threshold, count)
    return SpeakerTurns(spec.kind, None, [SpeakerTurn(*turn) for turn in turns], sound)


def _segment(kind: str, segment: Any) -> tuple[float, float]:
    """Of an answer of voices, a dict, or a pair."""
    try:
        start, end = (
            (segment["start"], segment["end"]) if isinstance(segment, Mapping)
            else (segment.start, segment.end) if hasattr(segment, "start") else segment
        )  # fmt: skip
        times = float(start), float(end)
        if all(map(isfinite, times)):
            return times
        raise ValueError(segment)
    except (KeyError, TypeError, ValueError) as e:
        raise InputError(
            f'{kind}: a segment {segment!r:.60}, expected those of sg.task("voices"), or pairs of seconds'
        ) from e


_HEADS = (Head("vector", "a vector for each row, (rows, width)", _is_vector, _vectors),)


def _kind(
    name: str, about: str, answer: Callable[[Arrays, TaskSpec, Any, Mapping[str, Any]], Answer], settings: Mapping[str, Any]
) -> TaskKind:  # fmt: skip
    return TaskKind(
        name, about, SOUND, _HEADS, answer, forms=("voice bands",), settings={**settings, RATE: None}, network="speaker"
    )


SPEAKER = _kind("speaker", "whose voice it is, as a vector to compare with others", _voice, {})
SPEAKERS = _kind("speakers", "who spoke when", _said, {"segments": None, "threshold": 0.65, "count": 0})
