"""Faces in a picture: the heads of detectors with anchors, which give points beside boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ...tensors.functions.creation import concatenate, tensor
from ...tensors.tensor import Tensor
from ..picture.medium import PICTURE
from ..picture.preparing import Frame
from .base import Asked, Head, Shapes, TaskKind, Tensors
from .boxes import SETTINGS, chosen, corners, findings

OVERLAP: Final = 0.3
_LAYERS: Final[Mapping[tuple[int, int], tuple[tuple[int, int], ...]]] = {
    (128, 128): ((8, 2), (16, 6)),
    (192, 192): ((8, 2), (16, 6)),
    (224, 224): ((8, 2), (16, 2), (32, 6)),
    (256, 256): ((16, 2), (32, 6)),
}
"""The size of such a detector, of faces, palms and people ↦ pairs of a stride and how many anchors each of its cells has."""
_LIMIT: Final = 100.0
"""Scores before the sigmoid are kept within this, as in training."""


def anchors(size: tuple[int, int], layers: tuple[tuple[int, int], ...]) -> np.ndarray:
    """The centres (anchors, 2) of x and y, from 0 to 1, row by row, those of one cell together."""
    found: list[np.ndarray] = []
    for stride, each in layers:
        height, width = (-(-side // stride) for side in size)
        y, x = np.divmod(np.arange(height * width), width)
        centers = np.stack([(x + 0.5) / width, (y + 0.5) / height], axis=1)
        found.append(np.repeat(centers, each, axis=0))
    return np.concatenate(found).astype(np.float32)


def recognise(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, places, 4 + 2 · points) and (1, places, 1); some files have each in parts, one for each stride."""
    regressors = [n for n, s in shapes.items() if len(s) == 3 and s[2] > 4 and s[2] % 2 == 0]
    scores = [n for n, s in shapes.items() if len(s) == 3 and s[2] == 1]
    places = sum(shapes[n][1] for n in regressors)
    layers = _LAYERS.get(asked.size, ())
    if (
        not regressors
        or not layers
        or places != sum(shapes[n][1] for n in scores)
        or len(anchors(asked.size, layers)) != places
    ):
        return None
    order = sorted(regressors, key=lambda n: -shapes[n][1]), sorted(scores, key=lambda n: -shapes[n][1])
    return {"boxes": order[0], "scores": order[1], "layers": [list(layer) for layer in layers]}


def decoded(outputs: Tensors, size: tuple[int, int], options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The boxes, scores and landmarks of all anchors, in pixels of the input."""
    rows = concatenate([outputs[n][0].to(dtype="float32") for n in options["boxes"]], axis=0)
    scores = concatenate([outputs[n][0].to(dtype="float32") for n in options["scores"]], axis=0)
    height, width = size
    sides = tensor(np.array([width, height], np.float32))
    middle = tensor(anchors(size, tuple((a, b) for a, b in options["layers"]))) * sides
    points = rows[:, 4:].reshape(rows.shape[0], -1, 2) + middle.unsqueeze(1)
    return {
        "boxes": corners(rows[:, :2] + middle, rows[:, 2:4]),
        "scores": scores.maximum(-_LIMIT).minimum(_LIMIT).sigmoid(),
        "landmarks": points,
    }


def _blaze(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    return chosen(decoded(outputs, frame.size, options), frame, OVERLAP)


FACES = TaskKind(
    "faces", "faces in a picture, with a box and points for each", PICTURE,
    (Head("blazeface", "BlazeFace: anchors of two strides", recognise, _blaze, {"mean": (127.5,), "std": (127.5,)}),),
    findings, 128, {"fit": "contain", "fill": 0.0}, "face", {**SETTINGS, "threshold": 0.5},
)  # fmt: skip
