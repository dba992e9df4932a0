"""The Rewriter: makes nodes that come out simplified, by tables of rules.

A rule is a pure function (rewriter, node) ↦ an equal node, or None where it has nothing to say. It builds with
`rewriter.make`; one that would duplicate work asks `used_once` first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ...errors import SizeNeeded
from ...graph.graph import Builder, Graph, Node, evaluate
from ...ops import Elementwise, find_row

Rule: TypeAlias = "Callable[[Rewriter, Node], Node | None]"

GROWTH: Final = 4
"""A constant is not folded where the result is this many times larger than what it is made of, as with expand."""
SMALL: Final = 1 << 16
"""Bytes up to which growth does not matter."""
CONTRACTIONS: Final = frozenset({"dot", "conv_last"})
"""The rows that sum products of an input with weights, which are their second."""


class Rewriter:
    """One pass: a Builder whose nodes come out simplified.

    rules: by the name of a row, tried in order; elementwise: tried after them on every elementwise node.
    """

    def __init__(self, graph: Graph, rules: Mapping[str, Sequence[Rule]], elementwise: Sequence[Rule]) -> None:
        self.builder = Builder()
        self._rules = rules
        self._elementwise = elementwise
        self._graph = graph
        self._made: dict[Node, Node] = {}
        self._uses: dict[Node, int] = {}

    def run(self) -> Graph:
        done: dict[Node, Node] = {}
        outputs = tuple(self._lowered(x, done) for x in self._graph.outputs)
        counted = Graph(self._graph.inputs, outputs, self._graph.output_names)
        self._uses = {n: len(users) for n, users in counted.users.items()}
        final: dict[Node, Node] = {}
        for n in counted.nodes:
            given = tuple(final[x] for x in n.inputs)
            new = n if n.row is None else self.make(n.row, *given, **n.attrs)
            final[n] = new
            # A node that now stands for several old ones is used as often as all of them together.
            self._uses[new] = self._uses.get(new, 0) + self._uses.get(n, 0) if new is not n else self._uses.get(n, 0)
        return Graph(self._graph.inputs, tuple(final[x] for x in outputs), self._graph.output_names)

    def _lowered(self, root: Node, done: dict[Node, Node]) -> Node:
        """The node made of primitive rows."""
        stack = [root]
        while stack:
            n = stack[-1]
            if n in done:
                stack.pop()
                continue
            below = (n.lowered,) if n.lowered is not None else n.inputs
            waiting = [x for x in below if x not in done]
            if waiting:
                stack += waiting
                continue
            if n.lowered is not None:
                done[n] = done[n.lowered]
            elif n.row is None:
                done[n] = self.builder.const(n.value, n.dtype) if n.value is not None else n
            else:
                done[n] = self.builder.apply(n.row, *(done[x] for x in n.inputs), **n.attrs)
            stack.pop()
        return done[root]

    def make(self, row: Any, *inputs: Node, **attrs: Any) -> Node:
        """A node of a row (or its name), simplified."""
        n = self.builder.apply(find_row(row) if isinstance(row, str) else row, *inputs, **attrs)
        found = self._made.get(n)
        if found is None:
            found = self._made[n] = self._simplified(n)
        return found

    def _simplified(self, n: Node) -> Node:
        if n.lowered is not None:
            return self._relowered(n.lowered)
        folded = self._folded(n)
        if folded is not None:
            return folded
        assert n.row is not None
        for rule in (*self._rules.get(n.row.name, ()), *(self._elementwise if isinstance(n.row, Elementwise) else ())):
            found = rule(self, n)
            if found is not None and found is not n:
                return found
        return n

    def _relowered(self, n: Node) -> Node:
        """A composite that a rule used: its parts, each simplified."""
        if n.lowered is not None:
            return self._relowered(n.lowered)
        return (
            n
            if n.row is None or n in self._made
            else self.make(n.row, *(self._relowered(x) for x in n.inputs), **n.attrs)
        )

    def _folded(self, n: Node) -> Node | None:
        if not all(x.is_const for x in n.inputs) or any(not isinstance(d, int) for d in n.shape):
            return None
        values = [x.value for x in n.inputs if x.value is not None]
        size = int(np.prod([d for d in n.shape if isinstance(d, int)], dtype=np.float64)) * n.dtype.size
        if size > max(SMALL, GROWTH * sum(v.nbytes for v in values)):
            return None
        try:
            return self.const(np.asarray(evaluate(n, values), order="C"), n)
        except SizeNeeded:  # sizes are among the values: a run computes it
            return None

    def const(self, value: Any, like: Node) -> Node:
        return self.builder.const(value, like.dtype)

    def used_once(self, n: Node) -> bool:
        return self._uses.get(n, 1) <= 1


def is_row(n: Node, row: str) -> bool:
    """Whether a node is of the row of that name."""
    return n.row is not None and n.row.name == row


def number(n: Node) -> Any:
    """The number that a constant of one element holds, or None."""
    v = n.value
    return v.reshape(-1)[0].item() if v is not None and v.size == 1 and v.dtype != object else None
