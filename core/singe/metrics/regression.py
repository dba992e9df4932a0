"""Metrics of numbers: predictions and targets of one shape."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..late_dataclass import dataclass
from ._metric import Metric, State, paired, ratio


@dataclass(frozen=True, kw_only=True)
class MAE(Metric):
    """The mean of |prediction − target|."""

    label: ClassVar = "MAE"
    best: ClassVar = "least"

    def count(self, prediction: Any, target: Any) -> State:
        x, y = paired("MAE", prediction, target)
        return {"sum": np.asarray(abs(x - y).sum()), "count": np.asarray(x.size)}

    def value(self, state: State) -> float:
        return ratio(state["sum"], state["count"])


@dataclass(frozen=True, kw_only=True)
class MSE(Metric):
    """The mean of (prediction − target)²."""

    label: ClassVar = "MSE"
    best: ClassVar = "least"

    def count(self, prediction: Any, target: Any) -> State:
        x, y = paired(self.label, prediction, target)
        return {"sum": np.asarray(((x - y) ** 2).sum()), "count": np.asarray(x.size)}

    def value(self, state: State) -> float:
        return ratio(state["sum"], state["count"])


@dataclass(frozen=True, kw_only=True)
class RMSE(MSE):
    """The square root of MSE."""

    label: ClassVar = "RMSE"

    def value(self, state: State) -> float:
        return math.sqrt(super().value(state))


@dataclass(frozen=True, kw_only=True)
class R2(Metric):
    """1 − Σ (prediction − target)² / Σ (target − its mean)²: 1 is exact, 0 is no better than the mean.

    Of several numbers for each example the mean is taken. NaN where all targets are equal."""

    label: ClassVar = "R²"

    def count(self, prediction: Any, target: Any) -> State:
        x, y = (z.reshape(len(z), math.prod(z.shape[1:])) for z in paired("R2", prediction, target))
        mean = y.mean(0) if len(y) else np.zeros(y.shape[1:])
        return {
            "count": np.asarray(len(y)),
            "mean": mean,
            "spread": ((y - mean) ** 2).sum(0),
            "error": ((x - y) ** 2).sum(0),
        }

    def merge(self, first: State, second: State) -> State:
        """Means and spreads are merged so that no small difference of large sums is taken."""
        n, m = first["count"], second["count"]
        whole = max(n + m, 1)
        gap = second["mean"] - first["mean"]
        return {
            "count": np.asarray(n + m),
            "mean": first["mean"] + gap * (m / whole),
            "spread": first["spread"] + second["spread"] + gap**2 * (n * m / whole),
            "error": first["error"] + second["error"],
        }

    def value(self, state: State) -> float:
        spread, error = state["spread"], state["error"]
        if not (spread > 0).all():
            return float("nan")
        return float((1 - error / spread).mean())
