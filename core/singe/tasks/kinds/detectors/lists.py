"""Detectors that give a list of what they found: of boxes that are suppressed already, or of queries, of which none are alike.

A list whose length the picture decides has 0 in its shape. Two columns of a list may be told apart by what they hold alone: classes are whole
numbers, and scores are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....tensors.functions.creation import stack, where
from ....tensors.tensor import Tensor
from ...labels import SETS
from ...picture.preparing import Frame
from ..base import Asked, Shapes, Tensors
from .anchored import pair_of
from .boxes import corners
from .grids import in_pixels, masks_of, rows_of, sides_of, split, strides_of

_MOST: Final = 1000
_COCO: Final = 80
_TENSORFLOW: Final = ("detection_boxes", "tflite_detection_postprocess", "statefulpartitionedcall")
"""What the names of boxes of TensorFlow's begin with: parts of the input's sides, y before x."""
_COUNTS_FROM_1: Final = "detection_boxes"


def _are_coco(asked: Asked) -> bool:
    """Whether the labels are those of 80 numbers, which models that count COCO's 90 do not have."""
    return tuple(asked.names) == tuple(SETS["coco"])


def _whole(x: Tensor) -> Tensor:
    return (x == x.floor()).to(dtype="float32").min() > 0.5


# --- one output ---------------------------------------------------------------------------------------------------------


def is_list(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shapes, masks = split(shapes)
    rows = rows_of(shapes)
    fits = rows is not None and rows[1] == 6 + masks["masks"] and rows[0] <= _MOST
    return {"output": next(iter(shapes)), **masks} if fits else None


def listed(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = outputs[options["output"]][0]
    boxes, masks = in_pixels(rows[:, :4], frame), masks_of(outputs, rows, options)
    return {"boxes": boxes, "scores": rows[:, 4], "classes": rows[:, 5].to(dtype="int32"), **masks}


def is_numbered(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """One output (boxes, 7)."""
    shape = next(iter(shapes.values()))
    return {} if len(shapes) == 1 and len(shape) == 2 and shape[1] == 7 else None


def numbered(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Rows of the picture's number, corners, and class and score, in this order or in the other."""
    rows = next(iter(outputs.values()))
    one, other = rows[:, 5], rows[:, 6]
    first = _whole(one)
    classes = where(first, one, other)
    return {"boxes": rows[:, 1:5], "scores": where(first, other, one), "classes": classes.to(dtype="int32")}


def is_paddle(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(boxes, 6), and how many there are."""
    boxes = next((n for n, s in shapes.items() if len(s) == 2 and s[1] == 6), None)
    return (
        {"output": boxes}
        if boxes and len(shapes) == 2 and all(len(s) < 2 for n, s in shapes.items() if n != boxes)
        else None
    )


def paddle(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Rows of class, score and corners."""
    rows = outputs[options["output"]]
    return {"boxes": rows[:, 2:], "scores": rows[:, 1], "classes": rows[:, 0].to(dtype="int32")}


def is_queries(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, queries, 4 + classes)."""
    rows = rows_of(shapes)
    if rows is None or rows[0] > _MOST or strides_of(rows[0], asked.size) or rows[1] - 4 != (asked.labels or _COCO):
        return None
    return {"output": next(iter(shapes))}


def queries(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows = outputs[options["output"]][0]
    boxes = in_pixels(rows[:, :4], frame)
    return {"boxes": corners(boxes[:, :2], boxes[:, 2:]), "scores": rows[:, 4:]}


# --- several outputs ----------------------------------------------------------------------------------------------------


def is_detr(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Boxes and logits, and masks of each, (1, queries, height, width), if it has them."""
    boxes, scores = pair_of({n: s for n, s in shapes.items() if "hidden" not in n.lower()})
    if boxes is None or scores is None or shapes[boxes][1] > _MOST:
        return None
    count = shapes[scores][2]
    nothing = asked.labels == count - 1 if asked.labels is not None else count in (81, 92)
    if not nothing and asked.labels not in (None, count):
        return None
    masks = next((n for n, s in shapes.items() if len(s) == 4 and s[:2] == (1, shapes[boxes][1])), "")
    return {"boxes": boxes, "scores": scores, "nothing": nothing, "masks": masks}


def detr(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    boxes, logits = outputs[options["boxes"]][0] * sides_of(frame), outputs[options["scores"]][0]
    scores = logits.softmax(1)[:, :-1] if options["nothing"] else logits.sigmoid()
    masks = {"masks": outputs[options["masks"]][0]} if options["masks"] else {}
    return {"boxes": corners(boxes[:, :2], boxes[:, 2:]), "scores": scores, **masks}


def is_scored(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """Of outputs (1, boxes, 4), and two of (1, boxes): the scores and the classes, by their names, or by what they hold."""
    boxes = next((n for n, s in shapes.items() if len(s) == 3 and s[0] == 1 and s[2] == 4), None)
    flat = [n for n, s in shapes.items() if boxes and s == shapes[boxes][:2]]
    classes = next((n for n in flat if "label" in n.lower() or "class" in n.lower() or n in asked.integers), None)
    scores = next((n for n in flat if "score" in n.lower()), None)
    if boxes is None or len(flat) < 2:
        return None
    if classes is None or scores is None:
        if len(flat) != 2:
            return None
        classes = classes or next(n for n in flat if n != scores)
        scores = next(n for n in flat if n != classes)
    shares = boxes.lower().startswith(_TENSORFLOW)
    if shares and _are_coco(asked):
        return None
    first = 1 if boxes.lower().startswith(_COUNTS_FROM_1) else 0
    return {"boxes": boxes, "scores": scores, "classes": classes, "shares": shares, "first": first}


def scored(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    boxes = outputs[options["boxes"]][0]
    scores, classes = outputs[options["scores"]][0], outputs[options["classes"]][0]
    swapped = _whole(scores) & ~_whole(classes)
    scores, classes = where(swapped, classes, scores), where(swapped, scores, classes).to(dtype="int32")
    if options["shares"]:
        boxes = stack([boxes[:, k] for k in (1, 0, 3, 2)], 1) * sides_of(frame)
    return {"boxes": boxes, "scores": scores, "classes": classes - options["first"]}


def is_dets(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(1, boxes, 5) and classes (1, boxes)."""
    boxes = next((n for n, s in shapes.items() if len(s) == 3 and s[0] == 1 and s[2] == 5), None)
    classes = next((n for n, s in shapes.items() if boxes and s == shapes[boxes][:2] and n in asked.integers), None)
    return {"boxes": boxes, "classes": classes} if classes else None


def dets(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    rows, classes = outputs[options["boxes"]][0], outputs[options["classes"]][0]
    return {"boxes": rows[:, :4], "scores": rows[:, 4], "classes": classes.to(dtype="int32")}


def is_torchvision(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """(boxes, 4), classes and scores (boxes,), and masks (boxes, 1, height, width) if it has them."""
    boxes = next((n for n, s in shapes.items() if len(s) == 2 and s[1] == 4), None)
    flat = [n for n, s in shapes.items() if len(s) == 1]
    classes = [n for n in flat if n in asked.integers]
    scores = [n for n in flat if n not in asked.integers]
    if boxes is None or len(classes) != 1 or len(scores) != 1 or _are_coco(asked):
        return None
    masks = next((n for n, s in shapes.items() if len(s) == 4 and s[1:] == (1, *asked.size)), "")
    return {"boxes": boxes, "scores": scores[0], "classes": classes[0], "masks": masks}


def torchvision(outputs: Tensors, frame: Frame, options: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Class 0 is the background, which is never found."""
    classes = outputs[options["classes"]].to(dtype="int32") - 1
    masks = {"masks": outputs[options["masks"]][:, 0] - 0.5} if options["masks"] else {}
    return {"boxes": outputs[options["boxes"]], "scores": outputs[options["scores"]], "classes": classes, **masks}
