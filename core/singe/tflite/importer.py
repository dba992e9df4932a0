"""A TfliteModel becomes a Graph, through the table of ops.

`import_model` returns the Graph or raises an error. UnsupportedOp lists every op that Singe lacks, once; any other ImportFailure names the
model, the op and what to do. Dimensions that the file leaves open are symbolic. The layout stays that of the file, channels last. Variables
become states. Ops that no output and no variable needs are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ..dtypes import DType, float32
from ..errors import ImportFailure, InputError, SingeError, SizeNeeded, UnsupportedOp
from ..graph import Builder, Graph, GraphState, Node
from ..runtime.debugging import note_place
from ..shapes import MAX_ELEMENTS, Dim, deferring, product, show, size
from .model import TfliteGraph, TfliteModel, TfliteOp, TfliteTensor
from .ops import OPS, TfliteCall, Variables, dequantised, dtype_of, is_quantised, run_op

MAX_OPS: Final = 100_000
"""The most ops of a model."""
COMPLEX: Final = "complex64"
KEPT: Final = frozenset({"ASSIGN_VARIABLE", "CALL_ONCE", "VAR_HANDLE"})
"""Ops that do something although nobody may read what they give."""


def import_model(
    model: TfliteModel, input_shapes: Mapping[str, Sequence[int | str]] | None = None, *, real_outputs: bool = False
) -> Graph:
    """The model as a Graph. input_shapes: numbers, or names, for dimensions that it leaves open. real_outputs: those that are quantised become
    the numbers that they stand for."""
    check_ops(model)
    try:
        with deferring() as checks:
            return _TfliteImporter(model).graph(input_shapes or {}, checks, real_outputs)
    except SizeNeeded as e:
        raise SizeNeeded(f"{model.path}: {e}", e.sizes) from e
    except ImportFailure as e:
        raise ImportFailure(f"{model.path}: {e}") from e


def check_ops(model: TfliteModel) -> None:
    """Refuse a model that needs ops which Singe lacks; UnsupportedOp lists all."""
    lacking = Counter(o.op for o in needed(model.graphs[0]) if o.op not in OPS)
    if lacking:
        listed = ", ".join(f"{name} ({count})" for name, count in lacking.most_common())
        raise UnsupportedOp(
            f"{model.path}: ops that Singe lacks: {listed}; convert the model without them, or to ONNX", tuple(lacking)
        )


def needed(graph: TfliteGraph) -> list[TfliteOp]:
    """The ops on which outputs and variables depend, in the file's order."""
    wanted = set(graph.outputs)
    found: list[TfliteOp] = []
    for o in reversed(graph.ops):
        if o.op in KEPT or not wanted.isdisjoint(o.outputs):
            wanted.update(o.inputs)
            found.append(o)
    return found[::-1]


class _TfliteImporter:
    """The state of one import: the builder, and the variables."""

    def __init__(self, model: TfliteModel) -> None:
        self.model = model
        self.builder = Builder()
        self.variables = Variables(self.begin)
        self.initial: dict[str, np.ndarray] = {}

    def graph(self, shapes: Mapping[str, Sequence[int | str]], checks: Mapping[Dim, str], real_outputs: bool) -> Graph:
        main = self.model.graphs[0]
        inputs = self.inputs(main, shapes)
        values = dict(zip(main.inputs, inputs, strict=True))
        self.run(main, values)
        outputs = tuple(self.output(main, k, values, real_outputs) for k in main.outputs)
        if not outputs:
            raise ImportFailure("the model has no outputs")
        states = tuple(self.state(name, leaf) for name, leaf in self.variables.leaves.items())
        unique = tuple(dict.fromkeys(inputs))
        return Graph(unique, outputs, main.output_names, self.builder.size_nodes, states, dict(checks))

    def output(self, main: TfliteGraph, k: int, values: dict[int, Node], is_real: bool) -> Node:
        node, tensor = self.value(main, k, values), main.tensors[k]
        if tensor.dtype == COMPLEX:
            raise ImportFailure(f"the output {tensor.name!r} is complex; convert the model with its parts as outputs")
        scale = tensor.quantization if is_real and is_quantised(tensor) else None
        return node if scale is None else dequantised(self.builder, node, scale)

    def state(self, name: str, leaf: Node) -> GraphState:
        updated, initial = self.variables.values[name], self.initial.get(name)
        for what, shape, kind in (
            ("ends", updated.shape, updated.dtype.name),
            *(() if initial is None else (("begins", initial.shape, initial.dtype.name),)),
        ):
            if shape != leaf.shape or kind != leaf.dtype.name:
                raise ImportFailure(f"the variable {name!r} is {leaf!r}, and {what} as {kind} {show(shape)}")
        return GraphState(leaf, name, initial if initial is not None and initial.any() else None, updated)

    # --- inputs ---

    def inputs(self, graph: TfliteGraph, shapes: Mapping[str, Sequence[int | str]]) -> list[Node]:
        unknown = shapes.keys() - set(graph.input_names)
        if unknown:
            raise InputError(
                f"{self.model.path}: shapes are given for {', '.join(sorted(unknown))}; the inputs are {', '.join(graph.input_names) or 'none'}"
            )
        taken = {d for shape in shapes.values() for d in shape if isinstance(d, str)}
        found: dict[int, Node] = {}
        for name, k in zip(graph.input_names, graph.inputs, strict=True):
            tensor = graph.tensors[k]
            if tensor.array is not None:
                raise ImportFailure(f"the input {name!r} is a constant")
            shape = [
                self.dimension(d, name, axis, taken)
                for axis, d in enumerate(self.shape(name, tensor, shapes.get(name)))
            ]
            if k not in found:
                found[k] = _checked(self.builder.input(name, shape, dtype_of(tensor)))
        return [found[k] for k in graph.inputs]

    def shape(self, name: str, tensor: TfliteTensor, given: Sequence[int | str] | None) -> Sequence[int | str | None]:
        if given is None:
            return tensor.shape
        both = ((a, d) for a, d in zip(given, tensor.shape, strict=False) if isinstance(a, int) and d is not None)
        if len(given) != len(tensor.shape) or any(a != d for a, d in both):
            raise InputError(f"the input {name!r} has the shape {tensor.shape}, got {tuple(given)}")
        return [a if d is None else d for a, d in zip(given, tensor.shape, strict=True)]

    def dimension(self, d: int | str | None, name: str, axis: int, taken: set[str]) -> Dim:
        """A dimension of an input: a number, or a Size by its name or an invented one ("N" for the first axis)."""
        if isinstance(d, int):
            return d
        if d is None:
            d = "N" if axis == 0 and "N" not in taken else f"{name}.{axis}"
            taken.add(d)
        return size(d)

    # --- ops ---

    def begin(self, index: int) -> None:
        """Run the ops of a graph that gives variables their first values."""
        if not 0 < index < len(self.model.graphs):
            raise ImportFailure(
                f"graph {index} gives the variables' values; expected 1 to {len(self.model.graphs) - 1}"
            )
        graph, before = self.model.graphs[index], self.variables.values
        if any(o.op not in OPS or o.op == "CALL_ONCE" for o in graph.ops):
            raise ImportFailure(f"graph {index}, which gives the variables' values, has ops that Singe lacks there")
        self.variables.values = {}
        self.run(graph, {})
        for name, node in self.variables.values.items():
            value = self.builder.value_of(node)
            if value is None or value.dtype == object:
                raise ImportFailure(f"the first value of the variable {name!r} is no constant")
            self.initial[name] = np.ascontiguousarray(value)
        self.variables.values = before

    def run(self, graph: TfliteGraph, values: dict[int, Node]) -> None:
        """Make the nodes of a graph's ops; values: those of its inputs by the index of the tensor, to which the others are added."""
        if len(graph.ops) > MAX_OPS:
            raise ImportFailure(f"{len(graph.ops)} ops; at most {MAX_OPS} are supported")
        handles: dict[int, str] = {}
        imaginary: dict[int, Node] = {}
        for o in needed(graph):
            name = next((graph.tensors[k].name for k in o.outputs if k >= 0), "")
            where = f"{o.op}{f' {name!r}' if name else ''}"
            before = self.builder.count
            try:
                self.define(graph, o, values, handles, imaginary)
            except SizeNeeded as e:
                raise SizeNeeded(f"{where}: {e}", e.sizes) from e
            except SingeError as e:
                raise ImportFailure(f"{where}: {e}") from e
            note_place(self.builder.made_since(before), where)

    def define(
        self,
        graph: TfliteGraph,
        o: TfliteOp,
        values: dict[int, Node],
        handles: dict[int, str],
        imaginary: dict[int, Node],
    ) -> None:
        given = tuple(None if k < 0 else graph.tensors[k] for k in o.inputs)
        wanted = tuple(graph.tensors[k] for k in o.outputs if k >= 0)
        inputs = tuple(None if k < 0 or k in handles else self.value(graph, k, values) for k in o.inputs)
        parts = tuple(imaginary.get(k) for k in o.inputs)
        made = run_op(TfliteCall(self.builder, o, inputs, given, wanted, self.variables, handles, parts))
        places = [k for k in o.outputs if k >= 0 and k not in handles]
        is_complex = bool(wanted) and all(tensor.dtype == COMPLEX for tensor in wanted)
        if len(made) < len(places) * (1 + is_complex):
            raise ImportFailure(f"the op gives {len(made)} values, but names {len(places)} outputs")
        for k, node, tensor in zip(places, made, wanted, strict=False):
            if k in values or tensor.array is not None:
                raise ImportFailure(f"the tensor {tensor.name!r} is given twice")
            values[k] = _checked(_typed(node, float32 if is_complex else dtype_of(tensor), tensor))
        if is_complex:
            imaginary |= {
                k: _typed(node, float32, graph.tensors[k])
                for k, node in zip(places, made[len(made) // 2 :], strict=False)
            }

    def value(self, graph: TfliteGraph, k: int, values: dict[int, Node]) -> Node:
        """The node of a tensor: a constant, or what an op gave."""
        if k not in values:
            tensor = graph.tensors[k]
            array = tensor.array
            known = [d for d in tensor.shape if d is not None]
            if array is None and 0 in known and len(known) == len(tensor.shape):
                array = np.empty(known, dtype_of(tensor).numpy)  # a constant without elements has no bytes
            if array is None:
                raise ImportFailure(f"the tensor {tensor.name!r} is used before any op gives it")
            values[k] = self.builder.const(array, dtype_of(tensor))
        return values[k]


def _typed(x: Node, kind: DType, tensor: TfliteTensor) -> Node:
    if x.dtype is not kind:
        raise ImportFailure(f"the op gives {x.dtype}, but the file has {kind} for {tensor.name!r}")
    return x


def _checked(x: Node) -> Node:
    count = product(x.shape)
    if isinstance(count, int) and not 0 <= count <= MAX_ELEMENTS:
        raise ImportFailure(f"a tensor of shape {show(x.shape)}: at most {MAX_ELEMENTS} elements are supported")
    return x
