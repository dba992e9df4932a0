"""Short sorts as loop nests, so that devices sort without the host.

An element's place in the sorted axis is the number of elements before it. So two folds sort an axis: one counts these
for each element, the other finds for each place the element with that count. The work is the square of the axis'
length, so this pays only for short axes.
"""

from __future__ import annotations

from typing import Any, Final

from ..dtypes import int32, int64
from ..graph import Builder, Graph, Node, rebuild
from ..ops import Result
from ..shapes import axis_of, product
from .target import Target

LONGEST: Final = 64
"""The longest axis that is sorted by counting: there WebAssembly takes about as long as the host."""


def is_counted(n: Node, target: Target) -> bool:
    """Whether a node is a sort that is done by counting."""
    if n.op not in ("sort", "top_k") or n.inputs[0].dtype not in target.dtypes:
        return False
    (x,) = n.inputs
    length = x.shape[axis_of(n.attrs["axis"], len(x.shape), n.op)]
    return isinstance(length, int) and 0 < length <= LONGEST and isinstance(n.attrs.get("k", 0), int)


def by_counting(graph: Graph, target: Target) -> Graph:
    """The graph with loop nests in place of short sorts. Regions are left as they are."""
    if not any(is_counted(n, target) for n in graph.nodes):
        return graph
    made: dict[Node, tuple[Node, Node]] = {}

    def rule(b: Builder, n: Node, given: tuple[Node, ...]) -> Node | None:
        if not isinstance(n.row, Result) or not is_counted(n.inputs[0], target):
            return None
        (sort,) = given
        if sort not in made:
            made[sort] = _ordered(b, sort)
        return made[sort][n.attrs["index"]]

    return rebuild(graph, Builder(), rule, {x: x for x in graph.leaves})


def _ordered(b: Any, n: Node) -> tuple[Node, Node]:
    """The elements sorted along the axis, and the places where they were before."""
    (x,) = n.inputs
    rank = len(x.shape)
    axis = axis_of(n.attrs["axis"], rank, n.op)
    descending = n.attrs.get("largest", n.attrs.get("descending", False))
    length = x.shape[axis]
    count = n.attrs.get("k", length)
    last = (*(k for k in range(rank) if k != axis), axis)
    rows = b.transpose(x, perm=last) if axis != rank - 1 else x
    outer = rows.shape[:-1]

    def numbers(many: Any, shape: tuple[Any, ...]) -> Node:
        return b.reshape(b.arange(b.const(0, int32), b.const(1, int32), count=many), shape=shape)

    def below(p: Node, q: Node) -> Node:
        """Whether p < q, where NaN is the largest."""
        smaller = b.less(p, q)
        return (
            b.logical_or(smaller, b.greater(b.cast(b.is_nan(q), to=int32), b.cast(b.is_nan(p), to=int32)))
            if x.dtype.is_float
            else smaller
        )

    mine, other = b.reshape(rows, shape=(*outer, length, 1)), b.reshape(rows, shape=(*outer, 1, length))
    own, others = numbers(length, (length, 1)), numbers(length, (1, length))
    first, second = (below(mine, other), below(other, mine)) if descending else (below(other, mine), below(mine, other))
    tied = b.logical_and(b.logical_not(second), b.less(others, own))  # equal elements keep their order
    before = b.cast(b.logical_or(first, tied), to=int32)
    ranks = b.reshape(b.reduce_sum(before, axes=(len(outer) + 1,)), shape=(*outer, 1, length))
    found = b.where(b.equal(ranks, numbers(count, (count, 1))), others, b.const(0, int32))
    places = b.reshape(b.reduce_sum(found, axes=(len(outer) + 1,)), shape=(*outer, count))
    base = b.mul(numbers(product(outer), (*outer, 1)), b.const(length, int32))
    values = b.gather(b.reshape(rows, shape=(product(x.shape),)), b.add(places, base), axis=0)
    back = tuple(last.index(k) for k in range(rank))
    each = (values, b.cast(places, to=int64))
    return each if axis == rank - 1 else tuple(b.transpose(y, perm=back) for y in each)  # pyright: ignore[reportReturnType]
