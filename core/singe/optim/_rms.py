"""RMSprop and Adagrad: gradients over the root of an average, or of the sum, of their squares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dtypes import float32
from ..late_dataclass import dataclass
from ..tensors.tensor import Tensor
from ._optimizer import Optimizer
from ._schedule import Rate


@dataclass(frozen=True)
class RMSprop(Optimizer):
    """RMSprop, as torch.optim.RMSprop. centered: divide by the deviation of the gradients, not by their root mean square."""

    lr: Rate = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    def _check(self) -> None:
        for name in ("lr", "eps", "weight_decay", "momentum"):
            self._within(name, 0)
        self._within("alpha", 0, 1)

    def _moments(self, parameter: Tensor) -> Mapping[str, float]:
        wanted = {"moment2": True, "moment1": self.centered, "momentum": self.momentum > 0}
        return {name: 0.0 for name, wants in wanted.items() if wants}

    def _update(self, x: Tensor, g: Tensor, m: Mapping[str, Tensor], factors: Any) -> tuple[Tensor, dict[str, Tensor]]:
        g = g + self.weight_decay * x if self.weight_decay else g
        square = self.alpha * m["moment2"] + (1 - self.alpha) * (g * g)
        after = {"moment2": square}
        if self.centered:
            after["moment1"] = self.alpha * m["moment1"] + (1 - self.alpha) * g
            square = (square - after["moment1"] * after["moment1"]).clamp(0.0)  # a variance, which may round below 0
        moved = g / (square.sqrt() + self.eps)
        if self.momentum:
            after["momentum"] = moved = self.momentum * m["momentum"] + moved
        return x - factors * moved, after


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Adagrad, as torch.optim.Adagrad."""

    lr: Rate = 1e-2
    lr_decay: float = 0.0
    weight_decay: float = 0.0
    initial_accumulator_value: float = 0.0
    eps: float = 1e-10

    def _check(self) -> None:
        for name in ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"):
            self._within(name, 0)

    def _moments(self, parameter: Tensor) -> Mapping[str, float]:
        return {"sum": self.initial_accumulator_value}

    def _factors(self, count: Tensor) -> Any:
        return self.rate(count) / (1 + count.cast(float32) * self.lr_decay) if self.lr_decay else self.rate(count)

    def _update(self, x: Tensor, g: Tensor, m: Mapping[str, Tensor], factors: Any) -> tuple[Tensor, dict[str, Tensor]]:
        g = g + self.weight_decay * x if self.weight_decay else g
        total = m["sum"] + g * g
        return x - factors * (g / (total.sqrt() + self.eps)), {"sum": total}
