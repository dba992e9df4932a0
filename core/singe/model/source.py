"""What a Model is compiled from: a Graph, or a file from which Graphs are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..dtypes import DType
from ..lazy_names import LateModule
from ..shapes import Needed, Shape

if TYPE_CHECKING:
    from .. import graph as graphs
    from ..graph import Graph, Kind
else:
    graphs = LateModule("graph")


class NamedPort(Protocol):
    """An input or a state: a Graph's leaf, a TensorSpec."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> Shape | None: ...


class Source(Protocol):
    """See the module's docstring."""

    output_names: tuple[str, ...]
    output_dtypes: tuple[DType, ...]
    output_shapes: tuple[Shape | None, ...]
    """None: that of the Graph."""
    objects: Mapping[str, Kind]
    """What each input may be, if some are no tensors and what they hold is not known; otherwise empty."""

    @property
    def inputs(self) -> Sequence[NamedPort]: ...

    @property
    def states(self) -> Sequence[NamedPort]: ...

    def holding(self, objects: Mapping[str, Any]) -> Source:
        """The same source for inputs that hold these trees of Parts."""
        ...

    def graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Graph | Needed:
        """The Graph with numbers for some sizes and constants for some inputs; or what else must be known for it."""
        ...

    def with_layers(self) -> tuple[Source, Mapping[str, str]]:
        """The source with the values that its nodes compute as outputs too, and the op that computes each."""
        ...


class GraphSource:
    """A Graph that exists already: nothing is needed."""

    def __init__(self, graph: Graph) -> None:
        self.inputs = graph.inputs
        self.output_names = graph.output_names
        self.output_dtypes = tuple(x.dtype for x in graph.outputs)
        self.output_shapes: tuple[Shape | None, ...] = tuple(x.shape for x in graph.outputs)
        self.states = tuple(s.leaf for s in graph.states)
        self.objects: Mapping[str, Kind] = {}
        self._graph = graph

    def holding(self, objects: Mapping[str, Any]) -> GraphSource:
        assert not objects, "the inputs of a Graph are tensors"
        return self

    def graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Graph:
        assert not values, "a Graph's shapes depend on no values"
        return graphs.specialise(self._graph, sizes) if sizes else self._graph

    def with_layers(self) -> tuple[GraphSource, Mapping[str, str]]:
        graph = self._graph
        named = dict(zip(graph.output_names, graph.outputs, strict=True))
        layers = {f"{n.op}.{i}": n for i, n in enumerate(graph.nodes) if n.row is not None and len(n.results) == 1}
        every = {**{k: n for k, n in layers.items() if n not in named.values()}, **named}
        ops = {k: n.inputs[0].op if n.op == "result" else n.op for k, n in every.items()}
        return GraphSource(replace(graph, outputs=tuple(every.values()), output_names=tuple(every))), ops


class GraphsBySizes(GraphSource):
    """A Graph, and others that stand for it at particular sizes: functions over the same inputs, outputs and states, of which the sizes of
    a run choose one. A Model of it is asked to `specialise` for these sizes."""

    def __init__(self, graph: Graph, others: Sequence[tuple[Mapping[str, int], Graph]]) -> None:
        super().__init__(graph)
        self._others = sorted(others, key=lambda pair: len(pair[0]), reverse=True)

    def graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Graph:
        assert not values, "a Graph's shapes depend on no values"
        chosen = next((g for own, g in self._others if own.items() <= sizes.items()), self._graph)
        rest = {name: n for name, n in sizes.items() if name in chosen.symbols}
        return graphs.specialise(chosen, rest) if rest else chosen
