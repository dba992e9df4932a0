"""SGD: gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from ..late_dataclass import dataclass
from ..tensors.functions.creation import where
from ..tensors.tensor import Tensor
from ._optimizer import Optimizer
from ._schedule import Rate


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent, as torch.optim.SGD."""

    lr: Rate = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def _check(self) -> None:
        for name in ("lr", "momentum", "weight_decay"):
            self._within(name, 0)
        if self.nesterov and (self.momentum <= 0 or self.dampening != 0):
            raise InputError(
                f"SGD: nesterov=True needs a momentum and no dampening; got momentum={self.momentum}, dampening={self.dampening}"
            )

    def _moments(self, parameter: Tensor) -> Mapping[str, float]:
        return {"momentum": 0.0} if self.momentum else {}

    def _factors(self, count: Tensor) -> Any:
        """The learning rate, and the share of the gradient in the moment: all of it at first, as in PyTorch."""
        return self.rate(count), where(count == 0, 1.0, 1 - self.dampening) if self.dampening else 1.0

    def _update(self, x: Tensor, g: Tensor, m: Mapping[str, Tensor], factors: Any) -> tuple[Tensor, dict[str, Tensor]]:
        rate, share = factors
        g = g + self.weight_decay * x if self.weight_decay else g
        if not self.momentum:
            return x - rate * g, {}
        moment = self.momentum * m["momentum"] + share * g
        g = g + self.momentum * moment if self.nesterov else moment
        return x - rate * g, {"momentum": moment}
