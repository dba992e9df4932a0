"""Outputs of heads of detectors, of their true shapes with random numbers, and plain references of the boxes that they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

SIDE, CLASSES = 96, 80
Arrays = Mapping[str, np.ndarray]


def places(strides: Sequence[int], side: int = SIDE) -> list[tuple[int, int, int]]:
    return [(x, y, s) for s in strides for y in range(-(-side // s)) for x in range(-(-side // s))]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def chances(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Scores of which a few are high."""
    return (rng.random(shape) ** 6).astype(np.float32)


Case = tuple[
    Callable[[np.random.Generator], Arrays], Callable[[Arrays], Sequence[tuple[Sequence[float], np.ndarray]]], str, bool
]
"""Outputs by name; their boxes as (corners in the input's pixels, scores of classes); the fit; whether boxes are suppressed."""
FINE, FOUR = places((8, 16, 32)), places((8, 16, 32, 64))


def centred(x: float, y: float, w: float, h: float) -> list[float]:
    return [x - w / 2, y - h / 2, x + w / 2, y + h / 2]


def random_boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.concatenate([rng.uniform(0, SIDE, (count, 2)), rng.uniform(4, 50, (count, 2))], 1).astype(np.float32)


def yolo8(rng: np.random.Generator) -> Arrays:
    return {"output0": np.concatenate([random_boxes(rng, len(FINE)), chances(rng, len(FINE), CLASSES)], 1).T[None]}


def yolo5(rng: np.random.Generator) -> Arrays:
    n = 3 * len(FINE)
    return {"output0": np.concatenate([random_boxes(rng, n), rng.random((n, 1)), chances(rng, n, CLASSES)], 1)[None]}


def yolox(rng: np.random.Generator) -> Arrays:
    n = len(FINE)
    raw = np.concatenate([rng.normal(0, 1, (n, 4)), rng.random((n, 1)), chances(rng, n, CLASSES)], 1)
    return {"output": raw[None]}


def yolox_boxes(outputs: Arrays) -> Any:
    for row, (x, y, s) in zip(outputs["output"][0], FINE, strict=True):
        w, h = np.exp(row[2:4]) * s
        yield centred((row[0] + x) * s, (row[1] + y) * s, w, h), row[4] * row[5:]


def nanodet(rng: np.random.Generator) -> Arrays:
    return {"output": np.concatenate([chances(rng, len(FOUR), CLASSES), rng.normal(0, 2, (len(FOUR), 32))], 1)[None]}


def nanodet_boxes(outputs: Arrays) -> Any:
    for row, (x, y, s) in zip(outputs["output"][0], FOUR, strict=True):
        left, top, right, bottom = (softmax(row[CLASSES:].reshape(4, 8)) * np.arange(8)).sum(1) * s
        yield [x * s - left, y * s - top, x * s + right, y * s + bottom], row[:CLASSES]


def picodet(rng: np.random.Generator) -> Arrays:
    sizes = [len(places((s,))) for s in (8, 16, 32, 64)]
    scores = {f"scores{k}": chances(rng, 1, n, CLASSES) for k, n in enumerate(sizes)}
    return scores | {f"edges{k}": rng.normal(0, 2, (1, n, 32)) for k, n in enumerate(sizes)}


def picodet_boxes(outputs: Arrays) -> Any:
    scores, edges = (np.concatenate([outputs[f"{of}{k}"][0] for k in range(4)]) for of in ("scores", "edges"))
    for row, score, (x, y, s) in zip(edges, scores, FOUR, strict=True):
        left, top, right, bottom = (softmax(row.reshape(4, 8)) * np.arange(8)).sum(1) * s
        yield [(x + 0.5) * s - left, (y + 0.5) * s - top, (x + 0.5) * s + right, (y + 0.5) * s + bottom], score


def detr(extra: int) -> Callable[[np.random.Generator], Arrays]:
    def outputs(rng: np.random.Generator) -> Arrays:
        return {"logits": rng.normal(-2, 2, (1, 60, CLASSES + extra)), "pred_boxes": rng.uniform(0.1, 0.6, (1, 60, 4))}

    return outputs


def detr_boxes(outputs: Arrays) -> Any:
    logits = outputs["logits"][0]
    scores = softmax(logits)[:, :-1] if logits.shape[1] > CLASSES else sigmoid(logits)
    for box, score in zip(outputs["pred_boxes"][0] * SIDE, scores, strict=True):
        yield centred(*box), score


def ssd(rng: np.random.Generator) -> Arrays:
    low = rng.uniform(0, 0.6, (3000, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.05, 0.4, (3000, 2))], 1)
    return {"scores": chances(rng, 1, 3000, CLASSES + 1), "boxes": boxes[None]}


def ssd_boxes(outputs: Arrays) -> Any:
    return zip(outputs["boxes"][0] * SIDE, outputs["scores"][0][:, 1:], strict=True)


def one_hot(score: float, index: int) -> np.ndarray:
    return np.eye(CLASSES)[index] * score


def rows(rng: np.random.Generator) -> Arrays:
    low = rng.uniform(0, 60, (100, 2))
    parts = [low, low + rng.uniform(5, 40, (100, 2)), rng.random((100, 1)), rng.integers(0, CLASSES, (100, 1))]
    return {"output0": np.concatenate(parts, 1)[None]}


def rows_boxes(outputs: Arrays) -> Any:
    return [(row[:4], one_hot(row[4], int(row[5]))) for row in outputs["output0"][0]]


def scored(rng: np.random.Generator) -> Arrays:
    found = rows(rng)["output0"]
    return {"labels": found[..., 5], "boxes": found[..., :4], "scores": found[..., 4]}


def scored_boxes(outputs: Arrays) -> Any:
    return [
        (box, one_hot(score, int(index)))
        for box, score, index in zip(outputs["boxes"][0], outputs["scores"][0], outputs["labels"][0], strict=True)
    ]


def with_masks(outputs: Arrays, axis: int) -> Arrays:
    """Also what masks are made of: two patterns, and two numbers for each place."""
    ((name, rows),) = outputs.items()
    numbers = np.full([2 if k == axis else n for k, n in enumerate(rows.shape)], 9.0, np.float32)
    return {name: np.concatenate([rows, numbers], axis), "patterns": np.zeros((1, 2, SIDE // 4, SIDE // 4))}


def in_shares(outputs: Arrays, axis: int) -> Arrays:
    """The same boxes as parts of the input."""
    ((name, rows),) = outputs.items()
    whole = np.moveaxis(rows.copy(), axis, 0)
    whole[:4] /= SIDE
    return {name: np.moveaxis(whole, 0, axis)}


def with_maps(outputs: Arrays) -> Arrays:
    """Also what the rows are made of, as YOLOv5 and v7 give them."""
    return {**outputs, **{f"map{s}": np.zeros((1, 3, SIDE // s, SIDE // s, CLASSES + 5)) for s in (8, 16, 32)}}


def yolo5_boxes(outputs: Arrays) -> Any:
    return [(centred(*r[:4]), r[4] * r[5:]) for r in next(iter(outputs.values()))[0]]


def decoded_yolox(name: str) -> Callable[[np.random.Generator], Arrays]:
    def outputs(rng: np.random.Generator) -> Arrays:
        n = len(FINE)
        rows = np.concatenate([random_boxes(rng, n), np.ones((n, 1)), chances(rng, n, CLASSES)], 1)
        rows[-1, :2] = SIDE - 4
        return {name: rows[None]}

    return outputs


def pair(turned: bool) -> Callable[[np.random.Generator], Arrays]:
    def outputs(rng: np.random.Generator) -> Arrays:
        boxes = np.array([centred(*row) for row in random_boxes(rng, len(FINE))])[None]
        scores = chances(rng, 1, len(FINE), CLASSES)
        return {"boxes": boxes, "scores": scores.transpose(0, 2, 1) if turned else scores}

    return outputs


def pair_boxes(outputs: Arrays) -> Any:
    scores = outputs["scores"][0]
    return list(zip(outputs["boxes"][0], scores if scores.shape[1] == CLASSES else scores.T, strict=True))


def efficientdet(rng: np.random.Generator) -> Arrays:
    n = 9 * len(places(EFFICIENT))
    return {"boxes": rng.normal(0, 0.4, (1, n, 4)), "classes": rng.normal(-9, 3, (1, n, 90))}


def efficientdet_boxes(outputs: Arrays) -> Any:
    """By the published recipe: anchors of three octaves and three proportions, boxes of y, x, height and width."""
    k = 0
    for x, y, s in places(EFFICIENT):
        for octave in range(3):
            for wide, high in ((1.0, 1.0), (1.4, 0.7), (0.7, 1.4)):
                w, h = (4.0 * s * 2 ** (octave / 3) * part for part in (wide, high))
                dy, dx, dh, dw = outputs["boxes"][0, k]
                box = centred((x + 0.5) * s + dx * w, (y + 0.5) * s + dy * h, np.exp(dw) * w, np.exp(dh) * h)
                yield box, sigmoid(outputs["classes"][0, k])
                k += 1


def centernet(rng: np.random.Generator) -> Arrays:
    n = SIDE // 4
    heat = rng.normal(-4, 1.5, (1, CLASSES, n, n))
    return {"hm": heat, "wh": rng.uniform(1, 12, (1, 2, n, n)), "reg": rng.random((1, 2, n, n))}


def centernet_boxes(outputs: Arrays) -> Any:
    heat = sigmoid(outputs["hm"][0])
    around = np.pad(heat, ((0, 0), (1, 1), (1, 1)))
    n = heat.shape[1]
    top = np.max([around[:, y : y + n, x : x + n] for y in range(3) for x in range(3)], axis=0)
    heat = np.where(heat >= top, heat, 0)
    for y in range(n):
        for x in range(n):
            (w, h), (dx, dy) = outputs["wh"][0, :, y, x] * 4, outputs["reg"][0, :, y, x]
            yield centred((x + dx) * 4, (y + dy) * 4, w, h), heat[:, y, x]


def columns(order: Sequence[str], name: str, batch: bool) -> Callable[[np.random.Generator], Arrays]:
    """Boxes that are suppressed already, in columns of another order."""

    def outputs(rng: np.random.Generator) -> Arrays:
        found = rows(rng)["output0"][0]
        parts = {"picture": found[:, :1] * 0, "box": found[:, :4], "score": found[:, 4:5], "class": found[:, 5:]}
        whole = np.concatenate([parts[part] for part in order], 1)
        return {name: whole[None] if batch else whole}

    return outputs


def columns_boxes(box: int, score: int, index: int) -> Callable[[Arrays], Any]:
    def boxes(outputs: Arrays) -> Any:
        found = next(iter(outputs.values()))
        return [
            (row[box : box + 4], one_hot(row[score], int(row[index]))) for row in found.reshape(-1, found.shape[-1])
        ]

    return boxes


def with_count(outputs: Arrays) -> Arrays:
    return {**outputs, "num": np.array([100], np.int32)}


def torchvision(rng: np.random.Generator) -> Arrays:
    found = rows(rng)["output0"][0]
    return {"1": found[:, :4], "2": found[:, 5].astype(np.int64) + 1, "3": found[:, 4]}


def torchvision_boxes(outputs: Arrays) -> Any:
    pairs = zip(outputs["1"], outputs["2"], outputs["3"], strict=True)
    return [(box, np.eye(90)[index - 1] * score) for box, index, score in pairs]


def dets(rng: np.random.Generator) -> Arrays:
    found = rows(rng)["output0"]
    return {"dets": found[..., :5], "labels": found[..., 5].astype(np.int64)}


def tensorflow(names: Sequence[str]) -> Callable[[np.random.Generator], Arrays]:
    def outputs(rng: np.random.Generator) -> Arrays:
        found = rows(rng)["output0"]
        first = 1 if names[0].startswith("detection") else 0
        parts = (found[..., [1, 0, 3, 2]] / SIDE, found[..., 5] + first, found[..., 4], np.array([100.0]))
        return dict(zip(names, parts, strict=True))

    return outputs


def tensorflow_boxes(outputs: Arrays) -> Any:
    boxes, classes, scores, _ = outputs.values()
    first = 1 if "detection_boxes" in outputs else 0
    for (top, left, bottom, right), index, score in zip(boxes[0], classes[0], scores[0], strict=True):
        yield np.array([left, top, right, bottom]) * SIDE, np.eye(90)[int(index) - first] * score


def queries(rng: np.random.Generator) -> Arrays:
    boxes = rng.uniform(0.1, 0.6, (60, 4))
    return {"output0": np.concatenate([boxes, chances(rng, 60, CLASSES)], 1)[None]}


EFFICIENT = (8, 16, 32, 64, 128)
TENSORFLOW = ("detection_boxes", "detection_classes", "detection_scores", "num_detections")
TFLITE = tuple(f"TFLite_Detection_PostProcess{end}" for end in ("", ":1", ":2", ":3"))
CASES: Mapping[str, Case] = {
    "yolo8, in shares": (
        lambda rng: in_shares(yolo8(rng), 1),
        lambda o: [(centred(*(r[:4] * SIDE)), r[4:]) for r in o["output0"][0].T],
        "contain",
        True,
    ),
    "yolo5, with maps": (
        lambda rng: with_maps(yolo5(rng)),
        yolo5_boxes,
        "contain",
        True,
    ),
    "yolo6": (decoded_yolox("outputs"), yolo5_boxes, "contain", True),
    "yolox, decoded": (decoded_yolox("output"), yolo5_boxes, "corner", True),
    "pair": (pair(False), pair_boxes, "contain", True),
    "turned pair": (pair(True), pair_boxes, "stretch", True),
    "efficientdet": (efficientdet, lambda o: list(efficientdet_boxes(o)), "corner", True),
    "centernet": (centernet, lambda o: list(centernet_boxes(o)), "contain", True),
    "numbered, class first": (
        columns(("picture", "box", "class", "score"), "output", False),
        columns_boxes(1, 6, 5),
        "contain",
        False,
    ),
    "numbered, score first": (
        columns(("picture", "box", "score", "class"), "output", False),
        columns_boxes(1, 5, 6),
        "contain",
        False,
    ),
    "paddle": (
        lambda rng: with_count(columns(("class", "score", "box"), "multiclass_nms3_0.tmp_0", False)(rng)),
        columns_boxes(2, 1, 0),
        "stretch",
        False,
    ),
    "torchvision": (torchvision, torchvision_boxes, "stretch", False),
    "dets": (
        dets,
        lambda o: [(r[:4], one_hot(r[4], int(k))) for r, k in zip(o["dets"][0], o["labels"][0], strict=True)],
        "corner",
        False,
    ),
    "scored, TensorFlow": (tensorflow(TENSORFLOW), lambda o: list(tensorflow_boxes(o)), "stretch", False),
    "scored, TensorFlow Lite": (tensorflow(TFLITE), lambda o: list(tensorflow_boxes(o)), "stretch", False),
    "queries": (
        queries,
        lambda o: [(centred(*(r[:4] * SIDE)), r[4:]) for r in o["output0"][0]],
        "stretch",
        False,
    ),
    "yolo8, with masks": (
        lambda rng: with_masks(yolo8(rng), 1),
        lambda o: [(centred(*r[:4]), r[4:-2]) for r in o["output0"][0].T],
        "contain",
        True,
    ),
    "yolo5, with masks": (
        lambda rng: with_masks(yolo5(rng), 2),
        lambda o: [(centred(*r[:4]), r[4] * r[5:-2]) for r in o["output0"][0]],
        "contain",
        True,
    ),
    "yolo8": (yolo8, lambda o: [(centred(*r[:4]), r[4:]) for r in o["output0"][0].T], "contain", True),
    "yolo5": (yolo5, lambda o: [(centred(*r[:4]), r[4] * r[5:]) for r in o["output0"][0]], "contain", True),
    "yolox": (yolox, lambda o: list(yolox_boxes(o)), "corner", True),
    "picodet": (picodet, lambda o: list(picodet_boxes(o)), "stretch", True),
    "nanodet": (nanodet, lambda o: list(nanodet_boxes(o)), "stretch", True),
    "detr": (detr(0), lambda o: list(detr_boxes(o)), "stretch", False),
    "detr, with a class of nothing": (detr(1), lambda o: list(detr_boxes(o)), "stretch", False),
    "ssd": (ssd, lambda o: list(ssd_boxes(o)), "stretch", True),
    "list": (rows, rows_boxes, "contain", False),
    "scored": (scored, scored_boxes, "stretch", False),
}
