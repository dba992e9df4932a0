"""Constants that a product reads packed, or with its axes in another order, and another kernel element by element: both read what the
product does, so that a table of tokens whose rows a decoder gathers, and with which it multiplies at its end, is held once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from ...graph import Node
from ...ir import affine, scalar
from ...ir.kernel import Kernel, Routine
from ...ir.scalar import Expr
from ...late_dataclass import dataclass
from ..fuse import Group
from ..target import Packer, Printed


@dataclass(frozen=True)
class _ReadConstant:
    """A constant as a product reads it. place: the index of an element ↦ that among the packed ones."""

    node: Node
    packer: Packer | None
    place: Callable[[Expr], Expr]


class PackedConstants:
    """The constants that products read, of which others may gather elements."""

    def __init__(self) -> None:
        self._known: Final[dict[tuple[int, np.dtype, int], _ReadConstant]] = {}

    def note(self, group: Group, printed: Printed) -> None:
        """Note the constants of a product's code."""
        for k, n in enumerate(group.inputs):
            if n.value is None:
                continue
            packer, places = printed.packers.get(k), printed.places.get(k)
            if packer is None:
                self._known.setdefault(_memory(n.value), _ReadConstant(n, None, lambda index: index))
            elif places is not None and n.value.size == places.count:
                self._known.setdefault(_memory(n.value), _ReadConstant(n, packer, places.of))

    def gathering(self, group: Group) -> tuple[Group, Mapping[int, Packer | None]]:
        """A group over constants as products read them, where it gathers of these, and their packers by port. A kernel that walks along a
        constant reads it in its own order."""
        kernel, inputs = group.kernel, list(group.inputs)
        if isinstance(kernel, Routine):
            return group, {}
        places: dict[int, Callable[[Expr], Expr]] = {}
        packers: dict[int, Packer | None] = {}
        for k, n in enumerate(inputs):
            held = None if n.value is None else self._known.get(_memory(n.value))
            if held is not None and (n is not held.node or held.packer) and _gathers(kernel, k):
                axes = _axes(n, held.node)
                if axes is not None:
                    inputs[k], packers[k] = held.node, held.packer
                    places[k] = _moved(n, held, axes)
        if not places:
            return group, {}

        def step(e: Expr, args: tuple[Expr, ...]) -> Expr:
            if e.word == "load" and e.value in places:
                return scalar.make(e.word, (places[e.value](args[0]),), e.dtype, e.value)
            return e if args == e.args else scalar.make(e.word, args, e.dtype, e.value)

        moved = kernel.with_roots(scalar.fold(kernel.roots, step), kernel.grid)
        return replace(group, kernel=moved, inputs=tuple(inputs)), packers


def _memory(values: np.ndarray) -> tuple[int, np.dtype, int]:
    """The same for views of one array that differ in the order of their axes."""
    return values.__array_interface__["data"][0], values.dtype, values.size


def _axes(n: Node, held: Node) -> tuple[int, ...] | None:
    """The axes of a constant in the order in which another one of the same memory has them; None if it is no such view."""
    assert n.value is not None
    assert held.value is not None
    x, y = n.value, held.value
    if n is held:
        return tuple(range(x.ndim))
    order = sorted(range(y.ndim), key=lambda axis: -abs(y.strides[axis]))
    same = y.transpose(order)
    if not (x.flags.c_contiguous and same.flags.c_contiguous and x.shape == same.shape):
        return None
    return tuple(order.index(axis) for axis in range(y.ndim))


def _moved(n: Node, held: _ReadConstant, axes: tuple[int, ...]) -> Callable[[Expr], Expr]:
    assert n.value is not None
    assert held.node.value is not None
    shape, other = n.value.shape, held.node.value.shape

    def place(index: Expr) -> Expr:
        coordinates = affine.unflatten(index, shape)
        return held.place(affine.flatten([coordinates[axis] for axis in axes], other))

    return place


def _gathers(kernel: Kernel, port: int) -> bool:
    """Whether what a kernel reads of a port is found by other values that it reads."""
    indices = [e.args[0] for e in scalar.postorder(kernel.roots) if e.word == "load" and e.value == port]
    return all(any(e.word == "load" for e in scalar.postorder([index])) for index in indices)
