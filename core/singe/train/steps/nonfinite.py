"""What a step does when a number is not finite, or an index out of range: `nonfinite` of a TrainStep.

A checked step gives its loss in one array with what is checked, so that nothing more is read, and keeps its states where a
check fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from ...dtypes import float32
from ...errors import InputError, NonFinite, OutOfRange
from ...ops import ROWS
from ...optim import global_norm
from ...optim._gradients import beside, beside_each
from ...tensors.branches import branch
from ...tensors.calls import apply_row
from ...tensors.functions.creation import where, zeros
from ...tensors.tensor import Tensor

Nonfinite = Literal["stop", "skip", "ignore"]
KINDS: Final = ("stop", "skip", "ignore")
CHECKS: Final = "checks"
"""The output in place of the loss: the loss, the norm of the gradients, and the number of what is out of range."""
OUT_OF_RANGE: Final = "index out of range"
"""The output of a step's first part that is that number."""


def checked_kind(argument: Any) -> Nonfinite:
    if argument not in KINDS:
        raise InputError(f"nonfinite: got {argument!r:.60}, expected one of {', '.join(map(repr, KINDS))}")
    return argument


def checked(
    kind: Nonfinite, outputs: dict[str, Tensor], norm: Tensor | None
) -> tuple[dict[str, Tensor], Tensor | None]:
    """The outputs of a step, with its checks, and whether they are passed; None: there are none. norm: that of the gradients; None: not
    checked."""
    code = outputs.pop(OUT_OF_RANGE, None)
    if kind == "ignore" and code is None:
        return outputs, None
    numbers = outputs.pop("loss", None), None if kind == "ignore" else norm, code
    first = next(x for x in numbers if x is not None)
    zero = zeros((), float32, first.device)
    given = [zero if x is None else beside(x.reshape(()).cast(float32), first) for x in numbers]
    checks, fine = apply_row(ROWS["checks"], given, finite=kind != "ignore")
    return {CHECKS: checks, **outputs}, fine


def where_passed(
    passed: Tensor | None,
    update: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
    tensors: Mapping[str, Tensor],
    names: Sequence[str],
    branches: bool,
) -> Mapping[str, Tensor]:
    """update(given), which gives the states of these names, where the checks are passed; else the states as they are given.

    branches: the update is a branch, which costs nothing where the host reads a bool at once and each op is a call; elsewhere it
    would be one more round trip, and each state is chosen by the kernel that computes it."""
    if passed is None:
        return update(tensors)
    if not branches:
        near = beside_each(passed)
        return {name: where(near(x), x, tensors[name]) for name, x in update(tensors).items()}

    def updated(*values: Tensor) -> list[Tensor]:
        after = update(dict(zip(tensors, values, strict=True)))
        return [after[name] for name in names]

    def kept(*values: Tensor) -> list[Tensor]:
        before = dict(zip(tensors, values, strict=True))
        return [before[name] for name in names]

    return dict(zip(names, branch(passed, updated, kept, [*tensors.values()]), strict=True))


class NonfiniteChecks:
    """What is made of the checks of a step's runs."""

    def __init__(self, kind: Nonfinite) -> None:
        self.kind: Final[Nonfinite] = checked_kind(kind)
        self.texts: Final[list[str]] = []
        """What the numbers of what is out of range mean; see tensors/flags.py."""
        self.skipped = 0
        """How many steps were left out."""

    def finite(self, outputs: Mapping[str, np.ndarray]) -> bool:
        """Whether the loss and the norm among the outputs of a step are finite, or not checked."""
        return self.kind == "ignore" or bool(np.isfinite(outputs[CHECKS][:2]).all())

    def passed(self, outputs: dict[str, np.ndarray], learning: bool = True) -> dict[str, np.ndarray]:
        """The outputs of a step with the loss in its place; an error, if a check failed and was to stop. learning: whether it
        was to change weights; else a loss that is not finite is what it gives."""
        checks = outputs.pop(CHECKS, None)
        if checks is None:
            return outputs
        loss, norm, code = (float(x) for x in checks)
        if code:
            raise OutOfRange(self.texts[int(code) - 1])
        fine = math.isfinite(loss), math.isfinite(norm)
        if learning and self.kind == "stop" and not all(fine):
            raise NonFinite(f"the norm of the gradients is {norm}" if fine[0] else f"the loss is {loss}")
        self.skipped += learning and self.kind == "skip" and not all(fine)
        return {"loss": checks[0], **outputs}


def norm_of(grads: Mapping[str, Tensor], scale: Tensor | None) -> Tensor:
    """The norm of the gradients of a step. Where the loss is scaled, an overflow is what the scale is for, until it has come
    down to 1."""
    norm = global_norm(grads)
    if scale is None:
        return norm
    return where(norm.isfinite() | (scale[0] > 1), 0.0, norm)
