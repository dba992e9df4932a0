"""Metrics of how well scores separate classes, whatever the threshold: areas under curves.

Predictions and targets are those of `classes.py`: one class (batch), several labels (batch, labels), or classes (batch,
classes) against the others with targets (batch).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np

from ..errors import ShapeError
from ..late_dataclass import dataclass
from ._metric import Metric, State, array, joined, one_of
from .classes import numbers


@dataclass(frozen=True, kw_only=True)
class _Area(Metric):
    """thresholds: None keeps every score, for an exact area. A number counts scores between so many thresholds from 0 to
    1: in memory that does not grow, for probabilities. average: as for scores; a class that lacks examples is left out.
    """

    average: Literal["macro", "weighted"] | None = "macro"
    thresholds: int | None = None

    def __post_init__(self) -> None:
        one_of(type(self).__name__, "average", self.average, ("macro", "weighted", None))

    def count(self, prediction: Any, target: Any) -> State:
        what = type(self).__name__
        scores, y = np.asarray(array(prediction), np.float64), numbers(what, array(target))
        if scores.ndim == 2 and y.shape == scores.shape[:1]:
            y = y.reshape(-1, 1) == np.arange(scores.shape[1])
        elif scores.shape != y.shape or scores.ndim not in (1, 2):
            raise ShapeError(
                f"{what}: predictions {scores.shape} and targets {y.shape}, expected (batch) or (batch, labels) of both, "
                "or (batch, classes) and (batch)"
            )
        shape = len(scores), math.prod(scores.shape[1:])
        scores, right = scores.reshape(shape), (y == 1).reshape(shape)
        if self.thresholds is None:
            return {"scores": scores, "right": right}
        room, classes = self.thresholds + 1, scores.shape[1]
        # The place of a score: how many thresholds are not above it.
        places = np.searchsorted(np.linspace(0, 1, self.thresholds), scores, side="right") + np.arange(classes) * room

        def counted(chosen: np.ndarray) -> np.ndarray:
            return np.bincount(places[chosen], minlength=classes * room).reshape(classes, room)

        return {"positives": counted(right), "negatives": counted(~right)}

    def merge(self, first: State, second: State) -> State:
        return joined(first, second) if self.thresholds is None else super().merge(first, second)

    def value(self, state: State) -> Any:
        if self.thresholds is None:
            pairs = [_steps(s, r) for s, r in zip(state["scores"].T, state["right"].T, strict=True)]
        else:
            pairs = [(p[::-1], n[::-1]) for p, n in zip(state["positives"], state["negatives"], strict=True)]
        each = np.array([self.area(np.cumsum(p), np.cumsum(n)) for p, n in pairs])
        if self.average is None:
            return each
        weights = np.array([p.sum() for p, _ in pairs], float) if self.average == "weighted" else np.ones(len(pairs))
        some = ~np.isnan(each) & (weights > 0)
        return float((each * weights)[some].sum() / weights[some].sum()) if some.any() else float("nan")

    def area(self, hits: np.ndarray, misses: np.ndarray) -> float:
        """The area, from the true and false positives at falling thresholds; the last counts are all."""
        raise NotImplementedError


def _steps(scores: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many positives and negatives have each score, from the largest score to the least."""
    values, place = np.unique(-scores, return_inverse=True)
    place = place.reshape(-1)
    return tuple(np.bincount(place[chosen], minlength=len(values)) for chosen in (right, ~right))  # pyright: ignore[reportReturnType]


@dataclass(frozen=True, kw_only=True)
class AUROC(_Area):
    """The area under the curve of true positives over false positives: the probability that an example of the class has a
    larger score than another. NaN without examples of both."""

    label: ClassVar = "AUROC"

    def area(self, hits: np.ndarray, misses: np.ndarray) -> float:
        if not hits.size or not hits[-1] or not misses[-1]:
            return float("nan")
        y, x = (np.concatenate([[0.0], c / c[-1]]) for c in (hits, misses))
        return float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())


@dataclass(frozen=True, kw_only=True)
class AUCPR(_Area):
    """The area under the curve of precision over recall, as average precision: Σ (rₙ − rₙ₋₁) · pₙ. NaN without examples
    of the class."""

    label: ClassVar = "AUC-PR"

    def area(self, hits: np.ndarray, misses: np.ndarray) -> float:
        if not hits.size or not hits[-1]:
            return float("nan")
        recall = np.concatenate([[0.0], hits / hits[-1]])
        return float((np.diff(recall) * hits / np.maximum(hits + misses, 1)).sum())
