"""Graph in, equal Graph out: lowered to primitive rows, constants folded, simplified, laid out channels-last.

`Rewriter.make` makes every node again and applies the rules of its row until none fits. Nodes that a rule builds are
simplified the same way, so one pass over the graph is enough. The Builder interns equal nodes, and nodes that no output
needs are dropped. The rules are tables: those of simplify.py simplify, those of layout.py move transposes,
those of quantised.py choose how quantised numbers are multiplied. Before all that, attention.py recognises attention.
subnormals.py comes last, because rules could make subnormal weights again. Each region is rewritten as its own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...graph import Graph, Node
from ...ops import Row
from ._rewriter import Rewriter, Rule
from .attention import with_attention
from .layout import LAYOUT, LAYOUT_ELEMENTWISE
from .quantised import FLOAT_SUMS, INTEGER_SUMS, kept_narrow
from .simplify import SIMPLIFY, SIMPLIFY_ELEMENTWISE
from .subnormals import without_subnormals


def _joined(*tables: Mapping[str, Sequence[Rule]]) -> Mapping[str, Sequence[Rule]]:
    return {name: tuple(r for t in tables for r in t.get(name, ())) for name in {k for t in tables for k in t}}


RULES = {False: _joined(SIMPLIFY, LAYOUT, FLOAT_SUMS), True: _joined(SIMPLIFY, LAYOUT, INTEGER_SUMS)}
"""Whether numbers stay narrow ↦ row ↦ its rules."""
ELEMENTWISE = (*SIMPLIFY_ELEMENTWISE, *LAYOUT_ELEMENTWISE)


def rewrite(graph: Graph, narrow: bool = False, whole_row_of: Callable[[Node], Row | None] = lambda _: None) -> Graph:
    """See the module's docstring. narrow: whether products take numbers of a few bits as they are, as the kernels of targets
    do; over whole arrays, floats are faster. whole_row_of: the row with which a composite stays one node; None: it is lowered."""
    begin = kept_narrow if narrow else None
    graph = with_attention(graph, whole_row_of)
    return Rewriter(graph, RULES[narrow], ELEMENTWISE, without_subnormals, begin, whole_row_of=whole_row_of).run()
