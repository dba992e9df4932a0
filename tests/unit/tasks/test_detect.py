"""Heads of detectors: outputs of the true shapes, with random numbers, give the boxes of a plain reference in the picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from detector_heads import CASES, FINE, SIDE, Arrays, Case

import singe as sg
from singe.errors import InputError
from singe.model.model import Model
from singe.tasks import Box, Findings

WIDE, HIGH = 250, 130


def typed(x: np.ndarray) -> np.ndarray:
    return x if x.dtype.kind == "i" else np.asarray(x, np.float32)


def detector(outputs: Arrays, device: str | sg.Device = "numpy") -> Model:
    """A model of pictures that gives these outputs, whatever it is given."""

    def function(images: sg.Tensor) -> dict[str, sg.Tensor]:
        nothing = images.sum() * 0.0
        return {name: sg.tensor(typed(x)) + nothing.to(dtype=typed(x).dtype.name) for name, x in outputs.items()}

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
    outputs = {k: typed(x) for k, x in case[0](np.random.default_rng(7)).items()}
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
    with pytest.raises(InputError, match="none of those that it decodes; pose would take them"):
        sg.task("detect", detector(poses))
    assert sg.task("detect", detector(poses), labels=[f"part {k}" for k in range(52)]).info.head == "yolo8"
    with pytest.raises(InputError, match="pose would take them"):
        sg.task("detect", detector(poses), labels=["person"])
    raw = {f"{s}": np.zeros((1, 255, SIDE // s, SIDE // s)) for s in (8, 16, 32)}
    with pytest.raises(InputError, match="maps of anchors that are not decoded: export the model with its decoding"):
        sg.task("detect", detector(raw), labels="coco")
    encoded = {"boxes": np.zeros((1, 3234, 4)), "scores": np.zeros((1, 3234, 91))}
    with pytest.raises(InputError, match="are none of those that are known"):
        sg.task("detect", detector(encoded))


@pytest.mark.parametrize("name", ["torchvision", "scored, TensorFlow", "scored, TensorFlow Lite", "efficientdet"])
def test_the_names_of_coco_are_in_the_models_own_numbering(name: str) -> None:
    detect = sg.task("detect", detector(CASES[name][0](np.random.default_rng(7))), labels="coco")
    assert len(detect.info.labels) == 90
    assert (detect.info.labels[0], detect.info.labels[11], detect.info.labels[89]) == (
        "person",
        "class 12",
        "toothbrush",
    )


def reference_mask(values: np.ndarray, box: Box, step: float, start: tuple[float, float]) -> np.ndarray:
    """Where a map, a quarter of the input's sides, is over 0, with straight lines between its places, within a box."""
    found = np.zeros((HIGH, WIDE), np.uint8)
    for y in range(HIGH):
        for x in range(WIDE):
            if not (box.xmin <= x + 0.5 < box.xmax and box.ymin <= y + 0.5 < box.ymax):
                continue
            places = [(c + 0.5 - s) / step / 4 - 0.5 for c, s in zip((y, x), start, strict=True)]
            low = [
                min(max(int(np.floor(min(max(p, 0), n - 1))), 0), n - 1)
                for p, n in zip(places, values.shape, strict=True)
            ]
            part = [min(max(p, 0), n - 1) - k for p, n, k in zip(places, values.shape, low, strict=True)]
            total = 0.0
            for dy in (0, 1):
                for dx in (0, 1):
                    weight = (part[0] if dy else 1 - part[0]) * (part[1] if dx else 1 - part[1])
                    at = min(low[0] + dy, values.shape[0] - 1), min(low[1] + dx, values.shape[1] - 1)
                    total += weight * values[at]
            found[y, x] = 255 * (total > 0)
    return found


@pytest.mark.parametrize("kind", ["yolo8", "list"])
def test_masks_are_made_of_patterns(kind: str) -> None:
    rng = np.random.default_rng(5)
    patterns = rng.normal(0, 1, (1, 3, SIDE // 4, SIDE // 4)).astype(np.float32)
    base = CASES[kind][0](rng)["output0"]
    axis = 1 if kind == "yolo8" else 2
    shares = rng.normal(0, 1, [3 if k == axis else n for k, n in enumerate(base.shape)]).astype(np.float32)
    outputs = {"output0": np.concatenate([base, shares], axis), "output1": patterns}
    found = sg.task("detect", detector(outputs), labels="coco")(np.zeros((HIGH, WIDE, 3), np.uint8), threshold=0.6)
    assert len(found) > 3
    table = np.moveaxis(np.asarray(outputs["output0"], np.float32), axis, 2)[0]
    scores = table[:, 4:-3].max(1) if kind == "yolo8" else table[:, 4]
    step = WIDE / SIDE
    start = (-((SIDE - HIGH / step) // 2) * step, 0.0)
    for item in found[:4]:
        row = table[int(np.abs(scores - item.score).argmin())]
        values = np.tensordot(row[-3:], patterns[0], 1)
        assert item.mask is not None
        assert item.box is not None
        wrong = item.mask != reference_mask(values, item.box, step, start)
        assert np.count_nonzero(wrong) <= 3  # of those that are equally near
        assert np.count_nonzero(item.mask) > 10


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
