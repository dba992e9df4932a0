"""A small task of OCR, and what stands in for its models: for Python and for pages."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

import singe as sg
from singe.model.model import Model
from singe.tasks import ChainTask
from singe.tasks.chains import CHAINS
from singe.tasks.chains.base import ChainParts
from singe.tasks.spec import ChainSpec

CHAIN = CHAINS["ocr"]
CHARACTERS = ["", "r", "b", " "]


def darkness(x: sg.Tensor) -> sg.Tensor:
    """Where there is text: where it is dark."""
    return (x.mean(1, keepdims=True) < 0.0).to(dtype="float32")


def strokes(x: sg.Tensor) -> sg.Tensor:
    """For every eighth column, whether there is nothing ("") or something red ("r"), or blue ("b"), or grey (" ")."""
    column = x[:, :, 8:40].mean(2)
    count, _, width = column.shape
    parts = column.reshape(count, 3, width // 8, 8).mean(3)
    blue, red = parts[:, 0], parts[:, 2]
    nothing = red * 0.0 + 0.3
    return sg.stack([nothing, red - blue, blue - red, nothing * 0.0], -1)


def heads(x: sg.Tensor) -> sg.Tensor:
    """A line stands on its head where its end is redder than its beginning."""
    count, _, _, width = x.shape
    red = x[:, 2].mean(1).reshape(count, 2, width // 2).mean(2)
    red = (red[:, 1] - red[:, 0]) * 40.0
    return sg.stack([red * 0.0, red], -1).sigmoid()


NETS: Mapping[str, tuple[Any, tuple[int | str, ...]]] = {
    "det": (darkness, ("N", 3, "H", "W")),
    "cls": (heads, ("N", 3, 48, "W")),
    "rec": (strokes, ("N", 3, 48, "W")),
}


def net(name: str) -> Model:
    function, shape = NETS[name]
    return Model.of(function, {"x": shape}, "numpy")


def task_of() -> ChainTask:
    models = {name: Model(CHAIN.parts[name].build(net(name)), "numpy", name) for name in NETS}
    return ChainTask(CHAIN, models, ChainSpec("ocr", tuple(models), CHARACTERS, "MIT"))


class Blots:
    """Steps for which text is where blots are. What they say of a line depends on its place."""

    SIZE = (180, 220)

    def __init__(self, seed: int, has_turned: bool) -> None:
        rng = np.random.default_rng(seed)
        down, right = np.mgrid[: self.SIZE[0], : self.SIZE[1]]
        chances = np.zeros(self.SIZE)
        for _ in range(20):
            x, y, angle = rng.uniform(0, self.SIZE[1]), rng.uniform(0, self.SIZE[0]), rng.uniform(-1.6, 1.6)
            along = (right - x) * np.cos(angle) + (down - y) * np.sin(angle)
            across = (down - y) * np.cos(angle) - (right - x) * np.sin(angle)
            blot = (abs(along) < rng.uniform(4, 30)) & (abs(across) < rng.uniform(2, 7))
            chances = np.maximum(chances, blot * rng.uniform(0.4, 1.0))
        chances[:12, :30] = 0
        chances[3:9, 5:21] = 0.75  # straight: two of its rectangles are equal
        self.chances = chances.astype(np.float32)
        self.calls: list[Any] = []
        self._parts = ("det", "cls", "rec") if has_turned else ("det", "rec")

    def parts(self) -> ChainParts:
        steps = {name: getattr(self, f"_{name}") for name in self._parts}
        return ChainParts(steps, ChainSpec("ocr", self._parts, CHARACTERS))

    def to_dict(self) -> dict[str, Any]:
        """For JavaScript, which answers alike."""
        data = base64.b64encode(self.chances.tobytes()).decode()
        return {"chances": data, "shape": list(self.SIZE), "parts": list(self._parts), "labels": CHARACTERS}

    def _det(self, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        self.calls.append(["det", len(given["rows"]), len(given["columns"])])
        return {"chances": self.chances}

    def _cls(self, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        self._called("cls", given)
        return {"turned": np.where(given["places"][:, 0] % 5 < 2, 0.95, 0.1)}

    def _rec(self, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        self._called("rec", given)
        x, width = given["places"][:, 0], given["widths"]
        numbers = np.stack([width % 4, x * 0, x % 4], 1).astype(np.int32)
        return {"characters": numbers, "scores": x % 10 / 10}

    def _called(self, name: str, given: Mapping[str, np.ndarray]) -> None:
        numbers = [np.round(given[key], 3).reshape(-1).tolist() for key in ("places", "widths", "samples")]
        self.calls.append([name, *numbers, len(given["columns"])])
