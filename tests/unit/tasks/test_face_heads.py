"""Heads of detectors of faces: outputs of the true shapes, with random numbers, give the boxes and points of a plain reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

import singe as sg
from singe.model.model import Model

pytestmark = pytest.mark.slow

SIDE, STRIDES = 64, (8, 16, 32)
Arrays = Mapping[str, np.ndarray]
Face = tuple[float, Sequence[float], Sequence[Sequence[float]]]
"""A score, a box, and points."""


def cells(each: int) -> list[tuple[int, int, int, int]]:
    """x, y, stride and number among those of its cell."""
    return [(x, y, s, k) for s in STRIDES for y in range(SIDE // s) for x in range(SIDE // s) for k in range(each)]


def parts(rng: np.random.Generator, widths: Mapping[str, int], each: int, batch: bool) -> dict[str, np.ndarray]:
    """Outputs for each stride; scores are mostly low."""
    found: dict[str, np.ndarray] = {}
    for name, width in widths.items():
        for s in STRIDES:
            x = rng.random((each * (SIDE // s) ** 2, width))
            found[f"{name}_{s}"] = (
                (x**6 if width == 1 else x * 2 - 0.5)[None] if batch else (x**6 if width == 1 else x * 2 - 0.5)
            )
    return found


def rows(outputs: Arrays, name: str) -> np.ndarray:
    return np.concatenate([outputs[f"{name}_{s}"].reshape(-1, outputs[f"{name}_{s}"].shape[-1]) for s in STRIDES])


def points_of(numbers: np.ndarray, x: float, y: float, unit: float) -> list[tuple[float, float]]:
    return [(x + u * unit, y + v * unit) for u, v in numbers.reshape(-1, 2)]


def yunet(o: Arrays) -> list[Face]:
    found: list[Face] = []
    sure, known, boxes, points = (rows(o, part) for part in ("cls", "obj", "bbox", "kps"))
    for k, (x, y, s, _) in enumerate(cells(1)):
        cx, cy = (x + boxes[k, 0]) * s, (y + boxes[k, 1]) * s
        w, h = np.exp(boxes[k, 2:]) * s
        score = float(np.sqrt(sure[k, 0] * known[k, 0]))
        found.append((score, (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2), points_of(points[k], x * s, y * s, s)))
    return found


def scrfd(o: Arrays) -> list[Face]:
    scores, far, points = (rows(o, part) for part in ("score", "bbox", "kps"))
    found: list[Face] = []
    for k, (x, y, s, _) in enumerate(cells(2)):
        left, top, right, low = far[k] * s
        box = (x * s - left, y * s - top, x * s + right, y * s + low)
        found.append((float(scores[k, 0]), box, points_of(points[k], x * s, y * s, s)))
    return found


def retina(o: Arrays) -> list[Face]:
    found: list[Face] = []
    for k, (x, y, s, n) in enumerate(cells(2)):
        side = s * (2.0, 4.0)[n]
        loc = o["loc"][0, k]
        cx, cy = (x + 0.5) * s + loc[0] * side * 0.1, (y + 0.5) * s + loc[1] * side * 0.1
        w, h = side * np.exp(loc[2:] * 0.2)
        points = points_of(o["landms"][0, k], (x + 0.5) * s, (y + 0.5) * s, side * 0.1)
        found.append((float(o["conf"][0, k, 1]), (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2), points))
    return found


def of_retina(rng: np.random.Generator) -> Arrays:
    n = len(cells(2))
    return {
        "loc": rng.random((1, n, 4)) * 2 - 1,
        "conf": rng.random((1, n, 2)) ** 6,
        "landms": rng.random((1, n, 10)) * 2 - 1,
    }


CASES: Mapping[str, tuple[Callable[[np.random.Generator], Arrays], Callable[[Arrays], list[Face]], float]] = {
    "yunet": (lambda rng: parts(rng, {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}, 1, True), yunet, 0.3),
    "scrfd": (lambda rng: parts(rng, {"score": 1, "bbox": 4, "kps": 10}, 2, False), scrfd, 0.4),
    "retina": (of_retina, retina, 0.4),
}


def detector(outputs: Arrays) -> Model:
    def function(images: sg.Tensor) -> dict[str, sg.Tensor]:
        nothing = images.sum() * 0.0
        return {name: sg.tensor(np.asarray(x, np.float32)) + nothing for name, x in outputs.items()}

    return Model.of(function, {"images": (1, 3, SIDE, SIDE)}, "numpy")


def shared(a: Sequence[float], b: Sequence[float]) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(0.0, wide) * max(0.0, high)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


@pytest.mark.parametrize("name", CASES)
def test_a_head_of_faces_gives_the_boxes_and_points_of_the_reference(name: str) -> None:
    make, plain, overlap = CASES[name]
    outputs = {k: np.asarray(x, np.float32) for k, x in make(np.random.default_rng(5)).items()}
    faces = sg.task("faces", detector(outputs))
    assert faces.info.head == name
    wanted: list[Face] = []
    for face in sorted(plain(outputs), key=lambda f: -f[0]):
        if face[0] >= 0.4 and not any(shared(face[1], other[1]) > overlap for other in wanted):
            wanted.append(face)
    found = faces(np.zeros((SIDE, SIDE, 3), np.uint8), threshold=0.4)
    assert len(wanted) > 2
    assert [x.label for x in found] == ["face"] * len(wanted)
    for item, (score, box, points) in zip(found, wanted, strict=True):
        assert item.score == pytest.approx(score, abs=1e-5)
        corners = [item.box.xmin, item.box.ymin, item.box.xmax, item.box.ymax]
        np.testing.assert_allclose(corners, np.clip(box, 0, SIDE), atol=1e-3)
        np.testing.assert_allclose(item.landmarks, points, atol=1e-3)


def test_faces_by_two_classes_are_found() -> None:
    scores = np.zeros((1, 2400, 2), np.float32)
    boxes = np.zeros((1, 2400, 4), np.float32)
    scores[0, 7] = (0.1, 0.9)
    boxes[0, 7] = (0.25, 0.5, 0.75, 1.0)
    (face,) = sg.task("faces", detector({"scores": scores, "boxes": boxes}))(np.zeros((40, 80, 3), np.uint8))
    assert [face.box.xmin, face.box.ymin, face.box.xmax, face.box.ymax] == pytest.approx([20, 20, 60, 40], abs=1e-4)
