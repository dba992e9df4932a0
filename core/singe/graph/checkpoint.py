"""The row of a checkpoint, which only `checkpointed` uses: a graph of which the gradient computes the values between again, so that they are not kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..dtypes import ALL, FLOATS
from ..ops import Composite
from .gradients import gradient
from .graph import Graph
from .node import Node
from .transform import inline


def _lower(b: Any, *inputs: Node, body: Graph) -> Any:
    return inline(body, b, inputs)


def _vjp(b: Any, g: Any, inputs: Sequence[Node], y: Node, body: Graph) -> list[Node | None]:
    given = g if len(y.results) > 1 else [g]
    first = next(seed for seed in given if seed is not None)  # until it is there, what is kept are the inputs
    again = [b.recomputed(x, first) if x.dtype in FLOATS else x for x in inputs]
    made = inline(body, b, again)
    seeded = [(out, seed) for out, seed in zip(made, given, strict=True) if seed is not None]
    by = [x for x in again if x.dtype in FLOATS]
    graph = Graph((), tuple(out for out, _ in seeded), ("",) * len(seeded), b.size_nodes)
    found = iter(gradient(graph, b, [seed for _, seed in seeded], by))
    return [next(found) if x.dtype in FLOATS else None for x in inputs]


_ROW: Final = Composite(
    name="checkpointed",
    doc="a graph whose gradient computes it again",
    lower=_lower,
    vjp=_vjp,
    dtypes=ALL,
)


def checkpointed(b: Any, body: Graph, inputs: Sequence[Node]) -> tuple[Node, ...]:
    """The outputs of a graph over inputs, as those of one node."""
    return b.results_of(b.node(_ROW, *inputs, body=body))
