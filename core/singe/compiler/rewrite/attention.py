"""Recognises attention that a model spells out: softmax(scale · q · kᵀ + mask) · v becomes one node of the row `attention`.

This is done before composites are lowered, where the target has a function for that node (compiler/partition.py), and where
nothing else reads the values between. Scores of hidden keys may also be replaced (Where, masked_fill), by −∞ or a number
so low that adding it to them gives the same. A query whose keys are all hidden by −∞ then gets zeros; by the softmax alone, it
would get NaN, which PyTorch's exports replace by zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from ...graph import Builder, Graph, Node, parts, rebuild
from ...ops import Nest, Row
from ...ops.kinds import matrix_transpose
from ...shapes import axis_of
from ._rewriter import number

_PRODUCTS: Final = ("matmul", "dot")
_LOW: Final = -1e9
"""The exponential of a score that this replaces is zero, if any other of its query is not so low."""
_LOWEST: Final = -1e30
"""Every score is lost when this is added to it, so that a query whose keys are all hidden weighs them alike."""


class _Hidden(NamedTuple):
    """What replaces scores. where: bools, or their opposite, according to `given`."""

    where: Node
    is_given: bool
    number: float

    def mask(self, b: Builder, where: Node, mask: Node) -> Node:
        """What is added to the scores, of what is added to those that are not hidden."""
        values = (b.const(self.number if self.number == -math.inf else _LOWEST, mask.dtype), mask)
        return b.where(where, *(values if self.is_given else values[::-1]))


class _Found(NamedTuple):
    """An attention in a graph. turned: kᵀ."""

    q: Node
    turned: Node
    v: Node
    mask: Node | None
    hidden: _Hidden | None
    scale: float


def with_attention(graph: Graph, whole_row_of: Callable[[Node], Row | None]) -> Graph:
    """The graph with nodes of the row `attention` in place of such chains. whole_row_of: as for `rewrite`."""
    if not any(n.op == "softmax" for n in graph.nodes):
        return graph
    chains = {n: found for n in graph.nodes if (found := _Chain(graph, n).found()) is not None}
    if not chains:
        return graph
    new: dict[Node, Node] = {x: x for x in graph.leaves}

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        made = None
        if n in chains:
            q, turned, v, mask, hidden, scale = chains[n]
            k = matrix_transpose(b, new[turned])
            added = [] if mask is None else [new[mask]]
            if hidden is not None:
                added = [hidden.mask(b, new[hidden.where], added[0] if added else b.const(0, q.dtype))]
            made = b.attention(new[q], k, new[v], *added, scale=scale)
            made = None if whole_row_of(made) is None else made
        new[n] = made or (n if n.row is None else b.node(n.row, *new_inputs, **n.attrs))
        return new[n]

    return rebuild(graph, Builder(), rule, dict(new))


def _narrow(x: Node) -> Node:
    """A value before it was expanded."""
    while x.op == "expand":
        x = x.inputs[0]
    return x


def _heads_agree(q: Node, turned: Node, v: Node) -> bool:
    """Whether the row means what the products mean, which repeat one head, but no group of heads."""
    if len(q.shape) < 3:
        return True
    heads, of_keys, of_values = (x.shape[-3] for x in (q, turned, v))
    return of_keys == of_values and (heads == of_keys or (of_keys == 1 and isinstance(heads, int)))


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
            if not self._is_inner(wrong, "isnan") or wrong.inputs[0] is not kept:
                return None
            weights, users = kept, 2
        if not self._is_inner(weights, "softmax", users=users):
            return None
        (scores,) = weights.inputs
        rank = len(scores.shape)
        if axis_of(weights.attrs.get("axis", -1), rank, "softmax") != rank - 1 or len(v.shape) != rank:
            return None
        hidden, scores = self._replaced(scores)
        pairs = [(scores, None)]
        if self._is_inner(scores, "add"):
            pairs = [(scores.inputs[i], scores.inputs[1 - i]) for i in range(2)]
        for product, mask in pairs:
            found = self._scaled(product)
            if found is not None and product.shape == scores.shape:
                q, turned, scale = found
                if not len(q.shape) == len(turned.shape) == rank or not _heads_agree(q, turned, v):
                    return None
                return _Found(q, turned, v, None if mask is None else _narrow(mask), hidden, scale)
        return None

    def _replaced(self, x: Node) -> tuple[_Hidden | None, Node]:
        """What replaces some of the scores, and the scores before."""
        if self._is_inner(x, "where"):
            where, *values = x.inputs
            for given, (value, scores) in ((True, values), (False, values[::-1])):
                low = number(_narrow(value))
                if low is not None and (low == -math.inf or low <= _LOW) and scores.shape == x.shape:
                    return _Hidden(_narrow(where), given, low), scores
        return None, x

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
