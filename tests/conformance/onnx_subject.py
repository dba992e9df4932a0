"""A model that is being changed, and the hostile values that changes put into it; see onnx_changes.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

INTS: Final = (0, 1, -1, 2, 3, -2, 5, 7, 16, 100, 255, 10**4, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))  # fmt: skip
FLOATS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, -2.5, 3e38, 1e9, float("inf"), float("-inf"), float("nan"))
DIMS: Final = (0, 1, 2, 3, 4, 7, -1, -5, 10**6, 2**31 - 1, 2**31, 2**40, 2**63 - 1, "N", "M", "x.0", "a+b", "1", "", None)  # fmt: skip
TYPES: Final = (*range(1, 29), 0, 99)
TEXTS: Final = ("", "é", "x", "N", "constant", "linear", "nearest", "SAME_UPPER", "forward", "sum", "*" * 300, "a\0b")
"""Hostile values of each kind."""
TENSOR_TYPES: Final = (
    "float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool", "uint64", "complex64", "object",
)  # fmt: skip
DATA: Final = "data.bin"
"""The file of external data."""
MAX_BYTES: Final = 1 << 20
"""The most bytes that a changed model may have."""


class NotHere(Exception):
    """The model has nothing that a change could change."""


@dataclass
class Subject:
    """A model that is being changed. feed: values of its inputs, by name; files: those beside it; other: draws a model."""

    rng: random.Random
    model: ModelProto
    feed: dict[str, Any]
    other: Callable[[], ModelProto]
    files: dict[str, bytes] = field(default_factory=dict)

    def one_of(self, items: Sequence[Any]) -> Any:
        if not len(items):
            raise NotHere
        return items[self.rng.randrange(len(items))]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def graph(self) -> GraphProto:
        return self.one_of(list(graphs(self.model)))

    def body(self) -> Any:
        """The nodes of a graph or a function."""
        return self.one_of([g.node for g in (*graphs(self.model), *self.model.functions) if len(g.node)])

    def node(self) -> NodeProto:
        return self.one_of(self.body())

    def attribute(self) -> AttributeProto:
        return self.one_of([a for n in nodes(self.model) for a in n.attribute])

    def tensor(self) -> TensorProto:
        return self.one_of(list(tensors(self.model)))

    def kind(self) -> TypeProto:
        values = [v for g in graphs(self.model) for v in (*g.input, *g.output, *g.value_info)]
        return self.one_of([v.type for v in values])

    def name(self) -> str:
        """A name of a value anywhere in the model, or of none."""
        found = {n for x in nodes(self.model) for n in (*x.input, *x.output)}
        found |= {v.name for g in graphs(self.model) for v in (*g.input, *g.initializer, *g.output)}
        return self.one_of(sorted(found)) if self.chance(0.9) else self.one_of(("", "nowhere", "x\0"))


def graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The main graph, and all that nodes own."""
    yield model.graph
    yield from (g for n in nodes(model) for a in n.attribute for g in (*([a.g] if a.HasField("g") else []), *a.graphs))


def nodes(model: ModelProto) -> Iterator[NodeProto]:
    pending = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    while pending:
        node = pending.pop(0)
        yield node
        for a in node.attribute:
            pending += [n for g in (*([a.g] if a.HasField("g") else []), *a.graphs) for n in g.node]


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    yield from (t for g in graphs(model) for t in g.initializer)
    yield from (a.t for n in nodes(model) for a in n.attribute if a.HasField("t"))
