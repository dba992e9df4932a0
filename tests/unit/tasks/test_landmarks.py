"""Landmarks: finds are merged as a plain loop does it, crops stand upright, points go back to the picture, and are followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pointing import Told, palms, task_of

import singe as sg
from singe.errors import FormatError, InputError
from singe.model.model import Model
from singe.tasks import Finding, Findings
from singe.tasks.chains import CHAINS
from singe.tasks.chains.landmarks import PATIENCE, apart, merged
from singe.tasks.chains.subjects import SUBJECTS, Subject, _refined

RNG = np.random.default_rng(11)
ROOT = Path(__file__).parents[3]
CHAIN = CHAINS["landmarks"]
HAND, FACE, PERSON = SUBJECTS


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    return float(sides[0] * sides[1] / (sum(areas) - sides[0] * sides[1]))


@pytest.mark.slow
def test_finds_that_overlap_are_one_between_them(on: sg.Device) -> None:
    center = np.repeat(RNG.uniform(20, 170, (6, 2)), 12, 0) + RNG.normal(size=(72, 2)) * 4
    boxes = np.concatenate([center - 12, center + RNG.uniform(10, 14, (72, 2))], 1).astype(np.float32)
    scores = RNG.uniform(0, 1, 72).astype(np.float32)
    points = RNG.normal(size=(72, 3, 2)).astype(np.float32)

    def both(boxes: sg.Tensor, scores: sg.Tensor, points: sg.Tensor, least: sg.Tensor) -> dict[str, sg.Tensor]:
        found = merged({"boxes": boxes, "scores": scores, "landmarks": points}, least)
        return dict(zip(("boxes", "scores", "points"), found, strict=True))

    model = Model.of(both, {"boxes": (72, 4), "scores": (72, 1), "points": (72, 3, 2), "least": (1,)}, on)
    found = model(boxes, scores[:, None], points, np.array([0.5], np.float32))
    rest = [k for k in np.argsort(-scores) if scores[k] >= 0.5]
    wanted: list[tuple[np.ndarray, float, np.ndarray]] = []
    while rest:
        own = [k for k in rest if overlap(boxes[rest[0]], boxes[k]) > 0.3]
        mean = [np.average(x[own], axis=0, weights=scores[own]) for x in (boxes, points)]
        wanted.append((mean[0], float(scores[rest[0]]), mean[1]))
        rest = [k for k in rest if k not in own]
    assert len(wanted) > 3
    for name, values in zip(("boxes", "scores", "points"), zip(*wanted, strict=True), strict=True):
        np.testing.assert_allclose(found[name], np.array(values), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_points_move_to_the_centre_of_what_their_maps_have_near_them(on: sg.Device) -> None:
    places = np.array([[3.2, 4.7], [15.6, 0.3], [-2.0, 5.0], [8.0, 8.0]], np.float32)
    maps = RNG.normal(size=(16, 16, 4)).astype(np.float32) * 3
    maps[..., 3] = -4  # nothing is clear there
    found = Model.of(_refined, {"places": (4, 2), "maps": (16, 16, 4)}, on)(places, maps)
    wanted = places.copy()
    for k in (0, 1):
        x, y = places[k].astype(int)
        rows = [(r, c) for r in range(y - 3, y + 4) for c in range(x - 3, x + 4) if 0 <= r < 16 and 0 <= c < 16]
        weights = [1 / (1 + np.exp(-maps[r, c, k])) for r, c in rows]
        assert max(weights) >= 0.5
        wanted[k] = np.average([(c, r) for r, c in rows], axis=0, weights=weights)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def turned(degrees: float) -> np.ndarray:
    a = np.radians(degrees)
    return np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])


def side_of(region: np.ndarray) -> float:
    return float(np.hypot(*region[2:]))


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.label)
def test_regions_turn_and_grow_with_what_they_are_of(subject: Subject) -> None:
    count = {"hand": 21, "face": 468, "person": 39}[subject.label]
    points = RNG.uniform(50, 90, (count, 2))
    whole = Model.of(subject.next, {"points": (count, 2)}, "numpy")
    first = whole(points.astype(np.float32))
    if subject is FACE:  # its box stays level
        return
    for degrees, scale in ((90, 1.0), (-37, 2.0)):
        moved = points @ turned(degrees) * scale + (5, -3)
        other = whole(moved.astype(np.float32))
        np.testing.assert_allclose(other[:2], first[:2] @ turned(degrees) * scale + (5, -3), atol=1e-2)
        np.testing.assert_allclose(other[2:], first[2:] @ turned(degrees) * scale, atol=1e-2)


def test_a_hand_is_upright_in_its_region() -> None:
    """Of a hand that points to the right, the upper edge of the region goes down."""
    boxes = np.array([[10, 20, 30, 60]], np.float32)
    points = np.array([[[10, 40], [0, 0], [30, 40]]], np.float32)
    region = Model.of(HAND.first, {"boxes": (1, 4), "points": (1, 3, 2)}, "numpy")(boxes, points)[0]
    np.testing.assert_allclose(region[2:], (0, 2.6 * 40), atol=1e-4)
    np.testing.assert_allclose(region[:2], (20 + 20, 40), atol=1e-4)


@pytest.mark.slow
def test_a_task_of_landmarks_answers_in_the_pictures_pixels() -> None:
    track = task_of()
    picture = np.full((96, 96, 3), 200, np.uint8)
    found = track(picture)
    assert isinstance(found, Findings)
    (one,) = found
    assert isinstance(one, Finding)
    assert (one.label, one.handedness) == ("hand", "Right")
    assert one.landmarks is not None
    assert one.landmarks.shape == (21, 3)
    # The palm is at an anchor; its region, 2.6 · 40 / 2 = 52 pixels wide, is up by half of its height.
    y, x = divmod(300, 24)
    center = np.array([(x + 0.5) / 24 * 96, (y + 0.5) / 24 * 96 - 10])
    bright = 200 / 255
    wanted = center + (np.array([112 + 60 + bright, 112 + bright]) / 224 - 0.5) * 52
    np.testing.assert_allclose(one.landmarks[0, :2], wanted, atol=0.05)
    np.testing.assert_allclose(one.landmarks[1, 2], (2 * np.pi / 21 + bright) / 0.4 * 52 / 224, rtol=1e-3)
    data = json.loads(json.dumps(found.to_dict()))
    assert data[0].keys() == {"label", "score", "index", "box", "landmarks", "handedness"}
    assert data[0]["landmarks"][0].keys() == {"x", "y", "z"}
    assert str(one).startswith("right hand 90.0% at (")
    assert len(track(np.zeros((30, 40, 3), np.uint8))) == 0
    with pytest.raises(InputError, match="top is 17, expected how many are found, from 1 to 16"):
        track(picture, top=17)
    with pytest.raises(InputError, match="threshold is 0, expected a score above 0"):
        track(picture, threshold=0)


@pytest.mark.slow
def test_a_bundle_of_several_models_is_a_task_again(tmp_path: Path) -> None:
    pytest.importorskip("wasmtime", reason="no wasmtime here")
    track = task_of()
    bundle = sg.export(track, tmp_path / "hands", ["wasm"])
    assert (tmp_path / "hands" / "find" / "model.json").is_file()
    assert not list((tmp_path / "hands" / "find").glob("*.js"))
    assert bundle.parts.keys() == {"find"}
    again = sg.task("landmarks", tmp_path / "hands", device="wasm")
    assert again.info.to_dict() == track.info.to_dict()
    picture = np.full((96, 120, 3), 200, np.uint8)
    (mine,), (theirs,) = again(picture), track(picture)
    np.testing.assert_allclose(mine.landmarks, theirs.landmarks, rtol=1e-4, atol=1e-3)
    manifest = json.loads((tmp_path / "hands" / "model.json").read_text())
    for change, problem in (
        ({"parts": ["points"]}, "expected find, points"),
        ({"parts": 3}, "not the facts of a task"),
    ):
        (tmp_path / "hands" / "model.json").write_text(json.dumps({**manifest, "task": {**manifest["task"], **change}}))
        with pytest.raises(FormatError, match=problem):
            sg.task("landmarks", tmp_path / "hands", device="wasm")


PICTURE = np.zeros((4, 4, 4), np.uint8)


def test_what_is_found_is_followed_until_its_score_falls() -> None:
    told = Told([[10, 10, 8, 0]], {12.0: 0.4})
    follow = CHAIN.begin(told.parts(), {"threshold": 0.5, "top": 1})
    answers: list[Any] = [follow(PICTURE) for _ in range(4)]
    assert told.calls == ["find", "10", "11", "12", "find", "10"]
    assert [[one.box.xmin for one in answer] for answer in answers] == [[10.0], [11.0], [], [10.0]]


def test_others_are_looked_for_now_and_then() -> None:
    told = Told([[10, 10, 80, 0]], {})
    follow: Any = CHAIN.begin(told.parts(), {"threshold": 0.5, "top": 2})
    assert all(len(follow(PICTURE)) == 1 for _ in range(PATIENCE + 1)), "the find is the one that is followed"
    assert [k for k, call in enumerate(told.calls) if call == "find"] == [0, PATIENCE + 1]


def test_finds_of_the_same_are_one() -> None:
    regions = [np.array(r, np.float32) for r in ([0, 0, 10, 0], [2, 0, 0, 10], [9, 0, 10, 0], [0, 0, 4, 0])]
    assert [float(r[0]) for r in apart(regions)] == [0, 9, 0]
    told = Told([[10, 10, 8, 0], [11, 10, 8, 0], [40, 10, 8, 0]], {})
    found: Any = CHAIN.begin(told.parts(), {"threshold": 0.5, "top": 9})(PICTURE)
    assert len(found) == 2


def test_models_that_do_not_belong_together_are_refused() -> None:
    find = Model.of(palms, {"x": (1, 192, 192, 3)}, "numpy")
    face = Model.of(
        lambda x: x.mean().reshape(1, 1) * sg.tensor(np.ones((1, 1404), np.float32)), {"x": (1, 192, 192, 3)}, "numpy"
    )
    with pytest.raises(InputError, match="got a detector of a hand, and points of a face"):
        CHAIN.facts({"find": find, "points": face}, {})
    with pytest.raises(InputError, match="a model of points gives 63 numbers or 1404 numbers or 195 numbers"):
        CHAIN.facts({"find": find, "points": find}, {})
    with pytest.raises(
        InputError, match=r"has no palms\.tflite or faces\.tflite or people\.tflite and no hand\.tflite"
    ):
        sg.task("landmarks", "zoo:ppocr")


MAKERS = json.loads((ROOT / "tests" / "golden" / "landmarks.json").read_text())
NEAR = {"hands": (0.03, 0.06), "face-mesh": (0.04, 0.08), "pose": (0.01, 0.03)}
"""How far points may lie from the maker's, in the mean and at most, as parts of the larger side around them: its own sampling is half a
pixel off, and without that they lie within 0.005."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NEAR)
def test_points_lie_where_the_makers_own_pipeline_has_them(name: str) -> None:
    pytest.importorskip("PIL.Image", reason="Pillow is not here")
    try:
        track: Any = sg.task("landmarks", f"zoo:{name}", device="numpy")
    except InputError as e:
        pytest.skip(str(e))
    found = track(ROOT / "demos" / "tasks" / "samples" / "figure.jpg")
    assert len(found) == len(MAKERS[name])
    for theirs in MAKERS[name]:
        points = np.array(theirs["points"])
        size = np.ptp(points[:, :2], axis=0).max()
        far = [np.hypot(*(one.landmarks[:, :2] - points[:, :2]).T) / size for one in found]
        best = int(np.argmin([x.mean() for x in far]))
        assert far[best].mean() < NEAR[name][0]
        assert far[best].max() < NEAR[name][1]
        if "hand" in theirs:  # theirs are of a mirrored picture
            assert {found[best].handedness, theirs["hand"]} == {"Left", "Right"}
