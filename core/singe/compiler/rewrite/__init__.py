"""Graph in, equal Graph out: lowered to primitive rows, constants folded, simplified, laid out channels-last.

Every node is made anew through `Rewriter.make`, which applies the rules of its row until none fits, so that whatever a
rule builds is simplified in turn, and one pass over the graph is enough. Equal nodes are one by the Builder's interning;
what no output reaches is gone. The rules are tables: simplify.py says the same more simply, layout.py moves transposes.
At the end subnormals.py mends weights: no rule may take that back. Regions are rewritten as graphs of their own.
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
