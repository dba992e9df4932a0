"""What is said of a whole text, or of two: its classes, whether a statement follows from it, how well it answers a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...tensors.tensor import Tensor
from ..answers import Arrays, Finding, Findings
from ..spec import TaskSpec
from ..text.medium import TEXT, Asking, Reading, TextFrame, text_of
from .base import Asked, Head, Shapes, TaskKind, Tensors, only

HYPOTHESIS: Final = "This example is {}."


def _is_row(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """One output (texts, classes)."""
    shape = only(shapes)
    return {} if len(shape) == 2 and asked.labels in (None, shape[1]) else None


def _classes(chances: Callable[[Tensor], Tensor]) -> Any:
    def decode(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"scores": chances(only(outputs).to(dtype="float32"))}

    return decode


def _ranked(
    kind: str, scores: np.ndarray, labels: Sequence[str], settings: Mapping[str, Any], windows: int
) -> Findings:
    top = settings["top"]
    if type(top) is not int or top < 0:
        raise InputError(f"{kind}: top is {top!r:.40}, expected how many to give; 0 gives all")
    order = np.argsort(-scores, kind="stable")[: top or None]
    return Findings(kind, None, [Finding(str(labels[k]), float(scores[k]), int(k)) for k in order], windows=windows)


def _said(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    return [Asking(text_of(source))]


def _of_text(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> Findings:
    scores = reading.mean(outputs["scores"])
    return _ranked(spec.kind, scores, [spec.label(k) for k in range(scores.size)], settings, reading.windows)


# --- a text, and statements of it -------------------------------------------------------------------------------------


def texts_of(kind: str, name: str, settings: Mapping[str, Any]) -> Sequence[str]:
    """The texts of a setting."""
    given: Any = settings[name]
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not given
        or not all(isinstance(x, str) for x in given)
    ):
        raise InputError(f'{kind}: {name} is {given!r:.60}, expected a list of texts, such as {name}=["…", "…"]')
    return given


def _judges(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """A model that says whether a text entails another names its classes so; otherwise they stand as most have them."""
    shape = only(shapes)
    names = [name.lower() for name in asked.names]
    entails = next((k for k, name in enumerate(names) if name.startswith("entail")), None)
    if len(shape) != 2 or entails is None or shape[1] not in (2, 3):
        return None
    contradicts = next(
        (k for k, name in enumerate(names) if name.startswith(("contra", "not"))),
        1 - entails if shape[1] == 2 else None,
    )
    return None if contradicts is None else {"entails": entails, "contradicts": contradicts}


def _judged(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    row = only(outputs).to(dtype="float32")
    return {name: row[:, int(options[name])] for name in ("entails", "contradicts")}


def _statements(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    form = settings["hypothesis"]
    if not isinstance(form, str) or "{}" not in form:
        raise InputError(f"{spec.kind}: hypothesis is {form!r:.60}, expected a text with {{}} where a label stands")
    return [Asking(text_of(source), form.replace("{}", label)) for label in texts_of(spec.kind, "labels", settings)]


def _follow(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> Findings:
    """Of labels of which one is right, the chances of what follows; with `several`, whether each follows or its contrary."""
    count = len(reading.questions)
    yes, no = (np.array([reading.mean(outputs[name], k) for k in range(count)]) for name in ("entails", "contradicts"))
    scores = (
        1 / (1 + np.exp(no - yes)) if settings["several"] else np.exp(yes - yes.max()) / np.exp(yes - yes.max()).sum()
    )
    return _ranked(spec.kind, scores, settings["labels"], {"top": 0}, reading.windows)


# --- a question, and texts that may answer it -------------------------------------------------------------------------


def _is_score(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shape = only(shapes)
    return {} if len(shape) in (1, 2) and (len(shape) == 1 or shape[1] in (1, 2)) else None


def _score(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    row = only(outputs).to(dtype="float32")
    if len(row.shape) == 1:
        return {"scores": row.sigmoid()}
    return {"scores": row[:, 0].sigmoid() if row.shape[1] == 1 else row.softmax(1)[:, 1]}


def _pairs(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    return [Asking(text_of(source), document) for document in texts_of(spec.kind, "documents", settings)]


def _answers(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> Findings:
    """A long document is as good as its best part."""
    scores = np.zeros(len(reading.questions))
    for row, score in zip(reading.rows, outputs["scores"], strict=True):
        scores[row.question] = max(scores[row.question], float(score))
    return _ranked(spec.kind, scores, settings["documents"], settings, reading.windows)


CLASSIFY_TEXT: Final = TaskKind(
    "classify-text", "the classes of a text", TEXT,
    (Head("one", "scores of classes, of which one is right, (texts, classes)", _is_row, _classes(lambda row: row.softmax(1))),
     Head("several", "scores of classes, of which several may be right", _is_row, _classes(lambda row: row.sigmoid()))),
    _of_text, 512, labels="config.json", settings={"top": 5}, asks=_said, network="text",
)  # fmt: skip
ZERO_SHOT: Final = TaskKind(
    "zero-shot", "which labels of the caller's own a text has", TEXT,
    (Head("entailment", "scores of entailment and its contrary, (pairs of texts, 2 or 3), with labels that say so", _judges, _judged),),
    _follow, 512, labels="config.json", settings={"labels": (), "hypothesis": HYPOTHESIS, "several": False}, asks=_statements,
    network="text",
)  # fmt: skip
RERANK: Final = TaskKind(
    "rerank", "how well texts answer a question, the best first", TEXT,
    (Head("score", "one score, or two classes, of each pair of texts", _is_score, _score),),
    _answers, 512, settings={"documents": (), "top": 0}, asks=_pairs, network="text",
)  # fmt: skip
