"""Objects in a picture: the heads of detectors, recognised by the shapes of their outputs.

`cells` is how many places a detector has: one for each step of each stride, row by row, the finest first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...tensors.functions.creation import concatenate, stack, tensor
from ...tensors.tensor import Tensor
from ..picture.medium import PICTURE
from ..picture.preparing import Frame
from .base import Asked, Head, Shapes, TaskKind, Tensors, only
from .boxes import SETTINGS, chosen, corners, findings

OVERLAP: Final = 0.45
_STRIDES: Final = (8, 16, 32, 64)
_BINS: Final = 8
"""NanoDet and PicoDet say how far each edge of a box is as chances of 0 to 7 strides."""
_RAW, _RAW_STRIDES = 9, (8, 16, 32, 64, 128)
"""Anchors in a cell, and strides, of EfficientDet, whose boxes are told from its anchors: they are no parts of the input."""
_OF_POSE: Final = 4 + 1 + 17 * 3
"""The numbers of a place in a model of people with points, which are no classes: so many want labels."""
_KEEPS_ALL: Final = 1.0


def cells(size: tuple[int, int], strides: Sequence[int]) -> np.ndarray:
    """Rows of x, y and stride, (places, 3), in strides: the top left corner of each place."""
    rows: list[np.ndarray] = []
    for stride in strides:
        height, width = (-(-side // stride) for side in size)
        y, x = np.divmod(np.arange(height * width), width)
        rows.append(np.stack([x, y, np.full(height * width, stride)], axis=1))
    return np.concatenate(rows).astype(np.float32)


def _strides(count: int, size: tuple[int, int]) -> tuple[int, ...] | None:
    """The strides of so many places."""
    for most in (3, 4, 2):
        if len(cells(size, _STRIDES[:most])) == count:
            return _STRIDES[:most]
    return None


def _rows(shapes: Shapes) -> tuple[int, int] | None:
    """Of one output (1, places, numbers): both."""
    shape = only(shapes)
    return (shape[1], shape[2]) if len(shapes) == 1 and len(shape) == 3 and shape[0] == 1 else None


def _classes(numbers: int, others: int, asked: Asked) -> bool:
    """Whether a place has `others` numbers, and one for each class."""
    return numbers - others == asked.labels if asked.labels is not None else numbers > others


# --- recognising ------------------------------------------------------------------------------------------------------


def _without_masks(shapes: Shapes) -> tuple[Shapes, int]:
    """The outputs without the patterns (1, patterns, height, width) of which a place's last numbers make its mask, and how many those are."""
    patterns = {name: s for name, s in shapes.items() if len(s) == 4 and s[0] == 1}
    if len(patterns) != 1 or len(shapes) != 2:
        return shapes, 0
    ((name, shape),) = patterns.items()
    return {n: s for n, s in shapes.items() if n != name}, shape[1]


def _is_yolo8(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shapes, masks = _without_masks(shapes)
    if (rows := _rows(shapes)) is None or rows[1] <= rows[0] or not _classes(rows[0], 4 + masks, asked):
        return None
    if rows[0] == _OF_POSE and asked.labels is None:
        return None
    return {"output": next(iter(shapes)), "ends": rows[0] - masks} if _strides(rows[1], asked.size) else None


def _is_yolo5(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shapes, masks = _without_masks(shapes)
    if (rows := _rows(shapes)) is None or rows[0] % 3 or not _classes(rows[1], 5 + masks, asked):
        return None
    return {"output": next(iter(shapes)), "ends": rows[1] - masks} if _strides(rows[0] // 3, asked.size) else None


def _is_nanodet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    if (rows := _rows(shapes)) is None or not _classes(rows[1], 4 * _BINS, asked):
        return None
    strides = _strides(rows[0], asked.size)
    if strides is None or (asked.labels is None and rows[1] != 80 + 4 * _BINS):
        return None
    return {"strides": list(strides)}


def _is_picodet(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """For each stride, (1, places, classes) and (1, places, 32)."""
    if len(shapes) not in (6, 8) or any(len(s) != 3 or s[0] != 1 for s in shapes.values()):
        return None
    strides = _STRIDES[: len(shapes) // 2]
    counts = [len(cells(asked.size, (s,))) for s in strides]
    found = [[name for name, s in shapes.items() if s[1] == count] for count in counts]
    pairs = [sorted(names, key=lambda n: shapes[n][2] == 4 * _BINS) for names in found]
    if any(len(pair) != 2 or shapes[pair[1]][2] != 4 * _BINS for pair in pairs):
        return None
    classes = {shapes[pair[0]][2] for pair in pairs}
    if len(classes) != 1 or asked.labels not in (None, *classes):
        return None
    scores, edges = zip(*pairs, strict=True)
    return {"strides": list(strides), "scores": list(scores), "edges": list(edges)}


def _is_yolox(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    if (rows := _rows(shapes)) is None or not _classes(rows[1], 5, asked):
        return None
    strides = _strides(rows[0], asked.size)
    return None if strides is None else {"strides": list(strides)}


def _is_list(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    rows = _rows(shapes)
    return {} if rows is not None and rows[1] == 6 and rows[0] <= 1000 else None


def _is_detr(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    boxes, scores = _pair(shapes)
    if boxes is None or scores is None or shapes[boxes][1] > 2000:
        return None
    count = shapes[scores][2]
    nothing = asked.labels == count - 1 if asked.labels is not None else count in (81, 92)
    if not nothing and asked.labels not in (None, count):
        return None
    return {"boxes": boxes, "scores": scores, "nothing": nothing}


def is_ssd(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    boxes, scores = _pair(shapes)
    if (
        boxes is None
        or scores is None
        or shapes[boxes][1] <= 2000
        or shapes[boxes][1] == _RAW * len(cells(asked.size, _RAW_STRIDES))
    ):
        return None
    return {"boxes": boxes, "scores": scores} if asked.labels in (None, shapes[scores][2] - 1) else None


def _pair(shapes: Shapes) -> tuple[str | None, str | None]:
    """Of outputs (1, places, 4) and (1, places, classes): their names."""
    three = {name: s for name, s in shapes.items() if len(s) == 3 and s[0] == 1}
    boxes = next((n for n, s in three.items() if s[2] == 4 and ("box" in n.lower() or len(three) == 2)), None)
    places = three[boxes][1] if boxes else -1
    return boxes, next((n for n, s in three.items() if n != boxes and s[1] == places and s[2] > 1), None)


def _is_scored(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Of outputs (1, boxes, 4), and two of (1, boxes): the scores, and the classes by their name."""
    boxes = next((n for n, s in shapes.items() if len(s) == 3 and s[2] == 4), None)
    flat = [n for n, s in shapes.items() if boxes and s == shapes[boxes][:2]]
    classes = next((n for n in flat if "label" in n.lower() or "class" in n.lower()), None)
    scores = next((n for n in flat if "score" in n.lower()), None)
    if boxes is None or classes is None or scores is None:
        return None
    shares = boxes.lower().startswith("detection_boxes")  # of TensorFlow: parts of the input's sides, y before x
    return {"boxes": boxes, "scores": scores, "classes": classes, "shares": shares}


# --- decoding ---------------------------------------------------------------------------------------------------------


def _decoded(
    decode: Callable[[Tensors, Frame, Mapping[str, Any]], Mapping[str, Tensor]], overlap: float = OVERLAP
) -> Any:
    def whole(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> dict[str, Tensor]:
        floats = {name: x.to(dtype="float32") for name, x in outputs.items()}
        return chosen(decode(floats, frame, options), frame, overlap)

    return whole


def _yolo8(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = outputs[options["output"]][0].permute(1, 0)
    return {"boxes": corners(rows[:, :2], rows[:, 2:4]), "scores": rows[:, 4 : options["ends"]]}


def _yolo5(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = outputs[options["output"]][0]
    return {"boxes": corners(rows[:, :2], rows[:, 2:4]), "scores": rows[:, 4:5] * rows[:, 5 : options["ends"]]}


def _yolox(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows, places = only(outputs)[0], cells(frame.size, options["strides"])
    stride = tensor(places[:, 2:])
    center = (rows[:, :2] + tensor(places[:, :2])) * stride
    return {"boxes": corners(center, rows[:, 2:4].exp() * stride), "scores": rows[:, 4:5] * rows[:, 5:]}


def _between(edges: Tensor, center: Tensor, stride: Tensor) -> Tensor:
    """Boxes by how far their edges are from their centres, as chances (places, 4 · bins)."""
    far = (edges.reshape(-1, 4, _BINS).softmax(2) * tensor(np.arange(_BINS, dtype=np.float32))).sum(2)
    return concatenate([center - far[:, :2] * stride, center + far[:, 2:] * stride], axis=1)


def _nanodet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows, places = only(outputs)[0], cells(frame.size, options["strides"])
    classes = rows.shape[1] - 4 * _BINS
    stride = tensor(places[:, 2:])
    # The first NanoDet has its places in the middle of their cells; NanoDet-Plus, which has four strides, at the corner.
    center = tensor(places[:, :2] + (0.5 if len(options["strides"]) == 3 else 0.0)) * stride
    return {"boxes": _between(rows[:, classes:], center, stride), "scores": rows[:, :classes]}


def _picodet(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    scores, edges = (concatenate([outputs[n][0] for n in options[of]], axis=0) for of in ("scores", "edges"))
    places = cells(frame.size, options["strides"])
    stride = tensor(places[:, 2:])
    return {"boxes": _between(edges, tensor(places[:, :2] + 0.5) * stride, stride), "scores": scores}


def _sides(frame: Frame) -> Tensor:
    """Width, height, width and height of the input."""
    height, width = frame.size
    return tensor(np.array([width, height] * 2, np.float32))


def _detr(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    boxes, logits = outputs[options["boxes"]][0] * _sides(frame), outputs[options["scores"]][0]
    scores = logits.softmax(1)[:, :-1] if options["nothing"] else logits.sigmoid()
    return {"boxes": corners(boxes[:, :2], boxes[:, 2:]), "scores": scores}


def ssd(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    return {"boxes": outputs[options["boxes"]][0] * _sides(frame), "scores": outputs[options["scores"]][0][:, 1:]}


def _list(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = only(outputs)[0]
    return {"boxes": rows[:, :4], "scores": rows[:, 4], "classes": rows[:, 5].to(dtype="int32")}


def _scored(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    boxes, classes = outputs[options["boxes"]][0], outputs[options["classes"]][0].to(dtype="int32")
    if options["shares"]:
        boxes = stack([boxes[:, k] for k in (1, 0, 3, 2)], 1) * _sides(frame)
        classes = classes - 1  # TensorFlow counts classes from 1
    return {"boxes": boxes, "scores": outputs[options["scores"]][0], "classes": classes}


_UNCHANGED: Final = {"mean": (0.0,), "std": (1.0,)}
_AROUND_ZERO: Final = {"mean": (127.0,), "std": (128.0,)}
HEADS: Final = (
    Head("scored", "boxes, scores and classes: RT-DETR, TensorFlow", _is_scored, _decoded(_scored, _KEEPS_ALL), {"fit": "stretch"}),
    Head("detr", "logits and boxes of queries: DETR, RT-DETR", _is_detr, _decoded(_detr, _KEEPS_ALL), {"fit": "stretch"}),
    Head("ssd", "scores with a background, and boxes as parts of the input: SSD", is_ssd, _decoded(ssd), {"fit": "stretch", **_AROUND_ZERO}),
    Head("list", "rows of corners, score and class: YOLOv10, and models that suppress boxes themselves", _is_list, _decoded(_list, _KEEPS_ALL)),
    Head("yolo8", "(1, 4 + classes, places), and what masks are made of, which are left out: YOLOv8 to 12; with 52 classes it wants labels, since "
         "models of people with points have as many numbers", _is_yolo8, _decoded(_yolo8)),
    Head("yolo5", "(1, 3 · places, 5 + classes), and what masks are made of, which are left out: YOLOv5, v7", _is_yolo5, _decoded(_yolo5)),
    Head("picodet", "for each stride (1, places, classes) and (1, places, 32): PicoDet, NanoDet", _is_picodet, _decoded(_picodet),
         {"fit": "stretch", "mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}),
    Head("nanodet", "(1, places, classes + 32): NanoDet", _is_nanodet, _decoded(_nanodet),
         {"fit": "stretch", "order": "bgr", "mean": (103.53, 116.28, 123.675), "std": (57.375, 57.12, 58.395)}),
    Head("yolox", "(1, places, 5 + classes): YOLOX", _is_yolox, _decoded(_yolox), {"fit": "corner", "order": "bgr", **_UNCHANGED}),
)  # fmt: skip
"""The heads, those that are told apart by more facts first."""

DETECT = TaskKind(
    "detect",
    "objects in a picture, with a box for each",
    PICTURE,
    HEADS,
    findings,
    640,
    {"fit": "contain"},
    "coco",
    SETTINGS,
)
