"""The end of TensorFlow's detectors as one op: boxes of anchors, of which the likeliest of those that overlap are left."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

import numpy as np

from ...dtypes import float32
from ...graph import Node
from ...shapes import show
from ..flexbuffer import read_options
from ._call import TfliteCall, op

MOST: Final = 1 << 12
_NUMBERS: Final = (
    "max_detections", "num_classes", "nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale",
)  # fmt: skip


@op("CUSTOM:TFLite_Detection_PostProcess")
def _detections(call: TfliteCall) -> list[Node]:
    """Of codes (1, anchors, 4), scores (1, anchors, classes), perhaps with one of a background before the others, and anchors (anchors, 4): boxes
    (1, most, 4) as parts of the input, y before x, their classes and scores (1, most), and how many there are (1,). Other rows are 0."""
    b = call.b
    codes, scores, anchors = call.ranked(0, 3), call.ranked(1, 3), call.ranked(2, 2)
    o = _options(call)
    count, most, classes = (
        call.number(codes.shape[1], "the number of anchors"),
        int(o["max_detections"]),
        int(o["num_classes"]),
    )
    first = call.number(scores.shape[2], "the number of classes") - classes
    fits = codes.shape == (1, count, 4) and scores.shape[:2] == (1, count) and anchors.shape == (count, 4)
    if not fits or first not in (0, 1) or not 1 <= most <= MOST:
        raise call.fail(
            f"codes {show(codes.shape)}, scores {show(scores.shape)}, anchors {show(anchors.shape)}, {classes} classes and at most {most} boxes "
            "do not fit"
        )

    def part(x: Node, start: int, size: int) -> Node:
        return b.slice(x, starts=(0, start), steps=(1, 1), sizes=(count, size))

    rows = b.reshape(codes, shape=(count, 4))
    by = b.const(np.array([o[f"{axis}_scale"] for axis in "yxhw"], np.float32))
    rows = b.div(rows, by)
    center = b.add(b.mul(part(rows, 0, 2), part(anchors, 2, 2)), part(anchors, 0, 2))
    half = b.mul(b.mul(b.exp(part(rows, 2, 2)), part(anchors, 2, 2)), b.const(0.5, float32))
    boxes = b.concat(b.sub(center, half), b.add(center, half), axis=1)
    own = part(b.reshape(scores, shape=(count, classes + first)), first, classes)
    best = b.reshape(b.reduce_max(own, axes=(1,)), shape=(count,))
    kept = b.non_max_suppression(
        b.reshape(boxes, shape=(1, count, 4)), b.reshape(best, shape=(1, 1, count)), b.const(np.array([most], np.int64)),
        b.const(np.array([o["nms_iou_threshold"]], np.float32)), b.const(np.array([o["nms_score_threshold"]], np.float32)), center=False,
    )  # fmt: skip
    index = b.reshape(b.slice(kept, starts=(0, 2), steps=(1, 1), sizes=(kept.shape[0], 1)), shape=(kept.shape[0],))

    def filled(values: Node) -> Node:
        """The rows that are kept, as many as there may be."""
        rest = tuple(int(d) for d in values.shape[1:])
        taken = b.concat(b.gather(values, index, axis=0), b.const(np.zeros((most, *rest), np.float32)), axis=0)
        return b.slice(taken, starts=(0,) * (1 + len(rest)), steps=(1,) * (1 + len(rest)), sizes=(most, *rest))

    found = [
        b.reshape(filled(boxes), shape=(1, most, 4)),
        b.reshape(filled(b.cast(b.argmax(own, axis=1), to=float32)), shape=(1, most)),
        b.reshape(filled(best), shape=(1, most)),
    ]
    there = filled(b.const(np.ones(count, np.float32)))
    return [*found, b.reshape(b.reduce_sum(there, axes=(0,)), shape=(1,))]


def _options(call: TfliteCall) -> dict[str, Any]:
    options = read_options(call.op.custom)
    for name in _NUMBERS:
        found = options.get(name)
        if not isinstance(found, (int, float)) or not isfinite(found):
            raise call.fail(f"option {name!r} is {found!r:.60}; expected a number")
    if any(options[f"{axis}_scale"] == 0 for axis in "yxhw"):
        raise call.fail("a scale is 0; expected another number")
    if options.get("use_regular_nms") or options.get("max_classes_per_detection", 1) != 1:
        raise call.fail(
            "boxes are suppressed for each class by itself, or have several classes; convert the model with use_regular_nms=false and "
            "max_classes_per_detection=1, or without its last op"
        )
    return options
