"""Objects in a picture: the heads of detectors, recognised by the shapes of their outputs."""

from __future__ import annotations

from typing import Final

from ..picture.medium import PICTURE
from .base import Asked, Head, RefusedOutputs, Shapes, TaskKind
from .detectors import anchored, grids, lists
from .detectors.boxes import KEEPS_ALL, SETTINGS, findings, suppressed

_UNCHANGED: Final = {"mean": (0.0,), "std": (1.0,)}
_AROUND_ZERO: Final = {"mean": (127.0,), "std": (128.0,)}
_IMAGENET: Final = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
_OPENMMLAB: Final = {"order": "bgr", "mean": (103.53, 116.28, 123.675), "std": (57.375, 57.12, 58.395)}
_OBJECTS365: Final = {"order": "bgr", "mean": (104.04, 113.985, 119.85), "std": (73.695, 69.87, 70.89)}


HEADS: Final = (
    Head("scored", "(1, boxes, 4), scores and classes: RT-DETR, TensorFlow, models that suppress boxes themselves",
         lists.is_scored, suppressed(lists.scored, KEEPS_ALL), {"fit": "stretch"}),
    Head("torchvision", "(boxes, 4), classes from 1 on, and scores: Faster and Mask R-CNN, RetinaNet, SSD of torchvision",
         lists.is_torchvision, suppressed(lists.torchvision, KEEPS_ALL), {"fit": "stretch"}),
    Head("dets", "(1, boxes, 5) and classes: models of OpenMMLab, such as RTMDet",
         lists.is_dets, suppressed(lists.dets, KEEPS_ALL), {"fit": "corner", **_OPENMMLAB}),
    Head("paddle", "rows of class, score and corners, and how many: PP-YOLOE, PicoDet, which suppress boxes themselves",
         lists.is_paddle, suppressed(lists.paddle, KEEPS_ALL), {"fit": "stretch"}),
    Head("numbered", "(boxes, 7): YOLOv7 and YOLO-NAS, which suppress boxes themselves", lists.is_numbered, suppressed(lists.numbered, KEEPS_ALL)),
    Head("pair", "corners and scores of three strides: YOLO-NAS", grids.is_upright_pair, suppressed(grids.pair)),
    Head("turned pair", "corners, and scores (1, classes, places): PP-YOLOE", grids.is_pair, suppressed(grids.pair), {"fit": "stretch"}),
    Head("detr", "logits and boxes of queries: DETR, RT-DETR, RF-DETR, D-FINE", lists.is_detr, suppressed(lists.detr, KEEPS_ALL), {"fit": "stretch"}),
    Head("efficientdet", "(1, anchors, 4) and (1, anchors, 90), or other classes if it is chosen by its name: EfficientDet",
         anchored.is_efficientdet, suppressed(anchored.efficientdet), {"fit": "corner", "fill": 127.0, **_AROUND_ZERO}),
    Head("ssd", "scores with a background, and boxes as parts of the input: SSD", anchored.is_ssd, suppressed(anchored.ssd),
         {"fit": "stretch", **_AROUND_ZERO}),
    Head("list", "rows of corners, score and class, and shares of patterns of masks: YOLOv10, and models that suppress boxes themselves",
         lists.is_list, suppressed(lists.listed, KEEPS_ALL)),
    Head("yolo8", "(1, 4 + classes + patterns, places), and patterns of masks, if it has them: YOLOv8 to 12; with 52 classes it wants labels, "
         "since models of people with points have as many numbers", grids.is_yolo8, suppressed(grids.yolo8)),
    Head("yolo5", "(1, 3 · places, 5 + classes + patterns), and patterns of masks, if it has them: YOLOv5, v7",
         grids.is_yolo5, suppressed(grids.yolo5)),
    Head("centernet", "maps hm, wh and reg of one stride: CenterNet", grids.is_centernet, suppressed(grids.centernet),
         {"fill": 0.0, **_OBJECTS365}),
    Head("picodet", "for each stride (1, places, classes) and (1, places, 32): PicoDet, NanoDet", grids.is_picodet, suppressed(grids.picodet),
         {"fit": "stretch", **_IMAGENET}),
    Head("nanodet", "(1, places, classes + 32): NanoDet", grids.is_nanodet, suppressed(grids.nanodet), {"fit": "stretch", **_OPENMMLAB}),
    Head("yolo6", "(1, places, 5 + classes), named outputs: YOLOv6", grids.is_yolo6, suppressed(grids.yolo6)),
    Head("yolox", "(1, places, 5 + classes): YOLOX", grids.is_yolox, suppressed(grids.yolox), {"fit": "corner", "order": "bgr", **_UNCHANGED}),
    Head("queries", "(1, queries, 4 + classes): RT-DETR of Ultralytics", lists.is_queries, suppressed(lists.queries, KEEPS_ALL), {"fit": "stretch"}),
)  # fmt: skip
"""The heads, those that are told apart by more facts first."""


def _are_raw(shapes: Shapes, asked: Asked) -> bool:
    """Maps of several strides, each with 3 · (5 + classes) numbers for a place: (1, numbers, height, width), the same with the numbers last, or
    with an axis of 3 of its own."""
    if len({s[2] for s in shapes.values() if len(s) > 3}) < len(shapes):
        return False
    alike = [{numbers for numbers in (s[1], s[-1]) if numbers % 3 == 0} for s in shapes.values() if len(s) == 4]
    anchors = [s for s in shapes.values() if len(s) == 5 and 3 in s[1:4]]
    numbers = set.intersection(*alike) if len(alike) == len(shapes) > 1 else set[int]()
    return any(n > 3 * 5 for n in numbers) or len(anchors) == len(shapes) > 1


REFUSED: Final = (
    RefusedOutputs("maps of anchors that are not decoded: export the model with its decoding in it (for YOLO of Ultralytics: format=onnx, with no "
            "option that leaves the last layer out), so that it gives boxes", _are_raw),
)  # fmt: skip

DETECT = TaskKind(
    "detect", "objects in a picture, with a box for each", PICTURE, HEADS, findings, 640, {"fit": "contain"}, "coco", SETTINGS,
    refused=REFUSED,
)  # fmt: skip
