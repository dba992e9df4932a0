"""The Rewriter: makes nodes and simplifies them by tables of rules.

A rule is a pure function of (rewriter, node) that returns an equal node, or None if it does not apply. It makes nodes
with `rewriter.make`. A rule that might duplicate work calls `used_once` first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from ...dtypes import string
from ...errors import SizeNeeded
from ...graph import (
    WHOLE,
    Builder,
    Graph,
    Node,
    attribute_symbols,
    checks_at,
    evaluate_node,
    inherit,
    parts,
    postorder,
    renamed,
    sized,
    with_sizes,
)
from ...ops import Composite, Elementwise, Nest, Region, Result, Row, View, find_row
from ...shapes import Dim, product
from ._regions import Regions

Rule: TypeAlias = "Callable[[Rewriter, Node], Node | None]"

MAX_FOLDED_GROWTH: Final = 4
"""A node of constants is not folded if the result is more than this many times larger than the graph's own constants of
which it is computed, as with expand."""
ALWAYS_FOLDED_BYTES: Final = 1 << 16
"""Results of at most this many bytes are always folded, whatever their growth."""
UNPACKING: Final = frozenset({"bitwise_right_shift"})
"""Rows that take packed numbers apart. Large results are computed by each run, which holds them only for a while."""
CONTRACTIONS: Final = frozenset({"dot", "conv_last"})
"""The rows that sum products of their first input with their second, the weights."""


class Rewriter:
    """One pass over a graph, with a Builder for the simplified nodes.

    rules: by the name of a row, tried in order. elementwise: tried after them on every elementwise node. finish:
    applied to every graph at the end. begin: applied to every graph of primitive rows before it is simplified. known:
    constants that replace some of the graph's inputs. whole: the row with which a composite of the graph stays one node.
    """

    def __init__(
        self,
        graph: Graph,
        rules: Mapping[str, Sequence[Rule]],
        elementwise: Sequence[Rule],
        finish: Callable[[Graph], Graph],
        begin: Callable[[Graph, Builder], Graph] | None = None,
        known: Mapping[Node, Node] | None = None,
        whole_row_of: Callable[[Node], Row | None] = lambda _: None,
    ) -> None:
        self.builder = Builder()
        self._rules = rules
        self._elementwise = elementwise
        self._finish = finish
        self._begin = begin
        self._graph = graph
        self._known = dict(known or {})
        self._whole = whole_row_of
        self._rows: dict[Node, Row | None] = {}  # what `whole` gave
        self._opened: set[Node] = set()  # composites that are lowered because other nodes read their parts
        self._made: dict[Node, Node] = {}
        self._uses: dict[Node, int] = {}
        self._origins: dict[
            Node, frozenset[Node]
        ] = {}  # of folded constants: the graph's own of which they are computed
        self._told: dict[str, Dim] = {}  # sizes of rewritten regions ↦ the dimensions that they turned out to be

    def run(self) -> Graph:
        graph = self._graph
        self._opened = self._shared()
        done: dict[Node, Node] = {x: self.builder.const(c.value, c.dtype) for x, c in self._known.items()}
        for x in (*graph.roots, *graph.own_size_nodes.values()):
            self._lowered(x, done)
        counted = renamed(graph, {**dict(zip(graph.leaves, graph.leaves, strict=True)), **done})
        if self._begin is not None:
            counted = self._begin(counted, self.builder)
        self._uses = {n: len(users) for n, users in counted.users.items()}
        final: dict[Node, Node] = dict(zip(counted.leaves, counted.leaves, strict=True))
        bound: dict[str, Node] = {}
        checks = dict(graph.checks)
        for n in counted.nodes:
            if n in final:
                continue
            given = tuple(final[x] for x in n.inputs)
            attrs = self._current(n)
            if isinstance(n.row, Region):
                found = Regions(self, n, given, attrs, _read(n, counted))
                bound.update(found.bound)
                checks.update(found.checks)
                self._told.update(found.told)
                final.update(zip(_values(n, counted), found.values, strict=True))
                continue
            before = self.builder.count
            new = sized(self.builder, n, self._told) if n.row is None else self.make(n.row, *given, **attrs)
            inherit(self.builder.made_since(before), n)
            final[n] = new
            # A node that replaces several old ones is used as often as all of them together.
            self._uses[new] = self._uses.get(new, 0) + self._uses.get(n, 0) if new is not n else self._uses.get(n, 0)
        bound = {**{s: final[n] for s, n in counted.own_size_nodes.items() if s not in bound | self._told}, **bound}
        outputs = tuple(final[x] for x in counted.outputs)
        states = tuple(replace(s, updated=final[s.updated]) for s in counted.states)
        inputs = tuple(x for x in graph.inputs if x not in self._known)
        made = Graph(inputs, outputs, graph.output_names, bound, states, checks_at(checks, self._told))
        return self._finish(made)

    def _current(self, n: Node) -> Mapping[str, Any]:
        """A node's attributes, with the sizes in `_told` replaced."""
        if self._told.keys().isdisjoint(attribute_symbols(n)):
            return n.attrs
        return {k: with_sizes(v, self._told) for k, v in n.attrs.items()}

    def rewritten(self, graph: Graph, known: Mapping[Node, Node]) -> Graph:
        """A region, rewritten by the same rules."""
        return Rewriter(graph, self._rules, self._elementwise, self._finish, self._begin, known, self._whole).run()

    def _shared(self) -> set[Node]:
        """The composites whose parts cost much and are computed for other nodes too, for example for a gradient."""
        needed = postorder((*self._graph.roots, *self._graph.own_size_nodes.values()), self._below)
        seen, found = set(needed), set[Node]()
        for n in needed:
            if not isinstance(n.row, Composite) or not n.row.function or self._row_of(n) is None:
                continue
            if any(isinstance(m.row, Nest) and m in seen for m in parts(n)):
                found.add(n)
        return found

    def _below(self, n: Node) -> Sequence[Node]:
        """The nodes that must be computed before a node, or those to which it is lowered."""
        return n.lowered if n.lowered and self._row_of(n) is None else self._graph.needs(n)

    def _lowered(self, root: Node, done: dict[Node, Node]) -> None:
        """Add the node, lowered to primitive rows, to `done`, with all nodes that it needs."""
        stack = [root]
        while stack:
            n = stack[-1]
            if n in done:
                stack.pop()
                continue
            row = self._row_of(n)
            if row is None:
                inherit(parts(n), n)
            waiting = [x for x in self._below(n) if x not in done]
            if waiting:
                stack += waiting
                continue
            if row is not None:
                done[n] = self.builder.node(row, *(done[x] for x in n.inputs), **n.attrs)
                inherit((done[n],), n)
            elif n.lowered:
                done[n] = done[n.lowered[0]]
            else:
                done[n] = self.builder.const(n.value, n.dtype) if n.value is not None else n
            stack.pop()

    def _row_of(self, n: Node) -> Row | None:
        """The row with which a node is made again; None if it has none, or is lowered."""
        if not n.lowered:
            return n.row
        if isinstance(n.row, Result):
            return None if self._row_of(n.inputs[0]) is None else n.row
        if n not in self._rows:
            self._rows[n] = self._whole(n)
        return None if n in self._opened else self._rows[n]

    def make(self, row: Any, *inputs: Node, **attrs: Any) -> Node:
        """A node of a row (or its name), simplified."""
        n = self.builder.node(find_row(row) if isinstance(row, str) else row, *inputs, **attrs)
        found = self._made.get(n)
        if found is None:
            found = self._made[n] = self._simplified(n)
        return found

    def _simplified(self, n: Node) -> Node:
        if n.lowered:
            return self._relowered(n)
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
        """A composite that a rule made, lowered, with all parts simplified."""
        if n.lowered:
            return self._relowered(n.lowered[0]) if len(n.results) == 1 else n
        return (
            n
            if n.row is None or n in self._made
            else self.make(n.row, *(self._relowered(x) for x in n.inputs), **n.attrs)
        )

    def _folded(self, n: Node) -> Node | None:
        """The value of a node over constants as a constant; None if it is too large or cannot be computed now."""
        source = n.inputs[0] if isinstance(n.row, Result) else n
        if isinstance(source.row, Region) or len(n.results) > 1 or not all(x.is_const for x in source.inputs):
            return None
        if any(kind is string for _, kind in source.results):
            return None  # how long they become is not known
        if any(not isinstance(d, int) or d < 0 for shape, _ in source.results for d in shape):
            return None
        values = [x.value for x in source.inputs if x.value is not None]
        if any(v.dtype == object for v in values) and any(d != 1 for shape, _ in source.results for d in shape):
            return None  # each element of the constant would be an expression of sizes
        counts = [(product(shape), kind.size) for shape, kind in source.results]
        count = sum(count * size for count, size in counts if isinstance(count, int))
        own = (
            frozenset(x for given in source.inputs for x in self._origins.get(given, (given,)))
            if count > ALWAYS_FOLDED_BYTES
            else ()
        )
        if own and source.op in UNPACKING:
            return None
        if count > max(
            ALWAYS_FOLDED_BYTES, MAX_FOLDED_GROWTH * sum(x.value.nbytes for x in own if x.value is not None)
        ):
            return None
        try:
            value = (
                self.builder.value_of(n) if source is not n or isinstance(n.row, WHOLE) else evaluate_node(n, values)
            )
        except SizeNeeded:  # it depends on sizes, so a run computes it
            return None
        if value is None:
            return None
        # A large view of a weight stays a view: packing copies it later, in pieces.
        is_view = isinstance(n.row, View) and value.base is not None and value.nbytes > ALWAYS_FOLDED_BYTES
        made = self.const(value if is_view else np.asarray(value, order="C"), n)
        if own:
            self._origins[made] = frozenset(own)
        return made

    def const(self, value: Any, like: Node) -> Node:
        return self.builder.const(value, like.dtype)

    def used_once(self, n: Node) -> bool:
        return self._uses.get(n, 1) <= 1


def _values(n: Node, graph: Graph) -> list[Node]:
    """The nodes through which the graph reads a node: itself, or one for each result. A result that no node reads gets
    the node itself as a placeholder."""
    if len(n.results) == 1:
        return [n]
    read = {u.attrs["index"]: u for u in graph.users[n]}
    return [read.get(k, n) for k in range(len(n.results))]


def _read(n: Node, graph: Graph) -> set[int]:
    """The numbers of a node's results that other nodes read."""
    return {0} if len(n.results) == 1 else {u.attrs["index"] for u in graph.users[n]}


def is_row(n: Node, row: str) -> bool:
    """Whether a node is of the row of that name."""
    return n.row is not None and n.row.name == row


def number(n: Node) -> Any:
    """The number in a constant of one element, otherwise None."""
    v = n.value
    return v.reshape(-1)[0].item() if v is not None and v.size == 1 and v.dtype != object else None
