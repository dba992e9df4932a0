"""The source of a Model from an ONNX file: the file is imported again for each set of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..dtypes import DTYPES, float32, uint32
from ..errors import SizeNeeded, ValueNeeded
from ..graph import Graph, Kind, Part, leaf
from ..graph.objects import leaves, mapped
from ..runtime.random_keys import KEY
from ..shapes import Needed, Shape, Size, symbols
from .adapters.elementwise.random import is_random
from .importer import check_ops, import_model, object_inputs, signature
from .model import OnnxModel, OnnxValue
from .scope import needed


class OnnxSource:
    """See the module's docstring."""

    def __init__(
        self,
        model: OnnxModel,
        input_shapes: Mapping[str, Sequence[int | str]] | None = None,
        objects: Mapping[str, Any] | None = None,
    ) -> None:
        """objects: the trees of Parts of inputs that are no tensors."""
        check_ops(model)
        self._model = model
        self._shapes = input_shapes
        self._objects = objects or {}
        self.inputs = signature(model, input_shapes, objects)
        kinds = object_inputs(model)
        known = all(name in self._objects for name, kind in kinds.items() if kind.name != "tensor")
        self.objects: Mapping[str, Kind] = {} if known else kinds
        self.output_names = tuple(v.name for v in model.graph.outputs)
        self.states = (leaf((2,), uint32, KEY),) if is_random(model) else ()
        # Importing the graph reports a type that is missing or that Singe lacks.
        self.output_dtypes = tuple(DTYPES.get(v.dtype or "", float32) for v in model.graph.outputs)
        self.output_shapes: tuple[Shape | None, ...] = (None,) * len(self.output_names)

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The arrays of the file, by the names that they have there."""
        return self._model.graph.initializers

    def holding(self, objects: Mapping[str, Any]) -> OnnxSource:
        return OnnxSource(self._model, self._shapes, objects)

    def graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Graph | Needed:
        shapes: dict[str, Sequence[int | str]] = dict(self._shapes or {})
        parts = {part.name for tree in self._objects.values() for part in leaves(tree)}
        for x in self.inputs:
            if x.name in parts:
                continue
            # By shape, not by name: a name that the importer invented is not in the file.
            if symbols(x.shape) & sizes.keys():
                shapes[x.name] = [sizes.get(str(d), str(d)) if isinstance(d, Size) else d for d in x.shape]
        objects = {name: mapped(partial(_sized, sizes), tree) for name, tree in self._objects.items()}
        try:
            return import_model(self._model, input_shapes=shapes, values=values, objects=objects)
        except SizeNeeded as e:
            given = symbols([x.shape for x in self.inputs])
            # Sizes found in mid-run may become known where all sizes of the inputs are numbers.
            more = e.sizes if e.sizes <= given else (e.sizes | given) - sizes.keys()
            if not more:
                raise
            return Needed.by(SizeNeeded(str(e), more))
        except ValueNeeded as e:
            return Needed.by(e)

    def with_layers(self) -> tuple[OnnxSource, Mapping[str, str]]:
        graph = self._model.graph
        nodes = [node for _, node in needed(graph.nodes, self.output_names) if node.op_type != "Constant"]
        ops = {name: node.op_type for node in nodes for name in node.outputs if name}
        added = tuple(OnnxValue(name, None) for name in ops if name not in self.output_names)
        opened = replace(self._model, graph=replace(graph, outputs=(*added, *graph.outputs)))
        return OnnxSource(opened, self._shapes, self._objects), ops


def _sized(sizes: Mapping[str, int], part: Part) -> Part:
    """A Part with numbers for some of its sizes."""
    return replace(part, shape=tuple(sizes.get(str(d), d) if isinstance(d, Size) else d for d in part.shape))
