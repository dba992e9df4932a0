"""Losses of classification: (batch, classes, …) with one target, the number of a class, for each place."""

from __future__ import annotations

import math
from typing import Any, Final

from ...dtypes import FLOATS, int32, int64
from ...errors import DTypeError, ShapeError
from ...shapes import Shape, same, show
from ..kinds import Composite, as_dtype, register
from ..movement.move import amount, numbered_along
from .reduce import wide

REDUCTIONS: Final = ("none", "sum", "mean")
"""What becomes of the losses of all places: kept, summed, or averaged by weight."""
IGNORED: Final = -100
"""The target of a place that does not count, as in PyTorch; not a class."""


def _check(x: Any, target: Any, weight: Any, reduction: str) -> None:
    text = f"nll_loss: {show(x.shape)} with targets {show(target.shape)}"
    wanted: Shape = (*x.shape[:1], *x.shape[2:])
    if reduction not in REDUCTIONS:
        raise ShapeError(f"nll_loss: the reduction is {reduction!r}, expected one of {', '.join(REDUCTIONS)}")
    if not target.dtype.is_int:
        raise DTypeError(f"nll_loss: the targets are {target.dtype}, expected the numbers of classes")
    if len(x.shape) < 2 or len(target.shape) != len(wanted):
        raise ShapeError(f"{text}: expected (batch, classes, …) and (batch, …)")
    if not all(same(a, b, text) for a, b in zip(target.shape, wanted, strict=True)):
        raise ShapeError(f"{text}: expected targets of shape {show(wanted)}")
    if weight is not None and (len(weight.shape) != 1 or not same(weight.shape[0], x.shape[1], text)):
        raise ShapeError(f"{text} and weights {show(weight.shape)}: expected one weight for each class")


def _nll(
    b: Any, x: Any, target: Any, weight: Any = None, *, reduction: str = "mean", ignore_index: int = IGNORED
) -> Any:
    """A class is chosen by a sum over all of them with zeros elsewhere: this fuses with what computes them."""
    _check(x, target, weight, reduction)
    rank, classes = len(x.shape), x.shape[1]
    zero, every = b.const(0, x.dtype), tuple(range(rank - 1))
    target = as_dtype(b, target, int64)
    counts = b.logical_not(b.equal(target, b.const(ignore_index, int64)))
    within = b.logical_and(b.less(target, amount(b, classes, int64)), b.greater_equal(target, b.const(0, int64)))
    along = (1, classes, *(1,) * (rank - 2))
    # One comparison of narrow integers for each class: what is no class becomes −1.
    place = b.cast(b.where(b.logical_and(counts, within), target, b.const(-1, int64)), to=int32)
    place = b.reshape(place, shape=(*x.shape[:1], 1, *x.shape[2:]))
    hit = b.equal(place, numbered_along(b, x.shape, 1))

    def chosen(values: Any) -> Any:
        return b.reshape(b.reduce_sum(b.where(hit, values, zero), axes=(1,)), shape=target.shape)

    if weight is None:
        weights = b.cast(counts, to=x.dtype)
        loss = b.neg(chosen(x))
    else:
        spread = b.reshape(as_dtype(b, weight, x.dtype), shape=along)
        weights, loss = chosen(spread), b.neg(chosen(b.mul(x, spread)))
    wrong = b.logical_and(counts, b.logical_not(within))
    loss = b.where(wrong, b.const(math.nan, x.dtype), loss)  # a run cannot raise an error for it
    if reduction == "none":
        return loss
    total = b.reshape(b.reduce_sum(loss, axes=every), shape=())
    return total if reduction == "sum" else b.div(total, b.reshape(b.reduce_sum(weights, axes=every), shape=()))


def _cross_entropy(
    b: Any, x: Any, target: Any, weight: Any = None, *, reduction: str = "mean", ignore_index: int = IGNORED
) -> Any:
    _check(x, target, weight, reduction)
    return b.nll_loss(b.log_softmax(x, axis=1), target, weight, reduction=reduction, ignore_index=ignore_index)


register(
    Composite(name="nll_loss", doc="minus the log-probability of each place's class, times the weight of the class", onnx="NegativeLogLikelihoodLoss",
              lower=wide(_nll), dtypes=FLOATS, tolerance=64, floor=1e-5),
    Composite(name="cross_entropy", doc="minus the logarithm of the softmax at each place's class, times the weight of the class",
              lower=wide(_cross_entropy), dtypes=FLOATS, tolerance=64, floor=1e-5),
)  # fmt: skip
