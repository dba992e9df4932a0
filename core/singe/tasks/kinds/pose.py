"""People in a picture, with the points of each: detectors that give points beside boxes, and models that see one person.

Points are (points, 4): x, y, a z of 0, since these models know no depth, and how sure the model is that the point is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...tensors.functions.creation import concatenate, stack, where
from ...tensors.tensor import Tensor
from ..picture.medium import PICTURE
from ..picture.preparing import Frame
from .base import Asked, Head, Shapes, TaskKind, Tensors, only, shorn
from .detectors.boxes import KEEPS_ALL, MOST_BOXES, SETTINGS, corners, findings, suppressed
from .detectors.grids import in_pixels, rows_of, strides_of

_COCO: Final = 17
"""The points of a person in COCO: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles, each left before right."""
JOINTS: Final = (
    (0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12), (11, 12), (11, 13), (13, 15), (12, 14), (14, 16),
)  # fmt: skip
_NUMBERS: Final = 3
_SEEN: Final = 0.2
"""The box of one person is around its points over this score."""
_SPLIT: Final = 2
"""SimCC has so many chances for each pixel."""


def _facts(points: int) -> dict[str, Any]:
    return {"points": points, "joints": [list(pair) for pair in JOINTS] if points == _COCO else []}


def _count(numbers: int) -> int:
    """How many points of three numbers these are; 0 if they may be points of two."""
    return numbers // _NUMBERS if numbers > 0 and numbers % _NUMBERS == 0 and numbers % 2 else 0


def _points(values: Tensor, count: int) -> Tensor:
    """(people, points, 4), of rows of x, y and how sure."""
    found = values.reshape(-1, count, _NUMBERS)
    return concatenate([found[..., :2], found[..., :1] * 0.0, found[..., 2:]], axis=2)


# --- detectors with points ----------------------------------------------------------------------------------------------


def _is_yolo8(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    rows = rows_of(shapes)
    count = _count(rows[0] - 5) if rows else 0
    return _facts(count) if rows and count and rows[1] > rows[0] and strides_of(rows[1], asked.size) else None


def _yolo8(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = only(outputs)[0].permute(1, 0)
    return {
        "boxes": corners(rows[:, :2], rows[:, 2:4]),
        "scores": rows[:, 4:5],
        "landmarks": _points(rows[:, 5:], options["points"]),
    }


def _is_yolo7(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    rows = rows_of(shapes)
    count = _count(rows[1] - 6) if rows else 0
    fits = rows and count and rows[0] % 3 == 0 and strides_of(rows[0] // 3, asked.size)
    return _facts(count) if fits else None


def _yolo7(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = only(outputs)[0]
    return {
        "boxes": corners(rows[:, :2], rows[:, 2:4]),
        "scores": rows[:, 4:5] * rows[:, 5:6],
        "landmarks": _points(rows[:, 6:], options["points"]),
    }


def _is_list(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    rows = rows_of(shapes)
    count = _count(rows[1] - 6) if rows and rows[0] <= MOST_BOXES and not strides_of(rows[1], asked.size) else 0
    return _facts(count) if count else None


def _list(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = only(outputs)[0]
    return {
        "boxes": rows[:, :4],
        "scores": rows[:, 4:5],
        "landmarks": _points(rows[:, 6:], options["points"]),
    }


def _is_multipose(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, people, 56): points of y, x and score as parts of the input, then a box, y before x, and its score."""
    rows = rows_of(shapes)
    return _facts(_COCO) if rows and rows[0] <= MOST_BOXES and rows[1] == _NUMBERS * _COCO + 5 else None


def _multipose(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = only(outputs)[0]
    points = rows[:, : _NUMBERS * _COCO]
    box = stack([rows[:, points.shape[1] + k] for k in (1, 0, 3, 2)], 1)
    return {"boxes": in_pixels(box, frame), "scores": rows[:, -1:], "landmarks": _of_shares(points, frame)}


def _of_shares(values: Tensor, frame: Frame) -> Tensor:
    """Points (people, 17, 4), of rows of y and x as parts of the input, and how sure."""
    height, width = frame.size
    found = values.reshape(-1, _COCO, _NUMBERS)
    y, x, sure = (found[..., k : k + 1] for k in range(_NUMBERS))
    return concatenate([x * float(width), y * float(height), x * 0.0, sure], axis=2)


# --- one person ---------------------------------------------------------------------------------------------------------


def _one(points: Tensor) -> Mapping[str, Tensor]:
    """One find of points (1, points, 4): its score is their mean, its box around those that are seen, or around all if none is."""
    places, sure = points[0, :, :2], points[0, :, 3:]
    seen = (sure > _SEEN) | (sure.max() <= _SEEN)
    far = 1e9
    low, high = where(seen, places, far).amin(0), where(seen, places, -far).amax(0)
    return {
        "boxes": concatenate([low, high]).unsqueeze(0), "scores": sure.mean().reshape(1, 1).maximum(0.0).minimum(1.0), "landmarks": points,
    }  # fmt: skip


def _is_movenet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    return _facts(_COCO) if len(shapes) == 1 and shorn(only(shapes)) == (_COCO, _NUMBERS) else None


def _movenet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    return _one(_of_shares(only(outputs).reshape(1, -1), frame))


def _is_simcc(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, points, 2 · width) and (1, points, 2 · height), the first called x."""
    x, y = (next((n for n in shapes if n.lower().endswith(axis)), "") for axis in "xy")
    if len(shapes) != 2 or not x or not y or x == y:
        return None
    height, width = asked.size
    wide, high = shapes[x], shapes[y]
    fits = len(wide) == len(high) == 3 and wide[:2] == high[:2] and wide[0] == 1
    if not fits or (wide[2], high[2]) != (_SPLIT * width, _SPLIT * height):
        return None
    return {"x": x, "y": y, **_facts(wide[1])}


def _simcc(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """The likeliest place along each axis; how sure is the less likely of the two."""
    rows = [outputs[options[axis]] for axis in "xy"]
    places = [row.argmax(2).to(dtype="float32").unsqueeze(2) / _SPLIT for row in rows]
    sure = rows[0].amax(2).minimum(rows[1].amax(2)).unsqueeze(2)
    return _one(concatenate([*places, places[0] * 0.0, sure], axis=2))


def _are_maps(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, points, height, width), a quarter of the input's sides."""
    shape = only(shapes)
    fits = len(shapes) == 1 and len(shape) == 4 and shape[0] == 1 and tuple(4 * n for n in shape[2:]) == asked.size
    return _facts(shape[1]) if fits else None


def _maps(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """The highest place of each map, a quarter towards the higher of those beside it, along each axis."""
    maps = only(outputs)[0]
    count, height, width = maps.shape
    flat = maps.reshape(count, -1)
    best = flat.argmax(1)
    y, x = best // width, best % width
    places: list[Tensor] = []
    for at, length, step in ((x, width, 1), (y, height, width)):
        ahead, behind = (
            flat.take_along_dim((best + sign * step).maximum(0).minimum(height * width - 1).unsqueeze(1), 1)[:, 0]
            for sign in (1, -1)
        )
        inner = (at > 0) & (at < length - 1)
        places.append(at.to(dtype="float32") + where(inner, (ahead - behind).sign() * 0.25, 0.0) + 0.5)
    four = stack([places[0] * 4.0, places[1] * 4.0, places[0] * 0.0, flat.amax(1)], 1)
    return _one(four.unsqueeze(0))


_BLACK: Final = {"fill": 0.0}
_ALONE: Final = {**_BLACK, "mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
POSE: Final = TaskKind(
    "pose", "people in a picture, with a box and points for each", PICTURE,
    (Head("movenet", "(1, 1, 17, 3), of one person: MoveNet", _is_movenet, suppressed(_movenet), {**_BLACK, "mean": (0.0,), "std": (1.0,)}),
     Head("multipose", "(1, people, 56): MoveNet of several people", _is_multipose, suppressed(_multipose), {**_BLACK, "mean": (0.0,), "std": (1.0,)}),
     Head("yolo8", "(1, 5 + 3 · points, places): YOLOv8 to 12", _is_yolo8, suppressed(_yolo8)),
     Head("yolo7", "(1, 3 · places, 6 + 3 · points): YOLOv5, v7", _is_yolo7, suppressed(_yolo7)),
     Head("list", "rows of corners, score, class and points: models that suppress boxes themselves", _is_list, suppressed(_list, KEEPS_ALL)),
     Head("simcc", "chances of each place along both axes, of one person who fills the picture: RTMPose", _is_simcc, suppressed(_simcc), _ALONE),
     Head("maps", "a map for each point, of one person who fills the picture: HRNet, ViTPose", _are_maps, suppressed(_maps), _ALONE)),
    findings, 640, {"fit": "contain"}, "person", SETTINGS,
)  # fmt: skip
