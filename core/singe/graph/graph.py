"""Graph: named inputs and outputs over nodes, the sizes found in mid-run, what sizes must fulfil, and states that live from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from .. import shapes
from ..late_dataclass import dataclass
from ..shapes import Dim
from .node import Node, postorder, symbols_of


@dataclass(frozen=True, eq=False)
class GraphState:
    """A value that is kept from run to run. `leaf` reads it, `updated` is its next value; `initial`: None for zeros.

    draws: None, or that this is a sequence of keys (runtime/random_keys.py), of which a run takes so many. A runner begins it
    where a seed says; without `initial` and without a seed, where nobody can foresee.
    """

    leaf: Node
    name: str
    initial: np.ndarray | None
    updated: Node
    draws: int | None = None


@dataclass(frozen=True, eq=False)
class Graph:
    """Named inputs and outputs, and the nodes on which the outputs and states depend.

    bound: each size that no input gives ↦ the node that gives it in a run (see Builder.bound): an integer node of one
    element, or a node with results of that size. Nodes that need the size come after that node.
    checks: dimensions that must be at least 0 wherever the graph runs ↦ the error's text if one is not. That of a region
    which can never run is −1.
    results: of a model whose results are not all tensors, each result's name ↦ the tree of its outputs' names (see
    objects.py); otherwise empty.
    """

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    output_names: tuple[str, ...]
    size_nodes: Mapping[str, Node] = field(default_factory=dict)
    states: tuple[GraphState, ...] = ()
    checks: Mapping[Dim, str] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[Node, ...]:
        """The nodes that a run must compute: the outputs, then the next values of the states."""
        return (*self.outputs, *(s.updated for s in self.states))

    def needs(self, n: Node) -> tuple[Node, ...]:
        """The nodes that must be computed before a node: its inputs, and the nodes that give the sizes it needs."""
        if not self.size_nodes:
            return n.inputs
        return (*n.inputs, *(x for x in self._telling(symbols_of(n)) if x is not n))

    def _telling(self, sizes: Iterable[str]) -> list[Node]:
        return [self.size_nodes[s] for s in sorted(sizes) if s in self.size_nodes]

    @cached_property
    def nodes(self) -> list[Node]:
        return postorder((*self.roots, *self._telling(shapes.symbols(self.checks))), self.needs)

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """For each node the nodes that read it; a node that reads it twice is there twice."""
        out: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for n in self.nodes:
            for x in n.inputs:
                out[x].append(n)
        return out

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The nodes whose values are given to a run: inputs, then states."""
        return (*self.inputs, *(s.leaf for s in self.states))

    @property
    def symbols(self) -> frozenset[str]:
        return shapes.symbols([x.shape for x in self.inputs])

    @cached_property
    def own_size_nodes(self) -> dict[str, Node]:
        """The bound sizes whose nodes belong to this graph."""
        here = set(self.nodes)
        return {s: n for s, n in self.size_nodes.items() if n in here}

    @cached_property
    def free(self) -> frozenset[str]:
        """The sizes that the graph needs and that no node of it gives."""
        needed = shapes.symbols(self.checks)
        for n in self.nodes:
            needed |= symbols_of(n)
        return needed - self.own_size_nodes.keys()

    @property
    def refuses(self) -> bool:
        """Whether it has a region that can never run."""
        return -1 in self.checks or any(g.refuses for n in self.nodes for g in regions(n).values())

    def ops(self) -> dict[str, int]:
        """How many nodes there are of each op, including nodes of regions."""
        out: dict[str, int] = {}
        for n in self.nodes:
            if n.row is not None and n.op != "result":
                out[n.op] = out.get(n.op, 0) + 1
            for region in regions(n).values():
                for op, count in region.ops().items():
                    out[op] = out.get(op, 0) + count
        return dict(sorted(out.items(), key=lambda item: (-item[1], item[0])))


def regions(n: Node) -> dict[str, Graph]:
    """The graphs that a node owns, by attribute name."""
    return {k: v for k, v in n.attrs.items() if isinstance(v, Graph)}
