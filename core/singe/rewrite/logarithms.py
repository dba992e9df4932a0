"""Sums from which a logarithm is taken are added up in order.

A logarithm turns the relative error of its argument into an absolute one. What scales as its input does (a product, a
root, another sum of products) hands a relative error on; a sum whose terms cancel makes it as large as one likes. There
the last bit of a step is seen in the model's output, so every device must take the same steps: those of a loop of fused
multiply-adds, which is also what other runtimes do.
"""

from __future__ import annotations

from typing import Final

from .. import scalar
from .._dtypes import FLOATS
from ..graph import Builder, Graph, Node, rebuild
from ..ops import Elementwise
from ..scalar import Expr

HANDED_ON: Final = frozenset({"add", "sub", "mul", "div", "neg", "abs", "sqrt", "min", "max", "select", "cast"})
"""The words whose result has a relative error where an argument has one; others (exp, tanh …) bound it."""
SUMS: Final = frozenset({"dot", "conv_last"})


def sums_in_order(graph: Graph) -> Graph:
    """The graph, its products that lead to a logarithm marked."""
    marked = _before_logarithms(graph)
    if not marked:
        return graph

    def rule(b: Builder, n: Node, given: tuple[Node, ...]) -> Node | None:
        return b.apply(n.row, *given, **{**n.attrs, "in_order": True}) if n in marked and n.row else None

    return rebuild(graph, Builder(), rule)


def _before_logarithms(graph: Graph) -> set[Node]:
    delicate: set[Node] = set()
    for n in reversed(graph.nodes):
        if isinstance(n.row, Elementwise):
            delicate.update(_delicate_inputs(n.row, n, n in delicate))
        elif n in delicate:
            delicate.update(n.inputs)
    return {n for n in delicate if n.row is not None and n.row.name in SUMS and n.dtype in FLOATS}


def _delicate_inputs(row: Elementwise, n: Node, delicate: bool) -> list[Node]:
    """The inputs of an elementwise node whose relative errors matter: those of a logarithm in it, or of its result."""
    if n.dtype not in FLOATS:
        return []
    params = [scalar.var(f"x{i}", scalar.COMPUTE[x.dtype]) for i, x in enumerate(n.inputs)]
    root = row.value(params, n.dtype, n.attrs)
    waiting: list[Expr] = [x.args[0] for x in scalar.postorder([root]) if x.word == "log"]
    waiting += [root] if delicate else []
    found: set[Expr] = set()
    while waiting:
        e = waiting.pop()
        if e not in found:
            found.add(e)
            waiting += e.args if e.word in HANDED_ON else ()
    return [x for x, p in zip(n.inputs, params, strict=True) if p in found]
