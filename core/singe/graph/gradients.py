"""Gradients as nodes: the adjoints of the outputs are propagated back through the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..dtypes import FLOATS
from ..errors import DTypeError
from ..ops import Result
from .builder import Builder
from .graph import Graph
from .node import Node, postorder


def gradient(graph: Graph, builder: Builder, seeds: Sequence[Node], by: Sequence[Node]) -> list[Node]:
    """The gradients of Σ seed · output with respect to the nodes `by`; zeros for a node on which no output depends."""
    order = postorder(graph.outputs, _below)
    stops = frozenset(by)
    moved = dependents(order, by)
    adjoint: dict[Node, Node] = {}
    parts: dict[Node, dict[int, Node]] = {}  # for a node of several results, the adjoint of each result

    def give(n: Node, g: Node | None) -> None:
        if g is not None and n.dtype in FLOATS:
            adjoint[n] = builder.add(adjoint[n], g) if n in adjoint else g

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
        if _opened(n):
            give(n.lowered[0], adjoint[n])
        elif isinstance(n.row, Result):
            parts.setdefault(n.inputs[0], {})[n.attrs["index"]] = adjoint[n]
        else:
            given = [g.get(k) for k in range(len(n.results))] if isinstance(g, dict) else g
            for x, part in zip(n.inputs, builder.gradients(n, given), strict=True):
                give(x, part)
    return [adjoint.get(x) or builder.expand(builder.const(0, x.dtype), shape=x.shape) for x in by]


def dependents(order: Sequence[Node], by: Iterable[Node]) -> set[Node]:
    """The nodes of an order, inputs before users, that change with the nodes `by`; those included."""
    found = set(by)
    for n in order:
        if any(x in found for x in _below(n)):
            found.add(n)
    return found


def _below(n: Node) -> Sequence[Node]:
    return n.lowered if _opened(n) else n.inputs


def _opened(n: Node) -> bool:
    """Whether the gradient is computed through the nodes that this node is lowered to."""
    maker = n.inputs[0] if isinstance(n.row, Result) else n
    return bool(n.lowered) and maker.row is not None and maker.row.vjp is None
