"""Which value of a metric is the best, which was the best so far, and when to stop waiting for a better one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from ..errors import InputError
from ..late_dataclass import dataclass

Mode: TypeAlias = Literal["least", "most"]
LEAST: Final = ("loss", "error", "perplexity", "mse", "mae", "cer", "wer", "distance", "fid", "entropy")
"""Ends of words in the names of metrics of which the least value is the best."""
NEITHER: Final = ("lr", "rate", "norm", "scale", "momentum", "seconds")
"""Words in the names of values that are neither good nor bad."""

CLASS: Final = re.compile(r"\.[0-9]+$")
"""The end of the name of a value of which a metric has several."""


def best_mode(name: str, modes: Mapping[str, Mode | None]) -> Mode | None:
    """Which value of a metric is the best; None of one such as the learning rate. A value such as "recall.2" is one of the
    metric "recall"."""
    owner = name if name in modes else CLASS.sub("", name)
    if owner in modes:
        return modes[owner]
    words = set(re.split(r"[^a-z]+", name.lower()))
    if words & set(NEITHER):
        return None
    return "least" if any(word.endswith(LEAST) for word in words) else "most"


def check_watched(what: str, value: str) -> None:
    """Refuse what is no name of a value in an epoch."""
    if not value.startswith(("train.", "valid.")):
        raise InputError(
            f"{what}: got the value {value!r}, expected its name with the phase before it, as in 'valid.{value}'"
        )


@dataclass(frozen=True)
class EarlyStopping:
    """Training stops when a value has not become better for `patience` epochs."""

    value: str = "valid.loss"
    """The name of a value, with "train." or "valid." before it."""
    patience: int = 5
    mode: Mode | None = None
    """Which value is the best; by default what the metric or its name says (`best_mode`)."""
    min_delta: float = 0.0
    """A value is better only if it is better by more than this."""

    def __post_init__(self) -> None:
        check_watched("EarlyStopping", self.value)
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
