"""Detectors that say something of each place of a grid, or of several, the finest first: the YOLOs, NanoDet, PicoDet, CenterNet.

`cells` is how many places a detector has: one for each step of each stride, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ....tensors.functions.creation import concatenate, tensor, where
from ....tensors.tensor import Tensor
from ...picture.preparing import Frame
from ..base import Asked, Shapes, Tensors, only
from .boxes import corners

_STRIDES: Final = (8, 16, 32, 64)
USUAL: Final = (8, 16, 32)
_BINS: Final = 8
"""NanoDet and PicoDet say how far each edge of a box is as chances of 0 to 7 strides."""
_OF_POSE: Final = 4 + 1 + 17 * 3
"""The numbers of a place in a model of people with points, which are no classes: so many want labels."""
_SHARES: Final = 2.0
"""Boxes of which no number is over this are parts of the input, as TensorFlow Lite's have them: others are in pixels."""
_CENTERS: Final = {"scores": ("hm", "heat"), "sides": ("wh", "size"), "offsets": ("reg", "off")}
"""The parts of CenterNet's outputs ↦ what their names begin with."""


def cells(size: tuple[int, int], strides: Sequence[int]) -> np.ndarray:
    """Rows of x, y and stride, (places, 3), in strides: the top left corner of each place."""
    rows: list[np.ndarray] = []
    for stride in strides:
        height, width = (-(-side // stride) for side in size)
        y, x = np.divmod(np.arange(height * width), width)
        rows.append(np.stack([x, y, np.full(height * width, stride)], axis=1))
    return np.concatenate(rows).astype(np.float32)


def strides_of(count: int, size: tuple[int, int]) -> tuple[int, ...] | None:
    """The strides of so many places."""
    for most in (3, 4, 2):
        if len(cells(size, _STRIDES[:most])) == count:
            return _STRIDES[:most]
    return None


def rows_of(shapes: Shapes) -> tuple[int, int] | None:
    """Of one output (1, places, numbers): both."""
    shape = only(shapes)
    return (shape[1], shape[2]) if len(shapes) == 1 and len(shape) == 3 and shape[0] == 1 else None


def have_classes(numbers: int, others: int, asked: Asked) -> bool:
    """Whether a place has `others` numbers, and one for each class."""
    return numbers - others == asked.labels if asked.labels is not None else numbers > others


def sides_of(frame: Frame) -> Tensor:
    """Width, height, width and height of the input."""
    height, width = frame.size
    return tensor(np.array([width, height] * 2, np.float32))


def in_pixels(boxes: Tensor, frame: Frame) -> Tensor:
    """Boxes (places, 4) that are in pixels, or parts of the input, in pixels."""
    return where(boxes.max() <= _SHARES, boxes * sides_of(frame), boxes)


# --- YOLO ---------------------------------------------------------------------------------------------------------------


def split(shapes: Shapes) -> tuple[Shapes, Mapping[str, Any]]:
    """The outputs without the patterns (1, patterns, height, width) of which a place's last numbers make its mask, and options that say which
    these are."""
    patterns = {name: s for name, s in shapes.items() if len(s) == 4 and s[0] == 1}
    if len(patterns) != 1 or len(shapes) != 2:
        return shapes, {"patterns": "", "masks": 0}
    ((name, shape),) = patterns.items()
    last = shape[3] < min(shape[1:3])
    options = {"patterns": name, "masks": shape[3] if last else shape[1], "last": last}
    return {n: s for n, s in shapes.items() if n != name}, options


def masks_of(outputs: Tensors, rows: Tensor, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """Of rows whose last numbers are the shares that patterns have in a mask: what boxes.py makes masks of."""
    if not options["masks"]:
        return {}
    patterns = outputs[options["patterns"]][0]
    return {
        "patterns": patterns.permute(2, 0, 1) if options["last"] else patterns,
        "shares": rows[:, rows.shape[1] - options["masks"] :],
    }


def is_yolo8(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shapes, masks = split(shapes)
    if (rows := rows_of(shapes)) is None or rows[1] <= rows[0] or not have_classes(rows[0], 4 + masks["masks"], asked):
        return None
    if rows[0] == _OF_POSE and asked.labels is None:
        return None
    return {"output": next(iter(shapes)), **masks} if strides_of(rows[1], asked.size) else None


def yolo8(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = outputs[options["output"]][0].permute(1, 0)
    boxes = in_pixels(rows[:, :4], frame)
    scores = rows[:, 4 : rows.shape[1] - options["masks"]]
    return {"boxes": corners(boxes[:, :2], boxes[:, 2:]), "scores": scores, **masks_of(outputs, rows, options)}


def _without_parts(shapes: Shapes) -> Shapes:
    """Without the maps (1, 3, height, width, numbers) of which one output (1, places, numbers) is made, which YOLOv5 and v7 also give."""
    whole = {name: s for name, s in shapes.items() if len(s) != 5}
    return whole if len(whole) == 1 and all(s[-1] == only(whole)[-1] for s in shapes.values()) else shapes


def is_yolo5(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shapes, masks = split(_without_parts(shapes))
    if (rows := rows_of(shapes)) is None or rows[0] % 3 or not have_classes(rows[1], 5 + masks["masks"], asked):
        return None
    return {"output": next(iter(shapes)), **masks} if strides_of(rows[0] // 3, asked.size) else None


def yolo5(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = outputs[options["output"]][0]
    boxes = in_pixels(rows[:, :4], frame)
    scores = rows[:, 4:5] * rows[:, 5 : rows.shape[1] - options["masks"]]
    return {"boxes": corners(boxes[:, :2], boxes[:, 2:]), "scores": scores, **masks_of(outputs, rows, options)}


def is_yolo6(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """It has as many numbers as YOLOX, but another name."""
    return is_yolox(shapes, asked) if asked.chosen or list(shapes) == ["outputs"] else None


def yolo6(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = only(outputs)[0]
    boxes = in_pixels(rows[:, :4], frame)
    return {"boxes": corners(boxes[:, :2], boxes[:, 2:]), "scores": rows[:, 4:5] * rows[:, 5:]}


def is_yolox(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    if (rows := rows_of(shapes)) is None or not have_classes(rows[1], 5, asked):
        return None
    strides = strides_of(rows[0], asked.size)
    return None if strides is None else {"strides": list(strides)}


def yolox(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Places and sides are in strides, the sides as logarithms; or in pixels, where the model decodes them: then the last place's is far from
    the corner."""
    rows, places = only(outputs)[0], cells(frame.size, options["strides"])
    stride = tensor(places[:, 2:])
    decoded = rows[:, :2].max() > min(frame.size) / 2
    center = where(decoded, rows[:, :2], (rows[:, :2] + tensor(places[:, :2])) * stride)
    sides = where(decoded, rows[:, 2:4], rows[:, 2:4].minimum(20.0).exp() * stride)
    return {"boxes": corners(center, sides), "scores": rows[:, 4:5] * rows[:, 5:]}


def is_pair(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Corners (1, places, 4) and scores (1, places, classes) or (1, classes, places)."""
    boxes = next((n for n, s in shapes.items() if len(s) == 3 and s[0] == 1 and s[2] == 4), None)
    scores = next((n for n, s in shapes.items() if n != boxes and len(s) == 3 and s[0] == 1), None)
    if boxes is None or scores is None or len(shapes) != 2 or strides_of(shapes[boxes][1], asked.size) != USUAL:
        return None
    places, (_, first, last) = shapes[boxes][1], shapes[scores]
    if places not in (first, last) or not have_classes(first if last == places else last, 0, asked):
        return None
    return {"boxes": boxes, "scores": scores, "turned": last == places}


def is_upright_pair(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    found = is_pair(shapes, asked)
    return found if found and not found["turned"] else None


def pair(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    scores = outputs[options["scores"]][0]
    return {"boxes": outputs[options["boxes"]][0], "scores": scores.permute(1, 0) if options["turned"] else scores}


# --- chances of distances -----------------------------------------------------------------------------------------------


def is_nanodet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    if (rows := rows_of(shapes)) is None or not have_classes(rows[1], 4 * _BINS, asked):
        return None
    strides = strides_of(rows[0], asked.size)
    if strides is None or (asked.labels is None and rows[1] != 80 + 4 * _BINS):
        return None
    return {"strides": list(strides)}


def is_picodet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """For each stride, (1, places, classes) and (1, places, 32)."""
    if len(shapes) not in (6, 8) or any(len(s) != 3 or s[0] != 1 for s in shapes.values()):
        return None
    strides = _STRIDES[: len(shapes) // 2]
    counts = [len(cells(asked.size, (s,))) for s in strides]
    found = [[name for name, s in shapes.items() if s[1] == count] for count in counts]
    pairs = [sorted(names, key=lambda n: shapes[n][2] == 4 * _BINS) for names in found]
    if any(len(two) != 2 or shapes[two[1]][2] != 4 * _BINS for two in pairs):
        return None
    classes = {shapes[two[0]][2] for two in pairs}
    if len(classes) != 1 or asked.labels not in (None, *classes):
        return None
    scores, edges = zip(*pairs, strict=True)
    return {"strides": list(strides), "scores": list(scores), "edges": list(edges)}


def _around(edges: Tensor, center: Tensor, stride: Tensor) -> Tensor:
    """Boxes by how far their edges are from their centres, as chances (places, 4 · bins)."""
    far = (edges.reshape(-1, 4, _BINS).softmax(2) * tensor(np.arange(_BINS, dtype=np.float32))).sum(2)
    return concatenate([center - far[:, :2] * stride, center + far[:, 2:] * stride], axis=1)


def nanodet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows, places = only(outputs)[0], cells(frame.size, options["strides"])
    classes = rows.shape[1] - 4 * _BINS
    stride = tensor(places[:, 2:])
    # The first NanoDet has its places in the middle of their cells; NanoDet-Plus, which has four strides, at the corner.
    center = tensor(places[:, :2] + (0.5 if len(options["strides"]) == 3 else 0.0)) * stride
    return {"boxes": _around(rows[:, classes:], center, stride), "scores": rows[:, :classes]}


def picodet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    scores, edges = (concatenate([outputs[n][0] for n in options[of]], axis=0) for of in ("scores", "edges"))
    places = cells(frame.size, options["strides"])
    stride = tensor(places[:, 2:])
    return {"boxes": _around(edges, tensor(places[:, :2] + 0.5) * stride, stride), "scores": scores}


# --- CenterNet ----------------------------------------------------------------------------------------------------------


def is_centernet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Maps (1, classes, height, width), of sides and of offsets (1, 2, height, width)."""
    found = {part: next((n for n in shapes if n.lower().startswith(words)), None) for part, words in _CENTERS.items()}
    if len(shapes) != 3 or None in found.values():
        return None
    maps = {part: shapes[str(name)] for part, name in found.items()}
    fits = all(len(s) == 4 and s[0] == 1 and s[2:] == maps["scores"][2:] for s in maps.values())
    if not fits or maps["sides"][1] != 2 or maps["offsets"][1] != 2 or not have_classes(maps["scores"][1], 0, asked):
        return None
    stride = asked.size[1] / maps["scores"][3] if maps["scores"][3] else 0
    return {**found, "stride": stride} if stride * maps["scores"][2] == asked.size[0] else None


def centernet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """A class is found where a map is at least as high as at the eight places around."""
    heat, sides, offsets = (outputs[options[part]] for part in _CENTERS)
    are = (heat.min() >= 0.0) & (heat.max() <= 1.0)
    heat = where(are, heat, heat.sigmoid())
    top = where(heat == heat.max_pool2d(3, stride=1, padding=1), heat, 0.0)
    classes, height, width = top.shape[1:]
    y, x = np.divmod(np.arange(height * width), width)
    places = tensor(np.stack([x, y], axis=1).astype(np.float32))
    offsets, sides = (part[0].reshape(2, -1).permute(1, 0) for part in (offsets, sides))
    boxes = corners(places + offsets, sides) * options["stride"]
    return {"boxes": boxes, "scores": top[0].reshape(classes, -1).permute(1, 0)}
