"""Tasks that say one thing of a whole picture: its classes, or a vector of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...tensors.functions.creation import where
from ...tensors.tensor import Tensor
from ..answers import Arrays, Finding, Findings, TaskVector
from ..picture.medium import PICTURE
from ..picture.preparing import Frame
from ..spec import TaskSpec
from .base import SCORE_WORDS, Asked, Head, Shapes, TaskKind, Tensors, shorn

_WHOLE: Final = ("image_embed", "embeds", "pooler", "pooled")
"""Words in the name of an output that is one vector of the whole picture."""

_NEAR: Final = 1e-3
_FAR: Final = 0.5
"""How far from 1 the sum of chances may be, and of chances that were rounded."""


def _row(shapes: Shapes, asked: Asked) -> str | None:
    """The output that is a row of scores: the only one, or of several that which labels, a softmax, a sigmoid or its name say to be scores.
    Without these, as in a model of landmarks, the first row is taken if the head is chosen by its name."""
    rows = [name for name, shape in shapes.items() if _is_row(shape, asked)]
    if len(shapes) == 1 or asked.labels or not rows:
        return next(iter(rows), None)
    told = asked.softmaxes | asked.sigmoids
    said = [name for name in rows if name in told or any(word in name.lower() for word in SCORE_WORDS)]
    return next(iter(said or (rows if asked.chosen else ())), None)


def _is_row(shape: tuple[int, ...], asked: Asked) -> bool:
    shape = shorn(shape)
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return len(shape) == 1 and shape[0] > 1 and asked.labels in (None, *shape)


def _are_scores(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """The chances of a thousand classes that are rounded to 8 bits may be far from 1 together."""
    row = _row(shapes, asked)
    return None if row is None else {"output": row, "far": _FAR if row in asked.rounded else _NEAR}


def _are_each(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """A sigmoid says that classes do not exclude each other; otherwise the caller must."""
    row = _row(shapes, asked)
    return {"output": row} if row is not None and (asked.chosen or row in asked.sigmoids) else None


def _each(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    row = outputs[options["output"]].reshape(-1).to(dtype="float32")
    are = (row.min() >= 0.0) & (row.max() <= 1.0)
    return {"scores": where(are, row, row.sigmoid())}


def _scores(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The probabilities of the classes: what is not positive and 1 together goes through a softmax."""
    row = outputs[options["output"]].reshape(-1).to(dtype="float32")
    are = (row.min() >= 0.0) & ((row.sum() - 1.0).abs() < options["far"])
    return {"scores": where(are, row, row.softmax(0))}


def _classes(outputs: Arrays, spec: TaskSpec, picture: np.ndarray, settings: Mapping[str, Any]) -> Findings:
    scores = outputs["scores"]
    if not isinstance(settings["top"], int) or settings["top"] < 1:
        raise InputError(f"classify: top is {settings['top']!r}, expected how many classes to give, 1 or more")
    order = np.argsort(-scores, kind="stable")[: settings["top"]]
    return Findings(spec.kind, picture, [Finding(spec.label(int(k)), float(scores[k]), int(k)) for k in order])


def _is_vector(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """The output that is called a vector of the whole picture, or the first one."""
    output = next((name for word in _WHOLE for name in shapes if word in name.lower()), next(iter(shapes)))
    shape = shapes[output]
    return {"output": output} if len(shorn(shape)) <= 3 and len(shape) >= 2 else None


def _is_places(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    output = next((name for name, s in shapes.items() if len(s) == 3 and s[0] == 1 and s[1] > 1), None)
    return {"output": output} if output and asked.chosen else None


def _first(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return _vector({options["output"]: outputs[options["output"]][:, :1]}, frame, options)


def _vector(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The mean over places (1, places, width) or (1, width, height, width), of length 1."""
    x = outputs[options["output"]].to(dtype="float32")
    if len(x.shape) == 4:
        x = x.reshape(x.shape[1], -1).mean(1)
    elif len(x.shape) == 3:
        x = x.reshape(-1, x.shape[2]).mean(0)
    x = x.reshape(-1)
    return {"vector": x / (x * x).sum().sqrt().maximum(1e-12)}


def _embedding(outputs: Arrays, spec: TaskSpec, picture: np.ndarray, settings: Mapping[str, Any]) -> TaskVector:
    return TaskVector(spec.kind, picture, outputs["vector"])


SCORES = Head(
    "scores",
    "one row of scores, (1, classes), which of several outputs labels, a softmax, a name such as logits, or the choice of this head say to be it",
    _are_scores,
    _scores,
)
EACH = Head(
    "each",
    "scores of classes that do not exclude each other: of a sigmoid, or where it is chosen by its name",
    _are_each,
    _each,
)
VECTOR = Head("vector", "a vector (1, width), or the mean of one for each place", _is_vector, _vector)
FIRST = Head("first", "vectors of places, of which the first is taken, if it is chosen by its name", _is_places, _first)

CLASSIFY = TaskKind(
    "classify", "what a picture shows", PICTURE, (EACH, SCORES), _classes, preparation={"filter": "cubic", "crop": 0.875}, labels="imagenet",
    settings={"top": 5}, varied=True,
)  # fmt: skip
EMBED_IMAGE = TaskKind(
    "embed-image",
    "a picture as a vector, to compare with others",
    PICTURE,
    (VECTOR, FIRST),
    _embedding,
    preparation={"filter": "cubic"},
    varied=True,
)
