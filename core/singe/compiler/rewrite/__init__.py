"""Graph in, equal Graph out: lowered to primitive rows, constants folded, simplified, laid out channels-last.

`Rewriter.make` makes every node again and applies the rules of its row until none fits. Nodes that a rule builds are
simplified the same way, so one pass over the graph is enough. The Builder interns equal nodes, and nodes that no output
needs are dropped. The rules are tables: those of simplify.py simplify, those of layout.py move transposes.
subnormals.py comes last, because rules could make subnormal weights again. Each region is rewritten as its own graph.
"""

from __future__ import annotations

from ...graph import Graph
from ._rewriter import Rewriter
from .layout import LAYOUT, LAYOUT_ELEMENTWISE
from .simplify import SIMPLIFY, SIMPLIFY_ELEMENTWISE
from .subnormals import without_subnormals

RULES = {name: (*SIMPLIFY.get(name, ()), *LAYOUT.get(name, ())) for name in {**SIMPLIFY, **LAYOUT}}
ELEMENTWISE = (*SIMPLIFY_ELEMENTWISE, *LAYOUT_ELEMENTWISE)


def rewrite(graph: Graph) -> Graph:
    """See the module's docstring."""
    return Rewriter(graph, RULES, ELEMENTWISE, without_subnormals).run()
