"""Padding layers. padding: one number, or numbers before and after each axis of space, the last axis first, as in PyTorch.
Negative numbers crop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ...errors import ShapeError
from ...shapes import show
from ...tensors.tensor import Tensor
from .._module import Module


class _Pad(Module):
    """Adds elements before and after the last `spaces` axes."""

    padding: int | Sequence[int]
    _spaces: ClassVar[int]
    _mode: ClassVar[str]

    def __init_subclass__(cls, mode: str | None = None, spaces: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._mode = mode or getattr(cls, "_mode", "constant")
        if spaces is not None:
            cls._spaces = spaces

    def __init__(self, padding: int | Sequence[int]) -> None:
        self.padding = padding if isinstance(padding, int) else tuple(padding)

    def forward(self, x: Tensor) -> Tensor:
        return self._padded(x, 0)

    def _padded(self, x: Tensor, value: float) -> Tensor:
        given = (self.padding,) * 2 * self._spaces if isinstance(self.padding, int) else tuple(self.padding)
        if len(given) != 2 * self._spaces or x.ndim < self._spaces:
            raise ShapeError(
                f"{type(self).__name__}: padding {given} for {show(x.shape)}, expected one number or {2 * self._spaces}"
            )
        pairs = list(zip(given[::2], given[1::2], strict=True))[::-1]
        if any(n < 0 for n in given):
            cuts = tuple(slice(max(-lo, 0), min(hi, 0) or None) for lo, hi in pairs)
            x = x[(..., *cuts)]
            pairs = [(max(lo, 0), max(hi, 0)) for lo, hi in pairs]
        return x.pad([(0, 0)] * (x.ndim - self._spaces) + pairs, self._mode, value)


class _ConstantPad(_Pad):
    value: float

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return self._padded(x, self.value)


class ConstantPad1d(_ConstantPad, spaces=1):
    """Adds a value around the last axis."""


class ConstantPad2d(_ConstantPad, spaces=2):
    """Adds a value around the last two axes."""


class ConstantPad3d(_ConstantPad, spaces=3):
    """Adds a value around the last three axes."""


class ZeroPad1d(_Pad, spaces=1):
    """Adds zeros around the last axis."""


class ZeroPad2d(_Pad, spaces=2):
    """Adds zeros around the last two axes."""


class ZeroPad3d(_Pad, spaces=3):
    """Adds zeros around the last three axes."""


class ReflectionPad1d(_Pad, mode="reflect", spaces=1):
    """Adds elements reflected at the edges of the last axis."""


class ReflectionPad2d(_Pad, mode="reflect", spaces=2):
    """Adds elements reflected at the edges of the last two axes."""


class ReflectionPad3d(_Pad, mode="reflect", spaces=3):
    """Adds elements reflected at the edges of the last three axes."""


class ReplicationPad1d(_Pad, mode="edge", spaces=1):
    """Repeats the elements at the edges of the last axis."""


class ReplicationPad2d(_Pad, mode="edge", spaces=2):
    """Repeats the elements at the edges of the last two axes."""


class ReplicationPad3d(_Pad, mode="edge", spaces=3):
    """Repeats the elements at the edges of the last three axes."""


class CircularPad1d(_Pad, mode="wrap", spaces=1):
    """Adds elements from the other end of the last axis."""


class CircularPad2d(_Pad, mode="wrap", spaces=2):
    """Adds elements from the other end of the last two axes."""


class CircularPad3d(_Pad, mode="wrap", spaces=3):
    """Adds elements from the other end of the last three axes."""
