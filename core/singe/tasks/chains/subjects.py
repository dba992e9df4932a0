"""What landmarks are found of: hands, faces, people. A row says how a detector's find becomes the region that the model of points sees,
what that model gives, and where the region lies in the next frame.

A region is a square that may be turned: x and y of its centre, and x and y of the way along its upper edge, in pixels of the picture. A
detector gives boxes (finds, 4), of two corners, and points (finds, points, 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...graph import Graph
from ...late_dataclass import dataclass
from ...shapes import show
from ...tensors.functions.creation import arange, concatenate, stack, tensor, where
from ...tensors.tensor import Tensor

_LEAST: Final = 1e-6
"""A way that is shorter has no direction."""
_HAND_DEPTH: Final = 0.4
"""Hands' depths are parts of the input's side, times this."""
_PALM: Final = (0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18)
"""The points of a hand that move least: all but the tips of the fingers, and what is next to them."""
_KERNEL: Final = 7
"""The side of the part of a heat map that is looked at around a point."""
_CONFIDENT: Final = 0.5
"""The least value there by which a point is moved."""

Values = Mapping[str, Tensor]


@dataclass(frozen=True)
class Subject:
    """label: its name. detector: places and numbers of the detector's output. points: how many numbers the first output of the model of
    points has. around: mean and deviation of the detector's pixels. first: regions (finds, 4), of boxes and points. decode: of the outputs
    of the model of points and the side of its input: `points` (points, 3 or 4) in pixels of the input, of x, y, z and visibility, `score`,
    and what else the answer has. shown: how many points the answer has. next: the region, of all points (points, 2) in the picture. joints: pairs
    of points with a line between them."""

    label: str
    detector: tuple[int, int]
    points: int
    around: tuple[float, float]
    first: Callable[[Tensor, Tensor], Tensor]
    decode: Callable[[Sequence[Tensor], int], Values]
    shown: int
    next: Callable[[Tensor], Tensor]
    joints: Sequence[tuple[int, int]] = field(default=())


def _way(start: Tensor, end: Tensor) -> Tensor:
    """The direction (…, 2) from one point to another."""
    far = end - start
    return far / (far * far).sum(-1, keepdims=True).sqrt().maximum(_LEAST)


def _right_of(up: Tensor) -> Tensor:
    """The direction to the right of one that goes up."""
    return stack([-up[..., 1], up[..., 0]], -1)


def _down_from(along: Tensor) -> Tensor:
    return stack([-along[..., 1], along[..., 0]], -1)


def _region(center: Tensor, along: Tensor, side: Tensor) -> Tensor:
    """center, along (…, 2), side (…, 1) ↦ (…, 4)."""
    return concatenate([center, along * side], axis=-1)


def _box(boxes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The centres (finds, 2), the longer sides and the heights (finds, 1) of boxes."""
    sides = boxes[:, 2:] - boxes[:, :2]
    return (boxes[:, :2] + boxes[:, 2:]) / 2.0, sides.amax(1, keepdims=True), sides[:, 1:]


# --- hands ------------------------------------------------------------------------------------------------------------


def _hand_first(boxes: Tensor, points: Tensor) -> Tensor:
    """The palm's box, moved towards the fingers: up is from the wrist to the middle finger."""
    center, side, height = _box(boxes)
    along = _right_of(_way(points[:, 0], points[:, 2]))
    return _region(center - _down_from(along) * (height * 0.5), along, side * 2.6)


def _hand_decode(outputs: Sequence[Tensor], side: int) -> Values:
    points = outputs[0].reshape(-1, 3)
    points = concatenate([points[:, :2], points[:, 2:] / _HAND_DEPTH], axis=1)
    return {"points": points, "score": outputs[1].reshape(1), "right": outputs[2].reshape(1)}


def _hand_next(points: Tensor) -> Tensor:
    """Around the palm, as the hand is turned: up is from the wrist to between the fingers' roots."""
    palm = points.take(tensor(np.array(_PALM, np.int32)), axis=0)
    roots = ((points[5] + points[13]) / 2.0 + points[9]) / 2.0
    along = _right_of(_way(points[0], roots))
    ways = [along, _down_from(along)]
    places = [(palm * way).sum(1) for way in ways]
    ends = [(x.amin(0, keepdims=True), x.amax(0, keepdims=True)) for x in places]
    center = ways[0] * ((ends[0][0] + ends[0][1]) / 2.0) + ways[1] * ((ends[1][0] + ends[1][1]) / 2.0)
    width, height = (high - low for low, high in ends)
    return _region(center - ways[1] * (height * 0.1), along, width.maximum(height) * 2.0)


# --- faces ------------------------------------------------------------------------------------------------------------


def _face_first(boxes: Tensor, points: Tensor) -> Tensor:
    """The face's box, turned so that its eyes are level."""
    center, side, _ = _box(boxes)
    return _region(center, _way(points[:, 0], points[:, 1]), side * 1.5)


def _face_decode(outputs: Sequence[Tensor], side: int) -> Values:
    return {"points": outputs[0].reshape(-1, 3), "score": outputs[1].reshape(1).sigmoid()}


def _face_next(points: Tensor) -> Tensor:
    """Around all points, turned as the outer corners of the eyes are."""
    low, high = points.amin(0), points.amax(0)
    side = (high - low).amax(0, keepdims=True)
    return _region((low + high) / 2.0, _way(points[33], points[263]), side * 1.5)


# --- people -----------------------------------------------------------------------------------------------------------


def _around(center: Tensor, edge: Tensor) -> Tensor:
    """Around the hips' centre, through a point above the head: up is where that is."""
    far = edge - center
    length = (far * far).sum(-1, keepdims=True).sqrt()
    return _region(center, _right_of(far / length.maximum(_LEAST)), length * 2.5)


def _person_first(boxes: Tensor, points: Tensor) -> Tensor:
    return _around(points[:, 0], points[:, 1])


def _person_decode(outputs: Sequence[Tensor], side: int) -> Values:
    rows = outputs[0].reshape(-1, 5)
    maps = outputs[3][0]
    places = _refined(rows[:, :2] * (maps.shape[0] / side), maps) * (side / maps.shape[0])
    points = concatenate([places, rows[:, 2:3], rows[:, 3:4].sigmoid()], axis=1)
    return {"points": points, "score": outputs[1].reshape(1)}


def _refined(places: Tensor, maps: Tensor) -> Tensor:
    """Points (points, 2) in a heat map, at the centre of what their maps (height, width, points) have near them, where that is clear."""
    height, width, count = maps.shape
    ends = (width, height)
    near = [places[:, axis].floor() for axis in (0, 1)]
    inside = (near[0] >= 0.0) & (near[0] < width) & (near[1] >= 0.0) & (near[1] < height)
    offsets = range(-(_KERNEL // 2), _KERNEL // 2 + 1)
    lines = [
        stack([near[axis] + float(k) for k in offsets]) for axis in (0, 1)
    ]  # (kernel, points) of columns, and of rows
    valid = [(x >= 0.0) & (x < end) for x, end in zip(lines, ends, strict=True)]
    column, row = (x.maximum(0.0).minimum(end - 1.0).to(dtype="int32") for x, end in zip(lines, ends, strict=True))
    own = arange(count).to(dtype="int32")
    index = (row.unsqueeze(1) * width + column.unsqueeze(0)) * count + own
    chance = maps.reshape(-1).take(index, axis=0).sigmoid()
    chance = chance * (valid[1].unsqueeze(1) & valid[0].unsqueeze(0)).to(dtype="float32")
    total = chance.sum((0, 1))
    clear = inside & (chance.amax((0, 1)) >= _CONFIDENT)
    middle = [
        (chance * line).sum((0, 1)) / total.maximum(_LEAST) for line in (lines[0].unsqueeze(0), lines[1].unsqueeze(1))
    ]
    return stack([where(clear, middle[axis], places[:, axis]) for axis in (0, 1)], -1)


def _person_next(points: Tensor) -> Tensor:
    return _around(points[33], points[34])


_FINGERS: Final = tuple(
    pair for root in (1, 5, 9, 13, 17) for pair in ((root, root + 1), (root + 1, root + 2), (root + 2, root + 3))
)
_HAND: Final = (*_FINGERS, (0, 1), (0, 5), (5, 9), (9, 13), (13, 17), (0, 17))
_FACE_LINES: Final = ((10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152, 148, 176, 149, 150,
    136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109, 10), (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160,
    161, 246, 33), (263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466, 263), (61, 146, 91, 181, 84, 17, 314,
    405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185, 61))  # fmt: skip
"""The outline of a face, its eyes and its mouth."""
_BODY_LINES: Final = ((8, 6, 5, 4, 0, 1, 2, 3, 7), (9, 10), (12, 11, 13, 15, 17, 19, 15, 21), (12, 14, 16, 18, 20, 16, 22), (12, 24, 23, 11),
    (24, 26, 28, 30, 32, 28), (23, 25, 27, 29, 31, 27))  # fmt: skip


def _pairs(lines: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple(pair for line in lines for pair in pairwise(line))


SUBJECTS: Final = (
    Subject("hand", (2016, 18), 63, (0.0, 255.0), _hand_first, _hand_decode, 21, _hand_next, _HAND),
    Subject("face", (896, 16), 1404, (127.5, 127.5), _face_first, _face_decode, 468, _face_next, _pairs(_FACE_LINES)),
    Subject("person", (2254, 12), 195, (127.5, 127.5), _person_first, _person_decode, 33, _person_next, _pairs(_BODY_LINES)),
)  # fmt: skip


def detected(graph: Graph) -> Subject:
    """What a detector finds, by its outputs."""
    shapes = [x.shape for x in graph.outputs]
    found = next((s for s in SUBJECTS if (1, *s.detector) in shapes), None)
    return found or _refuse("a detector", graph, [show((1, *s.detector)) for s in SUBJECTS])


def seen(graph: Graph) -> Subject:
    """What a model has points of, by its first output."""
    own: Any = graph.outputs[0].shape
    sizes = [d for d in own if d != 1]
    found = next((s for s in SUBJECTS if sizes == [s.points]), None)
    return found or _refuse("a model of points", graph, [f"{s.points} numbers" for s in SUBJECTS])


def _refuse(what: str, graph: Graph, expected: Sequence[str]) -> Subject:
    told = ", ".join(f"{name} {show(x.shape)}" for name, x in zip(graph.output_names, graph.outputs, strict=True))
    raise InputError(
        f"landmarks: {what} gives {' or '.join(expected)}, of {', '.join(s.label for s in SUBJECTS)}; this one gives {told}"
    )
