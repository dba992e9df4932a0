"""Detectors whose boxes are parts of the input, or distances from anchors: SSD, EfficientDet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ....tensors.functions.creation import concatenate, tensor, where
from ....tensors.tensor import Tensor
from ...picture.preparing import Frame
from ..base import Asked, Shapes, Tensors
from .boxes import corners
from .grids import USUAL, cells, sides_of

_MOST_QUERIES: Final = 2000
_STRIDES: Final = (8, 16, 32, 64, 128)
_OCTAVES: Final = 3
_ASPECTS: Final = ((1.0, 1.0), (1.4, 0.7), (0.7, 1.4))
"""Of EfficientDet's anchors: width and height."""
_SCALES: Final = {320: 3.0, 384: 3.0, 448: 3.0, 1536: 5.0}
_SCALE: Final = 4.0
"""The side of EfficientDet's smallest anchor in strides, and of those of some sizes of pictures: Lite0, Lite1, Lite2 and D7."""
_CLASSES: Final = 90
"""Of COCO, as EfficientDet counts them. RetinaNet has as many anchors, others, and 80 or 91."""
_RAW: Final = (1917, 2034, 3234, 8732, 12804, 24564, 51150)
"""How many anchors SSDs have that leave boxes encoded: they are no parts of the input."""


def pair_of(shapes: Shapes) -> tuple[str | None, str | None]:
    """Of outputs (1, places, 4) and (1, places, classes): their names."""
    three = {name: s for name, s in shapes.items() if len(s) == 3 and s[0] == 1}
    boxes = next((n for n, s in three.items() if s[2] == 4 and ("box" in n.lower() or len(three) == 2)), None)
    places = three[boxes][1] if boxes else -1
    return boxes, next((n for n, s in three.items() if n != boxes and s[1] == places and s[2] > 1), None)


def is_ssd(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    boxes, scores = pair_of(shapes)
    if boxes is None or scores is None:
        return None
    places = shapes[boxes][1]
    others = (*_RAW, _anchors(asked.size), len(cells(asked.size, USUAL)))
    if places <= _MOST_QUERIES or places in others or asked.labels not in (None, shapes[scores][2] - 1):
        return None
    return {"boxes": boxes, "scores": scores}


def ssd(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    return {"boxes": outputs[options["boxes"]][0] * sides_of(frame), "scores": outputs[options["scores"]][0][:, 1:]}


def _anchors(size: tuple[int, int]) -> int:
    return _OCTAVES * len(_ASPECTS) * len(cells(size, _STRIDES))


def is_efficientdet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    boxes, scores = pair_of(shapes)
    if boxes is None or scores is None or shapes[boxes][1] != _anchors(asked.size):
        return None
    classes = shapes[scores][2]
    if asked.labels not in (None, classes) or not (classes == _CLASSES or asked.chosen):
        return None
    return {"boxes": boxes, "scores": scores, "scale": _SCALES.get(max(asked.size), _SCALE)}


def efficientdet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Rows of y, x, and of height and width as logarithms, in sides of their anchors."""
    rows, scores = outputs[options["boxes"]][0], outputs[options["scores"]][0]
    places = cells(frame.size, _STRIDES)
    sides = np.array([[2 ** (k / _OCTAVES) * w, 2 ** (k / _OCTAVES) * h] for k in range(_OCTAVES) for w, h in _ASPECTS])
    anchor = (places[:, 2:, None] * options["scale"] * sides).reshape(-1, 2).astype(np.float32)
    middle = np.repeat((places[:, :2] + 0.5) * places[:, 2:], len(sides), axis=0)
    shift, grow = (concatenate([rows[:, k + 1 : k + 2], rows[:, k : k + 1]], axis=1) for k in (0, 2))
    center = shift * tensor(anchor) + tensor(middle.astype(np.float32))
    are = (scores.min() >= 0.0) & (scores.max() <= 1.0)
    return {
        "boxes": corners(center, grow.minimum(20.0).exp() * tensor(anchor)),
        "scores": where(are, scores, scores.sigmoid()),
    }
