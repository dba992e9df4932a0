"""Loss, the base of all losses, and the checks of shapes and types that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from ...errors import DTypeError, InputError, ShapeError
from ...shapes import Dim, same, show
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from .._module import Module

REDUCTIONS: Final = ("none", "mean", "sum")


class Loss(Module):
    """A loss with PyTorch's `reduction`: the losses of all places ("none"), their mean or their sum."""

    _reductions: ClassVar[tuple[str, ...]] = REDUCTIONS
    reduction: str

    def __init__(self, *, reduction: str = "mean") -> None:
        if reduction not in self._reductions:
            names = ", ".join(map(repr, self._reductions))
            raise InputError(f"{type(self).__name__}: reduction is {reduction!r}, expected one of {names}")
        self.reduction = reduction

    def _reduced(self, loss: Tensor) -> Tensor:
        if self.reduction == "none":
            return loss
        return loss.mean() if self.reduction == "mean" else loss.sum()

    def _floats(self, **inputs: Tensor) -> None:
        """Refuse inputs that are not floats."""
        for name, x in inputs.items():
            if not isinstance(x, Tensor):
                raise InputError(f"{type(self).__name__}: {name} is a {type(x).__name__}, expected a Tensor")
            if not x.dtype.is_float:
                raise DTypeError(f"{type(self).__name__}: {name} is {x.dtype}, expected floats; cast it first")

    def _shaped(self, name: str, x: Any, wanted: Sequence[Dim], like: str) -> None:
        """Refuse a tensor or array of another shape."""
        text = f"{type(self).__name__}: {name} is {show(x.shape)}, expected {show(tuple(wanted))} for {like}"
        if len(x.shape) != len(wanted) or not all(same(a, b, text) for a, b in zip(x.shape, wanted, strict=True)):
            raise ShapeError(text)

    def _paired(self, x: Tensor, target: Any, name: str = "the target") -> Tensor:
        """The target in the dtype of a float input x, whose shape it must have: broadcasting would hide mistakes."""
        self._floats(input=x)
        target = given(x, target)
        self._shaped(name, target, x.shape, f"the input {show(x.shape)}")
        return target.cast(x.dtype)


def given(x: Tensor, value: Any) -> Tensor:
    """A tensor, array or list that was passed beside the tensor x, as a tensor on its device."""
    if not isinstance(x, Tensor):
        raise InputError(
            f"a loss got a {type(x).__name__} as its input, expected a Tensor: sg.tensor makes one of an array"
        )
    return value if isinstance(value, Tensor) else tensor(value, device=x.device)


def weights(value: Any) -> Tensor | None:
    """Weights that are a field of a loss: a tensor of float32, if they were numbers."""
    if value is None or isinstance(value, Tensor):
        return value
    array = np.asarray(value)
    return tensor(array if array.dtype.kind == "f" else array.astype(np.float32))


def positive(what: str, name: str, value: float, zero: bool = False) -> float:
    """A number that must be positive (or, with `zero`, at least 0)."""
    if not (value >= 0 if zero else value > 0):
        raise InputError(f"{what}: {name} is {value}, expected a number {'of at least' if zero else 'above'} 0")
    return value
