"""TensorFlow Lite files as bytes: models of a few ops, written from the tables by which Singe reads them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from singe.tflite import IDENTIFIER
from singe.tflite import schema as s
from singe.tflite.flatbuffer import BYTES, TEXT, UNION, Fields, Inner, Scalar, Tables, Vector


@dataclass(frozen=True)
class Sub:
    """A table of a union."""

    fields: Fields
    values: Mapping[str, Any]


class Writer:
    """Tables, one after another; what a table refers to comes after it."""

    def __init__(self, fields: Fields, values: Mapping[str, Any]) -> None:
        self.out = bytearray(8)
        self.out[4:8] = IDENTIFIER
        struct.pack_into("<I", self.out, 0, self.table(fields, values))

    def align(self, width: int, before: int = 0) -> None:
        """Zeros until what is written after so many bytes more is at a multiple of `width`."""
        while (len(self.out) + before) % width:
            self.out.append(0)

    def table(self, fields: Fields, values: Mapping[str, Any]) -> int:
        held = [(k, name, kind) for k, (name, kind) in fields.items() if values.get(name) is not None]
        sizes = {k: struct.calcsize(f"<{kind.code}") if isinstance(kind, Scalar) else 4 for k, _, kind in held}
        places, end = {}, 8  # 4 bytes of the vtable's offset, and 4 that keep numbers of 8 bytes aligned
        for k in sorted(sizes, key=lambda k: -sizes[k]):
            places[k], end = end, end + sizes[k]
        slots = max(fields, default=-1) + 1
        self.align(2)
        vtable = len(self.out)
        self.out += struct.pack(f"<{2 + slots}H", 4 + 2 * slots, end, *(places.get(k, 0) for k in range(slots)))
        self.align(8)
        at = len(self.out)
        self.out += struct.pack("<i", at - vtable) + bytes(end - 4)
        for k, name, kind in held:
            if isinstance(kind, Scalar):
                struct.pack_into(f"<{kind.code}", self.out, at + places[k], values[name])
                continue
            there = self.refer(kind, values[name])
            struct.pack_into("<I", self.out, at + places[k], there - at - places[k])
        return at

    def refer(self, kind: Any, value: Any) -> int:
        """Write what an offset points to; returns where it is."""
        match kind:
            case Inner(fields):
                return self.table(fields, value)
            case Tables(fields):
                return self.tables(fields, value)
            case Vector(code):
                array = np.asarray(value, f"<{code}")
                return self.vector(array.tobytes(), len(array), array.itemsize)
            case _ if kind is UNION:
                return self.table(value.fields, value.values)
            case _ if kind is TEXT:
                return self.vector(value.encode() + b"\0", len(value.encode()), 1)
            case _:
                assert kind is BYTES
                return self.vector(bytes(value), len(value), 16)

    def vector(self, data: bytes, count: int, width: int) -> int:
        self.align(max(width, 4), 4)
        at = len(self.out)
        self.out += struct.pack("<I", count) + data
        return at

    def tables(self, fields: Fields, values: Sequence[Mapping[str, Any]]) -> int:
        self.align(4)
        at = len(self.out)
        self.out += struct.pack("<I", len(values)) + bytes(4 * len(values))
        for k, value in enumerate(values):
            place = at + 4 + 4 * k
            there = self.table(fields, value)
            struct.pack_into("<I", self.out, place, there - place)
        return at


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a file. array: what it holds as a constant, or an example of what it holds in a run; shape: where that is not the array's."""

    array: np.ndarray
    is_constant: bool = False
    scale: Any = None
    zero: Any = 0
    axis: int = 0
    signature: Sequence[int] | None = None
    dtype: str | None = None
    raw: bytes | None = None
    sparsity: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Op:
    """An op of a file: its inputs and outputs by index, −1 for one that is omitted."""

    op: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: bytes = b""
    version: int = 1


def model_bytes(
    values: Sequence[Value], ops: Sequence[Op], inputs: Sequence[int], outputs: Sequence[int], **more: Any
) -> bytes:
    """A file with one graph. more: fields of the model."""
    constants = [v for v in values if v.is_constant]
    buffers: list[Mapping[str, Any]] = [
        {"data": b""},
        *({"data": v.raw if v.raw is not None else v.array.tobytes()} for v in constants),
    ]
    names = op_names(ops)
    graph = graph_fields(values, ops, inputs, outputs)
    codes = [_code(name, version) for name, version in names]
    whole = {
        "version": s.VERSION,
        "operator_codes": codes,
        "graphs": [graph],
        "description": "by hand",
        "buffers": buffers,
    }
    return bytes(Writer(s.MODEL, {**whole, **more}).out)


def op_names(ops: Sequence[Op]) -> list[tuple[str, int]]:
    """The ops that a file declares, in its order: a name and a version."""
    return list(dict.fromkeys((o.op, o.version) for o in ops))


def graph_fields(
    values: Sequence[Value], ops: Sequence[Op], inputs: Sequence[int], outputs: Sequence[int]
) -> dict[str, Any]:
    """A graph; its constants are the buffers from 1 on."""
    constants = [v for v in values if v.is_constant]
    names = op_names(ops)
    return {
        "tensors": [_tensor(k, v, constants.index(v) + 1 if v.is_constant else 0) for k, v in enumerate(values)],
        "inputs": inputs,
        "outputs": outputs,
        "operators": [_operator(o, names) for o in ops],
        "name": "main",
    }


def _code(name: str, version: int) -> Mapping[str, Any]:
    if name.startswith("CUSTOM:"):
        return {"old_code": s.CUSTOM, "code": s.CUSTOM, "custom_code": name.removeprefix("CUSTOM:"), "version": version}
    number = s.OPS.index(name)
    return {"old_code": min(number, s.OLD_CODES), "code": number, "version": version}


def _operator(o: Op, names: Sequence[tuple[str, int]]) -> Mapping[str, Any]:
    row = s.OPTIONS.get(o.op)
    fields = {"opcode": names.index((o.op, o.version)), "inputs": o.inputs, "outputs": o.outputs}
    if row is not None:
        fields |= {"options_type": row.type, "options": Sub(row.fields, o.options)}
    return fields | ({"custom": o.custom} if o.custom else {})


def _tensor(k: int, v: Value, buffer: int) -> Mapping[str, Any]:
    fields: dict[str, Any] = {
        "shape": v.array.shape, "type": s.TYPES.index(v.dtype or v.array.dtype.name), "buffer": buffer, "name": f"t{k}", "sparsity": v.sparsity,
    }  # fmt: skip
    if v.signature is not None:
        fields["shape_signature"] = v.signature
    if v.scale is not None:
        scale = np.atleast_1d(np.asarray(v.scale, np.float32))
        zero = np.broadcast_to(np.atleast_1d(np.asarray(v.zero, np.int64)), scale.shape)
        fields["quantization"] = {"scale": scale, "zero_point": zero, "axis": v.axis}
    return fields
