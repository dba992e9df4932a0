"""TensorFlow Lite files as plain data: `read_model` gives a TfliteModel of frozen dataclasses, str, int, tuples and NumPy arrays.

Nothing is interpreted here: the importer knows which ops there are and what they mean. Weights are read-only views of the
mapped file, not copies (so they may be unaligned, and the file must not change while they exist), but for sparse ones and
those of 4 bits, which `tensors.py` unfolds.

Files are untrusted (see flatbuffer.py): every index is checked, and shapes are compared with the bytes present. A file that
violates the format is a FormatError; a well-formed file with impossible contents is an ImportFailure.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import FormatError, ImportFailure, InputError
from ..files import mapped, reason
from ..shapes import MAX_RANK
from . import IDENTIFIER, is_tflite, schema
from .flatbuffer import FlatTable, TablePosition, root
from .tensors import array_of

TfliteFile = str | os.PathLike[str] | bytes | bytearray | memoryview
BUILTIN: Final = len(schema.OPS)
"""How many of TensorFlow Lite's own ops have names here."""


@dataclass(frozen=True, eq=False, slots=True)
class Quantization:
    """What the integers of a tensor stand for: (integer − zero) · scale, with one scale and one zero, or with one of each for every index of
    an axis."""

    scale: np.ndarray
    zero: np.ndarray
    axis: int

    @property
    def is_single(self) -> bool:
        return self.scale.size == 1

    def equals(self, other: Quantization | None) -> bool:
        return other is not None and all(
            np.array_equal(a, b) for a, b in ((self.scale, other.scale), (self.zero, other.zero))
        )


@dataclass(frozen=True, eq=False, slots=True)
class TfliteTensor:
    """A value. shape: None for a dimension that is open; array: of a constant."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    array: np.ndarray | None
    quantization: Quantization | None
    is_variable: bool


@dataclass(frozen=True, eq=False, slots=True)
class TfliteOp:
    """One op; inputs and outputs are indices of tensors, −1 for one that is omitted. options: by the names of schema.py; custom: the bytes of
    the options of an op that is none of TensorFlow Lite's own, whose name is after "CUSTOM:"."""

    op: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]
    custom: bytes


@dataclass(frozen=True, eq=False, slots=True)
class TfliteGraph:
    """Ops in the file's order, which is the order in which they run. Names are those of the inputs and outputs, each once."""

    tensors: tuple[TfliteTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ops: tuple[TfliteOp, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class TfliteModel:
    """A whole file. `path` is its name in errors; the first graph is the model, others are those to which its ops refer."""

    path: str
    description: str
    graphs: tuple[TfliteGraph, ...]


def read_model(path_or_bytes: TfliteFile, *, name: str | None = None) -> TfliteModel:
    """The model in a TensorFlow Lite file, or in bytes. `name` replaces the path, or "<bytes>", in errors."""
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        return _model(memoryview(path_or_bytes).toreadonly().cast("B"), name or "<bytes>")
    path = Path(path_or_bytes)
    try:
        data = mapped(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{name or path}: cannot be read: {reason(error)}") from error
    return _model(data, name or str(path))


def _model(data: memoryview, file: str) -> TfliteModel:
    if not is_tflite(data):
        raise FormatError(
            f"{file}: bytes 4 to 8 are {bytes(data[4:8])!r}, expected {IDENTIFIER!r}; is this a TensorFlow Lite model?"
        )
    table = root(data, file)
    found, position = table.read(schema.MODEL), table.position
    if found["version"] != schema.VERSION:
        raise position.fault(f"version {found['version']} of the format; expected {schema.VERSION}", kind=ImportFailure)
    if not found["graphs"]:
        raise position.fault("there is no graph")
    reader = _FileReader(table, _op_names(found["operator_codes"], position), found["buffers"])
    graphs = tuple(reader.graph(k, fields, found["signatures"]) for k, fields in enumerate(found["graphs"]))
    return TfliteModel(file, found["description"], graphs)


def _op_names(codes: Sequence[Mapping[str, Any]], position: TablePosition) -> list[tuple[str, int]]:
    """The name and the version of each op that the file declares. A file of before 2020 has the number in a signed byte."""
    names = []
    for k, fields in enumerate(codes):
        number = (
            fields["code"] if fields["old_code"] in (0, schema.OLD_CODES) and fields["code"] else fields["old_code"]
        )
        if number == schema.CUSTOM:
            name = f"CUSTOM:{fields['custom_code']}"
        elif 0 <= number < BUILTIN:
            name = schema.OPS[number]
        elif number >= BUILTIN:
            name = f"op {number}"
        else:
            raise position.field("operator_codes", k).fault(f"the number of an op is {number}; expected 0 or more")
        names.append((name, fields["version"]))
    return names


class _FileReader:
    """What the graphs of a file have in common."""

    def __init__(self, table: FlatTable, ops: Sequence[tuple[str, int]], buffers: Sequence[Mapping[str, Any]]) -> None:
        self.source = table.source
        self.position = table.position
        self.ops = ops
        self.buffers = buffers

    def graph(self, index: int, fields: Mapping[str, Any], signatures: Sequence[Mapping[str, Any]]) -> TfliteGraph:
        here = self.position.field("graphs", index)
        tensors = tuple(self.tensor(t, here.field("tensors", k)) for k, t in enumerate(fields["tensors"]))
        count = len(tensors)
        inputs = _indices(fields["inputs"], 0, count, here.field("inputs"))
        outputs = _indices(fields["outputs"], 0, count, here.field("outputs"))
        ops = tuple(self.op(o, count, here.field("operators", k)) for k, o in enumerate(fields["operators"]))
        signed = [s for s in signatures if s["graph"] == index]
        told = signed[0] if len(signed) == 1 else {"inputs": (), "outputs": ()}
        named = (_names(kind, ports, told[kind], tensors) for kind, ports in (("inputs", inputs), ("outputs", outputs)))
        return TfliteGraph(tensors, inputs, outputs, ops, *named)

    def tensor(self, fields: Mapping[str, Any], position: TablePosition) -> TfliteTensor:
        if not 0 <= fields["type"] < len(schema.TYPES):
            raise position.fault(
                f"the element type {fields['type']} is none of 0 to {len(schema.TYPES) - 1}", kind=ImportFailure
            )
        dtype = schema.TYPES[fields["type"]]
        shape = tuple(map(int, _short(fields["shape"], MAX_RANK, position.field("shape"))))
        opened = tuple(map(int, _short(fields["shape_signature"], MAX_RANK, position.field("shape_signature"))))
        if any(d < 0 for d in shape):
            raise position.field("shape").fault(f"the shape {shape} has a negative length", kind=ImportFailure)
        if len(opened) != len(shape):
            opened = shape
        array = None
        data = self.buffer(fields["buffer"], position)
        if data is not None and len(data):
            array = array_of(data, dtype, shape, fields["sparsity"], self.source, position)
        elif fields["sparsity"] is not None:
            raise position.fault("the tensor is sparse, but has no data")
        return TfliteTensor(
            fields["name"],
            dtype,
            tuple(None if o < 0 else d for o, d in zip(opened, shape, strict=True)),
            array,
            _quantization(fields["quantization"], shape, position.field("quantization")),
            fields["is_variable"],
        )

    def buffer(self, index: int, position: TablePosition) -> memoryview | None:
        """The bytes of a tensor; None if it is no constant. The first buffer is that of no tensor."""
        if index >= len(self.buffers):
            raise position.fault(f"buffer {index}; the file has {len(self.buffers)}")
        fields = self.buffers[index]
        if fields["data"] is not None and len(fields["data"]):
            return fields["data"]
        start, size = fields["offset"], fields["size"]
        if size == 0 or start <= 1:
            return None
        if start + size > len(self.source.data):
            raise position.fault(
                f"its data is {size} bytes at byte {start}; the file has {len(self.source.data)}, so that it is cut short"
            )
        return self.source.data[start : start + size]

    def op(self, fields: Mapping[str, Any], tensors: int, position: TablePosition) -> TfliteOp:
        if fields["opcode"] >= len(self.ops):
            raise position.fault(f"op {fields['opcode']}; the file declares {len(self.ops)}")
        name, version = self.ops[fields["opcode"]]
        inputs = _indices(fields["inputs"], -1, tensors, position.field("inputs"))
        outputs = _indices(fields["outputs"], -1, tensors, position.field("outputs"))
        return TfliteOp(
            name, version, inputs, outputs, _options(name, fields, position), bytes(fields["custom"] or b"")
        )


def _options(op: str, fields: Mapping[str, Any], position: TablePosition) -> Mapping[str, Any]:
    """The options of an op; where the file has none, those that an empty table has."""
    row = schema.OPTIONS.get(op)
    if row is None:
        return {}
    table: FlatTable | None = fields["options"] if fields["options_type"] else None
    if table is None:
        return {name: getattr(kind, "default", ()) for name, kind in row.fields.values()}
    if fields["options_type"] != row.type:
        raise position.fault(f"{op} has options of type {fields['options_type']}; expected {row.type}")
    return table.read(row.fields)


def _short(numbers: np.ndarray, most: int, position: TablePosition) -> np.ndarray:
    if len(numbers) > most:
        raise position.fault(f"{len(numbers)} dimensions; at most {most} are supported", kind=ImportFailure)
    return numbers


def _indices(numbers: np.ndarray, least: int, count: int, position: TablePosition) -> tuple[int, ...]:
    """Indices of tensors, from `least` to below `count`."""
    if len(numbers) and not least <= int(numbers.min()) <= int(numbers.max()) < count:
        raise position.fault(f"tensors {int(numbers.min())} to {int(numbers.max())}; the graph has {count}")
    return tuple(map(int, numbers))


def _quantization(
    fields: Mapping[str, Any] | None, shape: tuple[int, ...], position: TablePosition
) -> Quantization | None:
    if fields is None or not len(fields["scale"]):
        return None
    if fields["details_type"]:
        raise position.fault(f"details of type {fields['details_type']}, which Singe lacks", kind=ImportFailure)
    scale, axis = fields["scale"], fields["axis"]
    zero = fields["zero_point"] if len(fields["zero_point"]) else np.zeros(1, np.int64)
    if len(zero) == 1:
        zero = np.broadcast_to(zero, scale.shape)
    if axis >= len(shape) == 1:  # some converters give a bias the axis of the weights
        axis = 0
    fits = len(scale) == 1 or (0 <= axis < len(shape) and shape[axis] == len(scale))
    if not fits or len(zero) != len(scale):
        raise position.fault(f"{len(scale)} scales and {len(zero)} zero points for axis {axis} of the shape {shape}")
    if not (np.isfinite(scale).all() and (scale >= 0).all()):
        raise position.fault("a scale is negative, NaN or infinite", kind=ImportFailure)
    if (np.abs(zero) > 1 << 16).any():
        raise position.fault("a zero point is beyond the range of 16 bits", kind=ImportFailure)
    return Quantization(scale.astype(np.float32), zero.astype(np.int32), axis)


def _names(
    kind: str, ports: Sequence[int], signature: Sequence[Mapping[str, Any]], tensors: Sequence[TfliteTensor]
) -> tuple[str, ...]:
    """The name of each input, or output: that of the signature where it names all of them, else that of its tensor; each once."""
    signed = {fields["tensor"]: fields["name"] for fields in signature}
    names = [signed.get(k, "") for k in ports]
    if not all(names) or len(set(names)) < len(names):
        names = [tensors[k].name for k in ports]
    out: list[str] = []
    for k, name in enumerate(names):
        free = name or f"{kind[:-1]}.{k}"
        out.append(free if free not in out else f"{free}.{k}")
    return tuple(out)
