"""The values of templates: JSON's, and few more; none is a Python object of the caller's.

Text, numbers, true, false, none, lists and dicts are Python's own; besides there are Undefined, namespaces, and callables that
the interpreter knows. `from_caller` copies what a caller gives, `shown` is the text that a value prints as, Python's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...errors import FormatError, InputError

Value: TypeAlias = Any
MAX_NESTING: Final = 64
MAX_NUMBER: Final = 1 << 53
"""Whole numbers beyond are not exact in JavaScript."""


class UndefinedValue:
    """What a name, or an item, is that is not there."""

    def __init__(self, name: str) -> None:
        self.name = name


class NamespaceValue:
    """What `namespace()` gives: fields that statements may set."""

    def __init__(self, fields: dict[str, Value]) -> None:
        self.fields = fields


class CallableValue:
    """A function, a macro or a method: what it is called, and what it does with arguments, and with those with names."""

    def __init__(self, name: str, call: Callable[[list[Value], dict[str, Value]], Value]) -> None:
        self.name, self.call = name, call


class RecordValue:
    """Fields that are computed when they are asked for, such as those of `loop`."""

    def __init__(self, fields: Mapping[str, Callable[[], Value]]) -> None:
        self.fields = fields


def from_caller(value: object, place: str, depth: int = 0) -> Value:
    """A copy of a value of JSON."""
    if depth > MAX_NESTING:
        raise InputError(f"{place} is nested more than {MAX_NESTING} deep")
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {_key(key, place): from_caller(v, f"{place}[{key!r:.40}]", depth + 1) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [from_caller(v, f"{place}[{at}]", depth + 1) for at, v in enumerate(value)]
    raise InputError(f"{place} is {type(value).__name__}, expected text, a number, true, false, None, a list or a dict")


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"{place} has the key {key!r:.60}, expected text")
    return key


def is_true(value: Value) -> bool:
    """Whether a condition holds."""
    return False if isinstance(value, UndefinedValue) else bool(value)


def shown(value: Value) -> str:
    """What is printed of a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, UndefinedValue):
        return ""
    return _written(value, 0)


def _written(value: Value, depth: int) -> str:
    if depth > MAX_NESTING:
        raise FormatError(f"a template prints a value that is nested more than {MAX_NESTING} deep")
    if value is None or isinstance(value, (str, bool, int, float)):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_written(v, depth + 1) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_written(k, depth + 1)}: {_written(v, depth + 1)}" for k, v in value.items()) + "}"
    if isinstance(value, UndefinedValue):
        return "Undefined"
    raise FormatError(f"a template prints {kind_of(value)}, expected a value of JSON")


def as_json(value: Value, indent: int | None, ascii_only: bool, sort_keys: bool) -> str:
    """A value as JSON, as transformers' filter `tojson` writes it."""
    try:
        return json.dumps(value, ensure_ascii=ascii_only, indent=indent, sort_keys=sort_keys)
    except (TypeError, ValueError, RecursionError):
        raise FormatError(f"a template writes {kind_of(value)} as JSON, which it is not") from None


def kind_of(value: Value) -> str:
    """What a value is, for messages."""
    if isinstance(value, UndefinedValue):
        return f"{value.name!r:.60}, which is not defined"
    for kind, name in KINDS:
        if isinstance(value, kind):
            return name
    return "none" if value is None else type(value).__name__


KINDS: Final[tuple[tuple[type, str], ...]] = (
    (str, "a text"), (bool, "true or false"), (int, "a number"), (float, "a number"), (list, "a list"), (dict, "a dict"),
    (NamespaceValue, "a namespace"), (CallableValue, "a function"), (RecordValue, "a loop"),
)  # fmt: skip
