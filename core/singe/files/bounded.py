"""Small files that others wrote, read whole: their size is asked before memory is taken, and JSON must be of the kind that is expected."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, Final

from ..errors import FormatError, InputError
from .local import reason

MAX_BYTES: Final = 10_000_000
"""The most bytes of a file that describes something; callers whose files may be larger say so."""


def read_bounded(path: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file that has at most so many; others, such as devices, do not say how many they have."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("it is not a regular file")
        size = facts.st_size
        data = path.read_bytes() if size <= most else None
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be read: {reason(e)}") from None
    if data is None:
        raise _too_long(path, size, most)
    return data


def read_json_object(path: Path, most: int = MAX_BYTES) -> dict[str, Any]:
    return _read_json(path, dict, "an object", most)


def read_json_list(path: Path, most: int = MAX_BYTES) -> list[Any]:
    return _read_json(path, list, "a list", most)


def json_of(data: bytes, name: str, most: int = MAX_BYTES) -> Any:
    """What the JSON in some bytes says; name: how errors call it."""
    if len(data) > most:
        raise _too_long(name, len(data), most)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{name}: not JSON: {e}") from None


def _too_long(name: object, size: int, most: int) -> FormatError:
    return FormatError(f"{name}: {size} bytes, at most {most} are read")


def _read_json(path: Path, kind: type, name: str, most: int) -> Any:
    values = json_of(read_bounded(path, most), str(path), most)
    if not isinstance(values, kind):
        raise FormatError(f"{path}: JSON of a {type(values).__name__}, expected {name}")
    return values
