"""Metric, the base of all metrics; Tally, which follows one over batches; and what all of them read from batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ..dtypes import plain
from ..errors import InputError, ShapeError
from ..late_dataclass import dataclass

State: TypeAlias = dict[str, np.ndarray]
"""What batches have counted: plain arrays by name, which can be kept in a file."""


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """A measure of quality over all examples of an epoch. It holds settings and no counts, so that training and
    validation, and threads, can share it.

    A batch gives a state; states are merged; a state has a value. So the value over batches is exact: it is not the mean
    of the batches' values.
    """

    label: ClassVar[str]
    """The name under which values are shown."""
    best: ClassVar[Literal["most", "least"] | None] = "most"
    """Which value is the best; None of values that are neither good nor bad."""

    @property
    def name(self) -> str:
        """The name under which its values are shown; of two metrics of a run the names must differ."""
        return self.label

    @abstractmethod
    def count(self, *args: Any, **kwargs: Any) -> State:
        """What a batch counts: `count(prediction, target)` of NumPy arrays or Tensors, of lists of strings for texts."""

    def merge(self, first: State, second: State) -> State:
        """The state of what both have counted."""
        return {name: np.asarray(array + second[name]) for name, array in first.items()}

    @abstractmethod
    def value(self, state: State) -> Any:
        """The value: a float (NaN where nothing was counted that it needs), or an array for each class if asked for."""

    def tally(self) -> Tally:
        """A new Tally of this metric."""
        return Tally(self)

    def __call__(self, *batch: Any) -> Any:
        """The value of one batch."""
        return self.value(self.count(*batch))


class Tally:
    """A metric over batches: `update` adds one, `value` tells the value over all since `reset`.

    state: what was counted, None if nothing; it may be saved, and set to go on from there.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.state: State | None = None

    def update(self, *batch: Any) -> Any:
        """Add a batch, given as `metric.count` takes it; its own value."""
        own = self.metric.count(*batch)
        self.state = own if self.state is None else self.metric.merge(self.state, own)
        return self.metric.value(own)

    def value(self) -> Any:
        """The value over all batches; NaN if there were none."""
        return float("nan") if self.state is None else self.metric.value(self.state)

    def reset(self) -> None:
        """Forget all batches, as at the beginning of an epoch."""
        self.state = None

    def __repr__(self) -> str:
        return f"<tally of {self.metric.name}: {self.value()}>"


def joined(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> State:
    """Two states that keep every example, one after the other."""
    return {name: np.concatenate([array, second[name]]) for name, array in first.items()}


def array(x: Any) -> np.ndarray:
    """A Tensor, an array or numbers as an array of numbers; what NumPy lacks, such as bfloat16, as float32."""
    return plain(np.asarray(x))


def ratio(part: Any, total: Any) -> float:
    """part / whole; NaN if nothing was counted."""
    return float(part / total) if total else float("nan")


def shares(part: np.ndarray, totals: np.ndarray, empty: float = 0.0) -> np.ndarray:
    """part / whole, element by element; `empty` where the whole is 0."""
    return np.divide(part, totals, out=np.full(np.shape(part), empty), where=np.asarray(totals) != 0)


def paired(what: str, prediction: Any, target: Any) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and targets of one shape, as float64."""
    x, y = (np.asarray(array(v), np.float64) for v in (prediction, target))
    if x.shape != y.shape:
        raise ShapeError(f"{what}: the predictions are {x.shape}, the targets {y.shape}, expected the same shape")
    return x, y


def one_of(what: str, name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse a setting that is none of those allowed."""
    if value not in allowed:
        raise InputError(f"{what}: {name} is {value!r}, expected one of {', '.join(map(repr, allowed))}")
