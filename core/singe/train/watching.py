"""The best value so far, and when to stop waiting for a better one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from .judging import Mode


@dataclass(frozen=True)
class EarlyStopping:
    """Training stops when a value has not become better for `patience` epochs."""

    value: str = "valid.loss"
    """The name of a value, with "train." or "valid." before it."""
    patience: int = 5
    mode: Mode | None = None
    """Which value is the best; by default what the metric or its name says (judging.py)."""
    min_delta: float = 0.0
    """A value is better only if it is better by more than this."""

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise InputError(f"EarlyStopping: patience is {self.patience}, expected at least 1 epoch")


class Watch:
    """A value, epoch by epoch: the best so far, and how many epochs ago it was."""

    def __init__(self, value: str, mode: Mode, min_delta: float = 0.0) -> None:
        self.value, self.min_delta = value, min_delta
        self.mode: Mode = mode
        self.best: float | None = None
        self.epoch = 0
        """Of the best value; 0 if there is none."""

    def see(self, epoch: int, values: Mapping[str, float]) -> bool:
        """Whether the value of this epoch is the best so far; NaN never is."""
        if self.value not in values:
            raise InputError(f"there is no value {self.value!r} to watch; there are {', '.join(values) or 'none'}")
        new = values[self.value]
        gain = math.inf if self.best is None else (self.best - new) * (1 if self.mode == "least" else -1)
        if math.isnan(new) or not gain > self.min_delta:
            return False
        self.best, self.epoch = new, epoch
        return True

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "epoch": self.epoch}

    def resume(self, state: Mapping[str, Any]) -> None:
        self.best, self.epoch = state["best"], state["epoch"]
