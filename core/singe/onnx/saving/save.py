"""`save`: a Model goes to the rest of the world, as an ONNX file.

What is written is the Graph as it was traced or read, before anything is simplified or fused for a device.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from ...dtypes import outward, string
from ...errors import CompileError, InputError
from ...files import write
from ...graph import Graph, GraphState
from ...late_dataclass import dataclass
from .block import Block, Constants, give_sizes
from .facts import LATEST, OLDEST, ONLY_CAST, ir_version
from .protobuf import MOST_BYTES, WireMessage
from .records import (
    FileFacts,
    GraphRecord,
    NodeRecord,
    ValueRecord,
    external_pieces,
    graph,
    layout,
    model,
    size_of,
    tensor,
)
from .walk import Walk

SUFFIX: Final = ".onnx"
DATA_SUFFIX: Final = ".data"
"""What the name of the file of external data has behind that of the model."""
OPSET: Final = 17
"""The opset that is written unless another one is asked for: engines of 2022 and later read it."""
EXTERNAL_BYTES: Final = 1024
"""The least bytes of an array that goes into the file of external data."""
ROOM: Final = 1 << 24
"""The bytes that are left to a model's nodes, when it is decided whether its arrays fit into one file."""
NEXT: Final = "_next"
"""What the output that is a state's next value has behind the state's name."""
STATES: Final = "singe.states"
"""The entry of the metadata that says which output is the next value of which input."""


class Traced(Protocol):
    """A Model."""

    name: str
    source: Any

    def graph(self) -> Graph: ...


@dataclass(frozen=True)
class OnnxFiles:
    """What was written: the bytes of each file by name, the opset, and the inputs and outputs; states: each input that is a state
    ↦ the output that is its next value; first: the value with which each state begins."""

    files: Mapping[str, int]
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: Mapping[str, str]
    first: Mapping[str, np.ndarray] = field(repr=False)


def save(
    model: Traced, path: str | Path, opset: int = OPSET, *, external: bool | None = None, metadata: Mapping[str, str] | None = None,
    doc: str = "",
) -> OnnxFiles:  # fmt: skip
    """Write a Model as an ONNX file, for other engines and for Singe itself: `sg.onnx.save(model, "net.onnx")`. A Model of a function or
    a Module is `sg.Model.of(net, {"input": ("N", 3, 224, 224)})`; one that was loaded from a file is written, too.

    opset: from 13 to 28; newer ones have more ops, older ones are read by more engines. Open dimensions keep their names. external:
    whether arrays go into a second file, which has the name of the first and .data; None, only where they are too large for one.
    metadata: texts that the file keeps by name. doc: a description.

    A state becomes an input, and an output of the name with _next behind it: the caller gives its first value (`first` of what is
    returned), and then what the run before gave. What ONNX cannot say is refused, all of it at once. Returns what was written.
    """
    path = Path(path)
    if not isinstance(opset, int) or not OLDEST <= opset <= LATEST:
        raise InputError(f"{path}: opset {opset!r:.20}, expected a number from {OLDEST} to {LATEST}")
    if path.suffix != SUFFIX:
        raise InputError(f"{path}: expected the name of a file that ends with {SUFFIX}")
    if path.is_dir():
        raise InputError(f"{path} is a folder, in whose place no file is written: remove it, or give another name")
    if not callable(getattr(model, "graph", None)):
        raise InputError(
            f'{path}: got a {type(model).__name__}, expected a Model; of a Module or a function: sg.Model.of(net, {{"input": ("N", 8)}})'
        )
    if model.source.objects:
        raise InputError(f"{path}: {model.name} takes lists, dicts or None; only models of tensors are written")
    given = dict(metadata or {})
    if not all(isinstance(k, str) and isinstance(v, str) for k, v in given.items()):
        raise InputError(f"{path}: metadata {given!r:.80}, expected texts by name")
    traced = model.graph()
    made = written(traced, model.name, opset, getattr(model.source, "arrays", None))
    if made.states:
        given.setdefault(STATES, json.dumps(made.states))
    version = vars(sys.modules["singe"])["__version__"]  # to import the package would be an import upwards
    facts = FileFacts(opset, ir_version(opset), "singe", version, doc, given)
    files = _files(made, facts, path, external)
    for file, (_, pieces) in files.items():
        write(path.with_name(file), pieces)
    return OnnxFiles(
        {file: size for file, (size, _) in files.items()}, opset, tuple(v.name for v in made.record.inputs),
        tuple(v.name for v in made.record.outputs), made.states, {s.name: _first(s) for s in traced.states},
    )  # fmt: skip


def _first(state: GraphState) -> np.ndarray:
    """The value with which a state begins."""
    leaf = state.leaf
    zeros = np.zeros([d for d in leaf.shape if isinstance(d, int)], leaf.dtype.numpy)
    return outward(zeros if state.initial is None else state.initial)


@dataclass(frozen=True)
class Written:
    """A graph of ONNX, its arrays, and its states."""

    record: GraphRecord
    arrays: Mapping[str, np.ndarray]
    states: Mapping[str, str]


def written(graph: Graph, name: str, opset: int, arrays: Mapping[str, Any] | None = None) -> Written:
    """A Graph as records; arrays: those of the file from which it comes, by name. CompileError lists all that ONNX cannot say."""
    if graph.results:
        raise CompileError(f"{name}: it gives lists, dicts or None; only models of tensors are written")
    constants = Constants(opset, arrays)
    states = _state_outputs(graph)
    names = [*(x.name for x in graph.leaves), *graph.output_names, *states.values()]
    constants.used.update(names)
    block, walk = Block(constants, graph), Walk(constants)
    for leaf in graph.leaves:
        block.values[leaf] = (leaf.name,)
    give_sizes(block, {leaf.name: leaf for leaf in graph.leaves})
    walk.fill(block, graph.roots)
    for n in graph.roots:
        if n.is_input and n.dtype.name in ONLY_CAST:
            walk.refused.add(
                n, f"no op of ONNX but Cast takes {n.dtype}, so that no output can be the input itself; cast it first"
            )
    if walk.refused.reasons:
        raise CompileError(f"{name} cannot be written as ONNX of opset {opset}:{walk.refused.text()}")
    outputs = [
        ValueRecord(own, n.dtype, n.shape)
        for own, n in zip((*graph.output_names, *states.values()), graph.roots, strict=True)
    ]
    renamed: dict[str, str] = {}
    made = {y for record in block.nodes for y in record.outputs}
    for value, n in zip(outputs, graph.roots, strict=True):
        found = block.name(n)
        if found in made and found not in renamed:
            renamed[found] = value.name
        else:
            block.nodes.append(NodeRecord("Identity", [found], [value.name]))
    inputs = [ValueRecord(leaf.name, leaf.dtype, leaf.shape) for leaf in graph.leaves]
    record = GraphRecord(name or "model", inputs, outputs, block.nodes, renamed)
    return Written(record, constants.arrays, states)


def _state_outputs(graph: Graph) -> dict[str, str]:
    """Each state ↦ the name of the output that is its next value."""
    if any(s.draws is not None for s in graph.states):
        raise CompileError(
            "the model draws random numbers, and ONNX's generators draw others: take what is random as an input, or write the model "
            "for inference (module.eval())"
        )
    taken = {*graph.output_names, *(x.name for x in graph.leaves)}
    found: dict[str, str] = {}
    for s in graph.states:
        name = f"{s.name}{NEXT}"
        while name in taken:
            name += "_"
        taken.add(name)
        found[s.name] = name
    return found


# --- files -----------------------------------------------------------------------------------------------------------

Files = dict[str, tuple[int, Any]]


def _files(made: Written, facts: FileFacts, path: Path, external: bool | None) -> Files:
    """The bytes of each file, by name; the model last, without which the others are not read."""
    sizes = {name: size_of(a) for name, a in made.arrays.items() if a.dtype.names != (string.name,)}
    apart = external if external is not None else sum(sizes.values()) > MOST_BYTES - ROOM
    large = {name: size for name, size in sizes.items() if apart and size >= EXTERNAL_BYTES}
    places, end = layout(large)
    location = f"{path.name}{DATA_SUFFIX}"
    tensors: Callable[[str], WireMessage] = lambda name: tensor(name, made.arrays[name], places.get(name), location)
    body = model(facts, graph(made.record, {}, map(tensors, made.arrays)))
    if body.size > MOST_BYTES:
        raise InputError(
            f"{path}: the model has {body.size} bytes, of which one file holds {MOST_BYTES}; give external=True"
        )
    out: Files = {}
    if places:
        out[location] = (end, external_pieces(made.arrays, places))
    out[path.name] = (body.size, body.pieces)
    return out
