"""People with points: outputs of the true shapes, with random numbers, give the points of a plain reference in the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.errors import InputError
from singe.model.model import Model
from singe.tasks.kinds.pose import JOINTS

SIDE, WIDE, HIGH, POINTS = 96, 250, 130, 17
PLACES = sum((SIDE // s) ** 2 for s in (8, 16, 32))
Arrays = Mapping[str, np.ndarray]
People = list[tuple[float, np.ndarray]]
"""The best first: a score, and points of x and y in pixels of the input, and how sure."""


def people(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes of centres and sides that are far apart, scores, and points."""
    centers = np.arange(count)[:, None] * np.array([[0.0, 3.0]]) + 5
    boxes = np.concatenate([centers, np.full((count, 2), 2.0)], 1)
    points = rng.uniform(0, SIDE, (count, POINTS, 3))
    points[..., 2] = rng.random((count, POINTS))
    return boxes, rng.permutation(count) / count, points


def corners(boxes: np.ndarray) -> np.ndarray:
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)


def flat(points: np.ndarray) -> np.ndarray:
    return points.reshape(len(points), -1)


def ranked(scores: np.ndarray, points: np.ndarray) -> People:
    order = np.argsort(-scores)
    return [(float(scores[k]), points[k]) for k in order if scores[k] >= 0.4]


def yolo8(rng: np.random.Generator) -> tuple[Arrays, People]:
    boxes, scores, points = people(rng, PLACES)
    rows = np.concatenate([boxes, scores[:, None], flat(points)], 1)
    return {"output0": rows.T[None]}, ranked(scores, points)


def yolo7(rng: np.random.Generator) -> tuple[Arrays, People]:
    boxes, scores, points = people(rng, 3 * PLACES)
    rows = np.concatenate([boxes, scores[:, None], np.full((len(boxes), 1), 0.9), flat(points)], 1)
    return {"output": rows[None]}, ranked(scores * 0.9, points)


def listed(rng: np.random.Generator) -> tuple[Arrays, People]:
    boxes, scores, points = people(rng, 100)
    rows = np.concatenate([corners(boxes), scores[:, None], np.zeros((100, 1)), flat(points)], 1)
    return {"output0": rows[None]}, ranked(scores, points)


def multipose(rng: np.random.Generator) -> tuple[Arrays, People]:
    boxes, scores, points = people(rng, 6)
    own = np.concatenate([points[..., 1::-1] / SIDE, points[..., 2:]], 2)
    rows = np.concatenate([flat(own), corners(boxes)[:, [1, 0, 3, 2]] / SIDE, scores[:, None]], 1)
    return {"output_0": rows[None]}, ranked(scores, points)


def movenet(rng: np.random.Generator) -> tuple[Arrays, People]:
    _, _, points = people(rng, 1)
    points[..., 2] = points[..., 2] / 2 + 0.5
    own = np.concatenate([points[..., 1::-1] / SIDE, points[..., 2:]], 2)
    return {"output_0": own[None]}, [(float(points[0, :, 2].mean()), points[0])]


def simcc(rng: np.random.Generator) -> tuple[Arrays, People]:
    rows = {f"simcc_{axis}": rng.uniform(0, 0.5, (1, POINTS, 2 * SIDE)) for axis in "xy"}
    places = rng.integers(0, 2 * SIDE, (2, POINTS))
    sure = rng.uniform(0.6, 1, (2, POINTS))
    for row, place, high in zip(rows.values(), places, sure, strict=True):
        row[0, np.arange(POINTS), place] = high
    points = np.stack([places[0] / 2, places[1] / 2, sure.min(0)], 1)
    return rows, [(float(sure.min(0).mean()), points)]


def maps(rng: np.random.Generator) -> tuple[Arrays, People]:
    n = SIDE // 4
    found = rng.uniform(0, 0.5, (1, POINTS, n, n))
    points = np.zeros((POINTS, 3))
    for k, (x, y) in enumerate(rng.integers(0, n, (POINTS, 2))):
        found[0, k, y, x] = high = rng.uniform(0.6, 1)
        dx = np.sign(found[0, k, y, x + 1] - found[0, k, y, x - 1]) / 4 if 0 < x < n - 1 else 0
        dy = np.sign(found[0, k, y + 1, x] - found[0, k, y - 1, x]) / 4 if 0 < y < n - 1 else 0
        points[k] = (x + dx + 0.5) * 4, (y + dy + 0.5) * 4, high
    return {"heatmaps": found}, [(float(points[:, 2].mean()), points)]


CASES: Mapping[str, Callable[[np.random.Generator], tuple[Arrays, People]]] = {
    "yolo8": yolo8, "yolo7": yolo7, "list": listed, "multipose": multipose, "movenet": movenet, "simcc": simcc, "maps": maps,
}  # fmt: skip


def model_of(outputs: Arrays, device: Any = "numpy") -> Model:
    def function(images: sg.Tensor) -> dict[str, sg.Tensor]:
        nothing = images.sum() * 0.0
        return {name: sg.tensor(np.asarray(x, np.float32)) + nothing for name, x in outputs.items()}

    return Model.of(function, {"images": (1, 3, SIDE, SIDE)}, device)


@pytest.mark.parametrize("name", CASES)
def test_people_have_the_points_of_the_reference(name: str) -> None:
    outputs, wanted = CASES[name](np.random.default_rng(3))
    pose = sg.task("pose", model_of(outputs))
    found = pose(np.zeros((HIGH, WIDE, 3), np.uint8), threshold=0.4)
    assert (pose.info.head, found[0].label, found.joints) == (name, "person", [list(pair) for pair in JOINTS])
    wanted = wanted[:300]
    assert len(found) == len(wanted)
    np.testing.assert_allclose([x.score for x in found], [score for score, _ in wanted], rtol=1e-5)
    step = WIDE / SIDE
    top = ((SIDE - HIGH / step) // 2) * step
    for item, (_, points) in zip(found, wanted, strict=True):
        assert item.landmarks is not None
        at = np.stack([points[:, 0] * step, points[:, 1] * step - top, points[:, 0] * 0, points[:, 2]], 1)
        np.testing.assert_allclose(item.landmarks, at, atol=2e-3)
    assert set(found.to_dict()[0]["landmarks"][0]) == {"x", "y", "z", "visibility"}


def test_points_that_may_have_two_or_three_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="pose: the outputs output0"):
        sg.task("pose", model_of({"output0": np.zeros((1, 5 + 12, PLACES))}), labels=["tiger"])


def test_devices_answer_alike(on: sg.Device) -> None:
    outputs, _ = maps(np.random.default_rng(1))
    here, there = (sg.task("pose", model_of(outputs, d))(np.zeros((HIGH, WIDE), np.uint8)) for d in ("numpy", on))
    np.testing.assert_allclose(here[0].landmarks, there[0].landmarks, atol=1e-3)
