"""Metrics of a run itself: the mean of a loss, the learning rate, the speed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..late_dataclass import dataclass
from ._metric import Metric, State, ratio


@dataclass(frozen=True, kw_only=True)
class Mean(Metric):
    """The mean of numbers that batches give, such as their losses, weighted by how many examples each has."""

    best: ClassVar = "least"
    of: str = "loss"
    """What is averaged: the name."""

    @property
    def name(self) -> str:
        return self.of

    def count(self, value: Any, examples: int = 1) -> State:
        mean = float(np.asarray(value, np.float64).mean())
        return {"sum": np.asarray(mean * examples), "count": np.asarray(examples)}

    def value(self, state: State) -> float:
        return ratio(state["sum"], state["count"])


@dataclass(frozen=True, kw_only=True)
class Latest(Metric):
    """The latest of numbers, such as the learning rate."""

    best: ClassVar = None
    of: str = "latest"

    @property
    def name(self) -> str:
        return self.of

    def count(self, value: Any) -> State:
        return {"value": np.asarray(value, np.float64).reshape(())}

    def merge(self, first: State, second: State) -> State:
        return second

    def value(self, state: State) -> float:
        return float(state["value"])


@dataclass(frozen=True, kw_only=True)
class LearningRate(Latest):
    """The learning rate of the latest step."""

    of: str = "learning rate"


@dataclass(frozen=True, kw_only=True)
class IterationSpeed(Metric):
    """Iterations in a second: of `count(iterations, seconds)`."""

    label: ClassVar = "iterations per second"

    def count(self, iterations: float, seconds: float) -> State:
        return {"iterations": np.asarray(iterations, np.float64), "seconds": np.asarray(seconds, np.float64)}

    def value(self, state: State) -> float:
        return ratio(state["iterations"], state["seconds"])
