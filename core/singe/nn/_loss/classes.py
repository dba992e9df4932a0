"""Losses of classification: the target says which class, or how probable each class is."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError, InputError, ShapeError
from ...shapes import show
from ...tensors.functions.creation import arange, full_like, where
from ...tensors.numpy_fallback import check_classes
from ...tensors.tensor import Tensor
from ._base import Loss, given, weights


class _OfClasses(Loss, buffers=("weight",)):
    """A loss over (batch, classes, …), or (classes) without a batch, with a weight for each class."""

    weight: Tensor | None

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.weight = weights(weight)

    def _numbers(self, x: Tensor, target: Tensor, ignored: int | None = None) -> tuple[Tensor, Tensor]:
        """The input and the classes of a batch; a batch of one, if there is none. ignored: a number that is no class."""
        self._floats(input=x)
        if not target.dtype.is_int:
            raise DTypeError(f"{type(self).__name__}: the target is {target.dtype}, expected the numbers of classes")
        if x.ndim == 0:
            raise ShapeError(f"{type(self).__name__}: the input is one number, expected (batch, classes, …)")
        self._shaped(
            "the target", target, (*x.shape[:1], *x.shape[2:]) if x.ndim > 1 else (), f"the input {show(x.shape)}"
        )
        classes = x.shape[min(1, x.ndim - 1)]
        check_classes(target, classes, f"{type(self).__name__}: the target", ignored)
        if self.weight is not None:
            self._shaped("weight", self.weight, (classes,), f"the input {show(x.shape)}")
        return (x, target) if x.ndim > 1 else (x.unsqueeze(0), target.unsqueeze(0))


class NLLLoss(_OfClasses):
    """−x[class] of logarithms of probabilities x (batch, classes, …), times the weight of the class; target (batch, …).

    The mean is weighted. Places whose target is ignore_index do not count. A target that is no class is refused
    (OutOfRange) where the host has the numbers, and in a TrainStep; elsewhere its loss is NaN.
    """

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Any) -> Tensor:
        x, classes = self._numbers(input, given(input, target), self.ignore_index)
        loss: Any = x.nll_loss(classes, self.weight, reduction=self.reduction, ignore_index=self.ignore_index)
        return loss.squeeze(0) if self.reduction == "none" and input.ndim == 1 else loss


class CrossEntropyLoss(_OfClasses):
    """Minus the logarithm of softmax(x)[class], for logits x (batch, classes, …), times the weight of the class.

    The target has the numbers of classes (batch, …), or probabilities of the input's shape. Places whose number is
    ignore_index do not count; a number that is no class is as for NLLLoss. label_smoothing: this part of each target is
    spread over all classes evenly. The mean over numbers is weighted; that over probabilities is over the places.
    """

    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(weight, reduction=reduction)
        if not 0 <= label_smoothing <= 1:
            raise InputError(f"CrossEntropyLoss: label_smoothing is {label_smoothing}, expected a number from 0 to 1")
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Any) -> Tensor:
        target = given(input, target)
        if target.dtype.is_float:
            if target.ndim < input.ndim:
                raise DTypeError(
                    f"CrossEntropyLoss: the target is {target.dtype} of shape {show(target.shape)}, expected the numbers of classes "
                    f"as integers, or probabilities of shape {show(input.shape)}"
                )
            return self._of_probabilities(input, self._paired(input, target))
        x, classes = self._numbers(input, target, self.ignore_index)
        logs = x.log_softmax(1)
        options: Any = {"reduction": "none" if self.label_smoothing else self.reduction}
        loss: Any = logs.nll_loss(classes, self.weight, ignore_index=self.ignore_index, **options)
        if self.label_smoothing:
            counts = classes != self.ignore_index
            even = -(logs if self.weight is None else logs * self._along(x)).mean(1)
            part = self.label_smoothing
            loss = (1 - part) * loss + part * where(counts, even, 0.0)
            if self.reduction == "mean":
                ones: Any = full_like(x, -1)
                loss = loss.sum() / ones.nll_loss(classes, self.weight, ignore_index=self.ignore_index, reduction="sum")
            else:
                loss = self._reduced(loss)
        return loss.squeeze(0) if self.reduction == "none" and input.ndim == 1 else loss

    def _of_probabilities(self, x: Tensor, target: Tensor) -> Tensor:
        axis = min(1, x.ndim - 1)
        if self.label_smoothing:
            target = target * (1 - self.label_smoothing) + self.label_smoothing / x.shape[axis]
        logs = x.log_softmax(axis)
        loss = -(target * (logs if self.weight is None else logs * self._along(x))).sum(axis)
        return self._reduced(loss)

    def _along(self, x: Tensor) -> Tensor:
        """The weights along the axis of classes."""
        assert self.weight is not None
        self._shaped("weight", self.weight, (x.shape[min(1, x.ndim - 1)],), f"the input {show(x.shape)}")
        return self.weight.cast(x.dtype).reshape(-1, *(1,) * (x.ndim - 2))


class BCELoss(Loss, buffers=("weight",)):
    """−(target · log x + (1 − target) · log(1 − x)) of probabilities x, times a weight; logarithms are at least −100.

    BCEWithLogitsLoss takes logits, and is exact where probabilities round to 0 or 1.
    """

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.weight = weights(weight)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        target = self._paired(input, target)
        loss = -(target * _log(input) + (1 - target) * _log(1 - input))
        return self._reduced(loss if self.weight is None else loss * self.weight)


def _log(x: Tensor) -> Tensor:
    """log x, −100 for 0; its gradient there is 0, and no infinity."""
    some = x > 1.2e-38
    return where(some, where(some, x, 1.0).log(), -100.0)


class BCEWithLogitsLoss(Loss, buffers=("weight", "pos_weight")):
    """BCELoss of sigmoid(x), exact for large x. pos_weight: weights of the places where the target is 1."""

    def __init__(self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction=reduction)
        self.weight, self.pos_weight = weights(weight), weights(pos_weight)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        target = self._paired(input, target)
        rare = (-input).softplus()
        if self.pos_weight is not None:
            rare = rare * (1 + (self.pos_weight - 1) * target)
        loss = (1 - target) * input + rare
        return self._reduced(loss if self.weight is None else loss * self.weight)


class SoftMarginLoss(Loss):
    """log(1 + exp(−target · x)), for targets 1 and −1."""

    def forward(self, input: Tensor, target: Any) -> Tensor:
        return self._reduced((-self._paired(input, target) * input).softplus())


class MultiLabelSoftMarginLoss(Loss, buffers=("weight",)):
    """The mean of BCEWithLogitsLoss over the last axis, the classes, with a weight for each."""

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.weight = weights(weight)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        target = self._paired(input, target)
        loss = (1 - target) * input + (-input).softplus()
        return self._reduced((loss if self.weight is None else loss * self.weight).mean(-1))


class MultiMarginLoss(_OfClasses):
    """The sum over other classes of max(0, margin − x[class] + x[other])ᵖ, over the number of classes, times the weight of
    the class; x (batch, classes) or (classes), p 1 or 2."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(weight, reduction=reduction)
        if p not in (1, 2):
            raise InputError(f"MultiMarginLoss: p is {p}, expected 1 or 2")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Any) -> Tensor:
        if input.ndim > 2:
            raise ShapeError(f"MultiMarginLoss: the input is {show(input.shape)}, expected (batch, classes)")
        x, classes = self._numbers(input, given(input, target))
        hit = classes.unsqueeze(1) == _places(x)
        own = where(hit, x, 0.0).sum(1, keepdims=True)
        gap = (self.margin - own + x).relu()
        if self.p == 2:
            gap = gap * gap
        if self.weight is not None:
            gap = gap * where(hit, self.weight.cast(x.dtype), 0.0).sum(1, keepdims=True)
        loss = where(hit, 0.0, gap).mean(1)
        return self._reduced(loss if input.ndim == 2 else loss.squeeze(0))


class MultiLabelMarginLoss(Loss):
    """The sum over classes of the target, and classes that are not, of max(0, 1 − x[class] + x[other]), over the number of
    classes. The target has the input's shape; a row's classes end before the first negative number."""

    def forward(self, input: Tensor, target: Any) -> Tensor:
        self._floats(input=input)
        target = given(input, target)
        self._shaped("the target", target, input.shape, f"the input {show(input.shape)}")
        if input.ndim not in (1, 2):
            raise ShapeError(f"MultiLabelMarginLoss: the input is {show(input.shape)}, expected (batch, classes)")
        if not target.dtype.is_int:
            raise DTypeError(f"MultiLabelMarginLoss: the target is {target.dtype}, expected the numbers of classes")
        check_classes(target, input.shape[-1], "MultiLabelMarginLoss: the target", least=-1)
        x, classes = (input, target) if input.ndim == 2 else (input.unsqueeze(0), target.unsqueeze(0))
        listed = (classes < 0).cast("int32").cumsum(1) == 0
        hit = listed.unsqueeze(2) & (classes.unsqueeze(2) == _places(x))  # (batch, place in the list, class)
        own = where(hit, x.unsqueeze(1), 0.0).sum(2, keepdims=True)
        others = ~hit.any(1, keepdims=True)
        gap = where(listed.unsqueeze(2) & others, (1 - own + x.unsqueeze(1)).relu(), 0.0)
        loss = gap.sum(2).mean(1)
        return self._reduced(loss if input.ndim == 2 else loss.squeeze(0))


def _places(x: Tensor) -> Tensor:
    """The numbers of the classes, along the last axis."""
    return arange(x.shape[-1], device=x.device)
