"""Settings as plain dataclasses: saved as JSON beside the weights, read again, and checked.

A field is a bool, int, float, str, a tuple or list of these, one of these or None, or another such dataclass.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import FormatError, InputError
from ..files import write
from ..files.bounded import read_json_object

C = TypeVar("C")


def write_config(path: str | Path, config: object) -> None:
    """Write a dataclass, or a dict of plain values, as JSON."""
    write(Path(path), [json.dumps(plain(config), indent=1).encode(), b"\n"])


def plain(config: object) -> dict[str, Any]:
    """The fields of a dataclass by name, as JSON has them; a path is a string."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        config = dataclasses.asdict(config)
    if not isinstance(config, Mapping):
        raise InputError(f"config: got a {type(config).__name__}, expected a dataclass or a dict")
    return json.loads(json.dumps(dict(config), default=in_json))


def in_json(value: object) -> Any:
    """What JSON has of a value that it lacks: a number of NumPy is a number, all else its text."""
    own = value.item() if isinstance(value, np.generic) else value
    return str(value) if own is value else own


def read_config(path: str | Path, kind: type[C]) -> C:
    """The dataclass that a file of `write_config` holds; fields that it lacks have their defaults."""
    return _made(kind, read_json_object(Path(path)), str(path))


def setting(default: Any, text: str, least: float | None = None, most: float | None = None) -> Any:
    """A field with a text that says what it means, for who asks for help: `rate: float = setting(0.1, "the learning rate", 0)`.
    least, most: which numbers a command line accepts."""
    return dataclasses.field(default=default, metadata={"text": text, "least": least, "most": most})


def precision_setting() -> Any:
    """The field of a TrainStep's precision, which the examples share."""
    return setting("float32", "the type in which a step computes; weights are float32")


def field_types(kind: type[Any]) -> dict[str, Any]:
    """The type of each field of a dataclass."""
    hints = typing.get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind) if f.init}


def _made(kind: Any, found: Any, where: str) -> Any:
    """The value of a type that JSON stands for."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(found, dict):
            raise FormatError(f"{where}: got {found!r:.40}, expected the fields of {kind.__name__}")
        types_of = field_types(kind)
        unknown = [name for name in found if name not in types_of]
        if unknown:
            raise FormatError(
                f"{where}: {kind.__name__} has no field {', '.join(unknown)}; it has {', '.join(types_of)}"
            )
        return kind(**{name: _made(types_of[name], value, f"{where}: {name}") for name, value in found.items()})
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if found is None and type(None) in parts:
            return None
        return _made(next(p for p in parts if p is not type(None)), found, where)
    if origin is typing.Literal:
        if found not in parts:
            raise FormatError(f"{where}: got {found!r:.40}, expected one of {', '.join(map(str, parts))}")
        return found
    if origin in (tuple, list):
        if not isinstance(found, list):
            raise FormatError(f"{where}: got {found!r:.40}, expected a list")
        return origin(_made(parts[0], value, where) for value in found)
    if kind is float and type(found) is int:
        return float(found)
    if type(found) is not kind:
        raise FormatError(f"{where}: got {found!r:.40}, expected {getattr(kind, '__name__', kind)}")
    return found
