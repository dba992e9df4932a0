"""Parts of a text that have labels of the caller's own, by a model that scores spans of words for each label, as GLiNER."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...tensors.tensor import Tensor
from ..answers import Arrays, Entities, Entity
from ..spec import TaskSpec
from ..text.medium import BY_WORD, TEXT, Asking, Reading, TextFrame, text_of
from ..text.spans import SPANS
from .base import Asked, Head, Shapes, TaskKind, Tensors, only
from .text_classes import texts_of

SCORES: Final = f"{BY_WORD}spans"


def _are_spans(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """One output (texts, words, spans, labels)."""
    return {} if len(only(shapes)) == 4 and asked.labels is None else None


def _scores(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return {SCORES: only(outputs).to(dtype="float32").sigmoid()}


def _labelled(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    return [Asking(text_of(source), labels=texts_of(spec.kind, "labels", settings))]


def _found(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> Entities:
    """The spans over the threshold, the likeliest first, without those that overlap one before, in the order of the text."""
    threshold, labels = settings["threshold"], settings["labels"]
    if not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise InputError(f"{spec.kind}: threshold is {threshold!r:.40}, expected a score from 0 to 1")
    text, words = reading.questions[0].text, reading.spans[0]
    found: list[tuple[float, int, int, int]] = []
    for row, scores in zip(reading.rows, outputs.get(SCORES, ()), strict=True):
        if scores.shape[1:] != (spec.preparation.width, len(labels)):
            raise InputError(
                f"{spec.kind}: the model has scores {scores.shape} of {len(labels)} labels, expected (words, {spec.preparation.width}, {len(labels)})"
            )
        for first, more, label in np.argwhere(scores[: row.count] > threshold).tolist():
            if first + more < row.count:
                found.append((float(scores[first, more, label]), row.start + first, row.start + first + more, label))
    taken = np.zeros(len(words), bool)
    items: list[Entity] = []
    for score, first, last, label in sorted(found, key=lambda span: (-span[0], *span[1:])):
        if not taken[first : last + 1].any():
            taken[first : last + 1] = True
            begin, end = words[first][0], words[last][1]
            items.append(Entity(labels[label], score, text[begin:end], begin, end))
    return Entities(spec.kind, None, sorted(items, key=lambda item: item.start), reading.windows)


ZERO_SHOT_TAG: Final = TaskKind(
    "zero-shot-tag", "parts of a text that have labels of the caller's own", TEXT,
    (Head("spans", "scores of labels for spans of words, (texts, words, spans, labels)", _are_spans, _scores),),
    _found, 512, settings={"labels": (), "threshold": 0.5}, asks=_labelled, forms=(SPANS,),
)  # fmt: skip
