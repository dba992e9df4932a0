"""ONNX files as plain data: `read_model` gives an OnnxModel of frozen dataclasses, str, int, tuples and NumPy arrays.

Nothing is interpreted here: the importer knows which ops there are and what they mean. Weights are read-only
views of the mapped file, not copies (so they may be unaligned, and the file must not change while they exist).
The domain "ai.onnx" is spelled "", as in ONNX.

Files are untrusted (see wire.py): shapes are compared with the bytes present, and external data with its file, which
must be a regular file inside the model's folder. A file that violates the format is a FormatError; a well-formed file
with impossible contents is an ImportFailure. Both name the file and the position.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..errors import FormatError, ImportFailure, InputError
from ..files import mapped, reason
from ..shapes import MAX_RANK
from .tensors import MESSAGES, STRING, Files, OnnxSparse, OnnxTensor, element_type
from .wire import FLOAT, INT32, INT64, TEXT, TOP, Constructor, Fields, Format, Position, Schema, many, one

OnnxFile = str | os.PathLike[str] | bytes | bytearray | memoryview


# --- the data of a model -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OnnxType:
    """A value's type. `kind` is "tensor", "sparse_tensor", "sequence", "optional", "map" or "opaque". The last four
    have no shape, and no dtype (except a map, which has its key's). Sequence, optional and map hold another type,
    `of`."""

    kind: str
    dtype: str | None = None
    shape: tuple[int | str | None, ...] | None = None
    of: OnnxType | None = None


@dataclass(frozen=True, slots=True)
class OnnxValue:
    """A named value. dtype and shape come from its type (None if unknown); a dimension is a number, a name or None."""

    name: str
    type: OnnxType | None

    @property
    def dtype(self) -> str | None:
        return self.type.dtype if self.type else None

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        return self.type.shape if self.type else None


@dataclass(frozen=True, slots=True)
class OnnxRef:
    """An attribute inside a function whose value is the attribute `name` of the function's caller."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class OnnxNode:
    """One op. An empty name among the inputs or outputs means that it is omitted.

    Attributes are int, float, str (bytes when not UTF-8), OnnxTensor, OnnxGraph, OnnxSparse, OnnxType, OnnxRef, or
    tuples of these.
    """

    op_type: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    overload: str = ""

    @property
    def op(self) -> str:
        """The op's name; unless its domain is ONNX's default, the domain is before it: "com.microsoft.Attention"."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type


@dataclass(frozen=True, eq=False, slots=True)
class OnnxGraph:
    """Nodes in the file's order, and the constants and names that they refer to."""

    name: str
    nodes: tuple[OnnxNode, ...]
    initializers: dict[str, OnnxTensor]
    inputs: tuple[OnnxValue, ...]
    outputs: tuple[OnnxValue, ...]
    value_info: tuple[OnnxValue, ...]
    sparse_initializers: dict[str, OnnxSparse] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class OnnxFunction:
    """An op that the model defines itself. Callers must give `attributes`, and may give `defaults`."""

    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: dict[str, Any]
    nodes: tuple[OnnxNode, ...]
    opsets: dict[str, int]
    overload: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class OnnxModel:
    """A whole file. `path` is its name in errors; `opsets` maps a domain to its version; `files` are the names of those beside it that it
    refers to."""

    path: str
    ir_version: int
    opsets: dict[str, int]
    graph: OnnxGraph
    functions: tuple[OnnxFunction, ...]
    metadata: dict[str, str]
    files: tuple[str, ...] = ()


def read_model(
    path_or_bytes: OnnxFile, *, name: str | None = None, fetch: Callable[[str], object] | None = None
) -> OnnxModel:
    """The model in an ONNX file, or in bytes (which cannot refer to external data). `name` replaces the path, or
    "<bytes>", in errors. `fetch` brings a file of external data, by its name, into the model's folder."""
    return _read(path_or_bytes, "ModelProto", name, fetch)


def read_metadata(path_or_bytes: OnnxFile) -> dict[str, str]:
    """What exporters have written beside a model, by key; the model itself is skipped."""
    return _read(path_or_bytes, "ModelProto.Metadata", None)


def read_tensor(path_or_bytes: OnnxFile) -> OnnxTensor:
    """The tensor in a serialised TensorProto (a `.pb` file), or in bytes."""
    return _read(path_or_bytes, "TensorProto", None)[1]


def _read(source: OnnxFile, message: str, name: str | None, fetch: Callable[[str], object] | None = None) -> Any:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, files = memoryview(source).toreadonly().cast("B"), Files(None)
        return _decoded(data, message, name or "<bytes>", files)
    path = Path(source)
    try:
        data = mapped(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{name or path}: cannot be read: {reason(error)}") from error
    return _decoded(data, message, name or str(path), Files(path.parent, fetch))


def _decoded(data: memoryview, message: str, name: str, files: Files) -> Any:
    try:
        return FORMAT.decode(data, message, name, files)
    except FormatError as e:
        if f", {TOP}: " not in str(e) or message != "ModelProto":
            raise
        raise type(e)(f"{e}; is this an ONNX model?") from None


# --- graphs --------------------------------------------------------------------------------------------------------


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _named(pairs: list[tuple[str, Any]], what: str, position: Position) -> dict[str, Any]:
    """`pairs` as a dict, after a check that no name is empty or occurs twice."""
    out: dict[str, Any] = {}
    for index, (name, value) in enumerate(pairs):
        if not name or name in out:
            text = f"the name {name[:80]!r} is taken already" if name else "it has no name"
            raise position.field(what, index).fault(text)
        out[name] = value
    return out


# Attribute types: the field that holds the value, and the default if the file omits it.
VALUES: Final[dict[int, tuple[str, Any]]] = {
    1: ("f", 0.0),
    2: ("i", 0),
    3: ("s", ""),
    4: ("t", None),
    5: ("g", None),
    6: ("floats", ()),
    7: ("ints", ()),
    8: ("strings", ()),
    9: ("tensors", ()),
    10: ("graphs", ()),
    11: ("sparse_tensor", None),
    12: ("sparse_tensors", ()),
    13: ("tp", None),
    14: ("type_protos", ()),
}
VALUE_FIELDS: Final = frozenset(name for name, _ in VALUES.values())
NAMED: Final = frozenset(("t", "tensors", "sparse_tensor", "sparse_tensors"))


def _attribute(m: Fields, position: Position, _: Files) -> tuple[str, Any]:
    name, present = m.get("name", ""), VALUE_FIELDS & m.keys()
    if "ref_attr_name" in m:
        return name, OnnxRef(m["ref_attr_name"])
    if "type" in m:
        if m["type"] not in VALUES:
            raise position.field("type").fault(
                f"attribute type {m['type']} is none of 1 to {max(VALUES)}", ImportFailure
            )
        key, absent = VALUES[m["type"]]
    else:  # the first version of ONNX had no type
        key, absent = min(present, default="value"), None
    if present - {key}:
        raise position.fault(
            f"{name[:80]!r} should have its value in {key!r} alone, and has {', '.join(sorted(present))}"
        )
    value = m.get(key, absent)
    if value is None:
        raise position.fault(f"{name[:80]!r} has no value; expected one in {key!r}")
    if key in ("floats", "ints"):
        return name, tuple(value.tolist()) if key in m else ()
    if key in NAMED:  # the name of a tensor has no meaning here
        value = [tensor for _, tensor in value] if isinstance(value, list) else value and value[1]
    return name, tuple(value) if isinstance(value, list) else value


def _node(m: Fields, position: Position, _: Files) -> OnnxNode:
    if not m.get("op_type"):
        raise position.fault("the node has no op_type")
    return OnnxNode(
        m["op_type"],
        _domain(m.get("domain", "")),
        m.get("name", ""),
        tuple(m.get("input", ())),
        tuple(m.get("output", ())),
        _named(m.get("attribute", []), "attribute", position),
        m.get("overload", ""),
    )


def _graph(m: Fields, position: Position, _: Files) -> OnnxGraph:
    return OnnxGraph(
        m.get("name", ""),
        tuple(m.get("node", ())),
        _named(m.get("initializer", []), "initializer", position),
        tuple(m.get("input", ())),
        tuple(m.get("output", ())),
        tuple(m.get("value_info", ())),
        _named(m.get("sparse_initializer", []), "sparse_initializer", position),
    )


def _function(m: Fields, position: Position, _: Files) -> OnnxFunction:
    if not m.get("name"):
        raise position.fault("the function has no name")
    return OnnxFunction(
        _domain(m.get("domain", "")),
        m["name"],
        tuple(m.get("input", ())),
        tuple(m.get("output", ())),
        tuple(m.get("attribute", ())),
        _named(m.get("attribute_proto", []), "attribute_proto", position),
        tuple(m.get("node", ())),
        dict(m.get("opset_import", ())),
        m.get("overload", ""),
    )


def _model(m: Fields, position: Position, files: Files) -> OnnxModel:
    if "graph" not in m:
        raise position.fault("there is no graph")
    version = m.get("ir_version", 0)
    if version < 1:
        raise position.field("ir_version").fault(f"IR version {version}; expected 1 or more", ImportFailure)
    # Before IR version 3 there was one opset, and no field to say so.
    opsets = dict(m.get("opset_import", ())) or ({"": 1} if version < 3 else {})
    if not opsets:
        raise position.field("opset_import").fault("the model imports no opset", ImportFailure)
    functions, metadata = tuple(m.get("functions", ())), dict(m.get("metadata_props", ()))
    return OnnxModel(position.name, version, opsets, m["graph"], functions, metadata, tuple(files.by_location))


def _metadata(m: Fields, _: Position, __: Files) -> dict[str, str]:
    return dict(m.get("metadata_props", ()))


def _opset(m: Fields, position: Position, _: Files) -> tuple[str, int]:
    version = m.get("version", 0)
    if version < 1:
        raise position.field("version").fault(f"opset version {version}; expected 1 or more", ImportFailure)
    return _domain(m.get("domain", "")), version


# --- types ---------------------------------------------------------------------------------------------------------


def _dimension(m: Fields, _: Position, __: Files) -> int | str | None:
    value = m.get("value")
    # Some exporters write -1, or an empty name, for an unknown dimension.
    return None if value == "" or (isinstance(value, int) and value < 0) else value


def _typed(kind: str) -> Constructor:
    """The builder of TypeProto's case `kind`: each has some of these fields."""

    def build(m: Fields, position: Position, _: Files) -> OnnxType:
        code = m.get("dtype", 0)
        dtype = element_type(code, position.field("elem_type")).name if code else None
        return OnnxType(kind, dtype, m.get("shape"), m.get("of"))

    return build


TENSOR_TYPE: Final = {1: one("elem_type", INT32, key="dtype"), 2: one("shape", "TensorShapeProto")}


def _value(m: Fields, _: Position, __: Files) -> OnnxValue:
    return OnnxValue(m.get("name", ""), m.get("type"))


def _type(m: Fields, _: Position, __: Files) -> OnnxType | None:
    return m.get("value")


def _shape(m: Fields, position: Position, _: Files) -> tuple[int | str | None, ...]:
    shape = tuple(m.get("dim", ()))
    if len(shape) > MAX_RANK:
        raise position.fault(f"{len(shape)} dimensions; at most {MAX_RANK} are supported", ImportFailure)
    return shape


# --- the format ----------------------------------------------------------------------------------------------------

FORMAT: Final = Format(
    MESSAGES
    | {
        "ModelProto": Schema(
            _model,
            {
                1: one("ir_version", INT64),
                7: one("graph", "GraphProto"),
                8: many("opset_import", "OperatorSetIdProto"),
                14: many("metadata_props", "StringStringEntryProto"),
                25: many("functions", "FunctionProto"),
            },
        ),
        "ModelProto.Metadata": Schema(_metadata, {14: many("metadata_props", "StringStringEntryProto")}),
        "GraphProto": Schema(
            _graph,
            {
                1: many("node", "NodeProto"),
                2: one("name", TEXT),
                5: many("initializer", "TensorProto"),
                11: many("input", "ValueInfoProto"),
                12: many("output", "ValueInfoProto"),
                13: many("value_info", "ValueInfoProto"),
                15: many("sparse_initializer", "SparseTensorProto"),
            },
        ),
        "FunctionProto": Schema(
            _function,
            {
                1: one("name", TEXT),
                4: many("input", TEXT),
                5: many("output", TEXT),
                6: many("attribute", TEXT),
                7: many("node", "NodeProto"),
                9: many("opset_import", "OperatorSetIdProto"),
                10: one("domain", TEXT),
                11: many("attribute_proto", "AttributeProto"),
                13: one("overload", TEXT),
            },
        ),
        "NodeProto": Schema(
            _node,
            {
                1: many("input", TEXT),
                2: many("output", TEXT),
                3: one("name", TEXT),
                4: one("op_type", TEXT),
                5: many("attribute", "AttributeProto"),
                7: one("domain", TEXT),
                8: one("overload", TEXT),
            },
        ),
        "AttributeProto": Schema(
            _attribute,
            {
                1: one("name", TEXT),
                2: one("f", FLOAT),
                3: one("i", INT64),
                4: one("s", STRING),
                5: one("t", "TensorProto"),
                6: one("g", "GraphProto"),
                7: many("floats", FLOAT),
                8: many("ints", INT64),
                9: many("strings", STRING),
                10: many("tensors", "TensorProto"),
                11: many("graphs", "GraphProto"),
                14: one("tp", "TypeProto"),
                15: many("type_protos", "TypeProto"),
                20: one("type", INT32),
                21: one("ref_attr_name", TEXT),
                22: one("sparse_tensor", "SparseTensorProto"),
                23: many("sparse_tensors", "SparseTensorProto"),
            },
        ),
        "OperatorSetIdProto": Schema(_opset, {1: one("domain", TEXT), 2: one("version", INT64)}),
        "ValueInfoProto": Schema(_value, {1: one("name", TEXT), 2: one("type", "TypeProto")}),
        "TypeProto": Schema(
            _type,
            {
                1: one("tensor_type", "TypeProto.Tensor", key="value"),
                4: one("sequence_type", "TypeProto.Sequence", key="value"),
                5: one("map_type", "TypeProto.Map", key="value"),
                7: one("opaque_type", "TypeProto.Opaque", key="value"),
                8: one("sparse_tensor_type", "TypeProto.SparseTensor", key="value"),
                9: one("optional_type", "TypeProto.Optional", key="value"),
            },
        ),
        "TypeProto.Tensor": Schema(_typed("tensor"), TENSOR_TYPE),
        "TypeProto.SparseTensor": Schema(_typed("sparse_tensor"), TENSOR_TYPE),
        "TypeProto.Sequence": Schema(_typed("sequence"), {1: one("elem_type", "TypeProto", key="of")}),
        "TypeProto.Optional": Schema(_typed("optional"), {1: one("elem_type", "TypeProto", key="of")}),
        "TypeProto.Map": Schema(
            _typed("map"),
            {
                1: one("key_type", INT32, key="dtype"),
                2: one("value_type", "TypeProto", key="of"),
            },
        ),
        "TypeProto.Opaque": Schema(_typed("opaque"), {}),
        "TensorShapeProto": Schema(_shape, {1: many("dim", "TensorShapeProto.Dimension")}),
        "TensorShapeProto.Dimension": Schema(
            _dimension,
            {
                1: one("dim_value", INT64, key="value"),
                2: one("dim_param", TEXT, key="value"),
            },
        ),
    }
)
