"""Landmarks of hands, faces and people: one model finds them, another, which sees each upright and of one size, has the points.

In a stream the second one says where each will be in the next frame, so the first runs only where nothing is followed, and now and
then to see what is new. What follows is plain: the JavaScript of singe-task-landmarks.js does the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...graph import Graph
from ...model.model import Model
from ...tensors.functions.creation import concatenate, stack, tensor, where
from ...tensors.tensor import Tensor
from ..answers import Box, Finding, Findings
from ..applying import applied
from ..kinds.base import Asked
from ..kinds.faces import OVERLAP, decoded, recognise
from ..picture.preparing import framed, inside, scalar
from ..picture.spec import PictureInput
from .base import Chain, ChainPart, ChainParts, Following
from .crops import cropped, samples_of
from .subjects import detected, seen

MOST: Final = 16
"""So many are found at most."""
SAME: Final = 0.5
"""Regions whose common area is more than this part of their area together are of the same."""
PATIENCE: Final = 5
"""In a stream where fewer are followed than asked for, others are looked for in every so many frames."""
HANDS: Final = ("Left", "Right")


def _finding(model: Model) -> Graph:
    """picture and the least score ↦ scores (finds,) and regions (finds, 4), the best first. A pixel is sampled once, as in the makers'
    own pipeline: these models find fewer in pictures that are antialiased."""
    net = model.graph()
    subject = detected(net)
    size = _size(net)
    mean, std = subject.around
    spec = PictureInput(size, fit="contain")
    shapes: Any = {name: x.shape for name, x in zip(net.output_names, net.outputs, strict=True)}
    options = recognise(shapes, Asked(size, None))
    assert options is not None

    def whole(picture: Tensor, threshold: Tensor) -> dict[str, Tensor]:
        height, width = picture.shape[:2]
        frame = framed(height, width, spec)
        (y, x), (down, right), none = frame.starts, frame.steps, scalar(0)
        place = stack([x, y, right, none, none, down]).unsqueeze(0)
        pixels = where(inside(frame), cropped(picture, place, *size, tensor(samples_of(1.0))), 0.0)
        outputs = applied(net, [(pixels - mean) / std])
        boxes, scores, points = merged(decoded(outputs, size, options), threshold)
        corners = concatenate([frame.points(boxes[:, :2]), frame.points(boxes[:, 2:])], axis=1)
        return {"scores": scores, "regions": subject.first(corners, frame.points(points))}

    shapes = {"picture": ("height", "width", 4), "threshold": (1,)}
    return Model.of(whole, shapes, "numpy", dtypes={"picture": "uint8", "threshold": "float32"}).graph()


def merged(found: Mapping[str, Tensor], threshold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The boxes, scores and points of those over a score. One that overlaps a better one is no find of its own: it moves the better
    one's box and points towards its own, by its score."""
    boxes, scores, points = found["boxes"], found["scores"].reshape(-1), found["landmarks"]
    count, numbers = boxes.shape[0], points.shape[1] * 2
    best = boxes.unsqueeze(0).non_max_suppression(
        scores.reshape(1, 1, -1), tensor(np.array([MOST], np.int64)), tensor(np.array([OVERLAP], np.float32)), threshold
    )[:, 2]
    mine = boxes.take(best, axis=0).unsqueeze(1)
    theirs = boxes.unsqueeze(0)
    sides = (mine[..., 2:].minimum(theirs[..., 2:]) - mine[..., :2].maximum(theirs[..., :2])).maximum(0.0)
    common = sides[..., 0] * sides[..., 1]
    areas = [(x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1]) for x in (mine, theirs)]
    belongs = ((common / (areas[0] + areas[1] - common)) > OVERLAP).to(dtype="float32")
    first = belongs * (belongs.cumsum(0) < 1.5).to(dtype="float32")
    weight = first * (scores * (scores >= threshold).to(dtype="float32")).unsqueeze(0)
    values = concatenate([boxes, points.reshape(count, numbers)], axis=1)
    mean = (weight @ values) / weight.sum(1, keepdims=True)
    return mean[:, :4], scores.take(best, axis=0), mean[:, 4:].reshape(-1, points.shape[1], 2)


def _pointing(model: Model) -> Graph:
    """picture, a region (4,) and samples ↦ landmarks (points, 3 or 4) in pixels of the picture, a score, and the region of the next frame."""
    net = model.graph()
    subject = seen(net)
    side, _ = _size(net)

    def whole(picture: Tensor, region: Tensor, samples: Tensor) -> dict[str, Tensor]:
        center, along = region[:2], region[2:]
        down = concatenate([-along[1:], along[:1]])
        start = center - (along + down) / 2.0
        place = concatenate([start, along / side, down / side]).unsqueeze(0)
        pixels = cropped(picture, place, side, side, samples) / 255.0
        told = dict(subject.decode([*applied(net, [pixels]).values()], side))
        points = told.pop("points")
        x, y = (points[:, axis : axis + 1] / side for axis in (0, 1))
        places = start + x * along + y * down
        length = (along * along).sum(0, keepdims=True).sqrt()
        landmarks = concatenate([places, points[:, 2:3] * (length / side), points[:, 3:]], axis=1)
        return {**told, "landmarks": landmarks[: subject.shown], "region": subject.next(places)}

    shapes: Any = {"picture": ("height", "width", 4), "region": (4,), "samples": ("samples",)}
    kinds = {"picture": "uint8", "region": "float32", "samples": "float32"}
    return Model.of(whole, shapes, "numpy", dtypes=kinds).graph()


def _size(net: Graph) -> tuple[int, int]:
    shape: Any = net.inputs[0].shape if len(net.inputs) == 1 else ()
    if len(shape) != 4 or shape[0] != 1 or shape[3] != 3 or not isinstance(shape[1], int) or shape[1] != shape[2]:
        raise InputError(f"landmarks: a model takes {shape}, expected one square picture, (1, side, side, 3)")
    return shape[1], shape[2]


def _facts(models: Mapping[str, Model], files: Mapping[str, Path]) -> tuple[Sequence[str], Mapping[str, Any]]:
    net = models["points"].graph()
    subject, other = seen(net), detected(models["find"].graph())
    if subject is not other:
        raise InputError(
            f"landmarks: got a detector of a {other.label}, and points of a {subject.label}; give both of one"
        )
    return [subject.label], {"side": _size(net)[0], "joints": [list(pair) for pair in subject.joints]}


class Follower:
    """Answers for pictures, one after the other: each find is looked for where the picture before had it."""

    def __init__(self, parts: ChainParts, settings: Mapping[str, Any]) -> None:
        self._parts = parts
        self._threshold, self._top = settings["threshold"], settings["top"]
        if not 0 < self._threshold <= 1:
            raise InputError(f"landmarks: threshold is {self._threshold}, expected a score above 0, to 1")
        if not 1 <= self._top <= MOST:
            raise InputError(f"landmarks: top is {self._top}, expected how many are found, from 1 to {MOST}")
        self._regions: Sequence[np.ndarray] = ()
        self._frames = 0

    def __call__(self, picture: np.ndarray) -> Findings:
        regions = list(self._regions)
        if not regions or (len(regions) < self._top and self._frames % PATIENCE == 0):
            threshold = np.array([self._threshold], np.float32)
            regions += list(self._parts.steps["find"]({"picture": picture, "threshold": threshold})["regions"])
        self._frames += 1
        items: list[Finding] = []
        following: list[np.ndarray] = []
        for region in apart(regions)[: self._top]:
            found = self._points(picture, region)
            score, ahead = float(found["score"][0]), found["region"]
            if score >= self._threshold and len(apart([*following, ahead])) > len(following):
                following.append(ahead)
                items.append(self._item(found, score))
        self._regions = following
        return Findings("landmarks", picture, items, joints=self._parts.info.options["joints"])

    def _points(self, picture: np.ndarray, region: np.ndarray) -> Mapping[str, np.ndarray]:
        step = float(np.hypot(region[2], region[3])) / self._parts.info.options["side"]
        return self._parts.steps["points"]({"picture": picture, "region": region, "samples": samples_of(step)})

    def _item(self, found: Mapping[str, np.ndarray], score: float) -> Finding:
        landmarks = found["landmarks"]
        box = Box(*map(float, (*landmarks[:, :2].min(0), *landmarks[:, :2].max(0))))
        hand = HANDS[int(found["right"][0] >= 0.5)] if "right" in found else ""
        return Finding(self._parts.info.labels[0], score, 0, box, landmarks, handedness=hand)


def apart(regions: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Regions without those that are the same as one before."""
    kept: list[np.ndarray] = []
    for region in regions:
        if all(_shared(region, other) <= SAME for other in kept):
            kept.append(region)
    return kept


def _shared(a: np.ndarray, b: np.ndarray) -> float:
    """The common area of two regions over their area together, as if they were not turned."""
    one, other = float(np.hypot(a[2], a[3])), float(np.hypot(b[2], b[3]))
    common = 1.0
    for axis in (0, 1):
        low = max(float(a[axis]) - one / 2, float(b[axis]) - other / 2)
        high = min(float(a[axis]) + one / 2, float(b[axis]) + other / 2)
        common *= max(0.0, high - low)
    return common / max(one * one + other * other - common, 1e-9)


def _begin(parts: ChainParts, settings: Mapping[str, Any]) -> Following:
    return Follower(parts, settings)


LANDMARKS: Final = Chain(
    "landmarks", "the points of hands, of faces, or of people",
    {
        "find": ChainPart(
            ("palms.tflite", "faces.tflite", "people.tflite"), ("palm_detection", "face_detection", "pose_detection"), _finding
        ),
        "points": ChainPart(
            ("hand.tflite", "face.tflite", "pose.tflite"), ("hand_landmark", "face_landmark", "pose_landmark"), _pointing
        ),
    },
    {}, _facts, _begin, {"threshold": 0.5, "top": 2},
)  # fmt: skip
