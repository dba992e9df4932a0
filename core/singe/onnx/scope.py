"""Scopes: the names of a graph of the file and what they stand for, and how graphs within it reach the values outside.

A graph that a node owns is imported in a scope of its own. A region of the Graph has no free variables: where the owner
becomes one, a value from outside is captured, which is an input of the region inside and an input of the node outside.
Constants are not captured, nor are shapes that are computed from constants and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ..errors import ImportFailure, ValueNeeded
from ..graph import Builder, Node, postorder
from ..shapes import product
from .model import OnnxGraph, OnnxNode, OnnxRef
from .tensors import plain

MAX_KNOWN: Final = 64
"""Elements of an integer tensor up to which its value is asked for, so that it need not be captured."""


class SubgraphImporter(Protocol):
    """What imports the nodes of a file's graph into a scope."""

    def subgraph(self, graph: OnnxGraph, scope: Scope) -> None: ...


@dataclass(eq=False)
class Scope:
    """Names and what they stand for, within the main graph, a call of a function or a graph that a node owns.

    attributes: those of a function's caller; absent: the function's inputs that its caller leaves out; opsets: the version
    of each domain; depth: how many scopes this one is within. captures: of a region, what it reads from outside ↦ its input.
    """

    builder: Builder
    reader: SubgraphImporter
    opsets: Mapping[str, int]
    nodes: dict[str, Node] = field(default_factory=dict)
    tensors: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] | None = None
    absent: frozenset[str] = frozenset()
    depth: int = 0
    outside: Scope | None = None
    captures: dict[Node, Node] | None = None

    def find(self, name: str) -> Node | None:
        """What a name stands for; None for an input of a function that its caller leaves out."""
        if name in self.nodes:
            return self.nodes[name]
        if name in self.absent:
            return None
        if name in self.tensors:
            found = self.builder.const(plain(name, self.tensors[name]))
        elif self.outside is not None:
            outer = self.outside.find(name)
            if outer is None:
                return None
            found = outer if self.captures is None else self.captured(outer)
        else:
            raise ImportFailure(f"the value {name!r} is used before any node makes it")
        self.nodes[name] = found
        return found

    def value(self, name: str) -> Node:
        """What a name stands for, where it must be there."""
        found = self.find(name)
        if found is None:
            raise ImportFailure(f"the value {name!r} is left out by the function's caller")
        return found

    def captured(self, outer: Node) -> Node:
        """A value from outside as the region sees it."""
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

    def resolved(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A node's attributes, those that refer to the function's caller looked up there."""
        caller = self.attributes or {}
        out = {k: caller.get(v.name) if isinstance(v, OnnxRef) else v for k, v in given.items()}
        return {k: v for k, v in out.items() if v is not None}

    # --- graphs that a node owns ---

    def within(self, captures: dict[Node, Node] | None) -> Scope:
        """A scope in this one: of a region, which captures what it reads from here, or (None) of what is inlined here."""
        return Scope(
            self.builder, self.reader, self.opsets, attributes=self.attributes, depth=self.depth + 1, outside=self,
            captures=captures,
        )  # fmt: skip

    def outputs(self, graph: OnnxGraph, inputs: Sequence[Node]) -> list[Node]:
        """The outputs of a graph of the file over these inputs, its nodes imported into this scope."""
        if len(graph.inputs) != len(inputs):
            raise ImportFailure(f"its graph {graph.name!r} takes {len(graph.inputs)} inputs, got {len(inputs)}")
        self.nodes.update((v.name, x) for v, x in zip(graph.inputs, inputs, strict=True))
        self.tensors = {**graph.initializers, **graph.sparse_initializers}
        try:
            self.reader.subgraph(graph, self)
            return [self.value(v.name) for v in graph.outputs]
        except ValueNeeded as e:
            raise self._needed_outside(e) from e

    def _needed_outside(self, e: ValueNeeded) -> ImportFailure:
        """The same error, in terms of the inputs of the model: what is captured hangs on them."""
        if self.captures is None:
            return e
        outer = {inner.name: x for x, inner in self.captures.items()}
        if not outer.keys() >= set(e.inputs):
            return ImportFailure(f"{e}: it changes from turn to turn")
        below = postorder([outer[name] for name in e.inputs], lambda n: n.lowered or n.inputs)
        return ValueNeeded(str(e), tuple(n.name for n in below if n.is_input))


def used(node: OnnxNode) -> set[str]:
    """The names that a node reads; of the graphs that it owns all names, their own included."""
    names = set(node.inputs)
    for graph in owned(node):
        names.update(v.name for v in graph.outputs)
        for inner in graph.nodes:
            names |= used(inner)
    return names


def owned(node: OnnxNode) -> list[OnnxGraph]:
    """The graphs that a node owns."""
    values = (v for value in node.attributes.values() for v in (value if isinstance(value, tuple) else (value,)))
    return [v for v in values if isinstance(v, OnnxGraph)]


def needed(nodes: Sequence[OnnxNode], outputs: Iterable[str]) -> list[tuple[int, OnnxNode]]:
    """The nodes that outputs hang on, in their order, with their places in the file."""
    wanted = set(outputs)
    kept = []
    for i in reversed(range(len(nodes))):
        if any(name and name in wanted for name in nodes[i].outputs):
            kept.append((i, nodes[i]))
            wanted |= used(nodes[i])
    return kept[::-1]
