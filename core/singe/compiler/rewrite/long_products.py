"""Products of a long depth and few tiles are computed in parts of the depth, which are added, so that a large device has enough to do.

A workgroup of a GPU computes a tile of a product over the whole depth. The gradient of a weight is a product of few tiles, and its
depth are all rows of a batch: most of a large GPU would wait. `filled_by` says how many tiles fill the devices of a target. Only
sizes that are known are split, and only weights that are no constants, as those of a step of training: constants are packed for
their kernels.
"""

from __future__ import annotations

from typing import Final

from ...dtypes import FLOATS
from ...graph import Builder, Graph, Node, rebuild
from ._rewriter import is_row

TILE: Final = 64
"""The rows and columns of a tile, about."""
LEAST_DEPTH: Final = 512
"""The least depth of a part."""
MOST_PARTS: Final = 8


def in_parts(graph: Graph, filled_by: int) -> Graph:
    """See the module's docstring."""
    if filled_by == 1:
        return graph
    parts = {n: count for n in graph.nodes if is_row(n, "dot") and (count := _count(n, filled_by)) > 1}
    if not parts:
        return graph

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if n not in parts:
            return None
        left, right = new_inputs
        return _product(b, left, right, parts[n])

    return rebuild(graph, Builder(), rule)


def _count(n: Node, filled_by: int) -> int:
    """In how many parts a product is computed: a power of two."""
    left, right = n.inputs
    known = all(isinstance(d, int) for x in n.inputs for d in x.shape)
    if not known or n.dtype not in FLOATS or left.value is not None or right.value is not None:
        return 1
    if len(left.shape) != 2 or len(right.shape) != 2 or min(*left.shape, *right.shape) < TILE:
        return 1
    (rows, depth), columns = left.shape, right.shape[1]
    tiles, parts = -(-rows // TILE) * -(-columns // TILE), 1
    while (
        parts < MOST_PARTS
        and depth % (2 * parts) == 0
        and depth // (2 * parts) >= LEAST_DEPTH
        and 2 * parts * tiles <= filled_by
    ):
        parts *= 2
    return parts


def _product(b: Builder, left: Node, right: Node, parts: int) -> Node:
    (rows, depth), columns = left.shape, right.shape[1]
    lefts = b.transpose(b.reshape(left, shape=(rows, parts, depth // parts)), perm=(1, 0, 2))
    products = b.dot(lefts, b.reshape(right, shape=(parts, depth // parts, columns)))
    return b.reshape(b.reduce_sum(products, axes=(0,)), shape=(rows, columns))
