"""A group while it grows around its anchor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...graph import Node
from ...ir.kernel import loop_vars
from ...ir.scalar import Expr
from ...ops import Elementwise, Nest, View
from ...shapes import Shape

MAX_MEMBERS: Final = 96
"""The most nodes in one group."""


class Growth:
    """A group while it grows: its members, each with the coordinates at which the group computes it.

    For a reduction, coordinates run over the shape of its input: the reduced axes are inner loops. A member is "full" if
    it has a value for each iteration of these. A `pool` folds windows over the members before it, which are computed at
    each place of a window; the grid is then the pool's. `exits` are the members whose values are stored.
    """

    def __init__(self, anchor: Node, pools: bool = False) -> None:
        """pools: whether it may take a pool if the anchor is a convolution."""
        self.anchored = isinstance(anchor.row, Nest)
        self.anchor = anchor
        self.exits: tuple[Node, ...] = (anchor,)
        self.coords: dict[Node, tuple[Expr, ...]] = {}
        self.full: set[Node] = set()
        self.axes: tuple[int, ...] = ()
        self.space: Shape = ()
        self.pool: Node | None = None
        self._pools = pools and isinstance(anchor.row, Nest) and anchor.row.routine == "conv"
        if isinstance(anchor.row, Nest) and anchor.row.over_axes:
            self.axes = tuple(sorted(anchor.attrs["axes"]))
            self.space = anchor.inputs[0].shape
            inner = iter(loop_vars("r", tuple(self.space[a] for a in self.axes)))
            outer = loop_vars("g", self.grid)
            self.everywhere = tuple(next(inner) if i in self.axes else outer[i] for i in range(len(self.space)))
        self.coords[anchor] = loop_vars("g", self.grid)

    @property
    def grid(self) -> Shape:
        return (self.pool or self.anchor).shape

    @property
    def last(self) -> Node:
        """The member that was added last."""
        return next(reversed(self.coords))

    def restore(self, count: int, exits: tuple[Node, ...]) -> None:
        """Drop all but the first `count` members, and set the exits."""
        kept = list(self.coords)[:count]
        self.pool = self.pool if self.pool in kept else None
        self.coords = {n: self.coords[n] for n in kept}
        self.full &= set(kept)
        self.exits = exits

    def add(self, n: Node) -> bool:
        """Add a node that reads a member, if it can be computed at the group's coordinates; returns whether it can."""
        inside = [x for x in n.inputs if x in self.coords]
        if isinstance(n.row, Elementwise):
            place = self._elementwise(n, inside)
        elif (
            isinstance(n.row, View) and n.row.forward is not None and inside[0] not in self.full and len(n.inputs) == 1
        ):
            place = tuple(n.row.forward(self.coords[inside[0]], *n.inputs, **n.attrs))
        elif (
            self.axes
            and isinstance(n.row, Nest)
            and n.row.over_axes
            and inside[0] in self.full
            and tuple(sorted(n.attrs["axes"])) == self.axes
        ):
            place = loop_vars("g", self.grid)
        elif self._takes_pool(n):
            self.pool = n
            place = loop_vars("g", n.shape)
        else:
            place = None
        if place is None:
            return False
        self.coords[n] = place
        return True

    def _takes_pool(self, n: Node) -> bool:
        """Whether the node pools the last member, and every member has one value for each element of the anchor."""
        if not self._pools or self.pool or not isinstance(n.row, Nest) or n.inputs != (self.last,):
            return False
        here = loop_vars("g", self.grid)
        for m, place in self.coords.items():
            if place != here or not (m is self.anchor or isinstance(m.row, Elementwise)):
                return False
        return n.row.windows(**n.attrs) is not None

    def _elementwise(self, n: Node, inside: Sequence[Node]) -> tuple[Expr, ...] | None:
        if self.axes and n.shape == self.space and self.space != self.grid:
            if all(
                x in self.full or (x.shape == self.grid and self.coords[x] == loop_vars("g", self.grid)) for x in inside
            ):
                self.full.add(n)
                return self.everywhere
            return None
        places = {self.coords[x] for x in inside if x.shape == n.shape and x not in self.full}
        same = all(x.shape == n.shape and x not in self.full for x in inside)
        return places.pop() if same and len(places) == 1 else None
