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
    told = {
        "inputs": [*map(_told, interface.inputs)],
        "overridable": [*map(_told, interface.overridable)],
        "outputs": [*map(_told, interface.outputs)],
        "files": interface.files,
        "metadata": asdict(interface.metadata),
    }
    keep_entry(_KIND, _key(digest, sizes), name, [json.dumps(told).encode()])


def recall_interface(digest: str, sizes: Mapping[str, int]) -> Interface | None:
    """The interface that was kept; None if there is none."""
    found = recall_entry(_KIND, _key(digest, sizes))
    if found is None:
        return None
    try:
        told = json.loads(bytes(found))
        values = {name: tuple(map(_value, told[name])) for name in ("inputs", "overridable", "outputs")}
        return Interface(**values, files=tuple(map(str, told["files"])), metadata=_metadata(told["metadata"]))
    except (ValueError, TypeError, KeyError, AttributeError, SingeError):
        return None


def _key(digest: str, sizes: Mapping[str, int]) -> str:
    return entry_key(digest, code_version("singe"), dict(sizes))


def _told(value: OnnxValue) -> list[Any]:
    return [value.name, _told_type(value.type)]


def _told_type(kind: OnnxType | None) -> list[Any] | None:
    return None if kind is None else [kind.kind, kind.dtype, kind.shape, _told_type(kind.of)]


def _value(told: Any) -> OnnxValue:
    name, kind = told
    return OnnxValue(str(name), _type(kind))


def _type(told: Any) -> OnnxType | None:
    if told is None:
        return None
    kind, dtype, shape, of = told
    if not all(d is None or isinstance(d, (int, str)) for d in shape or ()):
        raise ValueError("a dimension is neither a number nor a name")
    return OnnxType(kind, dtype, None if shape is None else tuple(shape), _type(of))


def _metadata(told: dict[str, Any]) -> ModelMetadata:
    return replace(ModelMetadata(), **told)
