"""Heads of detectors: outputs of the true shapes, with random numbers, give the boxes of a plain reference in the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.errors import InputError
from singe.model.model import Model
from singe.tasks import Findings

SIDE, CLASSES = 96, 80
WIDE, HIGH = 250, 130
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


CASES: Mapping[str, Case] = {
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


def detector(outputs: Arrays, device: str | sg.Device = "numpy") -> Model:
    """A model of pictures that gives these outputs, whatever it is given."""

    def function(images: sg.Tensor) -> dict[str, sg.Tensor]:
        nothing = images.sum() * 0.0
        return {name: sg.tensor(np.asarray(x, np.float32)) + nothing for name, x in outputs.items()}

    return Model.of(function, {"images": (1, 3, SIDE, SIDE)}, device)


def in_picture(box: Sequence[float], fit: str) -> list[float]:
    """A box of the input in the picture, as the definition of the fit says."""
    if fit == "stretch":
        (sx, sy), (ox, oy) = (WIDE / SIDE, HIGH / SIDE), (0.0, 0.0)
    else:
        sx = sy = max(WIDE, HIGH) / SIDE
        ox, oy = (0.0, 0.0) if fit == "corner" else (-((SIDE - side / sx) // 2) * sx for side in (WIDE, HIGH))
    ends = (WIDE, HIGH, WIDE, HIGH)
    return [
        min(max(v * s + o, 0.0), e) for v, s, o, e in zip(box, (sx, sy, sx, sy), (ox, oy, ox, oy), ends, strict=True)
    ]


def shared(a: Sequence[float], b: Sequence[float]) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(0.0, wide) * max(0.0, high)
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common / both


def reference(outputs: Arrays, case: Case, threshold: float) -> list[tuple[int, float, list[float]]]:
    """Class, score and box of what is found, the best first."""
    _, boxes_of, fit, suppresses = case
    ranked = sorted(
        ((float(max(s)), int(np.argmax(s)), list(b)) for b, s in boxes_of(outputs)), key=lambda one: -one[0]
    )
    kept: list[tuple[float, int, list[float]]] = []
    for score, index, box in ranked:
        hidden = suppresses and any(k == index and shared(b, box) > 0.45 for _, k, b in kept)
        if score >= threshold and not hidden:
            kept.append((score, index, box))
    return [(index, score, in_picture(box, fit)) for score, index, box in kept[:300]]


@pytest.mark.parametrize("name", CASES)
def test_a_head_is_recognised_and_gives_the_boxes_of_the_reference(name: str) -> None:
    case = CASES[name]
    outputs = {k: np.asarray(x, np.float32) for k, x in case[0](np.random.default_rng(7)).items()}
    detect = sg.task("detect", detector(outputs), labels="coco")
    assert (detect.info.head, detect.info.preparation.fit) == (name.partition(",")[0], case[2])
    found: Findings = detect(np.zeros((HIGH, WIDE, 3), np.uint8), threshold=0.4)
    wanted = reference(outputs, case, 0.4)
    assert len(wanted) > 5
    assert [x.index for x in found] == [index for index, _, _ in wanted]
    np.testing.assert_allclose([x.score for x in found], [score for _, score, _ in wanted], rtol=2e-5)
    boxes = [(x.box.xmin, x.box.ymin, x.box.xmax, x.box.ymax) for x in found if x.box]
    np.testing.assert_allclose(boxes, [box for _, _, box in wanted], atol=2e-2)
    assert found[0].label == detect.info.labels[found[0].index]


def test_devices_answer_alike(on: sg.Device) -> None:
    outputs = CASES["yolo8"][0](np.random.default_rng(3))
    picture = np.zeros((HIGH, WIDE), np.uint8)
    here, there = (sg.task("detect", detector(outputs, d), labels="coco")(picture) for d in ("numpy", on))
    assert len(here) > 5
    assert [x.index for x in here] == [x.index for x in there]
    np.testing.assert_allclose([x.box.xmax for x in here], [x.box.xmax for x in there], atol=1e-3)


def test_what_is_recognised_by_no_head_is_refused_with_its_shapes() -> None:
    with pytest.raises(
        InputError, match=r"outputs logits \(1, 3\) are none of those that it decodes; classify would take them"
    ):
        sg.task("detect", detector({"logits": np.zeros((1, 3))}))


def test_numbers_that_are_no_classes_and_boxes_that_are_no_corners_are_refused() -> None:
    poses = {"output0": np.zeros((1, 56, len(FINE)))}
    with pytest.raises(InputError, match="with 52 classes it wants labels"):
        sg.task("detect", detector(poses))
    assert sg.task("detect", detector(poses), labels=[f"part {k}" for k in range(52)]).info.head == "yolo8"
    with pytest.raises(InputError, match="with 1 labels are none of those that are known"):
        sg.task("detect", detector(poses), labels=["person"])
    raw = {"boxes": (1, 19206, 4), "scores": (1, 19206, 90)}

    def function(images: sg.Tensor) -> dict[str, sg.Tensor]:
        return {name: sg.zeros(shape) + images.sum() for name, shape in raw.items()}

    efficient = Model.of(function, {"images": (1, 3, 320, 320)}, "numpy")
    with pytest.raises(InputError, match="are none of those that are known"):
        sg.task("detect", efficient)


def test_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"detect: 2 labels, given or named by the file, do not fit the outputs .*: give as many as there are classes",
    ):
        sg.task("detect", detector(CASES["yolo8"][0](np.random.default_rng(0))), labels=["cat", "dog"])


def test_a_threshold_that_the_graph_cannot_meet_is_refused() -> None:
    detect = sg.task("detect", detector(CASES["list"][0](np.random.default_rng(0))))
    with pytest.raises(InputError, match=r"threshold is 0\.01, expected a score from 0\.05"):
        detect(np.zeros((9, 9), np.uint8), threshold=0.01)
