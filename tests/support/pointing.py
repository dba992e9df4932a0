"""A small task of landmarks, and what stands in for its models: for Python and for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import singe as sg
from singe.model.model import Model
from singe.tasks import ChainTask
from singe.tasks.chains import CHAINS
from singe.tasks.chains.base import ChainParts
from singe.tasks.spec import ChainSpec

CHAIN = CHAINS["landmarks"]


def palms(x: sg.Tensor) -> dict[str, sg.Tensor]:
    """A palm at the 9th anchor of the first cells, where the picture is bright."""
    boxes = np.zeros((1, 2016, 18), np.float32)
    boxes[..., 2:4] = 40
    boxes[..., 4:6], boxes[..., 8:10] = (0, 10), (0, -10)
    scores = np.full((1, 2016, 1), -50, np.float32)
    scores[0, 600] = 0
    return {"boxes": sg.tensor(boxes), "scores": sg.tensor(scores) + (x.mean() - 0.2) * 20.0}


def hand(x: sg.Tensor) -> dict[str, sg.Tensor]:
    """Points on a circle, that move with the picture's brightness."""
    angle = np.arange(21) / 21 * 2 * np.pi
    circle = np.stack([112 + 60 * np.cos(angle), 112 + 60 * np.sin(angle), angle], 1).astype(np.float32)
    bright = x.mean().reshape(1, 1)
    return {"points": sg.tensor(circle.reshape(1, 63)) + bright, "score": bright * 0.0 + 0.9, "right": bright}


def task_of() -> ChainTask:
    nets = {
        "find": Model.of(palms, {"x": (1, 192, 192, 3)}, "numpy"),
        "points": Model.of(hand, {"x": (1, 224, 224, 3)}, "numpy"),
    }
    labels, options = CHAIN.facts(nets, {})
    models = {name: Model(CHAIN.parts[name].build(net), "numpy", name) for name, net in nets.items()}
    return ChainTask(CHAIN, models, ChainSpec("landmarks", tuple(models), labels, "MIT", options))


class Told:
    """Steps that answer what they are told to: finds, and for each region a score; points lie where the region is."""

    def __init__(self, finds: Sequence[Sequence[float]], scores: Mapping[float, float]) -> None:
        self.finds, self.scores = finds, scores
        self.calls: list[str] = []

    def parts(self) -> ChainParts:
        info = ChainSpec("landmarks", ("find", "points"), ["hand"], "", {"side": 224, "joints": []})
        return ChainParts({"find": self.find, "points": self.points}, info)

    def find(self, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        self.calls.append("find")
        return {"regions": np.array(self.finds, np.float32).reshape(-1, 4)}

    def points(self, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        region = given["region"]
        self.calls.append(f"{region[0]:g}")
        score = self.scores.get(float(region[0]), 1.0)
        ahead = region + np.array([1, 0, 0, 0], np.float32)
        points = np.array([[region[0], region[1], 0.0]] * 2, np.float32)
        return {"score": np.array([score], np.float32), "landmarks": points, "region": ahead}
