"""Groups that differ in nothing but their nodes, as those of the layers of a network, have one Kernel, which is made once.

A group's form is all that its Kernel depends on: how its nodes are connected, their rows, attributes, shapes and types, the numbers that
become part of the code, and which nodes are in memory.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final, NamedTuple

from ...graph import Node
from ...ir.kernel import Kernel, Routine
from ...ir.scalar import exact
from ._assemble import Group, Maker
from ._growth import Growth


class _Made(NamedTuple):
    """A Group with numbers in place of nodes."""

    kernel: Kernel | Routine
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    members: tuple[int, ...]
    base: int | None


class AlikeGroups:
    """Makes the Groups of one graph. kept: the nodes in memory, which may become more."""

    def __init__(self, kept: Set[Node]) -> None:
        self._kept: Final = kept
        self._made: Final[dict[Any, _Made]] = {}
        self._numbers: Final[dict[Any, int]] = {}  # of what nodes are by themselves
        self._own: Final[dict[Node, int]] = {}

    def of(self, growth: Growth) -> Group:
        """The Group of a growth."""
        form, nodes = self._form(growth)
        made = self._made.get(form)
        if made is None:
            group = Maker(self._kept, growth).group()
            at = {n: k for k, n in enumerate(nodes)}
            given = group.inputs, group.outputs, group.members
            if group.base is None or group.base in at:
                inputs, outputs, members = (tuple([at[n] for n in own]) for own in given)
                base = None if group.base is None else at[group.base]
                self._made[form] = _Made(group.kernel, inputs, outputs, members, base)
            return group
        inputs, outputs, members = (tuple([nodes[k] for k in own]) for own in (made.inputs, made.outputs, made.members))
        return Group(made.kernel, inputs, outputs, members, None if made.base is None else nodes[made.base])

    def _form(self, growth: Growth) -> tuple[Any, list[Node]]:
        """The form of a growth, and the nodes in it, in an order that depends on the form alone."""
        at: dict[Node, int] = {}
        computed: list[Node] = []
        stack = [*growth.coords]
        stack.reverse()
        while stack:
            n = stack.pop()
            if n in at:
                continue
            at[n] = len(at)
            if n in growth.coords or not (n in self._kept or n.row is None):
                computed.append(n)
                stack += n.inputs
        form = (
            tuple([self._number(n) for n in at]),
            tuple([at[n] for n in at if n in self._kept]),
            tuple([(at[n], *[at[x] for x in n.inputs]) for n in computed]),
            tuple([(at[n], place) for n, place in growth.coords.items()]),
            tuple([at[n] for n in growth.exits]),
            tuple(sorted([at[n] for n in growth.full])),
            -1 if growth.pool is None else at[growth.pool],
        )
        return form, [*at]

    def _number(self, n: Node) -> int:
        """The same for nodes that are equal but for their inputs."""
        found = self._own.get(n)
        if found is None:
            value: Any = None
            if n.value is not None and n.value.dtype == object:
                value = tuple(n.value.ravel().tolist())
            elif n.value is not None and n.value.size == 1:
                value = n.value.tobytes()
            own = n.row, exact(tuple(n.attrs.items())), n.results, value, n.value is None
            found = self._own[n] = self._numbers.setdefault(own, len(self._numbers))
        return found
