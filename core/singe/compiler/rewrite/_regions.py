"""Nodes that own graphs, rewritten: each region as a graph of its own, and what is known before a run is decided now.

Constants that a region captures move into it, and what it does not read is not captured. An `if` whose condition is known
becomes its branch, a loop of no turns its initial values, and a loop whose condition always holds loses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...graph import Graph, Node, spliced
from ...shapes import Dim

if TYPE_CHECKING:
    from ._rewriter import Rewriter


class Regions:
    """What a node that owns graphs becomes over its new inputs: `values`, one for each result.

    bound: the sizes that a run finds with it; told: those of its results that turn out to be these dimensions.
    """

    def __init__(self, r: Rewriter, n: Node, given: Sequence[Node], attrs: Mapping[str, Any]) -> None:
        self.r = r
        self.node = n
        self.attrs = attrs
        self.bound: dict[str, Node] = {}
        self.told: dict[str, Dim] = {}
        self.values: tuple[Node, ...] = self._if(*given) if n.op == "if" else self._loop(*given)

    def _if(self, condition: Node, *captures: Node) -> tuple[Node, ...]:
        if condition.value is not None:
            taken = self.attrs["then" if condition.value.reshape(-1)[0] else "otherwise"]
            return self._inlined(taken, captures)
        branches = [self._rewritten(g, captures, 0) for g in (self.attrs["then"], self.attrs["otherwise"])]
        kept = [any(g.inputs[k] in g.nodes for g in branches) for k in range(len(captures))]
        captures = tuple(x for x, keep in zip(captures, kept, strict=True) if keep)
        then, otherwise = (_only(g, kept) for g in branches)
        return self._made(condition, *captures, then=then, otherwise=otherwise)

    def _loop(self, *given: Node) -> tuple[Node, ...]:
        attrs = dict(self.attrs)
        carried, count = attrs["carried"], attrs.get("count")
        condition = given[0] if attrs["conditional"] else None
        inputs = given[1:] if attrs["conditional"] else given
        never = condition is not None and condition.value is not None and not condition.value.reshape(-1)[0]
        if count == 0 or never:
            self._tell([x.shape for x in inputs[:carried]])
            return inputs[:carried]
        body = self._rewritten(attrs["body"], inputs, carried)
        kept = [k < carried or body.inputs[k] in body.nodes for k in range(len(inputs))]
        inputs = tuple(x for x, keep in zip(inputs, kept, strict=True) if keep)
        body = _only(body, kept)
        again = body.outputs[0].value
        if (
            condition is not None
            and condition.value is not None
            and again is not None
            and again.reshape(-1)[0]
            and count is not None
        ):
            condition, attrs["conditional"] = None, False
        attrs["body"] = body
        return self._made(*(() if condition is None else (condition,)), *inputs, **attrs)

    def _rewritten(self, graph: Graph, inputs: Sequence[Node], first: int) -> Graph:
        """A region, its inputs from number `first` on known where they are constants; it keeps them all."""
        known = {
            x: given
            for k, (x, given) in enumerate(zip(graph.inputs, inputs, strict=True))
            if k >= first and given.is_const
        }
        found = self.r.rewritten(graph, known)
        return Graph(graph.inputs, found.outputs, found.output_names, found.bound)

    def _made(self, *inputs: Node, **attrs: object) -> tuple[Node, ...]:
        sizes = self.node.attrs.get("found")
        made = self.r.builder.node(self.node.row, *inputs, **{**attrs, **({"found": sizes} if sizes else {})})  # pyright: ignore[reportArgumentType]
        self.bound.update((s, made) for s in sizes or () if s)
        return self.r.builder.results_of(made)

    def _inlined(self, graph: Graph, captures: Sequence[Node]) -> tuple[Node, ...]:
        rewritten = self.r.rewritten(graph, {})
        values, bound = spliced(rewritten, captures, self.r.make)
        self.bound.update(bound)
        self._tell([x.shape for x in values])
        return values

    def _tell(self, shapes: Sequence[Sequence[Dim]]) -> None:
        """The sizes of the node's results are these dimensions."""
        dims = [d for shape in shapes for d in shape]
        names = self.node.attrs.get("found") or ("",) * len(dims)
        self.told.update((s, d) for s, d in zip(names, dims, strict=True) if s)


def _only(graph: Graph, kept: Sequence[bool]) -> Graph:
    inputs = tuple(x for x, keep in zip(graph.inputs, kept, strict=True) if keep)
    return Graph(inputs, graph.outputs, graph.output_names, graph.bound)
