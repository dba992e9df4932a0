"""The optimisers of a step: what may be one, gradients that are clipped, or accumulated over batches, and values that they get."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, Final, TypeVar

import numpy as np

from ...errors import InputError
from ...late_dataclass import dataclass
from ...nn import Module
from ...optim import LBFGS, Accumulated, Averaged, Optimizer, ReduceLROnPlateau, clip_norm
from ...optim._around import AVERAGE, PLATEAU, SCALE
from ...optim._optimizer import COUNT, key
from .states import OPTIMIZER

K = TypeVar("K")
RATE_SCALE: Final = OPTIMIZER + SCALE
"""The state of a step by which a ReduceLROnPlateau multiplies learning rates."""


@dataclass(frozen=True)
class _Clipped:
    """An optimiser that gets gradients of a limited norm."""

    optimizer: Any
    most: float

    def init(self, model: Any) -> Any:
        return self.optimizer.init(model)

    def step(self, model: Any, grads: Any, state: Any) -> Any:
        return self.optimizer.step(model, clip_norm(grads, self.most), state)


def check_optimizer(argument: Any, clip: float | None = None, accumulate: int = 1) -> None:
    """Refuse what no step can be made of."""
    if not (hasattr(argument, "init") and hasattr(argument, "step")):
        raise InputError(
            f"TrainStep: got the optimizer {argument!r:.80}, expected one as of sg.optim; the order is (model, optimizer, loss)"
        )
    if isinstance(getattr(argument, "optimizer", argument), LBFGS):
        raise InputError(
            "TrainStep: got the optimizer LBFGS, which evaluates the loss several times in a step, and so cannot be compiled with "
            "it; expected another one. LBFGS has a loop of its own: evaluate = sg.value_and_grad(lambda model: loss(model(x), y)); "
            "state = opt.init(model); for _ in range(20): model, state = opt.step(model, evaluate, state)"
        )
    if clip is not None and not (isinstance(clip, Real) and clip > 0 and math.isfinite(clip)):
        raise InputError(
            f"TrainStep: got clip={clip!r}, expected the largest norm of all gradients, a positive number, or None"
        )
    if not isinstance(accumulate, (int, np.integer)) or accumulate < 1:
        raise InputError(
            f"TrainStep: got accumulate={accumulate!r}, expected how many batches make one update, at least 1"
        )


def optimizer_of(argument: Any, clip: float | None, accumulate: int) -> Any:
    """The optimiser, with what a step adds to it."""
    check_optimizer(argument, clip, accumulate)
    clipped = argument if clip is None else _Clipped(argument, clip)
    return clipped if accumulate == 1 else Accumulated(clipped, accumulate)  # pyright: ignore[reportArgumentType]


def rate_of(optimizer: Any, accumulate: int) -> Callable[[int, float], float] | None:
    """The learning rate of the step that follows a number of steps, if the optimiser tells it; the second argument is the scale of
    ReduceLROnPlateau."""
    every, inner = accumulate, optimizer
    while isinstance(inner, (Accumulated, Averaged)):
        every, inner = every * (inner.every if isinstance(inner, Accumulated) else 1), inner.optimizer
    if isinstance(inner, ReduceLROnPlateau):
        return lambda step, scale: inner.rate(step // every, scale)
    if not isinstance(inner, Optimizer):
        return None
    return lambda step, scale: float(inner.rate(step // every))


def within(optimizer: Any, kind: type[K]) -> K | None:
    """The optimiser of this kind among one and those that it goes around."""
    while optimizer is not None and not isinstance(optimizer, kind):
        optimizer = None if isinstance(optimizer, Optimizer) else getattr(optimizer, "optimizer", None)
    return optimizer


def averages_of(optimizer: Any, model: Module) -> dict[str, str]:
    """Each path of a parameter ↦ the state of a step that is its average."""
    if within(optimizer, Averaged) is None:
        raise InputError(
            f"averaged: the optimizer {optimizer!r:.80} keeps no averages; expected one such as sg.optim.Averaged(sg.optim.AdamW(1e-3))"
        )
    return {path: OPTIMIZER + key(AVERAGE, path) for path, _ in model.named_parameters()}


def observed_names(optimizer: Any) -> list[str]:
    """The states of a step that `observe` reads."""
    if within(optimizer, ReduceLROnPlateau) is None:
        raise InputError(
            f"observe: got a value, and the optimizer {optimizer!r:.80} has no use for it; expected a ReduceLROnPlateau, as in "
            "TrainStep(model, sg.optim.ReduceLROnPlateau(sg.optim.AdamW(1e-3)), loss)"
        )
    return [OPTIMIZER + name for name in (COUNT, *PLATEAU)]


def observed(optimizer: Any, value: float, states: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The states of a step that change when its optimiser gets the value of an epoch."""
    plateau = within(optimizer, ReduceLROnPlateau)
    before = {name.removeprefix(OPTIMIZER): states[name] for name in observed_names(optimizer)}
    after = plateau.after_value(value, before) if plateau else {}
    return {OPTIMIZER + name: x for name, x in after.items()}
