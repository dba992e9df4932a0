"""The optimisers of a step: what may be one, and gradients that are clipped, or accumulated over batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ...errors import InputError
from ...optim import LBFGS, Accumulated, Optimizer, clip_norm


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


def rate_of(optimizer: Any, accumulate: int) -> Callable[[int], float] | None:
    """The learning rate of the step that follows a number of steps, if the optimiser tells it."""
    inner, every = (optimizer.optimizer, optimizer.every) if isinstance(optimizer, Accumulated) else (optimizer, 1)
    if not isinstance(inner, Optimizer):
        return None
    return lambda step: float(inner.rate(step // (every * accumulate)))
