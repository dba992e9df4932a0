"""What a step does when a number is not finite, or an index out of range: `nonfinite` of a TrainStep.

A checked step gives its loss in one array with what is checked, so that nothing more is read, and keeps its states where a
check fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from ...dtypes import float32
from ...errors import InputError, NonFinite, OutOfRange
from ...frontend.functions.creation import stack, where, zeros
from ...frontend.tensor import Tensor
from ...optim import global_norm

Nonfinite = Literal["stop", "skip", "ignore"]
KINDS: Final = ("stop", "skip", "ignore")
CHECKS: Final = "checks"
"""The output in place of the loss: the loss, the norm of the gradients, and the number of what is out of range."""
OUT_OF_RANGE: Final = "index out of range"
"""The name under which a step's first part tells that number."""


def checked_kind(given: Any) -> Nonfinite:
    if given not in KINDS:
        raise InputError(f"nonfinite: got {given!r:.60}, expected one of {', '.join(map(repr, KINDS))}")
    return given


def guarded(
    kind: Nonfinite,
    told: dict[str, Tensor],
    norm: Tensor | None,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    free: Sequence[str],
) -> tuple[dict[str, Tensor], Mapping[str, Tensor]]:
    """What a step tells and its next states, with checks. norm: that of the gradients; None: not checked. free: the states that
    go on all the same."""
    code = told.pop(OUT_OF_RANGE, None)
    if kind == "ignore" and code is None:
        return told, after
    loss = told.pop("loss", None)
    first = zeros((), float32) if loss is None else loss.reshape(())
    size = zeros((), float32) if norm is None or kind == "ignore" else norm.reshape(())
    number = zeros((), float32) if code is None else code.reshape(())
    fine = number == 0
    if kind != "ignore":
        fine = fine & first.isfinite() & size.isfinite()
    kept = {name: x if name in free else where(fine, x, before[name]) for name, x in after.items()}
    return {CHECKS: stack([first, size, number]), **told}, kept


class Checks:
    """What is made of the checks of a step's runs."""

    def __init__(self, kind: Nonfinite) -> None:
        self.kind: Final[Nonfinite] = checked_kind(kind)
        self.texts: Final[list[str]] = []
        """What the numbers of what is out of range mean; see frontend/flags.py."""
        self.skipped = 0
        """How many steps were left out."""

    def passed(self, found: dict[str, np.ndarray], learning: bool = True) -> dict[str, np.ndarray]:
        """The outputs of a step with the loss in its place; an error, if a check failed and was to stop. learning: whether it
        was to change weights; else a loss that is not finite is what it gives."""
        checks = found.pop(CHECKS, None)
        if checks is None:
            return found
        loss, norm, code = (float(x) for x in checks)
        if code:
            raise OutOfRange(self.texts[int(code) - 1])
        fine = math.isfinite(loss), math.isfinite(norm)
        if learning and self.kind == "stop" and not all(fine):
            raise NonFinite(f"the norm of the gradients is {norm}" if fine[0] else f"the loss is {loss}")
        self.skipped += learning and self.kind == "skip" and not all(fine)
        return {"loss": checks[0], **found}


def norm_of(grads: Mapping[str, Tensor], scale: Tensor | None) -> Tensor:
    """The norm of the gradients of a step. Where the loss is scaled, an overflow is what the scale is for, until it has come
    down to 1."""
    norm = global_norm(grads)
    if scale is None:
        return norm
    return where(norm.isfinite() | (scale[0] > 1), 0.0, norm)
