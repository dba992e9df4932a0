"""ONNX tensors as NumPy arrays: a TensorProto's fields, or its external file, in; a read-only array out.

Raw bytes, and packed runs of the tensor's own type, become views of the file. The shape is compared with the bytes
present before anything is allocated. External data is read only from regular files inside the model's folder: no
absolute path, no `..`, no link to the outside.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from ..dtypes import DTYPES, DType, bool_, narrowed, strings
from ..errors import FormatError, ImportFailure
from ..files import inside, mapped, reason
from ..shapes import MAX_RANK
from .wire import BYTES, DOUBLE, FLOAT, INT32, INT64, LEN, TEXT, UINT64, Fields, Position, Schema, WireKind, many, one

MAX_FOLDED: Final = 1 << 20
"""The most elements of a tensor that is computed while a model is imported."""
MAX_SPARSE: Final = 256
"""The most elements of a large sparse tensor for each value in the file."""


OnnxTensor: TypeAlias = np.ndarray
"""A read-only array of the tensor's type; of bytes objects, if it has strings that are not UTF-8."""


@dataclass(frozen=True, eq=False, slots=True)
class OnnxSparse:
    """A sparse tensor: `indices` is [count] into the flattened tensor or [count, rank], and within `dims`."""

    values: OnnxTensor
    indices: np.ndarray
    dims: tuple[int, ...]


# --- as Singe has them ---------------------------------------------------------------------------------------------


def is_typed(tensor: OnnxTensor | OnnxSparse) -> TypeGuard[np.ndarray]:
    """Whether a tensor of the file is an array of one of Singe's element types."""
    return isinstance(tensor, np.ndarray) and (tensor.dtype.names is not None or tensor.dtype.name in DTYPES)


def plain(name: str, tensor: OnnxTensor | OnnxSparse) -> np.ndarray:
    """A tensor of the file as an array of one of Singe's types."""
    if is_typed(tensor):
        return tensor
    if isinstance(tensor, OnnxSparse):
        return dense(tensor)
    raise ImportFailure(f"the tensor {name!r} is {UNTYPED}: convert the model")


UNTYPED: Final = "of bytes that are not UTF-8"
"""What a tensor is that has none of Singe's types, as text for an error."""


def dense(sparse: OnnxSparse) -> np.ndarray:
    """A sparse tensor as a dense array, with its zeros."""
    count = math.prod(sparse.dims)
    values = sparse.values
    most = max(MAX_FOLDED, MAX_SPARSE * values.size)
    if count > most:
        raise ImportFailure(
            f"a sparse tensor has {values.size} values for {count} elements; at most {most} are supported for so many values"
        )
    out = np.zeros(count, values.dtype)
    places = sparse.indices if sparse.indices.ndim == 1 else np.ravel_multi_index(tuple(sparse.indices.T), sparse.dims)
    out[places] = values
    return out.reshape(sparse.dims)


# --- element types -------------------------------------------------------------------------------------------------


class ElementType(NamedTuple):
    """An element type: its name, its bits, the field with its typed data, and the type
    to which these are narrowed (complex numbers are stored as two parts)."""

    name: str
    bits: int
    field: str
    raw: str


ELEMENTS: Final = {
    1: ElementType("float32", 32, "float_data", "<f4"),
    2: ElementType("uint8", 8, "int32_data", "|u1"),
    3: ElementType("int8", 8, "int32_data", "|i1"),
    4: ElementType("uint16", 16, "int32_data", "<u2"),
    5: ElementType("int16", 16, "int32_data", "<i2"),
    6: ElementType("int32", 32, "int32_data", "<i4"),
    7: ElementType("int64", 64, "int64_data", "<i8"),
    8: ElementType("string", 0, "string_data", "|O"),
    9: ElementType("bool", 8, "int32_data", "|u1"),
    10: ElementType("float16", 16, "int32_data", "<u2"),
    11: ElementType("float64", 64, "double_data", "<f8"),
    12: ElementType("uint32", 32, "uint64_data", "<u4"),
    13: ElementType("uint64", 64, "uint64_data", "<u8"),
    14: ElementType("complex64", 64, "float_data", "<f4"),
    15: ElementType("complex128", 128, "double_data", "<f8"),
    16: ElementType("bfloat16", 16, "int32_data", "<u2"),
    17: ElementType("float8_e4m3fn", 8, "int32_data", "|u1"),
    18: ElementType("float8_e4m3fnuz", 8, "int32_data", "|u1"),
    19: ElementType("float8_e5m2", 8, "int32_data", "|u1"),
    20: ElementType("float8_e5m2fnuz", 8, "int32_data", "|u1"),
    21: ElementType("uint4", 4, "int32_data", "|u1"),
    22: ElementType("int4", 4, "int32_data", "|u1"),
    23: ElementType("float4_e2m1fn", 4, "int32_data", "|u1"),
    24: ElementType("float8_e8m0fnu", 8, "int32_data", "|u1"),
    25: ElementType("uint2", 2, "int32_data", "|u1"),
    26: ElementType("int2", 2, "int32_data", "|u1"),
    27: ElementType("float6_e2m3fn", 6, "int32_data", "|u1"),
    28: ElementType("float6_e3m2fn", 6, "int32_data", "|u1"),
}


def element_type(code: int, position: Position) -> ElementType:
    if code not in ELEMENTS:
        raise position.fault(f"element type {code} is none of ONNX's 1 to {max(ELEMENTS)}", ImportFailure)
    return ELEMENTS[code]


# --- tensors -------------------------------------------------------------------------------------------------------


def _dims(m: Fields, position: Position) -> tuple[int, ...]:
    given = m.get("dims", ())
    if len(given) > MAX_RANK:
        raise position.field("dims").fault(f"{len(given)} dimensions; at most {MAX_RANK} are supported", ImportFailure)
    dims = tuple(int(d) for d in given)
    if any(d < 0 for d in dims):
        raise position.field("dims").fault(f"a negative dimension in {list(dims)}")
    # NumPy ignores dimensions of 0 when it limits an array's bytes, so this bound does too; 16 is the widest element.
    if math.prod(d or 1 for d in dims) > sys.maxsize // 16:
        raise position.field("dims").fault(f"the dimensions {list(dims)} are more than memory can address")
    return dims


def _tensor(m: Fields, position: Position, files: Files) -> tuple[str, OnnxTensor]:
    if "segment" in m:
        raise position.field("segment").fault("tensors in segments are not supported", ImportFailure)
    element = element_type(m.get("data_type", 0), position.field("data_type"))
    dims = _dims(m, position)
    if element.name == "string":
        value: OnnxTensor = _strings(m, dims, position)
    else:
        data = _bytes(m, element, dims, position, files)
        value = _shaped(data, DTYPES[element.name], dims)
    return m.get("name", ""), value


def _bytes(m: Fields, element: ElementType, dims: tuple[int, ...], position: Position, files: Files) -> np.ndarray:
    """A tensor's bytes in the layout of `raw_data`, wherever they are stored: as many as the shape needs."""
    need = (math.prod(dims) * element.bits + 7) // 8
    if m.get("data_location", 0) == 1:
        where, data = "external_data", np.frombuffer(files.read(m.get("external_data", []), need, position), np.uint8)
    elif "raw_data" in m and (m["raw_data"] or element.field not in m):
        where, data = "raw_data", np.frombuffer(m["raw_data"], np.uint8)
    else:
        where = element.field
        data = np.asarray(m.get(where, ())).astype(element.raw, copy=False).view(np.uint8)
        if element.bits == 6:
            bits = np.unpackbits(data[:, None], axis=1, bitorder="little")
            data = np.packbits(bits[:, :6], bitorder="little")
        data.flags.writeable = False
    if len(data) != need:
        shape = f"{element.name}{list(dims)}"
        raise position.field(where).fault(f"{len(data)} bytes of data, where {shape} takes {need}")
    return data


def _shaped(data: np.ndarray, kind: DType, dims: tuple[int, ...]) -> np.ndarray:
    if kind.bits < 8:
        return _unpacked(data, kind, math.prod(dims)).reshape(dims)
    # A bool that is neither 0 nor 1 has no meaning in NumPy.
    if kind is bool_ and len(data) and data.max() > 1:
        data = (data != 0).view(np.uint8)
        data.flags.writeable = False
    return data.view(kind.numpy if kind.held else kind.numpy.newbyteorder("<")).reshape(dims)


def _unpacked(data: np.ndarray, kind: DType, count: int) -> np.ndarray:
    """Elements of less than a byte, which are packed into bytes from the low bits up."""
    if 8 % kind.bits:  # elements cross bytes
        bits = np.unpackbits(data, bitorder="little")[: count * kind.bits].reshape(count, kind.bits)
        codes = np.packbits(bits, axis=1, bitorder="little").reshape(-1)
    else:
        parts = data[:, None] >> np.arange(0, 8, kind.bits, dtype=np.uint8)
        codes = parts.reshape(-1)[:count] & (1 << kind.bits) - 1
    found = codes.view(kind.numpy) if kind.coding else narrowed(codes, kind)
    found.flags.writeable = False
    return found


def _strings(m: Fields, dims: tuple[int, ...], position: Position) -> np.ndarray:
    given = m.get("string_data", [])
    if len(given) != math.prod(dims):
        text = f"{len(given)} strings, where string{list(dims)} takes {math.prod(dims)}"
        raise position.field("string_data").fault(text)
    out = np.empty(len(given), object)
    out[:] = given
    if all(isinstance(text, str) for text in given):
        out = strings(out)
    out.flags.writeable = False
    return out.reshape(dims)


def _sparse(m: Fields, position: Position, _: Files) -> tuple[str, OnnxSparse]:
    if "values" not in m or "indices" not in m:
        raise position.fault("a sparse tensor needs values and indices")
    (name, values), (_, indices), dims = m["values"], m["indices"], _dims(m, position)
    count = values.shape
    where = position.field("indices")
    if not isinstance(indices, np.ndarray) or indices.dtype != np.int64 or len(count) != 1:
        raise where.fault("indices are int64, and both they and the values are lists")
    if indices.shape not in (count, (*count, len(dims))):
        raise where.fault(f"indices of shape {list(indices.shape)} for {count[0]} values of a rank-{len(dims)} tensor")
    bounds = np.array([math.prod(dims)] if indices.ndim == 1 else dims, np.int64)
    if np.any(indices < 0) or np.any(indices >= bounds):
        raise where.fault(f"an index is outside of {list(dims)}")
    return name, OnnxSparse(values, indices, dims)


# --- files ---------------------------------------------------------------------------------------------------------


class Files:
    """The files that a model refers to, each mapped once. All are inside `folder`; `fetch` brings one there."""

    def __init__(self, folder: Path | None, fetch: Callable[[str], object] | None = None) -> None:
        self.folder, self.fetch = folder, fetch
        self.by_location: dict[str, memoryview] = {}
        self.by_path: dict[Path, memoryview] = {}

    def read(self, entries: list[tuple[str, str]], need: int, position: Position) -> memoryview:
        """The bytes of a tensor's external_data: `length` of them, or as many as its shape needs."""
        given, position = dict(entries), position.field("external_data")
        location = given.get("location", "")
        data = self.open(location, position)
        offset = self.number(given.get("offset", "0"), "offset", position)
        length = self.number(given.get("length", str(need)), "length", position)
        if offset + length > len(data):
            text = f"offset {offset} and length {length} run past the end of {location[:200]!r} ({len(data)} bytes)"
            raise position.fault(text)
        return data[offset : offset + length]

    @staticmethod
    def number(text: str, what: str, position: Position) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) <= 19):
            raise position.fault(f"{what} {text[:40]!r} is not a number of bytes")
        return int(text)

    def open(self, location: str, position: Position) -> memoryview:
        if location in self.by_location:
            return self.by_location[location]
        if self.folder is None:
            text = f"the data are in the file {location[:200]!r}; read the model from its path"
            raise position.fault(text, ImportFailure)
        try:
            path = inside(self.folder, location)
        except FormatError as error:
            raise position.fault(f"location {error}") from None
        if self.fetch is not None:
            self.fetch(location)
        try:
            data = self.by_path[path] if path in self.by_path else mapped(path)
        except (OSError, ValueError) as error:
            raise position.fault(f"location {location[:200]!r} cannot be read: {reason(error)}") from None
        self.by_location[location] = self.by_path[path] = data
        return data


# --- messages ------------------------------------------------------------------------------------------------------


def _loose_text(payload: memoryview) -> str | bytes:
    try:
        return str(payload, "utf-8")
    except UnicodeDecodeError:
        return bytes(payload)


def _pair(m: Fields, _: Position, __: Files) -> tuple[str, str]:
    return m.get("key", ""), m.get("value", "")


# Text by convention, although ONNX declares bytes.
STRING: Final = WireKind(LEN, _loose_text)

MESSAGES: Final = {
    "TensorProto": Schema(
        _tensor,
        {
            1: many("dims", INT64),
            2: one("data_type", INT32),
            3: one("segment", BYTES),
            4: many("float_data", FLOAT),
            5: many("int32_data", INT32),
            6: many("string_data", STRING),
            7: many("int64_data", INT64),
            8: one("name", TEXT),
            9: one("raw_data", BYTES),
            10: many("double_data", DOUBLE),
            11: many("uint64_data", UINT64),
            13: many("external_data", "StringStringEntryProto"),
            14: one("data_location", INT32),
        },
    ),
    "SparseTensorProto": Schema(
        _sparse,
        {
            1: one("values", "TensorProto"),
            2: one("indices", "TensorProto"),
            3: many("dims", INT64),
        },
    ),
    "StringStringEntryProto": Schema(_pair, {1: one("key", TEXT), 2: one("value", TEXT)}),
}
