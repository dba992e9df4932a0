"""The source of a Model from an ONNX file: the file is imported again for each set of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..dtypes import DTYPES, float32
from ..errors import SizeNeeded, ValueNeeded
from ..graph import Graph, Needed
from ..shapes import Size, symbols
from .importer import check_ops, import_model, signature
from .model import OnnxModel, OnnxValue
from .scope import needed


class OnnxSource:
    """See the module's docstring."""

    def __init__(self, model: OnnxModel, input_shapes: Mapping[str, Sequence[int | str]] | None = None) -> None:
        check_ops(model)
        self._model = model
        self._shapes = input_shapes
        self.inputs = signature(model, input_shapes)
        self.output_names = tuple(v.name for v in model.graph.outputs)
        self.states = ()
        # Importing the graph reports a type that is missing or that Singe lacks.
        self.output_dtypes = tuple(DTYPES.get(v.dtype or "", float32) for v in model.graph.outputs)

    def graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> Graph | Needed:
        shapes: dict[str, Sequence[int | str]] = dict(self._shapes or {})
        for x in self.inputs:
            # By shape, not by name: a name that the importer invented is not in the file.
            if symbols(x.shape) & sizes.keys():
                shapes[x.name] = [sizes.get(str(d), str(d)) if isinstance(d, Size) else d for d in x.shape]
        try:
            return import_model(self._model, input_shapes=shapes, values=values)
        except (SizeNeeded, ValueNeeded) as e:
            return Needed.by(e)

    def with_layers(self) -> tuple[OnnxSource, Mapping[str, str]]:
        graph = self._model.graph
        nodes = [node for _, node in needed(graph.nodes, self.output_names) if node.op_type != "Constant"]
        ops = {name: node.op_type for node in nodes for name in node.outputs if name}
        added = tuple(OnnxValue(name, None) for name in ops if name not in self.output_names)
        opened = replace(self._model, graph=replace(graph, outputs=(*added, *graph.outputs)))
        return OnnxSource(opened, self._shapes), ops
