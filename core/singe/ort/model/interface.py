"""What a session says of its model, which is kept from one process to the next (files/kept.py): so a file whose Programs are kept is not
decoded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from ...errors import SingeError
from ...files.kept import code_version, entry_key, keep_entry, recall_entry
from ...late_dataclass import dataclass
from ...onnx.model import OnnxType, OnnxValue
from ..descriptions import ModelMetadata

_KIND: Final = "interface"


@dataclass(frozen=True)
class Interface:
    """The inputs that a run must be given, those with values in the file, the outputs, the names of the files beside the model's that it
    refers to, and what it says of itself."""

    inputs: tuple[OnnxValue, ...]
    overridable: tuple[OnnxValue, ...]
    outputs: tuple[OnnxValue, ...]
    files: tuple[str, ...]
    metadata: ModelMetadata


def keep_interface(interface: Interface, digest: str, sizes: Mapping[str, int], name: str) -> None:
    """digest: of the bytes of the file. sizes: those that have numbers which are not in it."""
    record = {
        "inputs": [*map(_value_record, interface.inputs)],
        "overridable": [*map(_value_record, interface.overridable)],
        "outputs": [*map(_value_record, interface.outputs)],
        "files": interface.files,
        "metadata": asdict(interface.metadata),
    }
    keep_entry(_KIND, _key(digest, sizes), name, [json.dumps(record).encode()])


def recall_interface(digest: str, sizes: Mapping[str, int]) -> Interface | None:
    """The interface that was kept; None if there is none."""
    found = recall_entry(_KIND, _key(digest, sizes))
    if found is None:
        return None
    try:
        record = json.loads(bytes(found))
        values = {name: tuple(map(_value, record[name])) for name in ("inputs", "overridable", "outputs")}
        return Interface(**values, files=tuple(map(str, record["files"])), metadata=_metadata(record["metadata"]))
    except (ValueError, TypeError, KeyError, AttributeError, SingeError):
        return None


def _key(digest: str, sizes: Mapping[str, int]) -> str:
    return entry_key(digest, code_version("singe"), dict(sizes))


def _value_record(value: OnnxValue) -> list[Any]:
    return [value.name, _type_record(value.type)]


def _type_record(kind: OnnxType | None) -> list[Any] | None:
    return None if kind is None else [kind.kind, kind.dtype, kind.shape, _type_record(kind.of)]


def _value(record: Any) -> OnnxValue:
    name, kind = record
    return OnnxValue(str(name), _type(kind))


def _type(record: Any) -> OnnxType | None:
    if record is None:
        return None
    kind, dtype, shape, of = record
    if not all(d is None or isinstance(d, (int, str)) for d in shape or ()):
        raise ValueError("a dimension is neither a number nor a name")
    return OnnxType(kind, dtype, None if shape is None else tuple(shape), _type(of))


def _metadata(record: dict[str, Any]) -> ModelMetadata:
    return replace(ModelMetadata(), **record)
