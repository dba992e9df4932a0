"""Adam, AdamW and Adan: averages of gradients and of their squares, freed of the zeros with which they begin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..dtypes import float32
from ..late_dataclass import dataclass
from ..tensors.functions.creation import where
from ..tensors.tensor import Tensor
from ._optimizer import Optimizer
from ._schedule import Rate


def begun(beta: float, count: Tensor) -> Any:
    """1 − beta ** (count + 1): the weight that an average that began with 0 has for the values that it saw. By expm1, as in
    float32 the difference would lose most of its digits."""
    return -((count + 1).cast(float32) * math.log(beta)).expm1() if beta else 1.0


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam, as torch.optim.Adam; with amsgrad=True, AMSGrad. Weight decay is added to the gradient; AdamW decays weights."""

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    def _check(self) -> None:
        for name in ("lr", "eps", "weight_decay"):
            self._within(name, 0)
        self._within("betas", 0, 1)

    def _moments(self, parameter: Tensor) -> Mapping[str, float]:
        return {"moment1": 0.0, "moment2": 0.0} | ({"largest2": 0.0} if self.amsgrad else {})

    def _factors(self, count: Tensor) -> Any:
        """The learning rate; it and eps, both times the root of the weight of the second moment, and the former over the
        weight of the first: the elements themselves then need no correction."""
        rate, root = self.rate(count), begun(self.betas[1], count) ** 0.5
        return rate, rate * root / begun(self.betas[0], count), self.eps * root

    def _decayed(self, x: Tensor, g: Tensor, rate: Any) -> tuple[Tensor, Tensor]:
        return x, g + self.weight_decay * x if self.weight_decay else g

    def _update(self, x: Tensor, g: Tensor, m: Mapping[str, Tensor], factors: Any) -> tuple[Tensor, dict[str, Tensor]]:
        rate, size, eps = factors
        x, g = self._decayed(x, g, rate)
        moment1 = self.betas[0] * m["moment1"] + (1 - self.betas[0]) * g
        moment2 = self.betas[1] * m["moment2"] + (1 - self.betas[1]) * (g * g)
        after = {"moment1": moment1, "moment2": moment2}
        if self.amsgrad:
            after["largest2"] = moment2 = where(m["largest2"] > moment2, m["largest2"], moment2)
        return x - size * (moment1 / (moment2.sqrt() + eps)), after


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with weights that decay by themselves, as torch.optim.AdamW."""

    weight_decay: float = 1e-2

    def _decayed(self, x: Tensor, g: Tensor, rate: Any) -> tuple[Tensor, Tensor]:
        return x * (1 - rate * self.weight_decay) if self.weight_decay else x, g


@dataclass(frozen=True)
class Adan(Optimizer):
    """Adan: Nesterov momentum from differences of gradients (arXiv 2208.06677). betas: the weights of the past in the
    averages, that is 1 − β of the paper. no_prox: decay weights as AdamW does, instead of by a proximal step."""

    lr: Rate = 1e-3
    betas: tuple[float, float, float] = (0.98, 0.92, 0.99)
    eps: float = 1e-8
    weight_decay: float = 0.0
    no_prox: bool = False

    def _check(self) -> None:
        for name in ("lr", "eps", "weight_decay"):
            self._within(name, 0)
        self._within("betas", 0, 1)

    def _moments(self, parameter: Tensor) -> Mapping[str, float]:
        return {"moment1": 0.0, "difference": 0.0, "moment2": 0.0, "gradient": 0.0}

    def _factors(self, count: Tensor) -> Any:
        """The learning rate, those for the two moments, eps, as in Adam, and whether a gradient was seen before."""
        weights = [begun(beta, count) for beta in self.betas]
        rate, root = self.rate(count), weights[2] ** 0.5
        size = rate * root
        sizes = size / weights[0], size * self.betas[1] / weights[1]
        return rate, *sizes, self.eps * root, where(count > 0, 1.0, 0.0)

    def _update(self, x: Tensor, g: Tensor, m: Mapping[str, Tensor], factors: Any) -> tuple[Tensor, dict[str, Tensor]]:
        rate, size, size_of_difference, eps, known = factors
        change = (g - m["gradient"]) * known
        ahead = g + self.betas[1] * change
        after = {
            name: beta * m[name] + (1 - beta) * value
            for name, beta, value in zip(
                ("moment1", "difference", "moment2"), self.betas, (g, change, ahead * ahead), strict=True
            )
        }
        moved = (size * after["moment1"] + size_of_difference * after["difference"]) / (after["moment2"].sqrt() + eps)
        decay = rate * self.weight_decay if self.weight_decay else 0.0
        x = x * (1 - decay) - moved if self.no_prox else (x - moved) / (1 + decay)
        return x, after | {"gradient": g}
