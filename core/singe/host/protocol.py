"""The KServe v2 protocol (Open Inference Protocol) over HTTP, as functions of bytes: a request's body becomes arrays, and arrays become
a response's body. Nothing here knows sockets or runs models.

A body is JSON; or JSON, whose length the header `Inference-Header-Content-Length` says, and the bytes of those tensors that have the
parameter `binary_data_size`, in order. Bytes are little-endian elements without padding; an element of BYTES is a length (uint32) and
the UTF-8 of a text.

A request is checked against the model's inputs before an array is made: names, types, shapes, counts and sizes must agree with them
and with each other. No array is larger than what came for it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any, Final

import numpy as np

from ..dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    narrowed,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    widened,
)
from ..errors import InputError, SingeError
from ..late_dataclass import dataclass
from ..model.arguments import TensorSpec
from ..shapes import MAX_ELEMENTS, show

WIRE_TYPES: Final[Mapping[DType, str]] = {
    bool_: "BOOL",
    uint8: "UINT8",
    uint16: "UINT16",
    uint32: "UINT32",
    uint64: "UINT64",
    int8: "INT8",
    int16: "INT16",
    int32: "INT32",
    int64: "INT64",
    float16: "FP16",
    bfloat16: "BF16",
    float32: "FP32",
    float64: "FP64",
    string: "BYTES",
}
"""Each element type that the protocol has ↦ its name there."""
MAX_JSON_BYTES: Final = 16 << 20
"""Of a request's JSON, which takes up to twenty times as much memory; more is sent as bytes."""
MAX_JSON_ELEMENTS: Final = 1 << 22
"""Of a response's JSON, in all outputs; more is asked for as bytes."""
MAX_EMPTY_SIZES: Final = 1 << 20
"""The most that the other sizes of a shape with a 0 may be together: no bytes come that would show what the model makes of them."""
MAX_ID_LENGTH: Final = 1024
_LENGTH: Final = struct.Struct("<I")
_REFUSED: Final = {
    "shared_memory_region": "this server has no shared memory: send the data",
    "classification": "this server does not rank classes: take the output itself",
    "sequence_id": "this server keeps nothing from request to request: send what the model needs",
}
"""Parameters of extensions that change what is asked for ↦ why they are refused. Others may be ignored."""


class Refused(SingeError):
    """A request that is not answered with what it asks for: the status of HTTP, and why."""

    def __init__(self, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status: Final = status
        self.headers: Final = tuple(headers)


@dataclass(frozen=True)
class InferRequest:
    """What is asked of a model. outputs: the names of those wanted, in order, and whether each is to come as bytes."""

    id: str
    arrays: Mapping[str, np.ndarray]
    outputs: tuple[tuple[str, bool], ...]


def check_ports(ports: Sequence[TensorSpec]) -> None:
    """Refuse inputs and outputs of types that the protocol does not have."""
    for p in ports:
        if p.dtype not in WIRE_TYPES:
            raise InputError(
                f"{p.name!r} is of the type {p.dtype}, which the protocol does not have; give a model of "
                f"{', '.join(kind.name for kind in WIRE_TYPES)}"
            )


def metadata(spec: TensorSpec) -> dict[str, Any]:
    """An input or output, as the protocol describes it: -1 for an open size, and [-1] for a shape that is not known before a run."""
    shape = [-1] if spec.shape is None else [d if isinstance(d, int) else -1 for d in spec.shape]
    return {"name": spec.name, "datatype": WIRE_TYPES[spec.dtype], "shape": shape}


# --- requests ---------------------------------------------------------------------------------------------------------


def read_request(
    body: bytes | bytearray, json_bytes: int | None, inputs: Sequence[TensorSpec], outputs: Sequence[str]
) -> InferRequest:
    """A body as arrays for a model with these inputs and outputs. json_bytes: the length of its JSON; None if it is all JSON."""
    size = len(body) if json_bytes is None else json_bytes
    if not 0 <= size <= len(body):
        raise Refused(400, f"the header says that {size} bytes are JSON, and the body has {len(body)}")
    if size > MAX_JSON_BYTES:
        raise Refused(413, f"{size} bytes of JSON are more than {MAX_JSON_BYTES}: send the tensors as bytes")
    with memoryview(body) as view:
        data = _parsed(view[:size])
        binary = view[size:]
        given = _entries(data, "inputs")
        parameters = _parameters(data, "the request")
        if len(given) != len(inputs):
            raise Refused(400, f"got {len(given)} inputs, expected {len(inputs)}: {_names(inputs)}")
        specs, arrays, at = {p.name: p for p in inputs}, dict[str, np.ndarray](), 0
        for entry in given:
            name = _name(entry, specs.keys(), "input")
            if name in arrays:
                raise Refused(400, f"input {name!r:.80} is given twice")
            arrays[name], at = _tensor(entry, specs[name], binary, at)
        if at != len(binary):
            raise Refused(400, f"{len(binary)} bytes follow the JSON, and the inputs have {at}")
        binary.release()
    as_bytes = _flag(parameters, "binary_data_output", False)
    number = data.get("id", "")
    if not isinstance(number, str) or len(number) > MAX_ID_LENGTH:
        raise Refused(400, f"the id must be a text of at most {MAX_ID_LENGTH} characters")
    return InferRequest(number, arrays, _wanted(data, outputs, as_bytes))


def _parsed(text: memoryview) -> dict[str, Any]:
    try:
        data = json.loads(str(text, "utf-8"))
    except (ValueError, RecursionError) as e:
        raise Refused(400, f"the body is no JSON: {str(e) or type(e).__name__:.200}") from None
    if not isinstance(data, dict):
        raise Refused(400, f"the JSON is {_kind(data)}, expected an object with inputs")
    return data


def _entries(data: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    found = data.get(what)
    if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
        raise Refused(400, f"{what}: expected a list of objects")
    return found


def _parameters(data: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    found = data.get("parameters", {})
    if not isinstance(found, dict):
        raise Refused(400, f"the parameters of {what} are {_kind(found)}, expected an object")
    for name, why in _REFUSED.items():
        if found.get(name):
            raise Refused(400, f"{name}: {why}")
    return found


def _flag(parameters: Mapping[str, Any], name: str, default: bool) -> bool:
    found = parameters.get(name, default)
    if not isinstance(found, bool):
        raise Refused(400, f"{name} is {_kind(found)}, expected true or false")
    return found


def _name(entry: Mapping[str, Any], known: Sequence[str] | Any, what: str) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or name not in known:
        shown = f"{name[:80]!r}" if isinstance(name, str) else _kind(name)
        raise Refused(400, f"there is no {what} {shown}; there are {', '.join(map(repr, known))}")
    return name


def _wanted(data: Mapping[str, Any], outputs: Sequence[str], as_bytes: bool) -> tuple[tuple[str, bool], ...]:
    """The outputs that a request wants: all, if it names none."""
    if not data.get("outputs"):
        return tuple((name, as_bytes) for name in outputs)
    entries = _entries(data, "outputs")
    if len(entries) > len(outputs):
        raise Refused(400, f"{len(entries)} outputs are asked for, and there are {len(outputs)}")
    found: dict[str, bool] = {}
    for entry in entries:
        name = _name(entry, outputs, "output")
        if name in found:
            raise Refused(400, f"output {name!r:.80} is asked for twice")
        found[name] = _flag(_parameters(entry, f"output {name!r:.80}"), "binary_data", as_bytes)
    return tuple(found.items())


def _tensor(entry: Mapping[str, Any], spec: TensorSpec, binary: memoryview, at: int) -> tuple[np.ndarray, int]:
    """An input, and where the bytes of the next one begin."""
    what = f"input {spec.name!r:.80}"
    datatype = entry.get("datatype")
    if datatype != WIRE_TYPES[spec.dtype]:
        shown = f"{datatype[:20]!r}" if isinstance(datatype, str) else _kind(datatype)
        raise Refused(400, f"{what}: got the datatype {shown}, expected {WIRE_TYPES[spec.dtype]}")
    shape = _shape(entry.get("shape"), spec, what)
    size = _parameters(entry, what).get("binary_data_size")
    if size is None:
        return _of_json(entry.get("data"), shape, spec.dtype, what), at
    if "data" in entry:
        raise Refused(400, f"{what} has both data and binary_data_size; give one")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= len(binary) - at:
        raise Refused(400, f"{what}: binary_data_size must be a number of bytes, of which {len(binary) - at} are left")
    return _of_bytes(binary[at : at + size], shape, spec.dtype, what), at + size


def _shape(shape: Any, spec: TensorSpec, what: str) -> tuple[int, ...]:
    expected = spec.shape
    if not isinstance(shape, list) or not all(
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MAX_ELEMENTS for n in shape
    ):
        raise Refused(400, f"{what}: the shape must be a list of numbers from 0 to {MAX_ELEMENTS}")
    if expected is not None and (
        len(shape) != len(expected) or any(isinstance(d, int) and d != n for d, n in zip(expected, shape, strict=True))
    ):
        raise Refused(400, f"{what}: got the shape {show(tuple(shape[:8]))}, expected {show(expected)}")
    most = MAX_ELEMENTS if all(shape) else MAX_EMPTY_SIZES
    if prod(n or 1 for n in shape) > most:
        raise Refused(
            400, f"{what}: the sizes of the shape {show(tuple(shape[:8]))} are too large, beyond {most} together"
        )
    return tuple(shape)


def _of_bytes(raw: memoryview, shape: tuple[int, ...], kind: DType, what: str) -> np.ndarray:
    count = prod(shape)
    if kind is string:
        return _texts(raw, shape, count, what)
    if len(raw) != count * kind.size:
        raise Refused(
            400, f"{what}: got {len(raw)} bytes, expected {count * kind.size} for {show(shape)} of {WIRE_TYPES[kind]}"
        )
    if kind is bool_ and count and np.frombuffer(raw, np.uint8).max() > 1:
        raise Refused(400, f"{what}: a byte of BOOL must be 0 or 1")
    return np.array(np.frombuffer(raw, kind.numpy).reshape(shape))


def _texts(raw: memoryview, shape: tuple[int, ...], count: int, what: str) -> np.ndarray:
    if count * _LENGTH.size > len(raw):
        raise Refused(
            400, f"{what}: {len(raw)} bytes are too few for {count} texts, each of which begins with its length"
        )
    found, at = list[str](), 0
    for _ in range(count):
        start = at + _LENGTH.size
        end = start + _LENGTH.unpack_from(raw, at)[0] if start <= len(raw) else len(raw) + 1
        if end > len(raw):
            raise Refused(400, f"{what}: text {len(found)} goes beyond the {len(raw)} bytes of the input")
        found.append(_text(bytes(raw[start:end]), f"{what}: text {len(found)}"))
        at = end
    if at != len(raw):
        raise Refused(400, f"{what}: {len(raw) - at} bytes follow its {count} texts")
    return _array(found, shape, string, what)


def _text(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Refused(400, f"{what} is not UTF-8") from None


def _of_json(data: Any, shape: tuple[int, ...], kind: DType, what: str) -> np.ndarray:
    count = prod(shape)
    items = _flat(data, shape, what)
    if len(items) != count:
        raise Refused(400, f"{what}: got {len(items)} elements, expected {count} for {show(shape)}")
    allowed = {bool} if kind is bool_ else {str} if kind is string else {int} if kind.is_int else {int, float}
    wrong = set(map(type, items)) - allowed
    if wrong:
        kinds = ", ".join(sorted(_KINDS.get(x, x.__name__) for x in wrong))
        raise Refused(400, f"{what}: data has {kinds}, expected elements of {WIRE_TYPES[kind]}")
    if kind.is_int and items:
        least, most = kind.limits
        if min(items) < least or max(items) > most:
            raise Refused(400, f"{what}: data has a number beyond {WIRE_TYPES[kind]}: from {least} to {most}")
    if kind is string:
        try:
            "".join(items).encode()
        except UnicodeEncodeError:
            raise Refused(400, f"{what}: a text has half of a character, a lone surrogate") from None
    return _array(items, shape, kind, what)


def _array(items: list[Any], shape: tuple[int, ...], kind: DType, what: str) -> np.ndarray:
    if kind is string:
        texts = np.empty(len(items), object)
        texts[:] = items
        return narrowed(texts.reshape(shape), string)
    if not kind.is_float:
        return np.array(items, kind.numpy).reshape(shape)
    try:
        exact = np.array(items, np.float64)
    except OverflowError:
        raise Refused(400, f"{what}: data has an integer beyond {WIRE_TYPES[kind]}") from None
    with np.errstate(over="ignore"):
        found = narrowed(exact.astype(np.float32), kind) if kind.held else exact.astype(kind.numpy)
        if np.any(np.isinf(widened(found)) & np.isfinite(exact)):
            raise Refused(400, f"{what}: data has a number beyond {WIRE_TYPES[kind]}")
    return found.reshape(shape)


def _flat(data: Any, shape: tuple[int, ...], what: str) -> list[Any]:
    """The elements of data, which may be flat, or lists in lists by the shape."""
    if not isinstance(data, list):
        raise Refused(400, f"{what}: data is {_kind(data)}, expected a list, or the parameter binary_data_size")
    if len(shape) < 2 or not data or not isinstance(data[0], list):
        return data
    if len(data) != shape[0]:
        raise Refused(400, f"{what}: data has {len(data)} lists, expected {show(shape)}")
    for n in shape[1:]:
        if not all(isinstance(x, list) and len(x) == n for x in data):
            raise Refused(400, f"{what}: data has lists of other lengths than {show(shape)}")
        data = list(chain.from_iterable(data))
    return data


_KINDS: Final = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}
"""Types of Python ↦ what JSON calls such values."""


def _kind(value: Any) -> str:
    return _KINDS[type(value)]


def _names(ports: Sequence[TensorSpec]) -> str:
    return ", ".join(map(str, ports)) or "none"


# --- responses --------------------------------------------------------------------------------------------------------


def write_response(
    model: str, request: InferRequest, results: Mapping[str, np.ndarray]
) -> tuple[list[bytes], int | None]:
    """The parts of a body with the outputs that a request wants, and the length of its JSON if bytes follow that."""
    plain = sum(results[name].size for name, as_bytes in request.outputs if not as_bytes)
    if plain > MAX_JSON_ELEMENTS:
        raise Refused(
            400, f"{plain} elements of outputs are too many for JSON: ask for them with the parameter binary_data"
        )
    entries, parts = list[dict[str, Any]](), list[bytes]()
    for name, as_bytes in request.outputs:
        array = results[name]
        kind = next(k for k in WIRE_TYPES if k.numpy == array.dtype)
        entry: dict[str, Any] = {"name": name, "datatype": WIRE_TYPES[kind], "shape": list(array.shape)}
        if as_bytes:
            parts.append(_raw(array, kind))
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            entry["data"] = widened(array).ravel().tolist()
        entries.append(entry)
    head = {"model_name": model, "model_version": "1", **({"id": request.id} if request.id else {}), "outputs": entries}
    text = json.dumps(head, separators=(",", ":")).encode()
    return [text, *parts], len(text) if parts else None


def _raw(array: np.ndarray, kind: DType) -> bytes:
    if kind is not string:
        return array.tobytes()
    texts = [x.encode(errors="replace") for x in widened(array).ravel()]
    return b"".join(chain.from_iterable((_LENGTH.pack(len(x)), x) for x in texts))
