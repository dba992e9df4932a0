"""What is written, as plain records, and their bytes: nodes, tensors, graphs and the model."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ...dtypes import DType, dtype, string
from ...late_dataclass import dataclass
from ...shapes import Dim, Shape
from ..tensors import ELEMENTS
from .protobuf import WireMessage

CODES: Final = {element.name: code for code, element in ELEMENTS.items()}
"""An element type ↦ ONNX's number of it."""
ALIGNED: Final = 4096
"""Arrays of a file of external data begin at multiples of so many bytes, so that each can be mapped."""


class TypeCode(NamedTuple):
    """An element type as an attribute, such as the one that Cast gives."""

    kind: DType


Attribute: TypeAlias = "int | float | str | TypeCode | GraphRecord | Sequence[int] | Sequence[float] | Sequence[str]"


@dataclass(frozen=True)
class NodeRecord:
    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


class ValueRecord(NamedTuple):
    """An input or an output: its name, element type and shape; None for a dimension of which nothing is said."""

    name: str
    kind: DType
    shape: Sequence[Dim | None]


@dataclass
class GraphRecord:
    """nodes: in the order in which they run. names: a value's name within ↦ the name that is written."""

    name: str
    inputs: list[ValueRecord]
    outputs: list[ValueRecord]
    nodes: list[NodeRecord]
    names: Mapping[str, str] = field(default_factory=dict)


class External(NamedTuple):
    """Where the bytes of an array are in the file of external data."""

    offset: int
    length: int


# --- arrays ----------------------------------------------------------------------------------------------------------


def bytes_of(value: np.ndarray) -> memoryview:
    """An array's elements as ONNX's raw_data has them: little-endian, those of less than a byte packed from the low bits up."""
    kind = dtype(value.dtype)
    flat = np.ascontiguousarray(value).reshape(-1)
    held = flat.view(kind.held) if kind.held else flat
    if kind.bits < 8:
        codes = (held.astype(np.uint8) & np.uint8((1 << kind.bits) - 1)).astype(np.uint8)
        bits = np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, : kind.bits]
        held = np.packbits(bits, bitorder="little")
    elif sys.byteorder == "big":
        held = held.astype(held.dtype.newbyteorder("<"))
    raw: Any = held.view(np.uint8) if held.size else np.empty(0, np.uint8)
    return memoryview(raw).cast("B")


def tensor(name: str, value: np.ndarray, place: External | None = None, location: str = "") -> WireMessage:
    """A TensorProto. place: of its bytes in the file `location`; without one they are in the message."""
    kind, out = dtype(value.dtype), WireMessage()
    out.numbers(1, value.shape)
    out.number(2, CODES[kind.name])
    if kind is string:
        texts: Any = value[kind.name] if value.dtype.names else value
        for text in texts.reshape(-1).tolist():
            out.text(6, text)
    elif place is None:
        out.data(9, bytes_of(value))
    out.text(8, name)
    if place is not None:
        for key, text in (("location", location), ("offset", str(place.offset)), ("length", str(place.length))):
            entry = WireMessage()
            entry.text(1, key)
            entry.text(2, text)
            out.message(13, entry)
        out.number(14, 1)
    return out


def layout(sizes: Mapping[str, int]) -> tuple[dict[str, External], int]:
    """Where arrays of these sizes in bytes are in a file of external data, by name; and the length of that file."""
    end, places = 0, {}
    for name, size in sizes.items():
        start = -(-end // ALIGNED) * ALIGNED if size >= ALIGNED else end
        places[name] = External(start, size)
        end = start + size
    return places, end


def external_pieces(arrays: Mapping[str, np.ndarray], places: Mapping[str, External]) -> Iterable[Any]:
    """The file of external data, piece by piece."""
    end = 0
    for name, place in places.items():
        yield bytes(place.offset - end)
        yield bytes_of(arrays[name])
        end = place.offset + place.length


def size_of(value: np.ndarray) -> int:
    """How many bytes `bytes_of` gives."""
    kind = dtype(value.dtype)
    return (math.prod(value.shape) * kind.bits + 7) // 8


# --- graphs ----------------------------------------------------------------------------------------------------------


def _attribute(name: str, value: Attribute, names: Mapping[str, str]) -> WireMessage:
    out = WireMessage()
    out.text(1, name)
    if isinstance(value, GraphRecord):
        out.message(6, graph(value, names, ()))
        code = 5
    elif isinstance(value, TypeCode):
        out.number(3, CODES[value.kind.name])
        code = 2
    elif isinstance(value, str):
        out.text(4, value)
        code = 3
    elif isinstance(value, float):
        out.real(2, value)
        code = 1
    elif isinstance(value, int):
        out.number(3, int(value))
        code = 2
    elif value and isinstance(value[0], str):
        out.texts(9, [str(v) for v in value])
        code = 8
    elif value and isinstance(value[0], float):
        for v in value:
            out.real(7, float(v))
        code = 6
    else:
        out.numbers(8, [int(v) for v in value])
        code = 7
    out.number(20, code)
    return out


def _node(record: NodeRecord, names: Mapping[str, str]) -> WireMessage:
    out = WireMessage()
    out.texts(1, [names.get(x, x) for x in record.inputs])
    outputs = [names.get(x, x) for x in record.outputs]
    out.texts(2, outputs)
    out.text(3, next(filter(None, outputs), ""))
    out.text(4, record.op)
    for name, value in record.attributes.items():
        out.message(5, _attribute(name, value, names))
    return out


def _value(record: ValueRecord) -> WireMessage:
    shape, kind, whole, out = WireMessage(), WireMessage(), WireMessage(), WireMessage()
    for d in record.shape:
        dim = WireMessage()
        if isinstance(d, int):
            dim.number(1, d)
        elif d is not None:
            dim.text(2, str(d))
        shape.message(1, dim)
    kind.number(1, CODES[record.kind.name])
    kind.message(2, shape)
    whole.message(1, kind)
    out.text(1, record.name)
    out.message(2, whole)
    return out


def graph(record: GraphRecord, names: Mapping[str, str], initializers: Iterable[WireMessage]) -> WireMessage:
    """A GraphProto. names: those of the graphs around it."""
    names = {**names, **record.names}
    out = WireMessage()
    for node in record.nodes:
        out.message(1, _node(node, names))
    out.text(2, record.name)
    for made in initializers:
        out.message(5, made)
    for field_number, values in ((11, record.inputs), (12, record.outputs)):
        for value in values:
            out.message(field_number, _value(value._replace(name=names.get(value.name, value.name))))
    return out


@dataclass(frozen=True)
class FileFacts:
    """What a model says of itself."""

    opset: int
    ir_version: int
    producer: str
    producer_version: str
    doc: str
    metadata: Mapping[str, str]


def model(facts: FileFacts, body: WireMessage) -> WireMessage:
    """A ModelProto."""
    opset, out = WireMessage(), WireMessage()
    opset.text(1, "")
    opset.number(2, facts.opset)
    out.number(1, facts.ir_version)
    out.text(2, facts.producer)
    out.text(3, facts.producer_version)
    if facts.doc:
        out.text(6, facts.doc)
    out.message(7, body)
    out.message(8, opset)
    for key, value in facts.metadata.items():
        entry = WireMessage()
        entry.text(1, key)
        entry.text(2, value)
        out.message(14, entry)
    return out


def is_closed(shape: Shape) -> bool:
    """Whether all dimensions are numbers."""
    return all(isinstance(d, int) for d in shape)
