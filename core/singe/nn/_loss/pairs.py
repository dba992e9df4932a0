"""Losses that compare two tensors, or rows of them: which is larger, which are near."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import InputError, ShapeError
from ...shapes import show
from ...tensors.functions.creation import where
from ...tensors.tensor import Tensor
from .._distance import PairwiseDistance
from ._base import Loss, given

EPS = 1e-12
"""What is added to squared lengths, as in PyTorch, so that rows of zeros have a cosine."""


class HingeEmbeddingLoss(Loss):
    """x where the target is 1, max(0, margin − x) where it is −1."""

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Any) -> Tensor:
        target = self._paired(input, target)
        far = where(target == 1, 0.0, (self.margin - input).relu())
        return self._reduced(far + where(target == -1, 0.0, input))


class MarginRankingLoss(Loss):
    """max(0, margin − target · (x1 − x2)): x1 is to be larger where the target is 1, smaller where it is −1."""

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Any) -> Tensor:
        other, target = self._paired(input1, input2, "input2"), self._paired(input1, target)
        return self._reduced((self.margin - target * (input1 - other)).relu())


class CosineEmbeddingLoss(Loss):
    """1 − cos(x1, x2) of rows whose target is 1, max(0, cos(x1, x2) − margin) of those whose target is −1.

    x1 and x2 are (batch, features), the target (batch); or (features) and one number.
    """

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Any) -> Tensor:
        other, target = self._paired(input1, input2, "input2"), given(input1, target)
        if input1.ndim not in (1, 2):
            raise ShapeError(f"CosineEmbeddingLoss: the inputs are {show(input1.shape)}, expected (batch, features)")
        self._shaped("the target", target, input1.shape[:-1], f"the inputs {show(input1.shape)}")
        squares = ((input1 * input1).sum(-1) + EPS) * ((other * other).sum(-1) + EPS)
        cosine = (input1 * other).sum(-1) / squares.sqrt()
        near = where(target == 1, 1 - cosine, 0.0)
        return self._reduced(near + where(target == -1, (cosine - self.margin).relu(), 0.0))


class TripletMarginWithDistanceLoss(Loss):
    """max(0, margin + distance(anchor, positive) − distance(anchor, negative)) for each row.

    distance_function: of two tensors; PairwiseDistance() if none is given. swap: the negative's distance is the lesser
    of that to the anchor and that to the positive.
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise InputError(f"{type(self).__name__}: margin is {margin}, expected a number above 0")
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        positive, negative = self._paired(anchor, positive, "positive"), self._paired(anchor, negative, "negative")
        far = self.distance_function(anchor, negative)
        if self.swap:
            far = far.minimum(self.distance_function(positive, negative))
        return self._reduced((self.margin + self.distance_function(anchor, positive) - far).relu())


class TripletMarginLoss(TripletMarginWithDistanceLoss):
    """TripletMarginWithDistanceLoss with the p-norm of the gap + eps along the last axis."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, *, reduction: str = "mean"
    ) -> None:
        super().__init__(distance_function=PairwiseDistance(p, eps), margin=margin, swap=swap, reduction=reduction)
