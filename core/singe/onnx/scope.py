"""Scopes map the names of a graph in the file to nodes, and give nested graphs access to outer values.

A graph that a node owns is imported in a separate scope. A region of the Graph has no free variables: if the owned graph
becomes a region, an outer value is captured, as an input of the region and an input of its node. Constants are not
captured, nor are shapes that are computed from constants and sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol
from zlib import crc32

import numpy as np

from ..dtypes import uint32
from ..errors import ImportFailure, ValueNeeded
from ..graph import Builder, Node, Value, postorder
from ..graph.objects import mapped
from ..late_dataclass import dataclass
from ..runtime.random_keys import KEY, after, as_array
from ..shapes import Dim, deferring, product
from .model import OnnxGraph, OnnxNode, OnnxRef
from .tensors import plain

MAX_KNOWN: Final = 64
"""The most elements of an integer tensor whose value is computed, so that it need not be captured."""


class SubgraphImporter(Protocol):
    """Imports the nodes of a graph in the file into a scope."""

    def subgraph(self, graph: OnnxGraph, scope: Scope, end: Callable[[], None]) -> None: ...


STREAM_OF_TURNS: Final = 3
"""Keys of turns are made of other numbers than those that a node takes from its key, and those that `split` makes."""


def named(b: Builder, key: Node, name: str) -> Node:
    """The key that a name has in a run: the keys of a run differ in their second word, those of different runs in the first."""
    return b.add(key, b.const(np.array([0, crc32(name.encode())], np.uint32)))


@dataclass(eq=False)
class Scope:
    """The nodes by name within the main graph, a call of a function, or a graph that a node owns.

    attributes: those of a function's caller; absent: the function's inputs that its caller omits; opsets: the version of
    each domain; depth: the number of enclosing scopes. captures: for a region, outer node ↦ the region's input for it.
    checks: those of the main graph or region that the nodes belong to; see Graph. caller: for a function, the scope in
    which it is called; call: the name of the call's first output. graph: in the file; None within a function. turn: for the
    body of a loop, the number of the turn, as one integer without axes.
    """

    builder: Builder
    reader: SubgraphImporter
    opsets: Mapping[str, int]
    nodes: dict[str, Value] = field(default_factory=dict)
    tensors: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] | None = None
    absent: frozenset[str] = frozenset()
    depth: int = 0
    outside: Scope | None = None
    captures: dict[Node, Node] | None = None
    checks: dict[Dim, str] = field(default_factory=dict)
    caller: Scope | None = None
    call: str = ""
    graph: OnnxGraph | None = None
    turn: Node | None = None

    def path(self, name: str) -> str:
        """A name, after those of the nodes that it is in: different for each call of a function, and for each branch and loop."""
        around = self.caller or self.outside
        return name if around is None else around.path(f"{self.call}/{name}")

    def find(self, name: str) -> Value:
        """The value of a name; None for an input of a function that its caller omits, as for an optional that holds nothing."""
        if name in self.nodes:
            return self.nodes[name]
        if name in self.absent:
            return None
        if name in self.tensors:
            found = self.builder.const(plain(name, self.tensors[name]))
        elif self.outside is not None:
            outer = self.outside.find(name)
            found = outer if self.captures is None else mapped(self.captured, outer)
        else:
            raise ImportFailure(f"the value {name!r} is used before any node makes it")
        self.nodes[name] = found
        return found

    def reset(self, nodes: Mapping[str, Value], checks: Mapping[Dim, str]) -> None:
        """Have the names and checks that were here at some time; captures stay, as other scopes may know them."""
        for now, then in ((self.nodes, nodes), (self.checks, checks)):
            now.clear()
            now.update(then)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def captured(self, outer: Node) -> Node:
        """An outer value as a node of this scope: the input of the region that captures it."""
        assert self.captures is not None
        if outer.is_const:
            return outer
        count = product(outer.shape)
        if isinstance(count, int) and count <= MAX_KNOWN and not outer.dtype.is_float:
            value = self.builder.value_of(outer)
            if value is not None:
                return self.builder.const(value, outer.dtype)
        if outer not in self.captures:
            self.captures[outer] = self.builder.input(outer.name or outer.op, outer.shape, outer.dtype)
        return self.captures[outer]

    def key(self) -> Node:
        """The key of this run; in a loop, of this turn. Nodes make theirs of it: see `named`."""
        if self.caller is not None:
            return self.caller.key()
        if self.outside is None:
            return self._key
        if self.captures is None:
            return self.outside.key()
        found = self.captured(self.outside.key())
        return found if self.turn is None else self._turned(found, self.turn)

    @cached_property
    def sequence(self) -> Node:
        """The state of the main graph that is a sequence of keys."""
        return self.builder.input(KEY, (2,), uint32)

    @cached_property
    def _key(self) -> Node:
        return self.builder.add(self.sequence, self.builder.const(as_array(after((0, 0), 1))))

    def _turned(self, key: Node, turn: Node) -> Node:
        """A key of a turn, which has nothing in common with those of other turns and of other loops."""
        b = self.builder
        first = b.random_bits(named(b, key, self.path("turn")), shape=(2,), stream=STREAM_OF_TURNS)
        return b.add(first, b.mul(b.cast(turn, to=uint32), b.const(np.array([1, 0], np.uint32))))

    def resolved(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """A node's attributes, with references to the function's caller resolved."""
        for k, v in attributes.items() if self.attributes is None else ():
            if isinstance(v, OnnxRef):
                raise ImportFailure(f"attribute {k!r} is that of a caller, {v.name!r}, but the node is in no function")
        caller = self.attributes or {}
        out = {k: caller.get(v.name) if isinstance(v, OnnxRef) else v for k, v in attributes.items()}
        return {k: v for k, v in out.items() if v is not None}

    # --- graphs that a node owns ---

    def within(self, captures: dict[Node, Node] | None, call: str = "") -> Scope:
        """A scope within this one: for a region, which captures the values that it reads, or (None) for an inlined graph. call:
        the name of the first output of the node that owns the graph."""
        return Scope(
            self.builder, self.reader, self.opsets, attributes=self.attributes, depth=self.depth + 1, outside=self,
            captures=captures, checks=self.checks if captures is None else {}, call=call,
        )  # fmt: skip

    def outputs(
        self, graph: OnnxGraph, inputs: Sequence[Value], fits: Callable[[Sequence[Value]], None] = lambda outputs: None
    ) -> list[Value]:
        """Import the nodes of a graph into this scope, over these inputs; returns its outputs. fits: raises an error if the
        outputs are not as they must be."""
        if len(graph.inputs) != len(inputs):
            raise ImportFailure(f"its graph {graph.name!r} takes {len(graph.inputs)} inputs, got {len(inputs)}")
        self.graph = graph
        self.nodes.update((v.name, x) for v, x in zip(graph.inputs, inputs, strict=True))
        self.tensors = {**graph.initializers, **graph.sparse_initializers}
        try:
            # What a region requires holds within it alone: it may not run.
            with deferring() if self.captures is not None else nullcontext():
                self.reader.subgraph(graph, self, lambda: fits([self.find(v.name) for v in graph.outputs]))
            return [self.find(v.name) for v in graph.outputs]
        except ValueNeeded as e:
            raise self._needed_outside(e) from e

    def _needed_outside(self, e: ValueNeeded) -> ImportFailure:
        """The same error in terms of the model's inputs, from which captured values are computed."""
        if self.captures is None:
            return e
        outer = {inner.name: x for x, inner in self.captures.items()}
        if not outer.keys() >= set(e.inputs):
            return ImportFailure(f"{e}: it changes from turn to turn")
        below = postorder([outer[name] for name in e.inputs], lambda n: n.lowered or n.inputs)
        return ValueNeeded(str(e), tuple(n.name for n in below if n.is_input))


def used(node: OnnxNode) -> set[str]:
    """The names that a node reads, including all names within the graphs that it owns."""
    names = set(node.inputs)
    for graph in owned(node):
        names.update(v.name for v in graph.outputs)
        for inner in graph.nodes:
            names |= used(inner)
    return names


def owned(node: OnnxNode) -> list[OnnxGraph]:
    """The graphs that a node owns. (All elements of a list among the attributes have one type; lists may be long.)"""
    lists = (value if isinstance(value, tuple) else (value,) for value in node.attributes.values())
    return [v for values in lists if values and isinstance(values[0], OnnxGraph) for v in values]


def needed(nodes: Sequence[OnnxNode], outputs: Iterable[str]) -> list[tuple[int, OnnxNode]]:
    """The nodes on which outputs depend, with their positions in the file, in its order as far as each comes after those
    that it reads: some tools write files out of order. Nodes that read each other stay as they are."""
    makers: dict[str, list[int]] = {}
    for i, node in enumerate(nodes):
        for name in filter(None, node.outputs):
            makers.setdefault(name, []).append(i)
    before: dict[int, set[int]] = {}
    pending = [i for name in outputs for i in makers.get(name, ())]
    while pending:
        i = pending.pop()
        if i not in before:
            before[i] = {k for name in used(nodes[i]) for k in makers.get(name, ())}
            pending += before[i]
    order = sorted(before)
    if any(k >= i for i in order for k in before[i]):
        order = _sorted(before)
    return [(i, nodes[i]) for i in order]


def _sorted(before: Mapping[int, set[int]]) -> list[int]:
    """Each number after those before it, the least first; those in circles last."""
    after: dict[int, list[int]] = {i: [] for i in before}
    for i, first in before.items():
        for k in first:
            after[k].append(i)
    waiting = {i: len(first) for i, first in before.items()}
    ready = [i for i, n in waiting.items() if n == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for i in after[order[-1]]:
            waiting[i] -= 1
            if waiting[i] == 0:
                heappush(ready, i)
    return order + sorted(before.keys() - set(order))
