"""What a caller feeds to a session, as arrays: Python lists and arrays are taken, and refused, as onnxruntime does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..dtypes import DTYPES, int32, int64, own, string, uint32, uint64
from ..errors import DTypeError, InputError
from ..onnx.model import OnnxType, OnnxValue
from ..runtime.device import Device
from ..texts import with_article
from .descriptions import node_arg, tensor_type
from .errors import Fail, InvalidArgument, ValueKindError
from .placed import PlacedTensor
from .values import OrtValue, dtype_of

_WIDENED: Final = {int32: int64, uint32: uint64} if np.dtype(np.intp).itemsize == 4 else {}
"""Under Pyodide NumPy's own integers have 32 bits, so programs that give them where int64 is wanted are right elsewhere."""
_HOW: Final = "give an array, or a list of numbers"


def check_names(
    feed: Mapping[str, Any],
    required: Sequence[str],
    known: Mapping[str, Any],
    outputs: Sequence[str],
    wanted: Sequence[str],
) -> None:
    """Refuse inputs and outputs that a model does not have, and inputs that are missing."""
    if not isinstance(feed, Mapping):
        raise DTypeError(
            f"run: got a {type(feed).__name__} of inputs, expected a dict of arrays by name: {', '.join(known)}"
        )
    missing = [name for name in required if name not in feed]
    if missing:
        raise InputError(
            f"Required inputs ({missing}) are missing from input feed ({list(feed)}); the inputs are {', '.join(required) or 'none'}"
        )
    for name, value in feed.items():
        if name not in known and value is not None:
            raise InvalidArgument(f"Invalid input name: {name}; the inputs are {', '.join(known) or 'none'}")
    for name in wanted:
        if name not in outputs:
            raise InvalidArgument(f"Invalid output name: {name}; the outputs are {', '.join(outputs)}")


def fed(value: Any, spec: OnnxValue, device: Device) -> Any:
    """A value as the input `spec` takes it: an array of its type, a tensor that lies on this device, or a list, a dict or None of such."""
    if isinstance(value, OrtValue):
        value = value._value
    assert spec.type is not None
    if isinstance(value, PlacedTensor):
        if spec.type.kind != "tensor" or value.device is not device:
            value = value.array()
        elif value.dtype is not DTYPES[spec.type.dtype or ""]:
            raise _wrong_type(spec, value.dtype.name, DTYPES[spec.type.dtype or ""].name)
        else:
            _check_shape(value.shape, spec.type.shape, spec.name)
            return value
    return _of_type(value, spec.type, spec)


def _of_type(value: Any, kind: OnnxType, spec: OnnxValue) -> Any:
    if kind.kind == "tensor":
        array = _array(value, kind, spec)
        _check_shape(array.shape, kind.shape, spec.name)
        return array
    if kind.kind == "optional":
        assert kind.of is not None
        return None if value is None else _of_type(value, kind.of, spec)
    if kind.kind == "sequence" and not isinstance(value, list):
        raise InvalidArgument(_kind_message(spec, value, "a list"))
    if kind.kind == "sequence" and kind.of is not None and kind.of.kind == "tensor":
        return [_element(x, kind.of, spec) for x in value]
    if kind.kind == "map" and not isinstance(value, Mapping):
        raise InvalidArgument(_kind_message(spec, value, "a dict"))
    return value


def _kind_message(spec: OnnxValue, value: Any, wanted: str) -> str:
    given = type(value).__name__
    return f"input with name: {spec.name!r} expected to be of type: {node_arg(spec).type}, {wanted}; received {with_article(given)}"


def _element(value: Any, kind: OnnxType, spec: OnnxValue) -> np.ndarray:
    """A tensor of a sequence. One of another type is a plain RuntimeError."""
    try:
        return _array(value, kind, spec)
    except InvalidArgument as e:
        raise ValueKindError(f"input {spec.name!r}: {e}") from e


def _array(value: Any, kind: OnnxType, spec: OnnxValue) -> np.ndarray:
    wanted = DTYPES[kind.dtype or ""]
    if isinstance(value, list):
        return _of_list(value, spec, wanted.numpy if not wanted.held else None)
    if value is None:
        raise Fail(f"Missing Input: {spec.name}: got None, expected {tensor_type(wanted.name)}; {_HOW}")
    if not isinstance(value, np.ndarray):
        taken = (
            f"give numpy.array({value!r:.20}, {wanted.name!r})" if isinstance(value, (int, float, np.generic)) else _HOW
        )
        raise ValueKindError(
            f"Unable to handle object of type {type(value)}: input {spec.name!r} expected {tensor_type(wanted.name)}; {taken}"
        )
    if value.dtype.kind in "USO":
        if wanted is not string:
            raise _wrong_type(spec, "string", wanted.name)
        return _texts(value, spec)
    given = dtype_of(value)
    if given is not wanted and not (given is not None and _WIDENED.get(given) is wanted):
        name = given.name if given is not None else str(value.dtype)
        raise _wrong_type(spec, name, wanted.name)
    return own(value).astype(wanted.numpy, order="C", copy=False)  # of another order of bytes, too


def _wrong_type(spec: OnnxValue, given: str, wanted: str) -> InvalidArgument:
    advice = f"; convert it with .astype({wanted!r})" if wanted in ("bool", "string") or not DTYPES[wanted].held else ""
    return InvalidArgument(
        f"Unexpected input data type. Actual: ({tensor_type(given)}) , expected: ({tensor_type(wanted)}) for the input {spec.name!r}{advice}"
    )


def _texts(value: np.ndarray, spec: OnnxValue) -> np.ndarray:
    """Strings; what is none is written as one."""
    out = np.empty(value.shape, object)
    try:
        out.flat = [x.decode() if isinstance(x, bytes) else str(x) for x in value.flat]  # pyright: ignore[reportAttributeAccessIssue]
    except UnicodeDecodeError as e:
        raise ValueKindError(f"input {spec.name!r}: got bytes that are no UTF-8 ({e}), expected text") from e
    return out


def _of_list(value: list[Any], spec: OnnxValue, wanted: np.dtype[Any] | None) -> np.ndarray:
    """A list of numbers, of lists, or of arrays, converted to the input's type."""
    if wanted is None:
        return _texts(np.asarray(value, object), spec)
    try:
        return np.asarray(value, wanted)
    except (ValueError, TypeError) as e:
        raise ValueKindError(
            f"Could not create tensor from given input list: input {spec.name!r} expected {wanted} in lists of equal lengths: {e}"
        ) from e


def _check_shape(shape: tuple[int, ...], declared: Sequence[int | str | None] | None, name: str) -> None:
    """Refuse a shape that the file's does not fit. A file that says nothing of the shape, or declares a scalar, takes all."""
    if not declared:
        return
    if len(shape) != len(declared):
        raise InvalidArgument(
            f"Invalid rank for input: {name} Got: {len(shape)} Expected: {len(declared)}, the shape {_shown(declared)}; the array's is "
            f"{_shown(shape)}. Please fix either the inputs/outputs or the model."
        )
    wrong = [(k, g, d) for k, (g, d) in enumerate(zip(shape, declared, strict=True)) if isinstance(d, int) and g != d]
    if wrong:
        lines = "".join(f"\n index: {k} Got: {g} Expected: {d}" for k, g, d in wrong)
        raise InvalidArgument(
            f"Got invalid dimensions for input: {name} for the following indices{lines}\n the shape {_shown(declared)} is expected, the "
            f"array's is {_shown(shape)}. Please fix either the inputs/outputs or the model."
        )


def _shown(shape: Sequence[int | str | None]) -> str:
    return f"({', '.join('?' if d is None else str(d) for d in shape)})"
