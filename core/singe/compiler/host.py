"""What runs on the host, though the target is a device's, and why: one closed list of reasons.

* By design: the ops of BY_DESIGN, whatever the device.
* Element types: a node of an element type that the target lacks. `on_host` makes these nodes opaque, so that each is a
  step of its own; their values lie on the device as bytes.
* No function: an opaque op that the target has no function for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ..dtypes import DType, names
from ..graph import Builder, Graph, Node, rebuild
from ..ops import Opaque, Region, Result, Row
from .target import Target

BY_DESIGN: Final[Mapping[str, str]] = dict.fromkeys(
    ("nonzero", "unique", "compress", "non_max_suppression"), "the shape of its result depends on data"
)
"""Ops that run on the host by design ↦ the reason."""
IN_SCRIPTS: Final = frozenset((
    "compress", "dimensions", "non_max_suppression", "nonzero", "running_max", "running_prod", "running_sum",
    "scatter_elements", "scatter_elements_reduce", "scatter_nd", "scatter_nd_reduce", "sort", "top_k", "unique",
    "update_slice",
))  # fmt: skip
"""The ops that a page runs on the host without Python: those of static/singe-host.js."""


def lacking(n: Node, target: Target) -> list[DType]:
    """The element types of a node's inputs and results that a target does not compute."""
    return [d for d in dict.fromkeys(kind for x in (n, *n.inputs) for _, kind in x.results) if d not in target.dtypes]


def reason(n: Node, target: Target) -> str:
    """Why an opaque node runs on the host, which has no function of the target."""
    types = lacking(n, target)
    if n.op in BY_DESIGN:
        return BY_DESIGN[n.op]
    return f"{target.name} does not compute {names(types)}" if types else f"{target.name} has no function for it"


def on_host(graph: Graph, target: Target) -> Graph:
    """A graph whose nodes of element types that the target lacks are opaque. Regions are left as they are; a reshape needs
    no step, since it moves nothing."""

    def is_hosted(n: Node) -> bool:
        stepless = n.row is None or n.op == "reshape" or isinstance(n.row, (Opaque, Region, Result))
        return not stepless and bool(lacking(n, target))

    def rule(b: Builder, n: Node, given: tuple[Node, ...]) -> Node | None:
        return b.node(_opaque(n.row), *given, **n.attrs) if n.row is not None and is_hosted(n) else None

    if not any(map(is_hosted, graph.nodes)):
        return graph
    return rebuild(graph, Builder(), rule, {x: x for x in graph.leaves})


@lru_cache(maxsize=256)
def _opaque(row: Row) -> Opaque:
    """A row of any kind as an opaque one of its name."""

    def shapes(*inputs: Node, **attrs: Any) -> Sequence[Any]:
        return row.results(inputs, attrs)

    return Opaque(name=row.name, doc=row.doc, shapes=shapes, whole=row.array)
