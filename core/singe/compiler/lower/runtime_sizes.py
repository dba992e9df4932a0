"""Values that are not known before a run: sizes found in mid-run, and constants of Sizes or strings in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...dtypes import contents, string
from ...graph import Builder, Graph, Node, rebuild
from ...ops import SIZES, Opaque, Region, Update, find_row
from ...ops.control import open_dimensions
from ...shapes import symbols


def named(n: Node) -> list[tuple[int, int, str]]:
    """The dimensions of a node's results that are sizes found in mid-run: (result, axis, name)."""
    names = iter(n.attrs.get(SIZES, ()))
    every = [(k, axis) for k, (shape, _) in enumerate(n.results) for axis in range(len(shape))]
    return [(k, axis, name) for (k, axis), name in zip(every, names, strict=False) if name]


def late_sizes(graph: Graph) -> set[str]:
    """The sizes that are found in mid-run."""
    found: set[str] = set(graph.own_size_nodes)
    for n in graph.nodes:
        if n.op == "if":
            found |= late_sizes(n.attrs["then"]) | late_sizes(n.attrs["otherwise"])
        elif n.op == "loop":
            body: Graph = n.attrs["body"]
            found |= late_sizes(body)
            inputs = n.inputs[n.attrs["conditional"] :]
            for x, given, after in zip(inputs, body.inputs, body.outputs[1:], strict=False):
                for axis in open_dimensions(x.shape, given.shape, after.shape):
                    found |= symbols(given.shape[axis])
    return found


def computed(graph: Graph, on_host: bool) -> Graph:
    """The graph, with steps that compute constants of Sizes or strings where a node reads them from memory: they cannot
    be stored among the weights.

    on_host: whether all ops run on the host.
    """

    def symbolic(n: Node) -> bool:
        return n.value is not None and n.value.dtype.hasobject

    def in_memory(b: Builder, n: Node) -> Node:
        if n.value is None or not symbolic(n):
            return n
        if n.dtype is string:
            return b.apply(_STRINGS, values=contents(n.value), shape=n.shape)
        if on_host:
            values = b.apply(_DIMENSIONS, values=tuple(n.value.ravel().tolist()), kind=n.dtype)
            return b.reshape(values, shape=n.shape)
        return b.apply(_CAST, n, to=n.dtype)

    def rule(b: Builder, n: Node, new_inputs: tuple[Node, ...]) -> Node | None:
        if n.row is None or not any(map(symbolic, new_inputs)):
            return None
        whole = on_host or isinstance(n.row, (Opaque, Region, Update)) or n.dtype is string
        return b.node(n.row, *(in_memory(b, x) for x in new_inputs), **n.attrs) if whole else None

    if not any(symbolic(n) for n in graph.nodes):
        return graph
    builder = Builder()
    found = rebuild(graph, builder, rule, {x: x for x in graph.leaves})
    outputs = tuple(in_memory(builder, x) for x in found.outputs)
    return replace(found, outputs=outputs)


_CAST: Any = find_row("cast")
_DIMENSIONS: Any = find_row("dimensions")
_STRINGS: Any = find_row("strings")
