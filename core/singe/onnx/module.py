"""An ONNX model as a Module: its weights are parameters, which can be learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ..errors import DTypeError, InputError, ShapeError
from ..graph import Graph, Node, specialise
from ..nn import Module
from ..runtime.debugging import looking
from ..shapes import Dim, Size, plain, show
from ..tensors.functions.creation import tensor
from ..tensors.tensor import Tensor, home_of, value_on
from ..texts import escaped
from .model import OnnxModel, OnnxType, OnnxValue
from .source import OnnxSource

LEARNED: Final[Mapping[str, Sequence[int]]] = {
    "Add": (0, 1), "BatchNormalization": (1, 2), "Conv": (1, 2), "ConvTranspose": (1, 2), "Div": (0, 1), "GRU": (1, 2, 3),
    "Gather": (0,), "Gemm": (1, 2), "GroupNormalization": (1, 2), "InstanceNormalization": (1, 2), "LSTM": (1, 2, 3, 7),
    "LayerNormalization": (1, 2), "MatMul": (0, 1), "Mul": (0, 1), "PRelu": (1,), "RMSNormalization": (1,), "RNN": (1, 2, 3),
    "SimplifiedLayerNormalization": (1,), "Sub": (0, 1),
}  # fmt: skip
"""Op ↦ its inputs that are learned where they are float32 arrays of the file. Those of other inputs (the scales of a Resize, the
statistics of a batch norm) and single numbers stay as they are."""
_MOVED: Final = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Ops through which a weight may pass before an op that learns it."""


class OnnxModule(Module, inline="weights"):
    """An ONNX model whose weights are parameters, which can be learned; `sg.load_module` makes it. Parameters have the file's
    names. It computes what the file does: a model that was exported for inference has no dropout in training, and its batch norms
    keep their statistics.

    Called with tensors, in the order of `inputs`; returns its output, or a dict of several.
    """

    weights: dict[str, Tensor]

    def __init__(self, model: OnnxModel, input_shapes: Mapping[str, Sequence[int | str]] | None = None) -> None:
        arrays = _learned(model)
        if not arrays:
            raise InputError(
                f"{model.path}: no weights to learn: no op reads a float32 array of the file as a weight. (Quantised models, and "
                "models whose weights other ops make, cannot be learned.)"
            )
        self.weights = {name: tensor(array, device="numpy") for name, array in arrays.items()}
        self.file = _Graphs(model, arrays, input_shapes)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The names, shapes and types of what it takes."""
        return self.file.inputs

    @property
    def output_names(self) -> tuple[str, ...]:
        return self.file.output_names

    def forward(self, *inputs: Tensor) -> Any:
        graph = self.file.at(inputs)
        given = [*inputs, *self.weights.values()]
        home = home_of(given)
        outputs = home.run(graph, [value_on(home, x) for x in given])
        made = {name: Tensor(home, x) for name, x in zip(graph.output_names, outputs, strict=True)}
        return next(iter(made.values())) if len(made) == 1 else made


class _Graphs:
    """The Graphs of a model whose weights are inputs, behind its own."""

    def __init__(
        self,
        model: OnnxModel,
        weights: Mapping[str, np.ndarray],
        input_shapes: Mapping[str, Sequence[int | str]] | None,
    ) -> None:
        graph = model.graph
        own = tuple(x for x in graph.inputs if x.name not in graph.initializers)
        given = tuple(OnnxValue(name, OnnxType("tensor", x.dtype.name, x.shape)) for name, x in weights.items())
        kept = {name: x for name, x in graph.initializers.items() if name not in weights}
        nodes = tuple(node for node in graph.nodes if not weights.keys() & set(node.outputs))
        opened = replace(graph, nodes=nodes, inputs=own + given, initializers=kept)
        self._source = OnnxSource(replace(model, graph=opened), input_shapes)
        if self._source.states or self._source.objects:
            raise InputError(f"{model.path}: models that draw random numbers or take lists cannot be learned")
        self.inputs: Final = self._source.inputs[: len(own)]
        self.output_names: Final = self._source.output_names
        taken = ", ".join(f"{x.name}{show(x.shape)}:{x.dtype}" for x in self.inputs)
        self._described = escaped(f"<{model.path}: {taken} → {', '.join(self.output_names)}>")
        self._made: dict[tuple[tuple[tuple[str, int], ...], bool], Graph] = {}

    def __repr__(self) -> str:
        return self._described

    def __getstate__(self) -> dict[str, Any]:
        """Without the Graphs, which another process makes again: ops hold functions."""
        return {**self.__dict__, "_made": {}}

    def at(self, inputs: Sequence[Tensor]) -> Graph:
        """The Graph for inputs of these shapes."""
        if len(inputs) != len(self.inputs):
            raise InputError(f"got {len(inputs)} inputs, expected {', '.join(x.name for x in self.inputs)}")
        sizes: dict[str, Dim] = {}
        for x, own in zip(inputs, self.inputs, strict=True):
            if len(x.shape) != len(own.shape) or any(
                (sizes.setdefault(str(d), n) if isinstance(d, Size) else d) != n
                for d, n in zip(own.shape, plain(x.shape), strict=True)
            ):
                raise ShapeError(f"{own.name}: got the shape {show(x.shape)}, expected {show(own.shape)}")
            if x.dtype is not own.dtype:
                raise DTypeError(f"{own.name}: got {x.dtype}, expected {own.dtype}")
        numbers = {name: n for name, n in sizes.items() if isinstance(n, int)}
        if len(numbers) < len(sizes):
            return specialise(self._graph({}), sizes)
        return self._graph(numbers)

    def _graph(self, sizes: Mapping[str, int]) -> Graph:
        key = tuple(sorted(sizes.items())), looking()  # within `sg.debug`, nodes know those of the file
        if key not in self._made:
            found = self._source.graph(sizes, {})
            if not isinstance(found, Graph):
                raise found.error()
            self._made[key] = found
        return self._made[key]


def _learned(model: OnnxModel) -> dict[str, np.ndarray]:
    """The arrays of the file that are weights, by name: initialisers, and the values of Constant nodes."""
    graph = model.graph
    arrays = dict(graph.initializers)
    wanted: set[str] = set()
    for node in reversed(graph.nodes):
        places = LEARNED.get(node.op_type, ())
        wanted.update(node.inputs[k] for k in places if k < len(node.inputs))
        if node.op_type in _MOVED and node.outputs[0] in wanted:
            wanted.add(node.inputs[0])
        if node.op_type == "Constant" and "value" in node.attributes:
            arrays[node.outputs[0]] = node.attributes["value"]
    return {
        name: x
        for name, x in arrays.items()
        if name in wanted and isinstance(x, np.ndarray) and x.dtype == np.float32 and x.ndim
    }
