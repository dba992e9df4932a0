"""An OnnxModel becomes a Graph. Rows with an ONNX name are found by it; other ops go through the table of adapters.

`import_model` gives the Graph or refuses: UnsupportedOp lists every op that is lacking, once; SizeNeeded names open
dimensions that it cannot be had without numbers for (give them as `sizes`), ValueNeeded inputs whose values decide
shapes (give them as `values`); any other ImportFailure names the model, the node and what to do.
Dimensions that the file leaves open are symbolic: by their own name, or an invented one. Nodes that no output needs
are not looked at, functions that the model defines are inlined, and no tensor beyond an int32's count is accepted.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ..dtypes import DTYPES, dtype
from ..errors import ImportFailure, InputError, SingeError, SizeNeeded, UnsupportedOp, ValueNeeded
from ..graph import MAX_ELEMENTS, Builder, Graph, Node
from ..ops import ROWS, Composite, Elementwise, Nest, Row, View
from ..shapes import Dim, deferring, product, show, size
from .adapters import ADAPTERS, Call
from .adapters.basic import dense
from .model import OnnxFunction, OnnxModel, OnnxNode, OnnxRef, OnnxValue
from .tensors import RawTensor

MAX_NODES: Final = 100_000
"""Nodes of a model, its functions inlined."""
MAX_DEPTH: Final = 64
"""Functions within functions."""
UNNAMED: Final = frozenset((None, "", "?", "*", "-1", "None"))
"""What files write for a dimension of which nothing is known, not even that it equals its namesakes."""

BY_ONNX: Final[dict[str, Row]] = {}
"""Rows by the ONNX op that they are; see `row_for`."""


def row_for(op: str) -> Row | None:
    """The row that is this ONNX op, one to one; rows that were registered since the last call are found too."""
    if op not in BY_ONNX:
        BY_ONNX.update({row.onnx: row for row in ROWS.values() if row.onnx})
    return BY_ONNX.get(op)


def import_model(
    model: OnnxModel,
    *,
    sizes: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
) -> Graph:
    """The model as a Graph. `sizes` fixes symbolic dimensions, `input_shapes` replaces the shapes of inputs, and inputs
    among `values` become constants."""
    lacking = unsupported_ops(model)
    if lacking:
        listed = ", ".join(f"{op} ({count})" for op, count in lacking.items())
        raise UnsupportedOp(f"{model.path}: ops that Singe lacks: {listed}", tuple(lacking))
    importer = _Importer(model)
    try:
        with deferring():  # noted anew when the Graph is compiled
            return importer.graph(sizes or {}, input_shapes or {}, values or {})
    except ValueNeeded as e:
        raise ValueNeeded(f"{model.path}: {e}", e.inputs) from e
    except SizeNeeded as e:
        raise SizeNeeded(f"{model.path}: {e}", e.sizes) from e
    except ImportFailure as e:
        raise ImportFailure(f"{model.path}: {e}") from e


def signature(model: OnnxModel, input_shapes: Mapping[str, Sequence[int | str]] | None = None) -> tuple[Node, ...]:
    """The model's inputs as `import_model` would have them, all dimensions that the file leaves open symbolic."""
    try:
        return _Importer(model).inputs({}, input_shapes or {}, {})
    except ImportFailure as e:
        raise ImportFailure(f"{model.path}: {e}") from e


def unsupported_ops(model: OnnxModel) -> dict[str, int]:
    """The ops that a model needs and Singe lacks, each with how often it is there, the most frequent first."""
    functions = _functions(model)
    found: dict[str, int] = {}
    pending = [_needed(model.graph.nodes, (v.name for v in model.graph.outputs))]
    opened: set[tuple[str, str, str]] = set()
    while pending:
        for _, node in pending.pop():
            key = (node.domain, node.op_type, node.overload)
            function = functions.get(key)
            if function is None:
                if node.domain or (node.op_type not in ADAPTERS and row_for(node.op_type) is None):
                    name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
                    found[name] = found.get(name, 0) + 1
            elif key not in opened:
                opened.add(key)
                pending.append(_needed(function.nodes, function.outputs))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _functions(model: OnnxModel) -> dict[tuple[str, str, str], OnnxFunction]:
    return {(f.domain, f.name, f.overload): f for f in model.functions}


def _needed(nodes: Sequence[OnnxNode], outputs: Iterable[str]) -> list[tuple[int, OnnxNode]]:
    """The nodes that outputs hang on, in their order, with their places in the file."""
    wanted = set(outputs)
    kept = []
    for i in reversed(range(len(nodes))):
        if any(name and name in wanted for name in nodes[i].outputs):
            kept.append((i, nodes[i]))
            wanted.update(nodes[i].inputs)
    return kept[::-1]


@dataclass(eq=False)
class _Scope:
    """Names and what they stand for, within the main graph or one call of a function."""

    builder: Builder
    nodes: dict[str, Node] = field(default_factory=dict)
    tensors: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] | None = None  # those of a function's caller

    def find(self, name: str) -> Node:
        if name not in self.nodes:
            if name not in self.tensors:
                raise ImportFailure(f"the value {name!r} is used before any node makes it")
            self.nodes[name] = self.builder.const(_plain(name, self.tensors[name]))
        return self.nodes[name]

    def resolved(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A node's attributes, those that refer to the function's caller looked up there."""
        caller = self.attributes or {}
        out = {k: caller.get(v.name) if isinstance(v, OnnxRef) else v for k, v in given.items()}
        return {k: v for k, v in out.items() if v is not None}


def _plain(name: str, tensor: Any) -> np.ndarray:
    """A tensor of the file as an array of one of Singe's types."""
    if isinstance(tensor, np.ndarray) and tensor.dtype.name in DTYPES:
        return tensor
    if isinstance(tensor, (np.ndarray, RawTensor)):
        raise ImportFailure(f"the tensor {name!r} is {tensor.dtype}; Singe has {', '.join(DTYPES)}: convert the model")
    return dense(tensor)


class _Importer:
    """One import: the builder, and what the model's nodes have become so far."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model
        self.functions = _functions(model)
        self.builder = Builder()
        self.scope = _Scope(self.builder, tensors={**model.graph.initializers, **model.graph.sparse_initializers})
        self.count = 0

    def graph(
        self, sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int | str]], values: Mapping[str, np.ndarray]
    ) -> Graph:
        inputs, outputs = self.inputs(sizes, shapes, values), self.model.graph.outputs
        self.run(_needed(self.model.graph.nodes, (v.name for v in outputs)), self.scope, self.model.opsets)
        return Graph(inputs, tuple(self.scope.find(v.name) for v in outputs), tuple(v.name for v in outputs))

    # --- inputs ---

    def inputs(
        self, sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int | str]], values: Mapping[str, np.ndarray]
    ) -> tuple[Node, ...]:
        """The graph's inputs, entered in its scope; initialisers among them are none, nor are those given as values."""
        declared = {v.name: v for v in self.model.graph.inputs if v.name not in self.scope.tensors}
        for what, given in (("shapes", shapes), ("values", values)):
            unknown = given.keys() - declared.keys()
            if unknown:
                raise InputError(
                    f"{self.model.path}: {what} are given for {', '.join(sorted(unknown))}; the inputs are {', '.join(declared) or 'none'}"
                )
        taken = {d for v in declared.values() for d in (shapes.get(v.name) or v.shape or ()) if isinstance(d, str)}
        out = []
        for name, value in declared.items():
            kind = _input_dtype(value)
            if name in values:
                self.scope.nodes[name] = self.builder.const(_plain(name, np.asarray(values[name])), dtype(kind))
                continue
            shape = [
                self.dimension(d, name, axis, taken, sizes)
                for axis, d in enumerate(_input_shape(value, shapes.get(name)))
            ]
            node = self.scope.nodes[name] = self.builder.input(name, shape, dtype(kind))
            _check_count(node)
            out.append(node)
        unknown = sizes.keys() - taken
        if unknown:
            raise InputError(
                f"{self.model.path}: no dimension is named {', '.join(sorted(unknown))}; the names are {', '.join(sorted(taken)) or 'none'}"
            )
        return tuple(out)

    def dimension(
        self, given: int | str | None, name: str, axis: int, taken: set[str], sizes: Mapping[str, int]
    ) -> Dim:
        """A dimension of an input: a number, or a Size by its name or an invented one ("N" for the first axis)."""
        if isinstance(given, int):
            return given
        if given is None or given in UNNAMED:
            given = "N" if axis == 0 and "N" not in taken else f"{name}.{axis}"
            taken.add(given)
        return sizes[given] if given in sizes else size(given)

    # --- nodes ---

    def run(
        self, nodes: Iterable[tuple[int, OnnxNode]], scope: _Scope, opsets: Mapping[str, int], depth: int = 0
    ) -> None:
        for index, node in nodes:
            self.count += 1
            if self.count > MAX_NODES:
                raise ImportFailure(f"more than {MAX_NODES} nodes, functions inlined")
            where = f"node {index}{f' {node.name!r}' if node.name else ''} ({node.op_type})"
            try:
                inputs = tuple(scope.find(name) if name else None for name in node.inputs)
                self.define(node, inputs, scope, opsets, depth)
            except ValueNeeded as e:
                raise ValueNeeded(f"{where}: {e}", e.inputs) from e
            except SizeNeeded as e:
                raise SizeNeeded(f"{where}: {e}", e.sizes) from e
            except SingeError as e:
                raise ImportFailure(f"{where}: {e}") from e

    def define(
        self, node: OnnxNode, inputs: tuple[Node | None, ...], scope: _Scope, opsets: Mapping[str, int], depth: int
    ) -> None:
        """Enter a node's outputs in the scope."""
        attributes = scope.resolved(node.attributes)
        function = self.functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            results = self.inline(function, inputs, attributes, depth)
        else:
            call = Call(self.builder, node.op_type, opsets.get("", 1), inputs, attributes, node.outputs)
            made = _made(call)
            results = [made] if isinstance(made, Node) else list(made)
        wanted = [name for name in node.outputs[len(results) :] if name]
        if wanted:
            raise ImportFailure(f"it has {len(results)} outputs, and {', '.join(map(repr, wanted))} more are asked for")
        for name, result in zip(node.outputs, results, strict=False):
            _check_count(result)
            if name in scope.nodes or name in scope.tensors:
                raise ImportFailure(f"the value {name!r} is made twice")
            if name:
                scope.nodes[name] = result

    def inline(
        self, function: OnnxFunction, inputs: tuple[Node | None, ...], attributes: Mapping[str, Any], depth: int
    ) -> list[Node]:
        if depth >= MAX_DEPTH:
            raise ImportFailure(f"functions call each other more than {MAX_DEPTH} deep")
        if len(inputs) > len(function.inputs):
            raise ImportFailure(f"{len(inputs)} inputs; the function takes {len(function.inputs)}")
        given = {name: x for name, x in zip(function.inputs, inputs, strict=False) if x is not None}
        left_out = [name for name in function.inputs if name not in given]
        inner = _Scope(self.builder, given, attributes={**function.defaults, **attributes})
        nodes = [(i, _forgetting(node, left_out)) for i, node in _needed(function.nodes, function.outputs)]
        self.run(nodes, inner, function.opsets, depth + 1)
        return [inner.find(name) for name in function.outputs]


def _forgetting(node: OnnxNode, names: Sequence[str]) -> OnnxNode:
    """The node without the inputs of those names: a function's optional inputs that its caller leaves out."""
    if not any(name in names for name in node.inputs):
        return node
    inputs = tuple("" if name in names else name for name in node.inputs)
    return OnnxNode(node.op_type, node.domain, node.name, inputs, node.outputs, node.attributes, node.overload)


def _made(call: Call) -> Node | Sequence[Node]:
    adapt = ADAPTERS.get(call.op)
    if adapt is not None:
        return adapt(call)
    row = row_for(call.op)
    assert row is not None
    return _from_row(call, row)


def _from_row(call: Call, row: Row) -> Node:
    """The row itself: inputs in order, attributes by their names."""
    parameters = _parameters(row)
    places = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in call.attributes]
    required = sum(p.default is p.empty for p in places)
    if not required <= len(call.inputs) <= len(places) or None in call.inputs[:required]:
        raise call.fail(
            f"{len(call.inputs)} inputs; expected {required}{f' to {len(places)}' if required < len(places) else ''}"
        )
    attributes = {
        k: v
        for k, v in call.attributes.items()
        if k not in ("broadcast", "axis", "consumed_inputs") or call.version >= 7
    }
    defaults = {p.name: p.default for p in parameters if p not in places}
    for name, value in attributes.items():
        default = defaults.get(name, value)
        if isinstance(default, bool) and value in (0, 1):
            attributes[name] = bool(value)
        elif name not in defaults or (default is not inspect.Parameter.empty and type(value) is not type(default)):
            raise call.fail(f"attribute {name!r} is {value!r:.60}; {row.name} takes {', '.join(defaults) or 'none'}")
    return call.b.apply(row, *_aligned(call), **attributes)  # pyright: ignore[reportArgumentType]


def _parameters(row: Row) -> list[inspect.Parameter]:
    """A row's inputs, in order, and its attributes, as the function that defines it names them."""
    if isinstance(row, Composite):
        return list(inspect.signature(row.lower).parameters.values())[1:]  # without the builder
    assert isinstance(row, (Elementwise, Nest, View))
    return list(inspect.signature(row.body if isinstance(row, Elementwise) else row.shape).parameters.values())


def _aligned(call: Call) -> tuple[Node | None, ...]:
    """The inputs; before version 7 the second may say at which axis of the first it begins."""
    if call.version >= 7 or "axis" not in call.attributes or len(call.inputs) != 2:
        return call.inputs
    x, y = call.x(0), call.x(1)
    behind = len(x.shape) - len(y.shape) - call.axis(0, len(x.shape))
    if behind < 0:
        raise call.fail(f"{show(y.shape)} does not fit {show(x.shape)} from axis {call.attributes['axis']} on")
    return x, call.b.reshape(y, shape=(*y.shape, *(1,) * behind))


def _input_dtype(value: OnnxValue) -> str:
    kind = value.type.kind if value.type else "value of no known type"
    if kind != "tensor":
        raise ImportFailure(f"the input {value.name!r} is a {kind}; expected a tensor")
    if value.dtype not in DTYPES:
        raise ImportFailure(
            f"the input {value.name!r} is {value.dtype}; Singe has {', '.join(DTYPES)}: convert the model"
        )
    return value.dtype


def _input_shape(value: OnnxValue, given: Sequence[int | str] | None) -> Sequence[int | str | None]:
    if given is None:
        if value.shape is None:
            raise ImportFailure(f"the input {value.name!r} has no known rank; give its shape")
        return value.shape
    declared = given if value.shape is None else value.shape
    both_numbers = ((a, b) for a, b in zip(given, declared, strict=False) if isinstance(a, int) and isinstance(b, int))
    if len(given) != len(declared) or any(a != b or a < 0 for a, b in both_numbers):
        raise InputError(f"the input {value.name!r} has the shape {value.shape}, got {tuple(given)}")
    return given


def _check_count(x: Node) -> None:
    count = product(x.shape)
    if isinstance(count, int) and not 0 <= count <= MAX_ELEMENTS:
        raise ImportFailure(f"a tensor of shape {show(x.shape)}: at most {MAX_ELEMENTS} elements are supported")
