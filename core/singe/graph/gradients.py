"""Gradients as nodes: the adjoints of the outputs are propagated back through the graph.

A node that owns graphs is propagated through by reverse.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dtypes import FLOATS
from ..errors import DTypeError
from ..ops import Region, Result
from ..ops.movement.update import slice_at
from .builder import Builder
from .graph import Graph
from .node import ORIGINS, Node, below, dependents, differentiates_lowering, postorder
from .reverse import region_gradients


def gradient(
    graph: Graph, builder: Builder, seeds: Sequence[Node], by: Sequence[Node], sums: Mapping[Node, Node] | None = None
) -> list[Node]:
    """The gradients of Σ seed · output with respect to the nodes `by`; zeros for a node on which no output depends.
    sums: nodes to which the gradients of some of these are added."""
    stops = frozenset(by)
    order = postorder(graph.outputs, lambda n: () if n in stops else below(n))
    moved = dependents(order, by)
    adjoint: dict[Node, Node] = dict(sums or {})
    parts: dict[Node, dict[int, Node]] = {}  # for a node of several results, the adjoint of each result

    def give(n: Node, g: Node | None) -> None:
        if g is not None and n.dtype in FLOATS and n in moved:
            adjoint[n] = _sum(builder, adjoint[n], g) if n in adjoint else g

    for y, g in zip(graph.outputs, seeds, strict=True):
        if y.dtype not in FLOATS:
            raise DTypeError(f"gradient: an output is {y.dtype}, expected a float type")
        give(y, g)
    for n in reversed(order):
        if n.row is None or n in stops or n not in moved:
            continue
        g = parts.get(n) if len(n.results) > 1 else adjoint.get(n)
        if g is None:
            continue
        if differentiates_lowering(n):
            give(n.lowered[0], adjoint[n])
        elif isinstance(n.row, Result):
            parts.setdefault(n.inputs[0], {})[n.attrs["index"]] = adjoint[n]
        else:
            before = builder.count
            given = [g.get(k) for k in range(len(n.results))] if isinstance(g, dict) else g
            if isinstance(n.row, Region):
                every = given if isinstance(given, list) else [given]
                found = region_gradients(
                    builder, gradient, n, every, [x in moved and x.dtype in FLOATS for x in n.inputs]
                )
            else:
                found = builder.gradients(n, given)
            for x, part in zip(n.inputs, found, strict=True):
                give(x, part)
            if n in ORIGINS:
                for made in builder.made_since(before):
                    ORIGINS.setdefault(made, ORIGINS[n].of_gradient)
    return [adjoint.get(x) or builder.expand(builder.const(0, x.dtype), shape=x.shape) for x in by]


def _sum(b: Builder, left: Node, right: Node) -> Node:
    """The sum of two gradients. What is zero but for some slices is added to these alone."""
    for whole, few in ((left, right), (right, left)):
        if few.op not in ("update_slice", "scatter_nd_reduce", "scatter_elements_reduce") or not _zero(few.inputs[0]):
            continue
        _, part, *places = few.inputs
        if few.op != "update_slice":
            if few.attrs["reduction"] == "add":
                return b.apply(few.row, whole, part, *places, **few.attrs)  # pyright: ignore[reportArgumentType]
        else:
            return b.update_slice(whole, b.add(slice_at(b, whole, part.shape, places), part), *places)
    return b.add(left, right)


def _zero(n: Node) -> bool:
    x = n.inputs[0] if n.op == "expand" else n
    return x.value is not None and x.value.size == 1 and not x.value.any()
