"""What the batches of an epoch tell, counted together: the loss, other numbers of the loss function, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..metrics import IterationSpeed, Latest, LearningRate, Mean, Metric, Tally
from .steps.objective import PREDICTION, TARGET

LOSS: Final = "loss"
NUMBERS: Final = (Mean, Latest)
"""Metrics of a number that the loss function returns, by its name; that of a LearningRate is the optimiser's."""
OF_RUN: Final = (*NUMBERS, IterationSpeed)
"""Metrics that take no predictions."""


def checked_metrics(argument: Any) -> tuple[Metric, ...]:
    """The metrics of a run, whose names must differ."""
    if isinstance(argument, Metric) or not isinstance(argument, Sequence):
        raise InputError(f"metrics: got {argument!r:.80}, expected a list of them, as in [sg.metrics.Accuracy()]")
    for metric in argument:
        if not isinstance(metric, Metric):
            raise InputError(
                f"metrics: got {metric!r:.80}, expected a Metric, as sg.metrics.Accuracy() is. A number of one's own is returned by the "
                "loss function, which returns (loss, {'name': number})"
            )
    of_loss = any(isinstance(m, NUMBERS) and m.name == LOSS for m in argument)
    names = [*([] if of_loss else [LOSS]), *(m.name for m in argument)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"metrics: {', '.join(sorted(twice))} comes twice; the names of a run's values must differ")
    return tuple(argument)


def of_predictions(metrics: Sequence[Metric]) -> list[Metric]:
    """Those that take predictions and targets."""
    return [m for m in metrics if not isinstance(m, OF_RUN)]


class Tallies:
    """One epoch. What it counted can be saved, and counting goes on from there to the same numbers, to the bit."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics: dict[str, Tally] = {m.name: m.tally() for m in of_predictions(metrics)}
        self._chosen: dict[str, Metric] = {m.name: m for m in metrics if isinstance(m, OF_RUN)}
        self._numbers: dict[str, Tally] = {}

    def update(
        self,
        loss: float,
        extras: Mapping[str, Any],
        target: Any,
        items: int,
        seconds: float = 0.0,
        rate: float | None = None,
    ) -> dict[str, float]:
        """Count a batch; returns its own values.

        extras: what the loss function returned beside the loss: numbers, and what metrics take: its "prediction", and "target" where
        that is not the batch's last field. seconds: what the batch took. rate: the learning rate, in training.
        """
        numbers = {name: float(np.asarray(v)) for name, v in extras.items() if np.size(v) == 1 and np.ndim(v) == 0}
        values = {LOSS: loss, **{name: v for name, v in numbers.items() if name not in (PREDICTION, TARGET)}}
        for name, metric in self._chosen.items():
            match metric:
                case IterationSpeed():
                    values[name] = self._number(name).update(1, seconds)
                case LearningRate() if rate is not None:
                    values[name] = rate
                case Mean() | Latest() if name not in values and not isinstance(metric, LearningRate):
                    raise InputError(
                        f"metrics: {metric!r} is of a number that the loss function returns by the name {name!r}; it returns "
                        f"{', '.join(values)}; return (loss, {{{name!r}: number}})"
                    )
                case _:
                    pass
        for name, value in values.items():
            match self._chosen.get(name):
                case IterationSpeed():
                    pass
                case Latest():
                    self._number(name).update(value)
                case _:
                    self._number(name).update(value, items)
        if self._metrics and PREDICTION not in extras:
            raise InputError(
                f"{', '.join(self._metrics)}: the loss function returns no predictions; return (loss, {{'prediction': y}})"
            )
        if self._metrics and TARGET not in extras and isinstance(target, Mapping):
            raise InputError(
                f"{', '.join(self._metrics)}: the batch is a dict, and the loss function returns no targets; return "
                "(loss, {'prediction': y, 'target': batch['…']})"
            )
        for name, tally in self._metrics.items():
            own = tally.update(extras[PREDICTION], extras.get(TARGET, target))
            if np.ndim(own) == 0:
                values[name] = float(own)
        return values

    def values(self) -> dict[str, float]:
        """The values over all batches; a metric with one for each class has them as name.0, name.1, …"""
        found: dict[str, float] = {}
        for name, tally in (self._numbers | self._metrics).items():
            value = np.asarray(tally.value(), np.float64)
            found |= (
                {name: float(value)} if not value.ndim else {f"{name}.{k}": float(v) for k, v in enumerate(value.flat)}
            )
        return found

    def _number(self, name: str) -> Tally:
        """The tally of a number: its mean, if no metric says otherwise."""
        if name not in self._numbers:
            self._numbers[name] = self._chosen.get(name, Mean(of=name)).tally()
        return self._numbers[name]

    # --- checkpoints ---

    def arrays(self) -> dict[str, np.ndarray]:
        """What was counted, by names that `resume` knows."""
        kinds = {"mean": self._numbers, "metric": self._metrics}
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
            tally = self._number(name) if kind == "mean" else self._metrics.get(name)
            if tally is None:
                raise InputError(
                    f"resume: the checkpoint has the metric {name!r}, which this Learner lacks; give it the metrics of the run"
                )
            tally.state = {**(tally.state or {}), key: array}
