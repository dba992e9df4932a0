"""`structure(graph)`: a value that is equal for equal graphs, the key under which a compiled Program is cached."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from ..dtypes import contents
from ..ir.scalar import exact
from .builder import INTERNED_BYTES
from .graph import Graph, regions
from .node import Node, postorder

_digests: Final[dict[int, tuple[weakref.ref[np.ndarray], bytes]]] = {}
"""The digests of large constants, by the array's id, as long as the array exists. Constants are never written to."""


def structure(graph: Graph) -> Any:
    """The rows, attributes, shapes and constants of the numbered nodes.
    It takes linear time, and reads a large constant only once."""
    number = {n: i for i, n in enumerate(graph.leaves)}
    parts: list[Any] = [n.results for n in graph.leaves]
    for n in _within(graph.nodes):
        if n not in number:
            number[n] = len(number)
            if n.value is not None:
                parts.append((n.dtype, n.shape, _contents(n.value)))
            else:
                assert n.row is not None
                attrs = tuple(
                    (k, structure(v) if isinstance(v, Graph) else exact(v)) for k, v in sorted(n.attrs.items())
                )
                parts.append((n.row.name, attrs, tuple(number[x] for x in n.inputs)))
                if n.row.outside:
                    parts.append((n.results, tuple(number[x] for x in n.lowered)))
    states = tuple(
        (s.name, None if s.initial is None else _contents(s.initial), number[s.updated], s.draws) for s in graph.states
    )
    bound = tuple((s, number[n]) for s, n in graph.own_size_nodes.items())
    return tuple(parts), tuple(number[n] for n in graph.outputs), states, bound


def constants(graph: Graph) -> Iterator[np.ndarray]:
    """The constants of a graph, of its regions, and the initial values of its states."""
    for n in _within(graph.nodes):
        if n.value is not None:
            yield n.value
        for region in regions(n).values():
            yield from constants(region)
    yield from (s.initial for s in graph.states if s.initial is not None)


def _within(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes, each behind what a user's function made of it."""
    for n in nodes:
        if n.row is not None and n.row.outside:
            yield from _within(postorder(n.lowered))
        yield n


def _contents(value: np.ndarray) -> Any:
    """A hashable value, the same for equal constants."""
    return contents(value) if value.dtype.hasobject or value.nbytes <= INTERNED_BYTES else _digest(value)


def _digest(value: np.ndarray) -> bytes:
    key = id(value)
    if key not in _digests:
        gone = weakref.ref(value, lambda _: _digests.pop(key, None))
        _digests[key] = gone, hashlib.blake2b(np.ascontiguousarray(value).view(np.uint8).data).digest()
    return _digests[key][1]
