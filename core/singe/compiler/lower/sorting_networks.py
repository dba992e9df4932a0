"""Sorts as loop nests, so that devices can sort without the host.

A short axis is sorted by counting: the rank of an element is the number of elements that come before it. One fold counts
for each element, a second one finds for each rank the element that has it. This takes length² comparisons.

A long or open axis is sorted by the target's function for the op or, where the target has none, by a bitonic network: a
loop, in each turn of which every element is compared with one other element, and the two are swapped if they are in the
wrong order. A turn is one kernel; there are about log²(length) / 2. Stages sort blocks of 2, 4, 8, … elements by merging
the two halves of each block: first every element is compared with its mirror image in the block, then with the element at
half the distance, and so on down to its neighbour. All pairs are sorted in the same direction, so padding beyond the end
of the axis would never move, and no memory is needed for it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...dtypes import int32, int64
from ...graph import Builder, Graph, Node, rebuild
from ...ops import Result
from ...ops.control import repeated
from ...ops.movement.move import numbered_along
from ...shapes import Dim, axis_of, dim_max, dim_min, product
from ..target import Target

MAX_STAGES: Final = 31
"""The stages of a network for the longest axis possible."""


def is_counted(n: Node, target: Target) -> bool:
    """Whether a node is sorted by counting."""
    if n.op not in ("sort", "top_k") or n.inputs[0].dtype not in target.dtypes:
        return False
    (x,) = n.inputs
    length = x.shape[axis_of(n.attrs["axis"], len(x.shape), n.op)]
    return isinstance(length, int) and 0 < length <= target.counted and isinstance(n.attrs.get("k", 0), int)


def is_ordered(n: Node, target: Target) -> bool:
    """Whether a node is a sort that runs on the device."""
    if is_counted(n, target):
        return True
    return target.networks and n.op in ("sort", "top_k") and n.inputs[0].dtype in target.dtypes


def on_device(graph: Graph, target: Target) -> Graph:
    """The graph with sorts replaced by loop nests. Regions are unchanged."""
    if not any(is_ordered(n, target) for n in graph.nodes):
        return graph
    made: dict[Node, tuple[Node, Node]] = {}

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if not isinstance(n.row, Result) or not is_ordered(n.inputs[0], target):
            return None
        (sort,) = new_inputs
        if sort not in made:
            made[sort] = _ordered(b, sort, is_counted(sort, target))
        return made[sort][n.attrs["index"]]

    return rebuild(graph, Builder(), rule, {x: x for x in graph.leaves})


def _ordered(b: Any, n: Node, counted: bool) -> tuple[Node, Node]:
    """The sorted elements along the axis, and their indices before sorting."""
    (x,) = n.inputs
    rank = len(x.shape)
    axis = axis_of(n.attrs["axis"], rank, n.op)
    descending = n.attrs.get("largest", n.attrs.get("descending", False))
    length = x.shape[axis]
    last = (*(k for k in range(rank) if k != axis), axis)
    moved = b.transpose(x, perm=last) if axis != rank - 1 else x
    outer = product(moved.shape[:-1])
    rows = b.reshape(moved, shape=(outer, length))
    values, places = (_counted if counted else _network)(b, rows, n.attrs.get("k", length), descending)
    shape = (*moved.shape[:-1], values.shape[-1])
    each = (b.reshape(values, shape=shape), b.reshape(b.cast(places, to=int64), shape=shape))
    back = tuple(last.index(k) for k in range(rank))
    return each if axis == rank - 1 else tuple(b.transpose(y, perm=back) for y in each)  # pyright: ignore[reportReturnType]


def _before(b: Any, p: Node, q: Node, at: Node, other: Node, descending: bool) -> Node:
    """Whether element p at index `at` comes before q at index `other`; equal elements keep their order."""

    def below(p: Node, q: Node) -> Node:
        """Whether p < q, where NaN is the largest."""
        smaller = b.less(p, q)
        return (
            b.logical_or(smaller, b.greater(b.cast(b.isnan(q), to=int32), b.cast(b.isnan(p), to=int32)))
            if p.dtype.is_float
            else smaller
        )

    first, second = (below(q, p), below(p, q)) if descending else (below(p, q), below(q, p))
    return b.logical_or(first, b.logical_and(b.logical_not(second), b.less(at, other)))


def _counted(b: Any, rows: Node, count: Dim, descending: bool) -> tuple[Node, Node]:
    outer, length = rows.shape
    mine, other = b.reshape(rows, shape=(outer, length, 1)), b.reshape(rows, shape=(outer, 1, length))
    own, others = numbered_along(b, (length, 1), 0), numbered_along(b, (1, length), 1)
    before = b.cast(_before(b, other, mine, others, own, descending), to=int32)
    ranks = b.reshape(b.reduce_sum(before, axes=(2,)), shape=(outer, 1, length))
    found = b.where(b.equal(ranks, numbered_along(b, (count, 1), 0)), others, b.const(0, int32))
    places = b.reshape(b.reduce_sum(found, axes=(2,)), shape=(outer, count))
    base = b.mul(numbered_along(b, (outer, 1), 0), b.const(length, int32))
    return b.gather(b.reshape(rows, shape=(outer * length,)), b.add(places, base), axis=0), places


def _network(b: Any, rows: Node, count: Dim, descending: bool) -> tuple[Node, Node]:
    outer, length = rows.shape
    turns: Dim = 0
    for stage in range(1, MAX_STAGES + 1):  # each stage takes one turn more than the last
        turns = turns + dim_min(dim_max(length - (1 << stage - 1), 0), 1) * stage
    stages = MAX_STAGES if not isinstance(length, int) else max(length - 1, 0).bit_length()
    masks = [(2 << s) - 1 if d == s else 1 << d for s in range(stages) for d in range(s, -1, -1)]

    flat = b.reshape(rows, shape=(outer * length,))
    base = b.mul(numbered_along(b, (outer, 1), 0), b.const(length, int32))

    def turn(before: Any, captured: Any) -> Any:
        """Only the indices are carried, so that a turn is one kernel with one result."""
        own, number = before
        elements, base = captured
        here = numbered_along(b, (1, length), 1)
        there = b.bitwise_xor(here, b.gather(b.const(np.array(masks, np.int32)), number, axis=0))
        others = b.gather(b.reshape(own, shape=(outer * length,)), b.add(there, base), axis=0)
        mine, other = (b.gather(elements, b.add(at, base), axis=0) for at in (own, others))
        swapped = b.equal(_before(b, other, mine, others, own, descending), b.less(here, there))
        swapped = b.logical_and(swapped, b.less(there, b.const(length, int32)))
        return b.where(swapped, others, own), b.add(number, b.const(1, int32))

    places = b.expand(numbered_along(b, (1, length), 1), shape=(outer, length))
    places, _ = repeated(b, turns, (places, b.const(np.zeros((1, 1), np.int32))), (flat, base), turn)
    if count != length:
        places = b.slice(places, starts=(0, 0), steps=(1, 1), sizes=(outer, count))
    return b.gather(flat, b.add(places, base), axis=0), places
