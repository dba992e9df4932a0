"""Sums from which a logarithm is taken are added up in order.

A logarithm turns the relative error of its argument into an absolute one. What scales as its input does (a product, a
root, another sum of products) hands a relative error on; a sum whose terms cancel makes it as large as one likes. There
the last bit of a step is seen in the model's output, so every device must take the same steps: those of a loop of fused
multiply-adds, which is also what other runtimes do. Beside a number that is not small, added to what is never negative
(a local response's squares), an error stays as small as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .. import scalar
from .._dtypes import FLOATS
from ..graph import Builder, Graph, Node, rebuild
from ..ops import Elementwise
from ..scalar import Expr
from ._rewriter import CONTRACTIONS

HANDED_ON: Final = frozenset({"add", "sub", "mul", "div", "neg", "abs", "sqrt", "min", "max", "select", "cast"})
"""The words whose result has a relative error where an argument has one; others (exp, tanh …) bound it."""
FIRM: Final = 2.0**-6
"""A number that is not small: a thousand times the error of a sum of ones."""
SIGNS: Final[Mapping[str, Callable[[Sequence[bool]], bool]]] = {
    "abs": lambda _: True, "exp": lambda _: True, "sqrt": lambda _: True, "max": any,
    "add": all, "mul": all, "div": all, "min": all, "cast": all, "select": lambda known: all(known[1:]),
}  # fmt: skip
"""Words whose result is not below zero, by which of their arguments are known not to be."""
PROOF: Final = 6
"""How many nodes deep a proof goes."""


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
    return {n for n in delicate if n.op in CONTRACTIONS and n.dtype in FLOATS}


def _delicate_inputs(row: Elementwise, n: Node, delicate: bool) -> list[Node]:
    """The inputs of an elementwise node whose relative errors matter: those of a logarithm in it, or of its result."""
    if n.dtype not in FLOATS:
        return []
    params, root = _body(row, n)
    places = dict(zip(params, n.inputs, strict=True))
    waiting: list[Expr] = [x.args[0] for x in scalar.postorder([root]) if x.word == "log"]
    waiting += [root] if delicate else []
    found: set[Expr] = set()
    while waiting:
        e = waiting.pop()
        if e not in found:
            found.add(e)
            waiting += e.args if e.word in HANDED_ON and not _firm(e, places) else ()
    return [x for p, x in places.items() if p in found]


def _body(row: Elementwise, n: Node) -> tuple[list[Expr], Expr]:
    """What stands for each input, a variable or a constant's one number, and the node's expression over that."""
    params = [
        scalar.const(x.value.item(), scalar.COMPUTE[x.dtype])
        if x.value is not None and x.value.size == 1
        else scalar.var(f"x{n.inputs.index(x)}", scalar.COMPUTE[x.dtype])
        for x in n.inputs
    ]
    return params, row.value(params, n.dtype, n.attrs)


def _firm(e: Expr, places: Mapping[Expr, Node]) -> bool:
    """Whether it adds a number that is not small to what is never negative."""
    if e.word != "add" or all(a.word != "const" or a.value < FIRM for a in e.args):
        return False
    return _never_negative_at(e, places, PROOF)


def _never_negative(n: Node, steps: int) -> bool:
    """Whether that can be seen in so many steps."""
    if n.value is not None:
        return bool((n.value >= 0).all())
    if n.row is None or steps == 0:
        return False
    if isinstance(n.row, Elementwise):
        params, root = _body(n.row, n)
        return _never_negative_at(root, dict(zip(params, n.inputs, strict=True)), steps)
    return all(_never_negative(x, steps - 1) for x in n.inputs)  # moved, added up, multiplied


def _never_negative_at(root: Expr, places: Mapping[Expr, Node], steps: int) -> bool:
    def step(e: Expr, args: tuple[bool, ...]) -> bool:
        if e.word == "const":
            return bool(e.value >= 0)
        if e.word == "var":
            return _never_negative(places[e], steps - 1)
        if e.word == "mul" and e.args[0] is e.args[1]:
            return True
        return SIGNS.get(e.word, lambda _: False)(args)

    return scalar.fold([root], step)[0]
