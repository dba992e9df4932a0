"""Recognises attention that a model spells out: softmax(scale · q · kᵀ + mask) · v becomes one node of the row `attention`.

This is done before composites are lowered, where the target has a function for that node (compiler/own.py), and where
nothing else reads the values between. A query whose keys are all hidden by −∞ then gets zeros; by the softmax alone, it
would get NaN, which PyTorch's exports replace by zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ...graph import Builder, Graph, Node, parts, rebuild
from ...ops import Nest, Row
from ...shapes import axis_of
from ._rewriter import number

_PRODUCTS: Final = ("matmul", "dot")


class _Found(NamedTuple):
    """An attention in a graph. turned: kᵀ."""

    q: Node
    turned: Node
    v: Node
    mask: Node | None
    scale: float


def with_attention(graph: Graph, whole: Callable[[Node], Row | None]) -> Graph:
    """The graph with nodes of the row `attention` in place of such chains. whole: as for `rewrite`."""
    if not any(n.op == "softmax" for n in graph.nodes):
        return graph
    chains = {n: found for n in graph.nodes if (found := _Chain(graph, n).found()) is not None}
    if not chains:
        return graph
    new: dict[Node, Node] = {x: x for x in graph.leaves}

    def rule(b: Builder, n: Node, given: tuple[Node, ...]) -> Node | None:
        made = None
        if n in chains:
            q, turned, v, mask, scale = chains[n]
            rank = len(turned.shape)
            k = b.transpose(new[turned], perm=(*range(rank - 2), rank - 1, rank - 2))
            made = b.attention(new[q], k, new[v], *(() if mask is None else (new[mask],)), scale=scale)
            made = None if whole(made) is None else made
        new[n] = made or (n if n.row is None else b.node(n.row, *given, **n.attrs))
        return new[n]

    return rebuild(graph, Builder(), rule, dict(new))


class _Chain:
    """The nodes between the last product and the first one."""

    def __init__(self, graph: Graph, last: Node) -> None:
        self.graph = graph
        self.last = last

    def found(self) -> _Found | None:
        last = self.last
        if last.op not in _PRODUCTS:
            return None
        weights, v = last.inputs
        users = 1
        if self._is_inner(weights, "where") and number(weights.inputs[1]) == 0:  # zeros in place of NaN
            wrong, _, kept = weights.inputs
            if not self._is_inner(wrong, "is_nan") or wrong.inputs[0] is not kept:
                return None
            weights, users = kept, 2
        if not self._is_inner(weights, "softmax", users=users):
            return None
        (scores,) = weights.inputs
        rank = len(scores.shape)
        if axis_of(weights.attrs.get("axis", -1), rank, "softmax") != rank - 1 or len(v.shape) != rank:
            return None
        pairs = [(scores, None)]
        if self._is_inner(scores, "add"):
            pairs = [(scores.inputs[i], scores.inputs[1 - i]) for i in range(2)]
        for product, mask in pairs:
            found = self._scaled(product)
            if found is not None and product.shape == scores.shape:
                q, turned, scale = found
                while mask is not None and mask.op == "expand":
                    mask = mask.inputs[0]
                return _Found(q, turned, v, mask, scale) if len(q.shape) == len(turned.shape) == rank else None
        return None

    def _scaled(self, x: Node) -> tuple[Node, Node, float] | None:
        """q, kᵀ and the scale of a product, which may be scaled."""
        scale = 1.0
        if self._is_inner(x, "mul", "div"):
            by = next((i for i in (1, 0) if number(x.inputs[i]) is not None), None)
            if by is None or (x.op == "div" and by == 0) or x.inputs[1 - by].shape != x.shape:
                return None
            factor = number(x.inputs[by])
            if not factor:
                return None
            scale, x = factor if x.op == "mul" else 1 / factor, x.inputs[1 - by]
        return (*x.inputs, scale) if self._is_inner(x, *_PRODUCTS) else None  # pyright: ignore[reportReturnType]

    def _is_inner(self, n: Node, *ops: str, users: int = 1) -> bool:
        """Whether a node is of one of these rows, and only the next of the chain (or `users` of it) reads it or its parts."""
        if n.op not in ops or len(self.graph.users[n]) != users or n in self.graph.roots:
            return False
        return not any(isinstance(m.row, Nest) and m in self.graph.users for m in parts(n))
