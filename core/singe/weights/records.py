"""Records: Singe's files for the weights of a Module, or a whole model as a Graph. README.md documents the format.

`weights_record` and `model_record` write them, `read_weights` and `read_graph` read them. A Graph is written node by
node, with the names of its rows, and rebuilt when it is read: shapes and dtypes are inferred again and compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from .. import shapes
from ..dtypes import DType, contents, dtype, float16, float32, uint32
from ..dtypes import string as string_type
from ..errors import FormatError, InputError
from ..graph import Builder, Graph, GraphState, Node, regions, symbols_of
from ..ops import ROWS, SIZES, Elementwise, Region, Result, Row, Running, find_row
from ..program.container import (
    ALIGN,
    MAGIC,
    RECORD,
    BlockPieces,
    Bytes,
    bytes_at,
    checking,
    count,
    decode_attr,
    decode_dim,
    dtype_named,
    encode_attr,
    encode_dim,
    file_pieces,
    read,
    string,
)
from ..shapes import MAX_ELEMENTS, MAX_RANK, Size, deferring, product, size_name, symbols

WEIGHTS: Final = "weights"
MODEL: Final = "model"
READERS: Final = {WEIGHTS: "singe.load_weights(module, path)", MODEL: "singe.load(path)"}
"""What a record holds ↦ the call that reads it."""
MAX_DEPTH: Final = 16
"""The greatest depth of nested graphs."""
MAX_DERIVATIVES: Final = 2
"""The most derivatives in the name of a row: each makes the expression a few times longer."""


def is_container(data: Bytes) -> bool:
    """Whether these bytes begin like a file of Singe: a record or a Program."""
    return data[: len(MAGIC)] == MAGIC


# --- arrays -----------------------------------------------------------------------------------------------------------


def stored_as(array: np.ndarray, floats: str | None) -> np.ndarray:
    """The array as it is written: with floats "float16" a float32 in half the bytes, unless a finite number of it would
    become infinite."""
    if floats not in (None, "float16", "float32"):
        raise InputError(f"save: dtype {floats!r}, expected 'float16' (half the bytes) or None")
    if floats != "float16" or array.dtype != np.float32:
        return array
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    return array if bool(np.any(np.isinf(half) & np.isfinite(array))) else half


class _ArrayWriter:
    """The arrays of a record that is being written; equal arrays are stored once."""

    def __init__(self, floats: str | None) -> None:
        self._floats = floats
        self._places: dict[Any, int] = {}
        self.block = BlockPieces()

    def entry(self, array: np.ndarray) -> dict[str, Any]:
        """The header's entry of an array; its elements are added to the block."""
        stored = stored_as(array, self._floats)
        little = np.ascontiguousarray(stored.astype(stored.dtype.newbyteorder("<"), copy=False))
        raw = little.reshape(-1).view(np.uint8).data
        key = stored.dtype, hashlib.sha256(raw).digest()
        if key not in self._places:
            self._places[key] = self.block.add(raw)
        return {
            "dtype": dtype(array.dtype).name, "stored": dtype(stored.dtype).name, "shape": list(array.shape), "at": self._places[key],
        }  # fmt: skip


class _ArrayReader:
    """The arrays of a record that is being read. Two arrays have the same bytes or none in common, so all arrays
    together take at most twice the size of the file."""

    def __init__(self, entries: Any, block: memoryview) -> None:
        self._block = block
        self._made: dict[Any, np.ndarray] = {}
        spans = sorted({self._span(e) for e in entries})
        for (start, taken), (after, _) in pairwise(spans):
            if start + taken > after:
                raise FormatError(f"the array at {after} begins within the {taken} bytes of the one at {start}")
        self.all = [self._array(e) for e in entries]

    def _span(self, entry: Any) -> tuple[int, int]:
        shape, at = _numbers(entry["shape"]), count(entry["at"])
        if at % ALIGN:
            raise FormatError(f"an array begins at {at}, expected a multiple of {ALIGN}")
        taken = int(product(shape)) * dtype_named(entry["stored"]).size  # pyright: ignore[reportArgumentType]
        return at, len(bytes_at(self._block, [at, taken], "an array"))

    def _array(self, entry: Any) -> np.ndarray:
        kind, stored, (at, size) = dtype_named(entry["dtype"]), dtype_named(entry["stored"]), self._span(entry)
        if kind is not stored and (kind, stored) != (float32, float16):
            raise FormatError(f"an array of {kind} is stored as {stored}")
        key = at, size, kind, stored
        if key not in self._made:
            little = np.dtype("u1") if stored.name == "bool" else stored.numpy.newbyteorder("<")
            raw = np.frombuffer(self._block[at : at + size], little)
            # Any byte other than 0 is a true bool. Widened or byte-swapped arrays are copies.
            self._made[key] = raw != 0 if stored.name == "bool" else raw.astype(kind.numpy, copy=False)
        return self._made[key].reshape(_numbers(entry["shape"]))


def _numbers(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or len(shape) > MAX_RANK:
        raise FormatError(f"a shape of an array is {shape!r:.60}, expected at most {MAX_RANK} numbers")
    return tuple(map(count, shape))


# --- a module's weights -----------------------------------------------------------------------------------------------


def weights_record(state: Mapping[str, np.ndarray], floats: str | None = None) -> bytes:
    """The record of arrays by name; floats: "float16" to store float32s in half the bytes."""
    arrays = _ArrayWriter(floats)
    entries = [{"name": name, **arrays.entry(array)} for name, array in state.items()]
    return b"".join(file_pieces({"format": RECORD, "holds": WEIGHTS, "arrays": entries}, arrays.block))


def read_weights(data: Bytes, name: str = "record") -> dict[str, np.ndarray]:
    """The arrays of a record of weights by name, in its order; they may share memory with `data`."""
    head, block = _open(data, name, WEIGHTS)
    with checking(name):
        entries = head["arrays"]
        found = {string(e["name"]): array for e, array in zip(entries, _ArrayReader(entries, block).all, strict=True)}
        if len(found) != len(entries):
            raise FormatError("two arrays have one name")
        return found


def _open(data: Bytes, name: str, holds: str) -> tuple[dict[str, Any], memoryview]:
    head, block = read(data, name, RECORD)
    with checking(name):
        given = head["holds"]
        if given != holds:
            what = f"a record of {given!r:.40}, expected {holds!r}"
            raise FormatError(f"{what}: {READERS[given]} reads it" if given in READERS else what)
    return head, block


# --- a model ----------------------------------------------------------------------------------------------------------


def model_record(
    graph: Graph,
    floats: str | None = None,
    task: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> bytes:
    """The record of a Graph; floats as in `weights_record`; task: the facts of a task, if the Graph is that of one; files: what travels with
    the task, by name."""
    arrays = _ArrayWriter(floats)
    writer = GraphWriter(arrays.entry)
    head, states = writer.model(graph)
    kept = {name: writer.array(np.frombuffer(data, np.uint8)) for name, data in (files or {}).items()}
    whole = {
        "format": RECORD,
        "holds": MODEL,
        **head,
        "arrays": writer.arrays,
        **({"states": states} if states else {}),
        **({} if task is None else {"task": dict(task)}),
        **({"files": kept} if kept else {}),
    }
    return b"".join(file_pieces(whole, arrays.block))


class GraphWriter:
    """Graphs as JSON data, and the arrays that they share."""

    def __init__(self, entry: Callable[[np.ndarray], dict[str, Any]]) -> None:
        """entry: what is told of an array."""
        self._entry: Final = entry
        self.arrays: list[dict[str, Any]] = []

    def array(self, value: np.ndarray) -> int:
        self.arrays.append(self._entry(value))
        return len(self.arrays) - 1

    def model(self, graph: Graph) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """A whole Graph as data, and its states."""
        head, number = self._graph(graph, [s.leaf for s in graph.states])
        states = [
            {
                "name": s.name,
                "node": number[s.leaf],
                "initial": None if s.initial is None else self.array(s.initial),
                "updated": number[s.updated],
                **({} if s.draws is None else {"draws": s.draws}),
            }
            for s in graph.states
        ]
        return head, states

    def _graph(self, graph: Graph, leaves: Sequence[Node] = ()) -> tuple[dict[str, Any], Mapping[Node, int]]:
        """A graph as data, and the number of each of its nodes; leaves: further nodes whose values it is given."""
        nodes = list(dict.fromkeys((*graph.inputs, *leaves, *graph.nodes)))
        number = {n: k for k, n in enumerate(nodes)}
        told: dict[Node, list[str]] = {}
        for name, n in graph.own_size_nodes.items():
            if name not in n.attrs.get(SIZES, ()):
                told.setdefault(n, []).append(name)
        checks = [{"dim": encode_dim(d), "text": text} for d, text in graph.checks.items()]
        head = {
            "inputs": [number[x] for x in graph.inputs],
            "outputs": [
                {"name": name, "node": number[x]} for name, x in zip(graph.output_names, graph.outputs, strict=True)
            ],
            "nodes": [self._node(n, number) | ({"tells": told[n]} if n in told else {}) for n in nodes],
            **({"checks": checks} if checks else {}),
        }
        return head, number

    def _node(self, n: Node, number: Mapping[Node, int]) -> dict[str, Any]:
        if n.row is not None:
            attrs = {k: self._attr(v) for k, v in n.attrs.items()}
            return {"op": n.row.name, "inputs": [number[x] for x in n.inputs], "attrs": attrs}
        if n.value is None:
            return {"input": n.name, "dtype": n.dtype.name, "shape": [encode_dim(d) for d in n.shape]}
        if n.dtype is string_type:
            attrs = {"values": encode_attr(contents(n.value)), "shape": list(n.value.shape)}
            return {"op": "strings", "inputs": [], "attrs": attrs}
        if n.value.dtype == object:
            sizes = [encode_dim(d) for d in n.value.ravel()]
            return {"sizes": sizes, "dtype": n.dtype.name, "shape": list(n.value.shape)}
        return {"array": self.array(n.value)}

    def _attr(self, value: Any) -> Any:
        return {"graph": self._graph(value)[0]} if isinstance(value, Graph) else encode_attr(value)


def read_graph(data: bytes, name: str = "record") -> Graph:
    """The Graph of a record of a model; its constants may share memory with `data`."""
    head, block = _open(data, name, MODEL)
    with checking(name), deferring():
        reader = _GraphReader(_ArrayReader(head["arrays"], block).all)
        found, nodes = reader.graph(head, frozenset())
        states = tuple(reader.state(s, nodes) for s in head.get("states", ()))
        graph = replace(found, states=states)
        _check(graph)
        return graph


def read_task(data: bytes, name: str = "record") -> tuple[Any, Mapping[str, bytes]]:
    """The facts of a task in a record of a model, as the file has them, and the files that travel with it; None if it holds none."""
    head, block = _open(data, name, MODEL)
    with checking(name):
        arrays = _ArrayReader(head["arrays"], block).all
        return head.get("task"), {string(k): arrays[count(at)].tobytes() for k, at in head.get("files", {}).items()}


class _GraphReader:
    """Builds Graphs from JSON data, with one Builder."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays
        self.builder = Builder()

    def graph(self, data: Any, known: frozenset[str], depth: int = 0) -> tuple[Graph, Sequence[Node]]:
        """A graph and its nodes; known: the sizes that already have values when the graph runs."""
        if depth > MAX_DEPTH:
            raise FormatError(f"graphs are nested more than {MAX_DEPTH} deep")
        nodes: list[Node] = []
        for k, entry in enumerate(data["nodes"]):
            try:
                n = _checked(self._node(entry, nodes, known, depth))
                if n.is_input:
                    known |= symbols(n.shape)
                known |= self._told(n, entry, known)
                unknown = symbols_of(n) - known - _own_sizes(n)
                if unknown:
                    raise FormatError(f"{n.op} needs the size {min(unknown):.40}, which no node before it gives")
            except AssertionError as e:  # rows assert what their usual callers guarantee
                raise FormatError(f"node {k}: its row refuses it ({e})") from None
            except FormatError as e:
                raise FormatError(f"node {k}: {e}") from None
            nodes.append(n)
        inputs = tuple(_pick(nodes, i, "an input") for i in data["inputs"])
        outputs = tuple(_pick(nodes, o["node"], "an output") for o in data["outputs"])
        names = tuple(string(o["name"]) for o in data["outputs"])
        checks = {decode_dim(c["dim"]): string(c["text"]) for c in data.get("checks", ())}
        unknown = symbols(checks) - known
        if unknown:
            raise FormatError(f"a check needs the size {min(unknown):.40}, which no node tells")
        return Graph(inputs, outputs, names, self.builder.size_nodes, checks=checks), nodes

    def _told(self, n: Node, entry: Any, known: frozenset[str]) -> frozenset[str]:
        """The sizes that a node gives: those in its results' shapes, and those whose value it is."""
        own = [string(name) for name in entry.get("tells", ())]
        if own and (len(n.results) > 1 or not n.dtype.is_int or product(n.shape) != 1):
            raise FormatError(f"{n.op} gives a size, expected one integer")
        of_results = [name for name in n.attrs.get(SIZES, ()) if name]
        twice = [name for name in own if name in known or name in self.builder.size_nodes]
        twice += [name for name in of_results if name in known]
        if twice or len({*own, *of_results}) < len(own) + len(of_results):
            raise FormatError(f"{n.op} gives the size {(twice or own or of_results)[0]:.40}, which has a value already")
        self.builder.size_nodes.update(dict.fromkeys(own, n))
        made = [name for name, by in self.builder.size_nodes.items() if by in (n, *n.lowered)]
        return frozenset((*own, *of_results, *made))

    def _node(self, entry: Any, before: Sequence[Node], known: frozenset[str], depth: int) -> Node:
        """A node of the list of nodes; its inputs are nodes before it."""
        b = self.builder
        if "op" in entry:
            return self._applied(entry, [_pick(before, i, "its input") for i in entry["inputs"]], known, depth)
        if "array" in entry:
            return b.const(_pick(self.arrays, entry["array"], "its array"))
        kind = dtype_named(entry["dtype"])
        if "input" in entry:
            return b.input(string(entry["input"]), [decode_dim(d) for d in entry["shape"]], kind)
        shape, sizes = _numbers(entry["shape"]), [decode_dim(d) for d in entry["sizes"]]
        if not kind.is_int or not all(isinstance(d, Size) or -(1 << 63) <= d < 1 << 63 for d in sizes):
            raise FormatError(f"a constant of sizes is {kind} {sizes!r:.60}")
        values = np.empty(len(sizes), object)
        values[:] = sizes
        return b.const(values.reshape(shape), kind)

    def _applied(self, entry: Any, inputs: Sequence[Node], known: frozenset[str], depth: int) -> Node:
        name = string(entry["op"])
        if name.count("_d") > MAX_DERIVATIVES and name not in ROWS:
            raise FormatError(f"there is no op {name!r:.60}")
        try:
            row = find_row(name)
        except KeyError:
            raise FormatError(f"there is no op {name!r:.60}; a newer Singe may have written this") from None
        attrs: dict[str, Any] = {}
        kinds = _kinds(row)
        for key, data in entry["attrs"].items():
            kind = kinds.get(key, "")
            if kind == "Graph":
                attrs[key] = self._region(data["graph"], known, depth)
                continue
            attrs[key] = decode_attr(data)
            if not FORMS.get(kind, _plain)(attrs[key]):
                raise FormatError(f"{name}: the attribute {key!r:.60} is {attrs[key]!r:.60}")
        if isinstance(row, Region):
            _check_region(name, inputs, attrs, known)
        return self.builder.node(row, *inputs, **attrs)

    def _region(self, data: Any, known: frozenset[str], depth: int) -> Graph:
        graph, _ = self.graph(data, known, depth + 1)
        _check_inputs(graph)
        return graph

    def state(self, data: Any, nodes: Sequence[Node]) -> GraphState:
        leaf, updated = (_pick(nodes, data[k], "a state") for k in ("node", "updated"))
        name, initial = string(data["name"]), data["initial"]
        first = None if initial is None else _pick(self.arrays, initial, "a state's beginning")
        if not leaf.is_input or symbols(leaf.shape) or leaf.results != updated.results:
            raise FormatError(
                f"the state {name!r:.60} is {leaf!r:.60} and becomes {updated!r:.60}; expected one fixed shape"
            )
        if first is not None and (first.shape, dtype(first.dtype)) != (leaf.shape, leaf.dtype):
            raise FormatError(
                f"the state {name!r:.60} is {leaf!r:.60} and begins as {first.dtype} of shape {first.shape}"
            )
        draws = None if "draws" not in data else count(data["draws"])
        if draws is not None and (leaf.results != (((2,), uint32),)):
            raise FormatError(
                f"the state {name!r:.60} is {leaf!r:.60}, expected a sequence of keys: two uint32 numbers"
            )
        return GraphState(leaf, name, first, updated, draws)


def _own_sizes(n: Node) -> frozenset[str]:
    """The sizes in the shapes of the inputs of a node's regions."""
    return symbols([x.shape for graph in regions(n).values() for x in graph.inputs])


def _check_region(name: str, inputs: Sequence[Node], attrs: Mapping[str, Any], known: frozenset[str]) -> None:
    """Check that the values passed to regions have the shapes of their inputs.
    A carried value of a loop may have sizes that the body names itself."""
    given = inputs[bool(attrs["conditional"]) :] if name == "loop" else inputs[1:]
    carried = attrs["carried"] if name == "loop" else 0
    for graph in (v for v in attrs.values() if isinstance(v, Graph)):
        taken = set(known)
        if len(graph.inputs) != len(given):
            raise FormatError(f"{name}: a region takes {len(graph.inputs)} values, got {len(given)}")
        for k, (x, own) in enumerate(zip(given, graph.inputs, strict=True)):
            fits = len(x.shape) == len(own.shape)
            for d, e in zip(x.shape, own.shape, strict=fits):
                if d != e:
                    fits = fits and k < carried and size_name(e) not in (None, *taken)
                    taken.add(str(e))
            if not fits:
                raise FormatError(f"{name}: value {k} is {x!r:.60}, and a region takes it as {own!r:.60}")


def _kinds(row: Row) -> Mapping[str, str]:
    """The type of each attribute of a row: that of its default value, or of the parameter to which it is passed."""
    if isinstance(row, Elementwise):
        return {k: "DType" if k == "to" else type(default).__name__ for k, default in row.defaults.items()}
    if isinstance(row, (Result, Running)):
        return {"index": "int", "axis": "int", "reverse": "bool"}
    if isinstance(row, Region):
        kinds = {"then": "Graph", "otherwise": "Graph"} if row.name == "if" else LOOP
        return {**kinds, SIZES: "tuple[str, ...]"}
    kinds = {p.name: p.annotation for p in row.parameters}
    return {k: v.__name__ if isinstance(v, type) else str(v) for k, v in kinds.items()} | {SIZES: "tuple[str, ...]"}


LOOP: Final = {"body": "Graph", "carried": "int", "conditional": "bool", "count": "Dim"}
"""The attributes of a loop, and their types."""


def _int(value: Any) -> bool:
    """Whether a value is an integer in the range of int32, in which indices are computed."""
    return type(value) is int and -(1 << 31) < value < 1 << 31


def _dim(value: Any) -> bool:
    return isinstance(value, Size) or _int(value)


def _float(value: Any) -> bool:
    return isinstance(value, float) or _int(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _activation(value: Any) -> bool:
    """Whether a value is the name and the two parameters of a recurrent layer's activation."""
    return isinstance(value, tuple) and len(value) == 3 and _text(value[0]) and all(map(_float, value[1:]))


def _tuple_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(map(test, value))


def _plain(value: Any) -> bool:
    return _dim(value) or _tuple_of(_dim)(value)


FORMS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "int": _int, "Dim": _dim, "float": _float, "bool": lambda v: isinstance(v, bool), "str": _text,
    "DType": lambda v: isinstance(v, DType), "Shape": _tuple_of(_dim), "Sequence[Dim]": _tuple_of(_dim),
    "Sequence[int]": _tuple_of(_int), "tuple[float, ...]": _tuple_of(_float),
    "tuple[str, ...]": _tuple_of(_text), "Sequence[str]": _tuple_of(_text), "Activations": _tuple_of(_activation),
}  # fmt: skip
"""The type of an attribute ↦ whether a value has it. For any other type: numbers, sizes and tuples of them."""


def _checked(n: Node) -> Node:
    """The node, after a check of the shapes and dtypes that its row inferred."""
    for dims, kind in n.results:
        if not isinstance(dims, tuple) or len(dims) > MAX_RANK or not isinstance(kind, DType):
            raise FormatError(f"{n.op} gives {kind!r:.40} of shape {dims!r:.60}")
        if not all(isinstance(d, Size) or (type(d) is int and d >= 0) for d in dims):
            raise FormatError(f"{n.op} gives the shape {shapes.show(dims):.80}")
        total = product(dims)
        if isinstance(total, int) and total > MAX_ELEMENTS:
            raise FormatError(f"{n.op} gives {total} elements: at most {MAX_ELEMENTS} are supported")
    return n


def _pick(things: Sequence[Any], index: Any, what: str) -> Any:
    if count(index) >= len(things):
        raise FormatError(f"{what} is number {index} of {len(things)}")
    return things[index]


def _check_inputs(graph: Graph) -> None:
    """Check that there are outputs, and that every input node is listed once as an input."""
    if not graph.outputs:
        raise FormatError("a model without outputs")
    if len(set(graph.leaves)) != len(graph.leaves) or not all(x.is_input for x in graph.leaves):
        raise FormatError("an input is not an input node, or is listed twice")
    if {n for n in graph.nodes if n.is_input} - set(graph.leaves):
        raise FormatError("the outputs need an input that is not among the inputs")


def _check(graph: Graph) -> None:
    """Check a model; its inputs, outputs and states have names that differ."""
    _check_inputs(graph)
    states = [s.name for s in graph.states]
    for what, names in (
        ("inputs", [x.name for x in graph.inputs]),
        ("outputs", graph.output_names),
        ("states", states),
    ):
        if len(set(names)) != len(names):
            raise FormatError(f"two {what} have one name")
