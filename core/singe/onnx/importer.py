"""An OnnxModel becomes a Graph. Rows with an ONNX name are found by it; other ops go through the table of adapters.

`import_model` returns the Graph or raises an error. UnsupportedOp lists every op that Singe lacks, once. SizeNeeded names
open dimensions that must be numbers (give them as `sizes`), ValueNeeded the inputs whose values must be known (give them
as `values`). Any other ImportFailure names the model, the node and what to do.
Dimensions that the file leaves open are symbolic, with the file's name or an invented one. Nodes that no output needs are
ignored, functions that the model defines are inlined, and tensors with more elements than an int32 counts are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter
from typing import Any, Final, TypeAlias

import numpy as np

from ..dtypes import DTYPES, dtype
from ..errors import ImportFailure, InputError, SingeError, SizeNeeded, UnsupportedOp, ValueNeeded
from ..graph import Builder, Graph, Kind, Node, Part, Value
from ..graph.objects import described, leaves, mapped, named
from ..ops import ROWS, Row
from ..runtime.debugging import note_place
from ..shapes import MAX_ELEMENTS, Dim, deferring, keeping, product, show, size, symbols
from .adapters import ADAPTERS, OBJECTS, Call
from .adapters.elementwise.random import is_random, with_key_state
from .choice import Ambiguous, NeitherFits, Undecided
from .model import OnnxFunction, OnnxGraph, OnnxModel, OnnxNode, OnnxType, OnnxValue
from .scope import Scope, needed, owned
from .tensors import MAX_FOLDED, plain

LATEST_OPSET: Final = 28
"""The latest version of ONNX's own ops whose meaning is known here."""
MAX_NODES: Final = 100_000
"""The most nodes of a model, with its functions inlined."""
MAX_CHOICES: Final = 64
"""The most choices between branches of Ifs that an import tries."""
MAX_DEPTH: Final = 64
"""The greatest nesting depth of functions and graphs."""
Nodes: TypeAlias = Sequence[tuple[int, OnnxNode]]
"""Nodes of a graph in the file, with their indices there."""
_OWN_OPS: Final = "register them with sg.op (docs/own-kernels.md), or export the model without them"
_ADVICE: Final = {
    "com.microsoft.nchwc": "onnxruntime optimised this file for one machine: take the file from before, or save it with "
    "ORT_ENABLE_EXTENDED",
    "ai.onnx.contrib": "these prepare texts and pictures before the model or read its results: leave them out when you export",
}
"""The domain of ops that Singe lacks ↦ what to do; `_OWN_OPS` for any other."""
UNNAMED: Final = frozenset((None, "", "?", "*", "-1", "None"))
"""What files write for an unknown dimension. Two dimensions with such a name need not be equal."""

BY_ONNX: Final[dict[str, Row]] = {}
"""ONNX op ↦ the row with the same meaning; see `row_for`."""


def row_for(op: str) -> Row | None:
    """The row with the meaning of this ONNX op (see `OnnxNode.op`), if any, including rows registered since the last call."""
    if op not in BY_ONNX:
        BY_ONNX.update({row.onnx: row for row in ROWS.values() if row.onnx})
    return BY_ONNX.get(op)


def import_model(
    model: OnnxModel,
    *,
    sizes: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
    objects: Mapping[str, Any] | None = None,
) -> Graph:
    """The model as a Graph. `sizes` fixes symbolic dimensions, `input_shapes` replaces the shapes of inputs, inputs among
    `values` become constants, and `objects` has the tree of Parts of each input that is no tensor."""
    check_ops(model)
    importer = _Importer(model, objects or {})
    try:
        with _named(model.path, ImportFailure), deferring():  # compiling the graph finds the checks again
            graph = importer.graph(sizes or {}, input_shapes or {}, values or {})
            return with_key_state(graph, importer.scope) if is_random(model) else graph
    except NeitherFits as e:  # a branch may fit where sizes are numbers
        raise SizeNeeded(str(e), e.sizes) from e


@contextmanager
def _named(where: str, kind: type[SingeError]) -> Iterator[None]:
    """Errors of this kind become ImportFailures that begin with where they arose; what they ask for stays."""
    try:
        yield
    except ValueNeeded as e:
        raise ValueNeeded(f"{where}: {e}", e.inputs) from e
    except SizeNeeded as e:
        raise SizeNeeded(f"{where}: {e}", e.sizes) from e
    except NeitherFits as e:
        raise NeitherFits(f"{where}: {e}", e.sizes) from e
    except kind as e:
        raise ImportFailure(f"{where}: {e}") from e


def signature(
    model: OnnxModel,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    objects: Mapping[str, Any] | None = None,
) -> tuple[Node, ...]:
    """The inputs that the Graph of `import_model` would have, with open dimensions symbolic, without those that are no
    tensors and not among `objects`."""
    try:
        return _Importer(model, objects or {}).inputs({}, input_shapes or {}, {})
    except ImportFailure as e:
        raise ImportFailure(f"{model.path}: {e}") from e


def check_ops(model: OnnxModel) -> None:
    """Refuse a model that needs ops which Singe lacks, of which UnsupportedOp lists all, or of an opset of the future."""
    version = max((model.opsets.get(domain, 0) for domain in ("", "ai.onnx")), default=0)
    if version > LATEST_OPSET:
        raise ImportFailure(
            f"{model.path}: the model is of opset {version}, expected at most {LATEST_OPSET}; export it with an older one"
        )
    lacking = unsupported_ops(model)
    if lacking:
        listed = ", ".join(f"{op} ({count})" for op, count in lacking.items())
        domains = {name.rpartition(".")[0] for name in lacking}
        advice = "; ".join(dict.fromkeys(_ADVICE.get(domain, _OWN_OPS) for domain in sorted(domains)))
        raise UnsupportedOp(f"{model.path}: ops that Singe lacks: {listed}; {advice}", tuple(lacking))


def unsupported_ops(model: OnnxModel) -> dict[str, int]:
    """The ops that a model needs and Singe lacks ↦ how often each occurs, the most frequent first."""
    functions = _functions(model)
    found: dict[str, int] = {}
    pending = [needed(model.graph.nodes, (v.name for v in model.graph.outputs))]
    opened: set[tuple[str, str, str]] = set()
    while pending:
        for _, node in pending.pop():
            key = (node.domain, node.op_type, node.overload)
            function = functions.get(key)
            if function is None:
                if node.op not in ADAPTERS and row_for(node.op) is None:
                    found[node.op] = found.get(node.op, 0) + 1
                pending += (needed(g.nodes, (v.name for v in g.outputs)) for g in owned(node))
            elif key not in opened:
                opened.add(key)
                pending.append(needed(function.nodes, function.outputs))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _functions(model: OnnxModel) -> dict[tuple[str, str, str], OnnxFunction]:
    return {(f.domain, f.name, f.overload): f for f in model.functions}


class _Importer:
    """The state of one import: the builder, and the nodes made so far by name."""

    def __init__(self, model: OnnxModel, objects: Mapping[str, Any]) -> None:
        self.model = model
        self.objects = objects
        self.functions = _functions(model)
        self.builder = Builder()
        tensors = {**model.graph.initializers, **model.graph.sparse_initializers}
        self.scope = Scope(self.builder, self, model.opsets, tensors=tensors, graph=model.graph)
        self.count = 0
        self.choices = 0
        self.path: list[str] = []  # the node that is imported, and those that it is within

    def graph(
        self, sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int | str]], values: Mapping[str, np.ndarray]
    ) -> Graph:
        inputs, names = self.inputs(sizes, shapes, values), tuple(v.name for v in self.model.graph.outputs)
        for name, kind in object_inputs(self.model).items():
            if kind.name != "tensor" and name not in self.objects:
                raise ValueNeeded(f"the input {name!r} is a {kind}: what it holds must be known before a run", (name,))
        self.run(needed(self.model.graph.nodes, names), self.scope)
        made = tuple(map(self.scope.find, names))
        tensors = [x for x in made if isinstance(x, Node)]
        if len(tensors) == len(made):
            return Graph(inputs, tuple(tensors), names, self.builder.size_nodes, checks=self.scope.checks)
        results = {name: named(name, value) for name, value in zip(names, made, strict=True)}
        parts = tuple(leaves(tuple(results.values())))
        if len(set(parts)) < len(parts) or len(results) < len(names):
            raise ImportFailure(f"two outputs have one name: {', '.join(parts)}")
        return Graph(
            inputs, tuple(leaves(made)), parts, self.builder.size_nodes, checks=self.scope.checks, results=results
        )

    # --- inputs ---

    def inputs(
        self, sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int | str]], values: Mapping[str, np.ndarray]
    ) -> tuple[Node, ...]:
        """Enter the graph's inputs in its scope; returns them without initialisers and inputs given as values."""
        declared = declared_inputs(self.model)
        parts = {part.name for tree in self.objects.values() for part in leaves(tree)}
        for what, given in (("shapes", shapes), ("values", values)):
            unknown = given.keys() - declared.keys() - parts
            if unknown:
                raise InputError(
                    f"{self.model.path}: {what} are given for {', '.join(sorted(unknown))}; the inputs are {', '.join(declared) or 'none'}"
                )
        taken = {d for v in declared.values() for d in (shapes.get(v.name) or v.shape or ()) if isinstance(d, str)}
        out = []
        for name, value in declared.items():
            if name in self.objects:
                tree = mapped(lambda part: self.part(part, values), self.objects[name])
                self.scope.nodes[name] = tree
                out += [x for x in leaves(tree) if x.is_input]
                continue
            kind = _kind(value)
            if kind.name != "tensor" or kind.dtype is None:
                continue
            if name in values:
                self.scope.nodes[name] = self.builder.const(plain(name, np.asarray(values[name])), kind.dtype)
                continue
            shape = [
                self.dimension(d, name, axis, taken, sizes)
                for axis, d in enumerate(_input_shape(value, shapes.get(name)))
            ]
            node = self.scope.nodes[name] = self.builder.input(name, shape, kind.dtype)
            _check_count(node)
            out.append(node)
        unknown = sizes.keys() - taken
        if unknown:
            raise InputError(
                f"{self.model.path}: no dimension is named {', '.join(sorted(unknown))}; the names are {', '.join(sorted(taken)) or 'none'}"
            )
        return tuple(out)

    def part(self, part: Part, values: Mapping[str, np.ndarray]) -> Node:
        """A tensor within an input: a constant if its value is given."""
        if part.name in values:
            return self.builder.const(plain(part.name, np.asarray(values[part.name])), part.dtype)
        node = self.builder.input(part.name, part.shape, part.dtype)
        _check_count(node)
        return node

    def dimension(
        self, argument: int | str | None, name: str, axis: int, taken: set[str], sizes: Mapping[str, int]
    ) -> Dim:
        """A dimension of an input: a number, or a Size by its name or an invented one ("N" for the first axis)."""
        if isinstance(argument, int):
            return argument
        if argument is None or argument in UNNAMED:
            argument = "N" if axis == 0 and "N" not in taken else f"{name}.{axis}"
            taken.add(argument)
        return sizes[argument] if argument in sizes else size(argument)

    # --- nodes ---

    def subgraph(self, graph: OnnxGraph, scope: Scope, end: Callable[[], None]) -> None:
        """Import the nodes of a graph that a node owns into its scope."""
        if scope.depth > MAX_DEPTH:
            raise ImportFailure(f"graphs and functions are nested more than {MAX_DEPTH} deep")
        self.run(needed(graph.nodes, (v.name for v in graph.outputs)), scope, end)

    def run(self, nodes: Nodes, scope: Scope, end: Callable[[], None] = lambda: None) -> None:
        """Enter the nodes of a graph in a scope. end: raises what is wrong with what they gave."""
        for at, (index, node) in enumerate(nodes):
            self.count += 1
            if self.count > MAX_NODES:
                raise ImportFailure(f"more than {MAX_NODES} nodes after functions were inlined")
            try:
                before = self.builder.count
                with self.place(index, node):
                    self.define(node, tuple(scope.find(name) if name else None for name in node.inputs), scope)
                    note_place(self.builder.made_since(before), ": ".join(self.path))
            except Undecided as e:
                self.decide(e, nodes[at:], scope, end)
                return
        end()

    @contextmanager
    def place(self, index: int, node: OnnxNode) -> Iterator[None]:
        """Errors within name the node."""
        where = _where(index, node)
        self.path.append(where)
        try:
            with _named(where, SingeError):
                yield
        finally:
            self.path.pop()

    def decide(self, choice: Undecided, nodes: Nodes, scope: Scope, end: Callable[[], None]) -> None:
        """`run`, where the first node is an If of which a branch must be chosen: the one with which the others can be
        imported, if the other branch makes that fail. That its condition is so becomes a check."""
        (index, node), *rest = nodes
        before, count = (dict(scope.nodes), dict(scope.checks)), self.count
        self.choices += 1
        ended: dict[bool, tuple[dict[str, Value], dict[Dim, str]] | SizeNeeded | ValueNeeded] = {}
        failed: dict[bool, SingeError] = {}
        for holds, graph in zip((True, False), choice.branches, strict=True):
            if self.choices > MAX_CHOICES:
                break
            scope.reset(*before)
            self.count = count
            try:
                with self.place(index, node), deferring():
                    self.enter(node, scope.within(None).outputs(graph, ()), scope)
                with deferring():
                    self.run(rest, scope, end)
                ended[holds] = dict(scope.nodes), dict(scope.checks)
            except (SizeNeeded, ValueNeeded) as e:
                ended[holds] = e
            except SingeError as e:
                failed[holds] = e
        where, sizes = _where(index, node), choice.needed.sizes
        if len(failed) == 2:
            raise NeitherFits(f"{where}: neither branch fits: {failed[True]}; {failed[False]}", sizes)
        if len(ended) != 1:
            raise Ambiguous(f"{where}: {choice.needed}", sizes)
        ((holds, found),) = ended.items()
        if isinstance(found, Exception):
            raise found
        scope.reset(*found)
        path, why = ": ".join((*self.path, where)), failed[not holds]
        text = f"{path}: the other branch does not fit ({why}), so {choice.requirement(holds)}"
        scope.checks.setdefault(choice.dim if holds else -choice.dim - 1, text)

    def define(self, node: OnnxNode, inputs: tuple[Value, ...], scope: Scope) -> None:
        """Make a node, and enter its outputs in the scope."""
        attributes = scope.resolved(node.attributes)
        function = self.functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            results = self.inline(function, inputs, attributes, scope, next(filter(None, node.outputs), ""))
        else:
            version = scope.opsets.get(node.domain, 1)
            call = Call(self.builder, node.op, version, _tensors(node, inputs), attributes, node.outputs, scope, inputs)
            with keeping(scope.checks):
                made = _made(call)
            results = [made] if isinstance(made, Node) else list(made)
        self.enter(node, results, scope)

    def enter(self, node: OnnxNode, results: Sequence[Value], scope: Scope) -> None:
        """Enter a node's outputs in the scope."""
        wanted = [name for name in node.outputs[len(results) :] if name]
        if wanted:
            raise ImportFailure(
                f"the op has {len(results)} outputs, but the node also names {', '.join(map(repr, wanted))}"
            )
        for name, result in zip(node.outputs, results, strict=False):
            for x in leaves(result):
                _check_count(x)
            if name in scope.nodes or name in scope.tensors:
                raise ImportFailure(f"the value {name!r} is defined twice")
            if name:
                scope.nodes[name] = mapped(self.folded, result)

    def folded(self, x: Node) -> Node:
        """The node; a constant if its shape has sizes found in mid-run although it depends only on constants."""
        if symbols(x.shape).isdisjoint(self.builder.size_nodes):
            return x
        value = self.builder.value_of(x)
        return x if value is None or value.size > MAX_FOLDED else self.builder.const(value, x.dtype)

    def inline(
        self, function: OnnxFunction, inputs: tuple[Value, ...], attributes: Mapping[str, Any], scope: Scope, name: str
    ) -> list[Value]:
        if scope.depth >= MAX_DEPTH:
            raise ImportFailure(f"functions call each other more than {MAX_DEPTH} deep")
        if len(inputs) > len(function.inputs):
            raise ImportFailure(f"{len(inputs)} inputs; the function takes {len(function.inputs)}")
        given: dict[str, Value] = {name: x for name, x in zip(function.inputs, inputs, strict=False) if x is not None}
        inner = Scope(
            self.builder, self, function.opsets, given, attributes={**function.defaults, **attributes},
            absent=frozenset(function.inputs) - given.keys(), depth=scope.depth + 1, checks=scope.checks, caller=scope,
            call=name,
        )  # fmt: skip
        self.run(needed(function.nodes, function.outputs), inner)
        return [inner.find(name) for name in function.outputs]


def _where(index: int, node: OnnxNode) -> str:
    return f"node {index}{f' {node.name!r}' if node.name else ''} ({node.op_type})"


def _tensors(node: OnnxNode, inputs: tuple[Value, ...]) -> tuple[Node | None, ...]:
    """The inputs that are tensors; None in place of others, which few ops take."""
    for k, x in enumerate(inputs):
        if x is not None and not isinstance(x, Node) and node.op not in OBJECTS:
            raise ImportFailure(f"input {k} is {described(x)}; expected a tensor")
    return tuple(x if isinstance(x, Node) else None for x in inputs)


def _made(call: Call) -> Node | Sequence[Value]:
    adapt = ADAPTERS.get(call.op)
    if adapt is not None:
        return adapt(call)
    row = row_for(call.op)
    assert row is not None
    return _from_row(call, row)


def _from_row(call: Call, row: Row) -> Node:
    """The row applied to the inputs in order, with attributes by name."""
    parameters = row.parameters
    places = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in call.attributes]
    required = sum(p.default is p.empty for p in places)
    if not required <= len(call.inputs) <= len(places) or None in call.inputs[:required]:
        raise call.fail(
            f"{len(call.inputs)} inputs; expected {required}{f' to {len(places)}' if required < len(places) else ''}"
        )
    attributes = {
        k: v
        for k, v in call.attributes.items()
        if k not in ("broadcast", "axis", "consumed_inputs") or not _is_old(call)
    }
    defaults = {p.name: p.default for p in parameters if p not in places}
    for name, value in attributes.items():
        default = defaults.get(name, value)
        if isinstance(default, bool) and value in (0, 1):
            attributes[name] = bool(value)
        elif name not in defaults or (default is not Parameter.empty and type(value) is not type(default)):
            raise call.fail(f"attribute {name!r} is {value!r:.60}; {row.name} takes {', '.join(defaults) or 'none'}")
    return call.b.apply(row, *_aligned(call), **attributes)  # pyright: ignore[reportArgumentType]


def _is_old(call: Call) -> bool:
    """Whether the op is of ONNX's own domain before version 7, where an attribute says how inputs are broadcast."""
    return call.version < 7 and "." not in call.op


def _aligned(call: Call) -> tuple[Node | None, ...]:
    """The inputs; in old versions an attribute may say at which axis of the first one the second one begins."""
    if not _is_old(call) or "axis" not in call.attributes or len(call.inputs) != 2:
        return call.inputs
    x, y = call.x(0), call.x(1)
    behind = len(x.shape) - len(y.shape) - call.axis(0, len(x.shape))
    if behind < 0:
        raise call.fail(f"{show(y.shape)} does not fit {show(x.shape)} from axis {call.attributes['axis']} on")
    return x, call.b.reshape(y, shape=(*y.shape, *(1,) * behind))


def declared_inputs(model: OnnxModel) -> dict[str, OnnxValue]:
    """The graph's inputs by name, without those that initialisers give."""
    graph = model.graph
    return {
        v.name: v for v in graph.inputs if v.name not in graph.initializers and v.name not in graph.sparse_initializers
    }


def object_inputs(model: OnnxModel) -> dict[str, Kind]:
    """What each input may be, if some are no tensors; empty if all are tensors."""
    kinds = {name: _kind(value) for name, value in declared_inputs(model).items()}
    return {} if all(kind.name == "tensor" for kind in kinds.values()) else kinds


def _kind(value: OnnxValue) -> Kind:
    """What an input may be, from its type."""

    def of(onnx_type: OnnxType | None, what: str) -> Kind:
        name = onnx_type.kind if onnx_type else "value of no known type"
        if onnx_type is None or name not in ("tensor", "sequence", "optional", "map"):
            raise ImportFailure(f"{what} a {name}; expected a tensor, or a sequence, an optional or a map of tensors")
        if name in ("tensor", "map") and onnx_type.dtype not in DTYPES:
            raise ImportFailure(f"{what} {onnx_type.dtype}; Singe has {', '.join(DTYPES)}: convert the model")
        kind = None if onnx_type.dtype is None else dtype(onnx_type.dtype)
        return Kind(name, kind, None if name == "tensor" else of(onnx_type.of, f"{what} a {name} of"))

    return of(value.type, f"the input {value.name!r} is")


def _input_shape(value: OnnxValue, argument: Sequence[int | str] | None) -> Sequence[int | str | None]:
    if argument is None:
        if value.shape is None:
            raise ImportFailure(
                f"the input {value.name!r} has no known rank; give its shape, with names for open sizes, as in "
                f"input_shapes={{{value.name!r}: ('N', 3)}}"
            )
        return value.shape
    declared = argument if value.shape is None else value.shape
    both_numbers = (
        (a, b) for a, b in zip(argument, declared, strict=False) if isinstance(a, int) and isinstance(b, int)
    )
    if len(argument) != len(declared) or any(a != b or a < 0 for a, b in both_numbers):
        raise InputError(f"the input {value.name!r} has the shape {value.shape}, got {tuple(argument)}")
    return argument


def _check_count(x: Node) -> None:
    count = product(x.shape)
    if isinstance(count, int) and not 0 <= count <= MAX_ELEMENTS:
        raise ImportFailure(f"a tensor of shape {show(x.shape)}: at most {MAX_ELEMENTS} elements are supported")
