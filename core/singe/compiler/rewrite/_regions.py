"""Rewrites nodes that own graphs: each region is rewritten as a separate graph, and known conditions are resolved.

Constants that a region captures move into it, and captured values that it does not read are dropped. An `if` with a
known condition becomes its branch, a loop of no turns its initial values, and a loop of one turn its body. A condition
that always holds is removed from its loop. Carried values that no result needs are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...graph import Graph, Node, postorder, spliced
from ...ops import SIZES
from ...shapes import Dim, deferring, repeating

if TYPE_CHECKING:
    from ._rewriter import Rewriter


class Regions:
    """The rewritten form of a node that owns graphs, over its new inputs: `values`, one for each result.

    read: the numbers of the results that other nodes read. bound: sizes that the rewritten node finds in a run. checks:
    those of a region that takes the node's place. told: sizes of the old node's results ↦ the dimensions that they turned
    out to be.
    """

    def __init__(
        self, r: Rewriter, n: Node, new_inputs: Sequence[Node], attrs: Mapping[str, Any], read: Collection[int]
    ) -> None:
        self.r = r
        self.read = read
        self.node = n
        self.attrs = attrs
        self.bound: dict[str, Node] = {}
        self.checks: dict[Dim, str] = {}
        self.told: dict[str, Dim] = {}
        self.values: tuple[Node, ...] = self._if(*new_inputs) if n.op == "if" else self._loop(*new_inputs)

    def _if(self, condition: Node, *captures: Node) -> tuple[Node, ...]:
        if condition.value is not None:
            taken = self.attrs["then" if condition.value.reshape(-1)[0] else "otherwise"]
            return self._inlined(taken, captures)
        branches = [self._rewritten(g, captures, 0) for g in (self.attrs["then"], self.attrs["otherwise"])]
        kept = [any(g.inputs[k] in g.nodes for g in branches) for k in range(len(captures))]
        captures = tuple(x for x, keep in zip(captures, kept, strict=True) if keep)
        then, otherwise = (_only(g, kept) for g in branches)
        return self._made(range(len(self.node.results)), condition, *captures, then=then, otherwise=otherwise)

    def _loop(self, *new_node: Node) -> tuple[Node, ...]:
        attrs = dict(self.attrs)
        carried, count = attrs["carried"], attrs.get("count")
        condition = new_node[0] if attrs["conditional"] else None
        inputs = new_node[1:] if attrs["conditional"] else new_node
        never = condition is not None and condition.value is not None and not condition.value.reshape(-1)[0]
        if count == 0 or never:
            self._tell([x.shape for x in inputs[:carried]])
            return inputs[:carried]
        raw: Graph = attrs["body"]
        if (
            count == 1
            and condition is None
            and all(x.shape == y.shape for x, y in zip(inputs, raw.inputs, strict=True))
        ):
            return self._inlined(replace(raw, outputs=raw.outputs[1:], output_names=raw.output_names[1:]), inputs)
        with repeating(count):
            body = self._rewritten(raw, inputs, carried)
        live = self._live(body, carried, condition is not None)
        if not live:
            return inputs[:carried]
        outputs = tuple(body.outputs[k] for k in (0, *(k + 1 for k in live)))
        body = replace(body, outputs=outputs, output_names=("",) * (len(live) + 1))
        kept = [k in live if k < carried else body.inputs[k] in body.nodes for k in range(len(inputs))]
        first, inputs = inputs[:carried], tuple(x for x, keep in zip(inputs, kept, strict=True) if keep)
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
        attrs |= {"body": body, "carried": len(live)}
        made = dict(
            zip(live, self._made(live, *(() if condition is None else (condition,)), *inputs, **attrs), strict=True)
        )
        return tuple(made.get(k, first[k]) for k in range(carried))

    def _live(self, body: Graph, carried: int, conditional: bool) -> list[int]:
        """The carried values that are needed by the condition, or by a result that is read or has a size of its own."""
        number = {x: k for k, x in enumerate(body.inputs[:carried])}
        live = {k for k, names in enumerate(self._names()) if k in self.read or any(names)}
        while True:
            roots = [*([body.outputs[0]] if conditional else []), *(body.outputs[k + 1] for k in live)]
            more = live | {number[n] for n in postorder(roots, body.needs) if n in number}
            if more == live:
                return sorted(live)
            live = more

    def _names(self) -> list[tuple[str, ...]]:
        """For each dimension of each result, the name of its size if only a run can find it; otherwise ""."""
        names = iter(self.node.attrs.get(SIZES) or ("",) * sum(len(shape) for shape, _ in self.node.results))
        return [tuple(next(names) for _ in shape) for shape, _ in self.node.results]

    def _rewritten(self, graph: Graph, inputs: Sequence[Node], first: int) -> Graph:
        """A region, rewritten. Constants replace its inputs from number `first` on where these are constant; it still
        lists all inputs."""
        known = {
            x: given
            for k, (x, given) in enumerate(zip(graph.inputs, inputs, strict=True))
            if k >= first and given.is_const
        }
        with deferring() as checks:
            found = self.r.rewritten(graph, known)
        return replace(found, inputs=graph.inputs, checks={**found.checks, **checks})

    def _made(self, results: Iterable[int], *inputs: Node, **attrs: Any) -> tuple[Node, ...]:
        """The results of the node over new inputs; `results` are their numbers in the old node."""
        names = self._names()
        sizes = tuple(name for k in results for name in names[k])
        attrs.pop(SIZES, None)
        made = self.r.builder.node(self.node.row, *inputs, **attrs, **({SIZES: sizes} if any(sizes) else {}))  # pyright: ignore[reportArgumentType]
        self.bound.update((s, made) for s in sizes if s)
        return self.r.builder.results_of(made)

    def _inlined(self, graph: Graph, captures: Sequence[Node]) -> tuple[Node, ...]:
        rewritten = self.r.rewritten(graph, {})
        values, bound = spliced(rewritten, captures, self.r.make)
        self.bound.update(bound)
        self.checks.update(rewritten.checks)
        self._tell([x.shape for x in values])
        return values

    def _tell(self, shapes: Sequence[Sequence[Dim]]) -> None:
        """Record that the sizes of the node's results are these dimensions."""
        dims = [d for shape in shapes for d in shape]
        names = self.node.attrs.get(SIZES) or ("",) * len(dims)
        self.told.update((s, d) for s, d in zip(names, dims, strict=True) if s)


def _only(graph: Graph, kept: Sequence[bool]) -> Graph:
    inputs = tuple(x for x, keep in zip(graph.inputs, kept, strict=True) if keep)
    return replace(graph, inputs=inputs)
