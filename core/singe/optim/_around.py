"""Optimisers around another one: Accumulated makes one update of several batches, Averaged keeps a moving average of the weights,
and ReduceLROnPlateau lowers the learning rate when a value no longer gets better. What they remember is in the state, beside what the other one remembers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, Final, Literal, TypeVar

import numpy as np

from ..errors import InputError
from ..late_dataclass import dataclass
from ..tensors.functions.creation import tensor, where, zeros
from ..tensors.tensor import Tensor
from ._gradients import beside, beside_each, gradient_of
from ._optimizer import COUNT, Held, Optimizer, State, elements, held, key, not_alone, successor, wide
from ._schedule import Rate, larger, rate_at, smaller

M = TypeVar("M")
BATCHES: Final = "batches"
"""The name in the state of how many gradients were taken since the last update."""
SUM: Final = "gradient_sum"
SCALE: Final = "rate_scale"
"""The name in the state of the number by which ReduceLROnPlateau multiplies learning rates."""
AVERAGE: Final = "average"
"""How the names of averaged parameters begin in the state."""
PLATEAU: Final[Mapping[str, Any]] = {
    SCALE: np.float32,
    "rate_best": np.float32,
    "rate_waited": np.int32,
    "rate_cooldown": np.int32,
}
"""What ReduceLROnPlateau remembers ↦ its type: the scale, the best value, how many values after it were no better, and how many
more are not counted."""


@dataclass(frozen=True)
class Accumulated:
    """An optimiser that updates the model in each `every`-th step, with the average of the gradients of these steps.

    In the other steps the model stays as it is. The optimiser counts updates, and so do its schedules. The choice is made by
    tensors, so that one Program serves all steps. A parameter without a gradient in the `every`-th step stays as it is, too.
    """

    optimizer: Optimizer | ReduceLROnPlateau | Averaged
    every: int

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InputError(f"Accumulated: got every={self.every!r}, expected at least 1")

    def init(self, model: Any) -> State:
        """The state before the first update: that of the optimiser, and sums of gradients."""
        state = self.optimizer.init(model)
        for path, p in Held(model).named_parameters():
            state[key(SUM, path)] = zeros(p.shape, dtype=wide(p.dtype), device=p.device)
        return {**state, BATCHES: zeros((), dtype="int32", device=state[COUNT].device)}

    @not_alone
    def step(self, model: M, grads: Any, state: Mapping[str, Tensor]) -> tuple[M, State]:
        """The model and the state after one batch; see Optimizer.step."""
        batches = held(state, BATCHES) + 1
        due = batches == self.every
        near = beside_each(due)
        sums: dict[str, Tensor] = {}
        means: dict[str, Tensor] = {}
        for path, p in Held(model).named_parameters():
            g = gradient_of(grads, path, p)
            sums[path] = held(state, key(SUM, path))
            if g is not None:
                sums[path] = sums[path] + elements(g)
                means[path] = sums[path] / self.every
        updated, after = self.optimizer.step(model, means, state)
        old, new = Held(model).state_dict(), Held(updated).state_dict()
        chosen = {
            path: x if old[path] is x else successor(x, where(near(x), x.detach(), old[path].detach()))
            for path, x in new.items()
        }
        state = {name: x if state[name] is x else where(near(x), x, state[name]) for name, x in after.items()}
        state |= {key(SUM, path): where(near(total), 0, total) for path, total in sums.items()}
        replaced = {x: chosen[path] for path, x in new.items()}
        return Held(updated).map(lambda t: replaced[t]).model, {**state, BATCHES: where(due, 0, batches)}


@dataclass(frozen=True)
class Averaged:
    """An optimiser that also keeps an exponential moving average of the weights: after each update, average ← decay · average +
    (1 − decay) · weight; after the first one, it is the weight. So does torch.optim.swa_utils.AveragedModel with
    get_ema_multi_avg_fn(decay).

        opt = sg.optim.Averaged(sg.optim.AdamW(1e-3), decay=0.999)

    The averages are in the optimiser's state, in float32, and so in checkpoints. `step.averaged()` of a TrainStep is the model with
    them; a Learner with averaged=True validates with them; `opt.averaged(model, state)` serves in a loop of one's own. Buffers, such
    as the statistics of batch norms, are those of the model.
    """

    optimizer: Optimizer | ReduceLROnPlateau
    decay: float = 0.999

    def __post_init__(self) -> None:
        if not isinstance(self.optimizer, (Optimizer, ReduceLROnPlateau)):
            raise InputError(
                f"Averaged: got {self.optimizer!r:.60}, expected an optimiser that it goes around, as in Averaged(AdamW(1e-3)); "
                "Accumulated goes around it"
            )
        if not isinstance(self.decay, Real) or not 0 <= self.decay < 1:
            raise InputError(f"Averaged: got decay={self.decay!r}, expected at least 0 and less than 1")

    def init(self, model: Any) -> State:
        """The state before the first update: that of the optimiser, and the weights as they are."""
        return {
            **self.optimizer.init(model),
            **{key(AVERAGE, path): elements(p) for path, p in Held(model).named_parameters()},
        }

    @not_alone
    def step(self, model: M, grads: Any, state: Mapping[str, Tensor]) -> tuple[M, State]:
        """The model and the state after one update; see Optimizer.step."""
        near = beside_each(held(state, COUNT) == 0)
        updated, after = self.optimizer.step(model, grads, state)
        for path, p in Held(updated).named_parameters():
            name, x = key(AVERAGE, path), elements(p)
            before = held(state, name)
            after[name] = where(near(x), x, before + (1 - self.decay) * (x - before))
        return updated, after

    def averaged(self, model: M, state: Mapping[str, Tensor]) -> M:
        """The model with the averages in the place of its parameters."""
        new = {p: successor(p, held(state, key(AVERAGE, path))) for path, p in Held(model).named_parameters()}
        return Held(model).map(lambda t: new.get(t, t)).model


@dataclass(frozen=True)
class ReduceLROnPlateau:
    """An optimiser whose learning rates are multiplied by `factor` when a value has not become better for more than `patience`
    epochs; arguments and rates are those of torch.optim.lr_scheduler.ReduceLROnPlateau.

        opt = sg.optim.ReduceLROnPlateau(sg.optim.AdamW(1e-3), "max", patience=3, value="valid.accuracy")

    A Learner tells it the `value` of each epoch. In a loop of one's own: `step.observe(value)` of a TrainStep, or
    `state = opt.observe(value, state)`. What it remembers is in the optimiser's state, and so in checkpoints.

    mode: "min" or "max", which value is better. threshold, threshold_mode: a value is better than the best one only beyond this part
    of it ("rel"), or this difference ("abs"). cooldown: for how many epochs after a reduction none are counted. min_lr: no rate is
    reduced below it. eps: a reduction that changes no rate by more than this is left out. The rates of all groups are reduced
    together, and schedules go on, multiplied. The best value is remembered in float32.
    """

    optimizer: Optimizer
    mode: Literal["min", "max"] = "min"
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: Literal["rel", "abs"] = "rel"
    cooldown: int = 0
    min_lr: float = 0.0
    eps: float = 1e-8
    value: str = "valid.loss"

    def __post_init__(self) -> None:
        if not isinstance(self.optimizer, Optimizer):
            raise InputError(
                f"ReduceLROnPlateau: got {self.optimizer!r:.60}, expected an optimiser with a learning rate, as in "
                "ReduceLROnPlateau(AdamW(1e-3)); Accumulated and Averaged go around it"
            )
        checks: dict[str, tuple[bool, str]] = {
            "mode": (self.mode in ("min", "max"), "'min' or 'max'"),
            "threshold_mode": (self.threshold_mode in ("rel", "abs"), "'rel' or 'abs'"),
            "factor": (isinstance(self.factor, Real) and 0 <= self.factor < 1, "at least 0 and less than 1"),
            "value": (
                isinstance(self.value, str) and self.value.startswith(("train.", "valid.")),
                "the name of a value with the phase before it, as in 'valid.loss'",
            ),
        }
        for name in ("patience", "cooldown"):
            given = getattr(self, name)
            checks[name] = isinstance(given, int) and given >= 0, "a whole number of at least 0"
        for name in ("threshold", "min_lr", "eps"):
            given = getattr(self, name)
            checks[name] = isinstance(given, Real) and 0 <= float(given) < math.inf, "a number of at least 0"
        for name, (fits, expected) in checks.items():
            if not fits:
                raise InputError(f"ReduceLROnPlateau: got {name}={getattr(self, name)!r}, expected {expected}")

    def init(self, model: Any) -> State:
        """The state before the first update: that of the optimiser, and what is remembered of the values."""
        state = self.optimizer.init(model)
        worst = float(np.finfo(np.float32).max) * (1 if self.mode == "min" else -1)
        first = zip(PLATEAU.items(), (1, worst, 0, 0), strict=True)
        on = state[COUNT].device
        return {**state, **{name: tensor(np.array(x, kind), device=on) for (name, kind), x in first}}

    @not_alone
    def step(self, model: M, grads: Any, state: Mapping[str, Tensor]) -> tuple[M, State]:
        """The model and the state after one update; see Optimizer.step."""
        scale = held(state, SCALE)

        def reduced(rate: Rate) -> Rate:
            return lambda count: self._scaled(rate_at(rate, count), beside(scale, count))

        return self.optimizer.with_rates(reduced).step(model, grads, state)

    def rate(self, step: int, scale: float = 1.0) -> float:
        """The learning rate of the update that follows `step` updates, for parameters of no group. scale: "rate_scale" in the
        state."""
        return float(self._scaled(self.optimizer.rate(step), scale))

    def observe(self, value: float, state: Mapping[str, Tensor]) -> State:
        """The state after an epoch with this value, which may have a lower learning rate."""
        names = (COUNT, *PLATEAU)
        after = self.after_value(value, {name: held(state, name).numpy() for name in names})
        return {**state, **{name: tensor(x, device=state[name].device) for name, x in after.items()}}

    def after_value(self, value: float, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What is remembered after an epoch with this value, of what was remembered and the number of updates made."""
        if not isinstance(value, Real):
            raise InputError(f"observe: got {value!r:.60}, expected the value of an epoch as a number")
        scale, best, waited, cooldown = (state[name].item() for name in PLATEAU)
        with np.errstate(over="ignore"):
            new = float(np.float32(value))
        best, waited = (new, 0) if self._better(new, best) else (best, waited + 1)
        if cooldown > 0:
            cooldown, waited = cooldown - 1, 0
        if waited > self.patience:
            less = float(np.float32(scale * self.factor))
            rates: list[Rate] = []
            self.optimizer.with_rates(lambda rate: rates.append(rate) or rate)
            present = [rate_at(rate, int(state[COUNT])) for rate in rates]
            if any(self._scaled(rate, scale) - self._scaled(rate, less) > self.eps for rate in present):
                scale = less
            waited, cooldown = 0, self.cooldown
        found = zip(PLATEAU.items(), (scale, best, waited, cooldown), strict=True)
        return {name: np.array(x, kind) for (name, kind), x in found}

    def _better(self, new: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        margin = self.threshold * (best if self.threshold_mode == "rel" else 1)
        return sign * new > sign * (best + sign * margin)

    def _scaled(self, rate: Any, scale: Any) -> Any:
        return larger(rate * scale, smaller(rate, self.min_lr)) if self.min_lr else rate * scale
