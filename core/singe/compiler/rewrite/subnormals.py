"""Subnormal weights (too small for a normal float32) become zeros.

Training leaves such weights where gradients do not reach them. A GPU treats them as zeros. On many processors an
operation on them takes a hundred times as long, and WebAssembly cannot switch them off. Only the operands of sums of
products, and constants added to such sums, are changed: elsewhere a subnormal number may matter, for example as a
divisor. Subnormal numbers of float16 are normal in float32.
"""

from __future__ import annotations

import numpy as np

from ...dtypes import LEAST_NORMAL, float32
from ...graph import Builder, Graph, Node, rebuild
from ._rewriter import CONTRACTIONS, is_row


def without_subnormals(graph: Graph) -> Graph:
    """See the module's docstring."""
    subnormal = {x for n in graph.nodes if _sums(n) for x in n.inputs if x.value is not None and _where(x.value).any()}
    if not subnormal:
        return graph

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if n.row is None or not _sums(n) or subnormal.isdisjoint(n.inputs):
            return None
        kept = (_zeroed(b, old) if old in subnormal else new for old, new in zip(n.inputs, new_inputs, strict=True))
        return b.apply(n.row, *kept, **n.attrs)

    return rebuild(graph, Builder(), rule)


def _sums(n: Node) -> bool:
    """Whether a node is a sum of products in float32, or an addition to one."""
    above = is_row(n, "add") and any(x.op in CONTRACTIONS for x in n.inputs)
    return (n.op in CONTRACTIONS or above) and n.dtype is float32


def _where(weights: np.ndarray) -> np.ndarray:
    return (np.abs(weights) < LEAST_NORMAL) & (weights != 0)


def _zeroed(b: Builder, x: Node) -> Node:
    assert x.value is not None
    return b.const(np.where(_where(x.value), np.float32(0), x.value), x.dtype)
