"""Transformed copies of graphs: rewritten by a rule, with numbers for sizes, or spliced into another graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import shapes
from ..errors import ShapeError
from ..shapes import Dim, Size
from .builder import Builder
from .graph import Graph, regions
from .node import ORIGINS, Node


def rebuild(
    graph: Graph,
    builder: Builder,
    rule: Callable[[Builder, Node, tuple[Node, ...]], Node | None],
    inputs: Mapping[Node, Node] | None = None,
) -> Graph:
    """A copy of the graph. `rule(builder, node, new inputs)` gives the replacement of a node; None: the same op over
    the new inputs.

    The nodes of regions are not visited: a rule that applies to them too must rebuild the regions itself.
    """
    done: dict[Node, Node] = dict(inputs or {})
    noted = bool(ORIGINS)
    for n in graph.nodes:
        if n in done:
            continue
        given = tuple([done[x] for x in n.inputs])
        done[n] = rule(builder, n, given) or (n if n.row is None else builder.again(n, given))
        if noted and n in ORIGINS:
            ORIGINS.setdefault(done[n], ORIGINS[n])
    return renamed(graph, done)


def renamed(graph: Graph, new: Mapping[Node, Node]) -> Graph:
    """The graph with every node replaced by `new[node]`."""
    return Graph(
        tuple(new.get(x, x) for x in graph.inputs),
        tuple(new[x] for x in graph.outputs),
        graph.output_names,
        {s: new[n] for s, n in graph.own_size_nodes.items()},
        tuple(replace(s, leaf=new.get(s.leaf, s.leaf), updated=new[s.updated]) for s in graph.states),
        graph.checks,
    )


def specialise(graph: Graph, sizes: Mapping[str, Dim]) -> Graph:
    """A copy of the graph with numbers (or other dimensions) for some of its sizes; all shapes are inferred again."""
    builder = Builder()
    new = {x: builder.input(x.name, [shapes.evaluate(d, sizes) for d in x.shape], x.dtype) for x in graph.leaves}

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if n.row is None:
            return sized(b, n, sizes)
        attrs = {k: with_sizes(v, sizes) for k, v in n.attrs.items() if not isinstance(v, Graph)}
        with shapes.repeating(attrs.get("count") if n.op == "loop" else None):
            attrs |= {k: specialise(v, sizes) for k, v in regions(n).items()}
        made = b.node(n.row, *new_inputs, **attrs)
        if any(isinstance(d, int) and d < 0 for shape, _ in made.results for d in shape):
            raise ShapeError(f"{made!r} would have a negative dimension at {shapes.show_sizes(sizes)}")
        return made

    with shapes.deferring():  # the checks are dropped here: compiling the graph finds them again
        checks = checks_at(graph.checks, sizes)
        return replace(rebuild(graph, builder, rule, new), checks=checks)


def checks_at(checks: Mapping[Dim, str], sizes: Mapping[str, Dim]) -> dict[Dim, str]:
    """A graph's checks with these dimensions for sizes; ShapeError if one of sizes never holds."""
    with shapes.deferring() as found:
        for dim, text in checks.items():
            if isinstance(dim, int):
                found[dim] = text
            else:
                shapes.require(shapes.evaluate(dim, sizes), text)
    return found


def with_sizes(value: Any, sizes: Mapping[str, Dim]) -> Any:
    """An attribute with its sizes replaced by these dimensions."""
    if isinstance(value, tuple):
        return tuple(with_sizes(v, sizes) for v in value)
    if isinstance(value, Graph):
        return specialise(value, sizes)
    return shapes.evaluate(value, sizes) if isinstance(value, Size) else value


def sized(b: Builder, n: Node, sizes: Mapping[str, Dim]) -> Node:
    """A constant with the sizes in it replaced by these dimensions; other nodes are returned unchanged."""
    if n.value is None or n.value.dtype != object:
        return n
    array = np.empty(n.value.shape, object)
    array.ravel()[:] = [with_sizes(v, sizes) for v in n.value.ravel()]
    return b.const(array, n.dtype)


def spliced(
    graph: Graph, leaf_values: Sequence[Node], make: Callable[..., Node]
) -> tuple[tuple[Node, ...], dict[str, Node]]:
    """The outputs of a graph applied to the nodes `leaf_values`, and the nodes that its sizes are bound to. `make(row,
    *inputs, **attrs)` makes each node."""
    done = dict(zip(graph.inputs, leaf_values, strict=True))
    for n in graph.nodes:
        if n not in done:
            done[n] = n if n.row is None else make(n.row, *(done[x] for x in n.inputs), **n.attrs)
    return tuple(done[x] for x in graph.outputs), {s: done[n] for s, n in graph.own_size_nodes.items()}


def inline(graph: Graph, builder: Builder, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The graph's outputs with these nodes as its inputs; its sizes become the numbers in the shapes of these nodes. Sizes that it finds in
    mid-run become the Builder's."""
    pairs = [p for x, n in zip(graph.inputs, nodes, strict=True) for p in zip(x.shape, n.shape, strict=True)]
    sizes = {str(d): n for d, n in pairs if isinstance(d, Size) and isinstance(n, int)}
    made = specialise(graph, sizes) if sizes else graph
    whole = rebuild(made, builder, lambda b, n, given: None, dict(zip(made.inputs, nodes, strict=True)))
    builder.bind(whole.own_size_nodes)
    return whole.outputs


def all_nodes(graph: Graph) -> list[Node]:
    """The nodes of a graph and of all regions within it."""
    found: list[Node] = []
    for n in graph.nodes:
        found.append(n)
        for region in regions(n).values():
            found += all_nodes(region)
    return found
