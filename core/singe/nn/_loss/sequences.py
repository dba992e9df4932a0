"""Losses of sequences that are not aligned: minus the logarithm of the probability of a target, summed over all alignments
(the row `path_sums`)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ...dtypes import float32, float64
from ...errors import DTypeError, InputError, ShapeError
from ...ops import ROWS
from ...ops.folds.paths import IMPOSSIBLE
from ...shapes import Dim, show
from ...tensors.calls import apply_row
from ...tensors.functions.creation import arange, concat, full, stack, where
from ...tensors.tensor import Tensor, apply
from ._base import Loss, given

INFINITE: Final = 1e29
"""Losses above this are those of targets that no alignment gives."""


class _OfAlignments(Loss):
    def _lengths(self, name: str, value: Any, x: Tensor, batch: Dim, most: Dim) -> Tensor:
        """The lengths of a batch of sequences; those that are at hand are checked."""
        if not isinstance(value, Tensor):
            numbers = np.asarray(value)
            if numbers.size and not (numbers.min() >= 0 and (not isinstance(most, int) or numbers.max() <= most)):
                raise InputError(f"{type(self).__name__}: {name} are {value!r:.80}, expected numbers from 0 to {most}")
        lengths = given(x, value)
        if not lengths.dtype.is_int:
            raise DTypeError(f"{type(self).__name__}: {name} are {lengths.dtype}, expected integers")
        lengths = lengths.reshape(1) if lengths.ndim == 0 else lengths
        self._shaped(name, lengths, (batch,), f"a batch of {batch}")
        return lengths.cast("int64")

    def _integers(self, name: str, value: Any, x: Tensor) -> Tensor:
        found = given(x, value)
        if not found.dtype.is_int:
            raise DTypeError(f"{type(self).__name__}: {name} are {found.dtype}, expected the numbers of classes")
        return found.cast("int64")

    def _losses(self, total: Tensor) -> Tensor:
        """The losses from the logarithms of probabilities; those of impossible targets are infinite, without a gradient."""
        return where(total < -INFINITE, math.inf, -total)


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype in (float32, float64) else x.cast(float32)


def _start(x: Tensor, batch: Dim, states: Dim) -> Tensor:
    """The first state with probability 1."""
    none = full((batch, states), IMPOSSIBLE, x.dtype, device=x.device)
    return where(arange(states, device=x.device) == 0, 0.0, none)


def _at(sums: Tensor, start: Tensor, step: Tensor, state: Tensor) -> Tensor:
    """For each example, the sum of a state after so many steps; IMPOSSIBLE for a state before the first."""
    every = concat([start.unsqueeze(0), sums], 0)
    numbers, states = (arange(d, device=sums.device) for d in (every.shape[0], every.shape[2]))
    hit = (numbers.reshape(-1, 1, 1) == step.reshape(1, -1, 1)) & (states == state.reshape(1, -1, 1))
    return where(state < 0, IMPOSSIBLE, where(hit, every, 0.0).sum((0, 2)))


class CTCLoss(_OfAlignments):
    """Connectionist temporal classification (Graves et al., 2006): of all ways to write a target as one class for each time
    step, with repetitions, and blanks in between.

    Called with logarithms of probabilities (time, batch, classes), targets (batch, longest) or one after the other in one
    row (best with lengths as numbers), and the lengths of both; without a batch, (time, classes) and (longest). Pads may be
    any numbers. The mean is that of losses
    over their targets' lengths. A target that does not fit has an infinite loss, or 0 with zero_infinity, and no gradient.
    """

    def __init__(self, blank: int = 0, *, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Any, input_lengths: Any, target_lengths: Any) -> Tensor:
        self._floats(log_probs=log_probs)
        if log_probs.ndim not in (2, 3):
            raise ShapeError(f"CTCLoss: log_probs are {show(log_probs.shape)}, expected (time, batch, classes)")
        x = _wide(log_probs if log_probs.ndim == 3 else log_probs.unsqueeze(1))
        time, batch, classes = x.shape
        if not 0 <= self.blank < classes:
            raise InputError(f"CTCLoss: blank is {self.blank}, expected a class from 0 to {classes - 1}")
        targets = self._integers("targets", targets, x)
        steps = self._lengths("input_lengths", input_lengths, x, batch, time)
        lengths = self._lengths("target_lengths", target_lengths, x, batch, targets.shape[-1])
        if targets.ndim == 1 and log_probs.ndim == 2:
            targets = targets.unsqueeze(0)
        elif targets.ndim == 1:
            targets = _rows(
                targets, lengths, None if isinstance(target_lengths, Tensor) else np.asarray(target_lengths)
            )
        self._shaped("targets", targets, (batch, targets.shape[-1]), f"log_probs {show(log_probs.shape)}")
        loss = self._losses(self._totals(x, targets.clip(0, classes - 1), steps, lengths))
        if self.zero_infinity:
            loss = where(loss == math.inf, 0.0, loss)
        if self.reduction == "mean":
            loss = loss / lengths.clip(1).cast(loss.dtype)
        loss = self._reduced(loss).cast(log_probs.dtype)
        return loss if self.reduction != "none" or log_probs.ndim == 3 else loss.squeeze(0)

    def _totals(self, x: Tensor, targets: Tensor, steps: Tensor, lengths: Tensor) -> Tensor:
        """The logarithm of each target's probability. The states are blank, first class, blank, second class, …, blank: from
        one to itself or to the next, or past a blank between two different classes."""
        time, batch, classes = x.shape
        blanks = full((batch, 1), self.blank, "int64", device=x.device)
        between = stack([blanks + 0 * targets, targets], 2).flatten(1)
        written = concat([between, blanks], 1)
        states = written.shape[1]
        rows = (arange(batch, device=x.device).reshape(-1, 1) * classes + written).flatten()
        each = x.permute(1, 2, 0).reshape(batch * classes, time).take(rows, 0)
        each = each.reshape(batch, states, time).permute(2, 0, 1).maximum(IMPOSSIBLE)
        earlier = concat([blanks, blanks, written], 1)[:, :states]
        past = each + where((written != self.blank) & (written != earlier), 0.0, IMPOSSIBLE)
        start: Any = _start(x, batch, states)
        sums = apply_row(ROWS["path_sums"], (start, each, each, past))
        last, before = (_at(sums, start, steps, 2 * lengths - back) for back in (0, 1))
        most = last.maximum(before)
        return most + ((last - most).exp() + (before - most).exp()).log()


def _rows(targets: Tensor, lengths: Tensor, numbers: np.ndarray | None) -> Tensor:
    """Targets one after the other as rows, which are as wide as the longest one, if the numbers are at hand."""
    total, width = targets.shape[0], targets.shape[0]
    if numbers is not None:
        width = int(numbers.max(initial=0))
        if numbers.sum() != total:
            raise ShapeError(f"CTCLoss: {total} targets, expected {numbers.sum()}: the sum of target_lengths")
    starts = lengths.cumsum(0) - lengths
    places = starts.reshape(-1, 1) + arange(width, device=targets.device)
    return targets.take(places.clip(0, total - 1).flatten(), 0).reshape(*places.shape)


class RNNTLoss(_OfAlignments):
    """The transducer's loss (Graves, 2012): of all ways through time steps and targets, in which each step ends with a blank.

    Called with logits (batch, time, longest target + 1, classes), targets (batch, longest), and the lengths of logits and
    targets. blank: a class; −1 is the last one. fused_log_softmax: whether the input are logits, and not logarithms of
    probabilities. Names and values are torchaudio's; gradients are not clamped.
    """

    def __init__(self, blank: int = -1, *, reduction: str = "mean", fused_log_softmax: bool = True) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.fused_log_softmax = blank, fused_log_softmax

    def forward(self, logits: Tensor, targets: Any, logit_lengths: Any, target_lengths: Any) -> Tensor:
        self._floats(logits=logits)
        if logits.ndim != 4:
            raise ShapeError(
                f"RNNTLoss: logits are {show(logits.shape)}, expected (batch, time, longest target + 1, classes)"
            )
        batch, time, places, classes = logits.shape
        if not -classes <= self.blank < classes:
            raise InputError(f"RNNTLoss: blank is {self.blank}, expected a class from 0 to {classes - 1}, or -1")
        x = _wide(logits)
        x = x.log_softmax(-1) if self.fused_log_softmax else x.maximum(IMPOSSIBLE)
        targets = self._integers("targets", targets, x)
        self._shaped("targets", targets, (batch, places - 1), f"logits {show(logits.shape)}")
        steps = self._lengths("logit_lengths", logit_lengths, x, batch, time)
        lengths = self._lengths("target_lengths", target_lengths, x, batch, places - 1)
        blank = self.blank % classes
        ends = x[..., blank]
        following = concat([targets, full((batch, 1), blank, "int64", device=x.device)], 1)
        hit = following.reshape(batch, 1, places, 1) == arange(classes, device=x.device)
        writes = where(hit, x, 0.0).sum(-1)
        # State u after d moves is target u at time d − u: each move either ends a time step or writes a class.
        none = full((batch, 1, time + places - 1), IMPOSSIBLE, x.dtype, device=x.device)
        ended, written = _by_moves(ends), concat([none, _by_moves(writes)[:, :-1]], 1)
        start: Any = _start(x, batch, places)
        sums = apply_row(ROWS["path_sums"], (start, ended.permute(2, 0, 1), written.permute(2, 0, 1)))
        reached = _at(sums, start, steps - 1 + lengths, lengths)
        whole = (arange(time, device=x.device).reshape(-1, 1) == (steps - 1).reshape(-1, 1, 1)) & (
            arange(places, device=x.device) == lengths.reshape(-1, 1, 1)
        )
        loss = self._losses(reached + where(whole, ends, 0.0).sum((1, 2)))
        return self._reduced(loss).cast(logits.dtype)


def _by_moves(x: Tensor) -> Tensor:
    """(batch, time, places) as (batch, places, moves), where each place is that many moves later than the first;
    IMPOSSIBLE beyond the times."""
    batch, time, places = x.shape
    pads = full((batch, places, places), IMPOSSIBLE, x.dtype, device=x.device)
    wide = concat([x.permute(0, 2, 1), pads], 2).flatten(1)
    moves = time + places - 1
    kept: Any = (batch, places * moves)
    return apply(lambda b, n: b.slice(n, starts=(0, 0), steps=(1, 1), sizes=kept), wide).reshape(batch, places, moves)
