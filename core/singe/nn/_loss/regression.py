"""Losses of numbers: the target is a number for each number that a model gives, or the logarithm of one."""

from __future__ import annotations

import math
from typing import Any

from ...errors import InputError, ShapeError
from ...ops import ROWS
from ...shapes import plain, same_form, show
from ...tensors.calls import apply_row
from ...tensors.functions.creation import where
from ...tensors.tensor import Tensor
from ._base import Loss, given, positive


class L1Loss(Loss):
    """|x − target|."""

    def forward(self, input: Tensor, target: Any) -> Tensor:
        return self._reduced(abs(input - self._paired(input, target)))


class MSELoss(Loss):
    """(x − target)²."""

    def forward(self, input: Tensor, target: Any) -> Tensor:
        gap = input - self._paired(input, target)
        return self._reduced(gap * gap)


class LpLoss(Loss):
    """|x − target|ᵖ, without a root: L1Loss for p = 1, MSELoss for p = 2."""

    def __init__(self, p: float = 2.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.p = positive("LpLoss", "p", p)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        gap = abs(input - self._paired(input, target))
        if self.p == 1:
            return self._reduced(gap)
        return self._reduced(gap * gap if self.p == 2 else apply_row(ROWS["pow"], (gap, float(self.p))))


class HuberLoss(Loss):
    """½ (x − target)² up to a gap of delta, delta · (|x − target| − ½ delta) beyond it."""

    def __init__(self, *, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = positive("HuberLoss", "delta", delta)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        gap = abs(input - self._paired(input, target))
        return self._reduced(where(gap < self.delta, 0.5 * gap * gap, self.delta * (gap - 0.5 * self.delta)))


class SmoothL1Loss(Loss):
    """HuberLoss with delta = beta, divided by beta; |x − target| for beta = 0."""

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.beta = positive("SmoothL1Loss", "beta", beta, zero=True)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        gap = abs(input - self._paired(input, target))
        if self.beta == 0:
            return self._reduced(gap)
        return self._reduced(where(gap < self.beta, 0.5 * gap * gap / self.beta, gap - 0.5 * self.beta))


class KLDivLoss(Loss):
    """target · (log target − x), where x is a logarithm of probabilities; with log_target the target is one, too.

    reduction "batchmean": the sum, divided by the length of the first axis. That is the divergence of a batch; "mean"
    divides by the number of elements, as in PyTorch.
    """

    _reductions = ("none", "mean", "sum", "batchmean")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Any) -> Tensor:
        target = self._paired(input, target)
        if self.log_target:
            loss = target.exp() * (target - input)
        else:
            some = target > 0
            loss = where(some, target * (where(some, target, 1.0).log() - input), 0.0)
        return loss.sum() / input.shape[0] if self.reduction == "batchmean" else self._reduced(loss)


class PoissonNLLLoss(Loss):
    """exp(x) − target · x, where x is the logarithm of a rate; without log_input, x − target · log(x + eps).

    full: adds Stirling's approximation of log target! for targets above 1.
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: Tensor, target: Any) -> Tensor:
        target = self._paired(input, target)
        loss = input.exp() - target * input if self.log_input else input - target * (input + self.eps).log()
        if self.full:
            many = where(target > 1, target, 1.0)
            loss += where(target > 1, many * many.log() - many + 0.5 * (2 * math.pi * many).log(), 0.0)
        return self._reduced(loss)


class GaussianNLLLoss(Loss):
    """½ (log var + (x − target)² / var), where var counts as eps if it is less, but for its gradient; full: adds ½ log 2π.

    var has the shape of x, or the same shape with 1 as the last axis, or without it: one variance for all elements of a row.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, positive("GaussianNLLLoss", "eps", eps)

    def forward(self, input: Tensor, target: Any, var: Any) -> Tensor:
        target, var = self._paired(input, target), given(input, var)
        self._floats(var=var)
        if not same_form(var.shape, input.shape):
            rows = plain(input.shape[:-1])
            if plain(var.shape) not in (rows, (*rows, 1)):
                raise ShapeError(
                    f"GaussianNLLLoss: var is {show(var.shape)}, expected {show(input.shape)}, {show((*rows, 1))} or {show(rows)}"
                )
            var = var.reshape(*rows, 1)
        missing: Any = (self.eps - var).relu()
        var = var + missing.detach()  # so that a variance that is too small grows again
        gap = input - target
        loss = 0.5 * (var.log() + gap * gap / var)
        return self._reduced(loss + 0.5 * math.log(2 * math.pi) if self.full else loss)


class GramMatrixLoss(Loss):
    """The difference of two textures: the squared difference of the Gram matrices F Fᵀ of features F (channels, places),
    over 4 · channels² · places², summed over the layers of features with a weight for each (Gatys et al., 2016).

    features: a module that gives a list of feature maps (batch, channels, …) for a batch of pictures, such as the first
    layers of a network that was trained on photographs. Without one, the loss takes two lists of feature maps.
    layer_weights: one for each layer of features; 1 each if none are given. The losses are those of the pictures.
    """

    def __init__(self, features: Any = None, layer_weights: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.features = features
        self.layer_weights = None if layer_weights is None else [float(w) for w in layer_weights]

    def forward(self, input: Any, target: Any) -> Tensor:
        if self.features is not None:
            input, target = self.features(input), self.features(target)
        first, second = (list(x) if isinstance(x, (list, tuple)) else [x] for x in (input, target))
        scales = self.layer_weights or [1.0] * len(first)
        if not len(first) == len(second) == len(scales):
            raise InputError(
                f"GramMatrixLoss: {len(first)} and {len(second)} layers of features and {len(scales)} weights, expected as many of each"
            )
        total: Any = 0.0
        for x, y, scale in zip(first, second, scales, strict=True):
            gap = self._gram(x) - self._gram(self._paired(x, y))
            total = total + scale * (gap * gap).sum((1, 2))
        return self._reduced(total)

    def _gram(self, x: Tensor) -> Tensor:
        """F Fᵀ / (2 · channels · places) of each picture's features."""
        if x.ndim < 3:
            raise ShapeError(f"GramMatrixLoss: features are {show(x.shape)}, expected (batch, channels, …)")
        flat = x.flatten(2)
        return flat @ flat.transpose(1, 2) / (2 * flat.shape[1] * flat.shape[2])
