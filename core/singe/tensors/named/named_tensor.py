"""NamedTensor: a Tensor whose dimensions are chosen, checked and matched by name.

This file has what names make different: their order, sizes, parts and products. Operators, elementwise functions and reductions are
members that row_members.py makes. All of them compute with the Tensor inside, on its device, traced and differentiated as it is.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NoReturn

from ...dtypes import DType
from ...errors import InputError
from ...runtime.device import Device
from ...shapes import Dim
from ...tracebacks import shorten_class
from ..functions.combining import einsum
from ..tensor import Tensor
from .alignment import axes_named, axis_named, checked_names, described, product_equation, shown
from .holder import TensorHolder
from .row_members import attach

LEAVE = "x.tensor is the Tensor, which has all methods"


class NamedTensor(TensorHolder):
    """A Tensor with a name for each axis: `x.named("batch", "channels").mean("channels")`.

    Operands are matched by name, in the order of the one that has most names; what one lacks, or has with the size 1, is repeated.
    A Tensor or an array beside it has no axes. What there is not is a method of `x.tensor`.
    """

    __slots__ = ("__weakref__", "_names", "_tensor")
    __array_ufunc__ = None  # so that array * x calls x.__rmul__, which refuses the array

    def __init__(self, tensor: Tensor, names: Sequence[str]) -> None:
        if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"NamedTensor: got {tensor!r:.80}, expected a Tensor; sg.tensor(data).named('batch', 'channels') makes one"
            )
        self._tensor = tensor
        self._names = checked_names("named", names, tensor.shape)

    @property
    def tensor(self) -> Tensor:
        """The same elements as a Tensor without names."""
        return self._tensor

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
        return self._names

    @property
    def sizes(self) -> dict[str, int]:
        """The names of the dimensions ↦ their lengths."""
        return dict(zip(self._names, self._tensor.shape, strict=True))

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._tensor.dtype

    @property
    def device(self) -> Device:
        """The device on which the elements are."""
        return self._tensor.device

    def to(self, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> NamedTensor:
        """The tensor on another device, or in another dtype, or both, as `to` of Tensor."""
        return NamedTensor(self._tensor.to(*targets, device=device, dtype=dtype), self._names)

    # dimensions

    def rename(self, /, **names: str) -> NamedTensor:
        """Other names: `x.rename(batch="rows")`."""
        axes_named("rename", [*names], self._names)
        return NamedTensor(self._tensor, [names.get(name, name) for name in self._names])

    def permute(self, *names: str) -> NamedTensor:
        """The dimensions in another order; all are named."""
        axes = axes_named("permute", names, self._names)
        if len(axes) < len(self._names):
            raise InputError(f"permute: got the names {shown(names)}, expected all of {shown(self._names)}")
        return NamedTensor(self._tensor.permute(*axes), names)

    def transpose(self, name0: str, name1: str) -> NamedTensor:
        """Two dimensions change places."""
        swapped = {name0: name1, name1: name0}
        axes_named("transpose", (name0, name1), self._names)
        return self.permute(*(swapped.get(name, name) for name in self._names))

    def flatten(self, names: Sequence[str], name: str) -> NamedTensor:
        """Neighbouring dimensions as one: `x.flatten(("height", "width"), "pixels")`."""
        axes = axes_named("flatten", tuple(names) if not isinstance(names, str) else names, self._names)
        if not axes or axes != tuple(range(axes[0], axes[0] + len(axes))):
            raise InputError(
                f"flatten: got the dimensions {shown(names)} of {shown(self._names)}, expected neighbours in their order; permute them first"
            )
        made = (*self._names[: axes[0]], name, *self._names[axes[-1] + 1 :])
        return NamedTensor(self._tensor.flatten(axes[0], axes[-1]), made)

    def unflatten(self, name: str, /, **sizes: Dim) -> NamedTensor:
        """A dimension as several: `x.unflatten("pixels", height=28, width=28)`; one of the sizes may be -1."""
        axis = axis_named("unflatten", name, self._names)
        if not sizes:
            raise InputError(
                f"unflatten: got no sizes for {name!r}, expected some, as in unflatten({name!r}, height=28, width=-1)"
            )
        made = (*self._names[:axis], *sizes, *self._names[axis + 1 :])
        return NamedTensor(self._tensor.unflatten(axis, tuple(sizes.values())), made)

    # parts

    def select(self, /, **places: int) -> NamedTensor:
        """The elements at one place of dimensions, without these: `x.select(channels=0)`."""
        axes_named("select", [*places], self._names)
        y: Any = self._tensor
        for axis in reversed(range(len(self._names))):
            if self._names[axis] in places:
                y = y.select(axis, places[self._names[axis]])
        return NamedTensor(y, [name for name in self._names if name not in places])

    def slice(self, /, **parts: builtins.slice) -> NamedTensor:
        """A part of dimensions: `x.slice(batch=slice(0, 2))`."""
        axes_named("slice", [*parts], self._names)
        for name, part in parts.items():
            if not isinstance(part, builtins.slice):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(
                    f"slice: got {part!r:.80} for {name!r}, expected a slice, as in slice({name}=slice(0, 2))"
                )
        key = tuple(parts.get(name, builtins.slice(None)) for name in self._names)
        return NamedTensor(self._tensor[key] if key else self._tensor, self._names)

    # products

    def matmul(self, other: NamedTensor) -> NamedTensor:
        """The product along the last dimension, which the other has, too. Other names that both have are matched, and those that
        only the other has follow."""
        if not isinstance(other, NamedTensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"matmul: got the names {shown(self._names)} and an operand without names, expected names; other.named(…) gives it some"
            )
        x, y = (self._names, self._tensor), (other._names, other._tensor)
        equation, names = product_equation("matmul", x, y)
        return NamedTensor(einsum(equation, self._tensor, other._tensor), names)

    def __matmul__(self, other: NamedTensor) -> NamedTensor:
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> NoReturn:
        raise InputError(
            f"a @ b: got an operand without names and the names {shown(self._names)}, expected names; other.named(…) gives it some"
        )

    # what Python asks

    def __bool__(self) -> bool:
        return bool(self._tensor)

    def __repr__(self) -> str:
        return f"NamedTensor({described(self._names, self._tensor)}, {self._tensor!r})"

    def __getitem__(self, key: Any) -> NoReturn:
        raise InputError(
            f"x[…]: got {key!r:.80} for the names {shown(self._names)}, expected names, as in x.select(channels=0) and "
            f"x.slice(batch=slice(0, 2)); {LEAVE}"
        )

    def __array__(self, *args: Any, **named: Any) -> NoReturn:
        raise InputError(f"a NamedTensor {shown(self._names)} is no array; x.tensor.numpy() gives its elements")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Tensor, name):
            raise AttributeError(
                f"a NamedTensor has no {name!r}, as it does not go by names: x.tensor.{name}, and .named(…) names the result",
                name=name,
                obj=self,
            )
        raise AttributeError(f"a NamedTensor has no {name!r}; {LEAVE}", name=name, obj=self)


attach(NamedTensor)
shorten_class(NamedTensor)
