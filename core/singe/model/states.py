"""Adds states to models from files, which have none: pairs of an input and the output that is its next value.

    sg.load("voice.onnx", states={"state": "stateN"}, input_shapes={"input": (1, 512), "state": (2, 1, 128)})

In place of the input `state` and the output `stateN`, the model has a state of the input's name, which starts with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, InputError, ShapeError
from ..lazy_names import LateModule
from ..shapes import Needed, Size, show

if TYPE_CHECKING:
    from .. import graph as graphs
    from ..graph import Graph
    from .source import Source
else:
    graphs = LateModule("graph")


class PairedSource:
    """A source in which pairs of an input and an output are states; see the module's docstring."""

    def __init__(self, source: Source, pairs: Mapping[str, str]) -> None:
        """pairs: the name of an input ↦ the name of the output that is its next value."""
        if not isinstance(pairs, Mapping):
            raise InputError(
                f"states: got {pairs!r:.80}, expected a dict of an input's name to the name of the output that is its next "
                "value, such as {'past': 'present'}"
            )
        given, made = {x.name: x for x in source.inputs}, source.output_names
        unknown = [x for x in pairs if x not in given] + [y for y in pairs.values() if y not in made]
        if unknown:
            raise InputError(
                f"states: there is no {', '.join(map(repr, unknown))}; expected pairs of an input ({', '.join(given)}) and an "
                f"output ({', '.join(made)})"
            )
        if len(set(pairs.values())) < len(pairs):
            raise InputError(f"states: {pairs} names an output twice; each state needs one of its own")
        for name in pairs:
            if any(isinstance(d, Size) for d in given[name].shape or ()):
                raise ShapeError(
                    f"state {name!r} has the shape {show(given[name].shape or ())}; a state keeps its shape, so give numbers for "
                    f'it: input_shapes={{"{name}": (…)}}, or --input-shape {name}=… on the command line'
                )
        self._source = source
        self._pairs = dict(pairs)
        self.objects = source.objects
        self.inputs = tuple(x for name, x in given.items() if name not in pairs)
        self.states = (*source.states, *(given[name] for name in pairs))
        kept = [k for k, name in enumerate(made) if name not in pairs.values()]
        self.output_names = tuple(made[k] for k in kept)
        self.output_dtypes = tuple(source.output_dtypes[k] for k in kept)
        self.output_shapes = tuple(source.output_shapes[k] for k in kept)

    def with_layers(self) -> tuple[PairedSource, Mapping[str, str]]:
        source, ops = self._source.with_layers()
        return PairedSource(source, self._pairs), ops

    def holding(self, objects: Mapping[str, Any]) -> PairedSource:
        return PairedSource(self._source.holding(objects), self._pairs)

    def graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Graph | Needed:
        graph = self._source.graph(sizes, values)
        if isinstance(graph, Needed):
            return graph
        made = dict(zip(graph.output_names, graph.outputs, strict=True))
        states = list(graph.states)
        for leaf in (x for x in graph.inputs if x.name in self._pairs):
            updated = made[self._pairs[leaf.name]]
            what = (
                f"state {leaf.name!r} is {leaf.dtype}{show(leaf.shape)}, and its next value {self._pairs[leaf.name]!r}"
            )
            if updated.dtype is not leaf.dtype:
                raise DTypeError(f"{what} is {updated.dtype}; expected the same type")
            if updated.shape != leaf.shape:
                raise ShapeError(
                    f"{what} has the shape {show(updated.shape)}; a state keeps its shape: give all inputs that "
                    "decide it numbers by input_shapes, or keep a part of the output"
                )
            states.append(graphs.GraphState(leaf, leaf.name, None, updated))
        inputs = tuple(x for x in graph.inputs if x.name not in self._pairs)
        updates = self._pairs.values()
        kept = {name: x for name, x in made.items() if name not in updates}
        results = {name: tree for name, tree in graph.results.items() if name not in updates}
        return replace(
            graph, inputs=inputs, outputs=tuple(kept.values()), output_names=tuple(kept), states=tuple(states), results=results
        )  # fmt: skip
