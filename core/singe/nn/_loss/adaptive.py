"""The adaptive softmax, of very many classes that are numbered by how frequent they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...errors import DTypeError, InputError, ShapeError
from ...runtime.random_keys import Rng, one_generator
from ...shapes import show
from ...tensors.functions.creation import concat
from ...tensors.numpy_fallback import check_classes
from ...tensors.tensor import Tensor
from .._container import Sequential
from .._linear import Linear
from .._module import Module
from ._base import given


class AdaptiveLoss(NamedTuple):
    """The logarithms of the targets' probabilities, and minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over n_classes, the first the most frequent. `head` gives the classes below cutoffs[0] and one for each
    cluster of rarer ones, which lie between two cutoffs; a cluster's layers have in_features / div_valueᵏ features between.

    A number that is no class has the probability NaN. Every cluster is computed for every input, so that the shapes of a
    compiled function do not depend on the targets.
    """

    head: Linear
    tail: list[Module]

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False, *,
        rng: Rng = None,
    ) -> None:  # fmt: skip
        ends = (0, *cutoffs, n_classes)
        if len(ends) < 3 or any(not isinstance(c, int) for c in ends) or any(a >= b for a, b in pairwise(ends)):
            raise InputError(
                f"AdaptiveLogSoftmaxWithLoss: the cutoffs are {list(cutoffs)}, expected increasing integers from 1 to {n_classes - 1}"
            )
        rng = one_generator(rng)
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, ends[1:]
        self.head = Linear(in_features, ends[1] + len(ends) - 2, bias=head_bias, rng=rng)
        self.tail = []
        for k, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            between = int(in_features // div_value**k)
            first = Linear(in_features, between, bias=False, rng=rng)
            self.tail.append(Sequential(first, Linear(between, high - low, bias=False, rng=rng)))

    def forward(self, input: Tensor, target: Any) -> AdaptiveLoss:
        classes = given(input, target)
        if not classes.dtype.is_int:
            raise DTypeError(
                f"AdaptiveLogSoftmaxWithLoss: the target is {classes.dtype}, expected the numbers of classes"
            )
        if (input.ndim, classes.ndim) not in ((2, 1), (1, 0)):
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: got {show(input.shape)} and targets {show(classes.shape)}, expected (batch, "
                f"{self.in_features}) and (batch), or one of each without the batch"
            )
        check_classes(classes, self.n_classes, "AdaptiveLogSoftmaxWithLoss: the target")
        x, places = (input, classes) if classes.ndim else (input.unsqueeze(0), classes.unsqueeze(0))
        first = self.cutoffs[0]
        head = self.head(x).log_softmax(1)
        place, output = places, head.new_zeros(places.shape)
        for k, (low, high) in enumerate(pairwise(self.cutoffs)):
            within = (places >= low) & (places < high)
            own = self._at(self.tail[k](x).log_softmax(1), (places - low).clip(0, high - low - 1))
            place, output = place.masked_fill(within, first + k), own.where(within, output)
        output = output + self._at(head, place.clip(0, head.shape[1] - 1))
        output = output.masked_fill((places < 0) | (places >= self.n_classes), math.nan)
        return AdaptiveLoss(output if classes.ndim else output.squeeze(0), -output.mean())

    def _at(self, x: Tensor, index: Tensor) -> Tensor:
        """Of each row the element at an index."""
        return x.gather(1, index.unsqueeze(1)).squeeze(1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes, (batch, n_classes)."""
        first = self.cutoffs[0]
        head = self.head(input).log_softmax(1)
        parts = [head[:, :first]]
        for k, cluster in enumerate(self.tail, first):
            parts.append(cluster(input).log_softmax(1) + head[:, k : k + 1])
        return concat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class for each row."""
        return self.log_prob(input).argmax(1)
