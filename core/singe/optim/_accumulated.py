"""Accumulated: several batches make one update, with the average of their gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ..errors import InputError
from ..tensors.functions.creation import where, zeros
from ..tensors.tensor import Tensor
from ._gradients import beside_each, gradient_of
from ._optimizer import COUNT, Held, Optimizer, State, elements, held, key, not_alone, successor, wide

M = TypeVar("M")
BATCHES: Final = "batches"
"""The name in the state of how many gradients were taken since the last update."""
SUM: Final = "gradient_sum"


@dataclass(frozen=True)
class Accumulated:
    """An optimiser that updates the model in each `every`-th step, with the average of the gradients of these steps.

    In the other steps the model stays as it is. The optimiser counts updates, and so do its schedules. The choice is made by
    tensors, so that one Program serves all steps. A parameter without a gradient in the `every`-th step stays as it is, too.
    """

    optimizer: Optimizer
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
