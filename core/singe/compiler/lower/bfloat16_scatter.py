"""Scattered sums of bfloat16, which are rounded once: computed in float32 and converted back, as on the host.

A target's function for such an op stores every step, which would round each of them.
"""

from __future__ import annotations

from typing import Final

from ...dtypes import bfloat16, float32
from ...graph import Builder, Graph, Node, rebuild

_OPS: Final = frozenset(("scatter_elements_reduce", "scatter_nd_reduce"))


def rounded_once(graph: Graph) -> Graph:
    """The graph with scattered sums of bfloat16 in float32. Regions are unchanged."""

    def is_narrow(n: Node) -> bool:
        return n.op in _OPS and n.dtype is bfloat16

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if n.row is None or not is_narrow(n):
            return None
        x, part, indices = new_inputs
        wide = b.node(n.row, b.cast(x, to=float32), b.cast(part, to=float32), indices, **n.attrs)
        return b.cast(wide, to=bfloat16)

    if not any(map(is_narrow, graph.nodes)):
        return graph
    return rebuild(graph, Builder(), rule, {x: x for x in graph.leaves})
