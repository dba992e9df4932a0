"""What the batches of an epoch tell, counted together: the loss, other numbers of the loss function, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..metrics import Mean, Metric, Tally

LOSS: Final = "loss"
PREDICTION: Final = "prediction"
TARGET: Final = "target"


class Tallies:
    """One epoch. What it counted can be saved, and counting goes on from there to the same numbers, to the bit."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        names = [LOSS, *(m.name for m in metrics)]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InputError(
                f"metrics: {', '.join(sorted(twice))} comes twice; the names of a run's values must differ"
            )
        self._metrics: dict[str, Tally] = {m.name: m.tally() for m in metrics}
        self._means: dict[str, Tally] = {}

    def update(self, loss: float, told: Mapping[str, Any], target: Any, items: int) -> dict[str, float]:
        """Count a batch; returns its own values. told: what the loss function told beside the loss: numbers, and what metrics
        take: its "prediction", and "target" where that is not the batch's last field."""
        numbers = {name: float(np.asarray(v)) for name, v in told.items() if np.size(v) == 1 and np.ndim(v) == 0}
        values = {LOSS: loss, **{name: v for name, v in numbers.items() if name not in (PREDICTION, TARGET)}}
        for name, value in values.items():
            self._mean(name).update(value, items)
        if self._metrics and PREDICTION not in told:
            raise InputError(
                f"{', '.join(self._metrics)}: the loss function tells no predictions; return (loss, {{'prediction': y}})"
            )
        for name, tally in self._metrics.items():
            own = tally.update(told[PREDICTION], told.get(TARGET, target))
            if np.ndim(own) == 0:
                values[name] = float(own)
        return values

    def values(self) -> dict[str, float]:
        """The values over all batches; a metric with one for each class has them as name.0, name.1, …"""
        found: dict[str, float] = {}
        for name, tally in (self._means | self._metrics).items():
            value = np.asarray(tally.value(), np.float64)
            found |= (
                {name: float(value)} if not value.ndim else {f"{name}.{k}": float(v) for k, v in enumerate(value.flat)}
            )
        return found

    def _mean(self, name: str) -> Tally:
        if name not in self._means:
            self._means[name] = Mean(of=name).tally()
        return self._means[name]

    # --- checkpoints ---

    def arrays(self) -> dict[str, np.ndarray]:
        """What was counted, by names that `resume` knows."""
        kinds = {"mean": self._means, "metric": self._metrics}
        return {
            f"{kind}/{name}/{key}": np.asarray(array)
            for kind, tallies in kinds.items()
            for name, tally in tallies.items()
            for key, array in (tally.state or {}).items()
        }

    def resume(self, arrays: Mapping[str, np.ndarray]) -> None:
        for path, array in arrays.items():
            kind, rest = path.split("/", 1)
            name, key = rest.rsplit("/", 1)
            tally = self._mean(name) if kind == "mean" else self._metrics.get(name)
            if tally is None:
                raise InputError(f"resume: the checkpoint has the metric {name!r}, which this Learner lacks")
            tally.state = {**(tally.state or {}), key: array}
