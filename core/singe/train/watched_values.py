"""The values of epochs that a Learner watches: by which the best epoch is chosen, training ends early, and the rate falls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError
from ..metrics import Metric
from ..optim import ReduceLROnPlateau
from .best_value import EarlyStopping, Mode, Watch, best_mode
from .saving.checkpoints import Checkpoints


class WatchedValues:
    """What was best so far of each value that is watched."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        checkpoints: Checkpoints,
        stopping: EarlyStopping | None,
        plateau: ReduceLROnPlateau | None,
    ) -> None:
        self.modes: Final[dict[str, Mode | None]] = {m.name: m.best for m in metrics}
        self.best: Final = Watch(checkpoints.best, checkpoints.mode or self._mode(checkpoints.best))
        self.plateau: Final = plateau
        self._stopping: Final = stopping
        self._patience: Final = stopping and Watch(
            stopping.value, stopping.mode or self._mode(stopping.value), stopping.min_delta
        )
        self._checked = False
        """Whether the names of these values were compared with those that there are."""

    def _mode(self, value: str) -> Mode:
        """Which value is the best, of one such as "valid.accuracy"."""
        return best_mode(value.partition(".")[2], self.modes) or "least"

    def named(self) -> dict[str, str]:
        """What asks for a value, in words ↦ the value."""
        asking = {"early stopping": self._stopping, "ReduceLROnPlateau": self.plateau}
        return {who: one.value for who, one in asking.items() if one}

    def check(self, trained: Callable[[], Iterable[str]], evaluated: Callable[[], Iterable[str]]) -> None:
        """After the first batch: refuse to watch a value that there is neither in training nor in evaluation."""
        if self._checked:
            return
        self._checked = True
        for watch in (self.best, self._patience, self.plateau):
            names = dict.fromkeys(trained())
            if watch and (name := watch.value.partition(".")[2]) not in names:
                names |= dict.fromkeys(evaluated())
                if name not in names:
                    raise InputError(f"there is no value {watch.value!r} to watch; there are {', '.join(names)}")

    def see(self, epoch: int, values: dict[str, float], validated: bool) -> bool:
        """Whether an epoch is the best so far. validated: without it, the best is that of training."""
        if not validated and self.best.value not in values:
            values[self.best.value] = values.get(self.best.value.replace("valid.", "train.", 1), math.nan)
        best = self.best.see(epoch, values)
        if self._patience:
            self._patience.see(epoch, values)
        return best

    def ends(self, epoch: int) -> str:
        """Why training ends after an epoch; "" if it goes on."""
        stops = self._stopping
        waited = epoch - self._patience.epoch if self._patience else 0
        if not stops or waited < stops.patience:
            return ""
        return f"no better {stops.value} for {waited} epoch{'s' * (waited > 1)}"

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"best": self.best.state(), "patience": self._patience.state() if self._patience else None}

    def resume(self, facts: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.best.resume(facts["best"])
        if self._patience and facts["patience"]:
            self._patience.resume(facts["patience"])
