"""Muon: matrices move by their averaged gradient, orthogonalised; other parameters by AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from ..errors import InputError
from ..late_dataclass import dataclass
from ..tensors.functions.creation import where
from ..tensors.tensor import Tensor
from ._adam import AdamW
from ._optimizer import Optimizer
from ._schedule import Rate

ADJUSTMENTS: Final[Mapping[str, Callable[[int, int], float]]] = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
    "spectral_unclamped": lambda rows, columns: math.sqrt(rows / columns),
}
"""By what the learning rate is multiplied for a matrix of so many rows and columns."""


@dataclass(frozen=True)
class Muon(Optimizer):
    """Muon, as torch.optim.Muon, but in float32; and AdamW for parameters that are no matrices, or of groups with use_muon=False.

    Embeddings and the last layer are usually trained by AdamW: groups={"embed.*": {"use_muon": False}}.
    """

    lr: Rate = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: str = "original"
    use_muon: bool = True
    adamw: AdamW = field(default_factory=lambda: AdamW(lr=3e-4))

    def _check(self) -> None:
        for name in ("lr", "weight_decay", "eps"):
            self._within(name, 0)
        self._within("momentum", 0, 1)
        if self.adjust_lr_fn not in ADJUSTMENTS:
            raise InputError(f"Muon: got adjust_lr_fn={self.adjust_lr_fn!r}, expected one of {', '.join(ADJUSTMENTS)}")
        if self.adamw.groups:
            raise InputError('Muon: adamw has groups; give them to Muon: groups={"head.*": {"adamw": AdamW(lr=1e-3)}}')

    def _turns(self, parameter: Tensor) -> bool:
        return self.use_muon and parameter.ndim == 2

    def _moments(self, parameter: Tensor) -> Mapping[str, float]:
        return {"momentum": 0.0} if self._turns(parameter) else self.adamw._moments(parameter)

    def _factors(self, count: Tensor) -> Any:
        return self.rate(count), self.adamw._factors(count)

    def _update(self, x: Tensor, g: Tensor, m: Mapping[str, Tensor], factors: Any) -> tuple[Tensor, dict[str, Tensor]]:
        rate, others = factors
        if not self._turns(x):
            return self.adamw._update(x, g, m, others)
        moment = self.momentum * m["momentum"] + (1 - self.momentum) * g
        g = self.momentum * moment + (1 - self.momentum) * g if self.nesterov else moment
        turned = orthogonalised(g, self.ns_coefficients, self.ns_steps, self.eps)
        adjusted = rate * ADJUSTMENTS[self.adjust_lr_fn](*x.shape)
        return x * (1 - rate * self.weight_decay) - adjusted * turned, {"momentum": moment}


def orthogonalised(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix with the singular vectors of x and singular values near 1 (within 0.5 to 1.5 with Muon's coefficients), by
    Newton-Schulz iterations x ← a·x + (b·xxᵀ + c·(xxᵀ)²)·x."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x  # the products x·xᵀ are then of the smaller size
    norm = (x * x).sum().sqrt()
    x = x / where(norm > eps, norm, eps)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if tall else x
