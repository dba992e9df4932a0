"""What a model's own file says of its task: exporters write the names of classes, the size of pictures and a licence into an ONNX file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import FormatError
from ..late_dataclass import dataclass
from .spec import MAX_LABELS

ONNX: Final = ".onnx"
_TEXT: Final = r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\""
_ENTRY: Final = re.compile(rf"\s*(\d{{1,6}})\s*:\s*(?:{_TEXT})\s*,?")
_ESCAPED: Final = re.compile(r"\\(.)")
_LICENCE: Final = re.compile(r"[A-Za-z0-9.+-]{1,60}")
_SIDES: Final = re.compile(r"\[?\s*(\d{1,5})\s*,\s*(\d{1,5})\s*\]?")


@dataclass(frozen=True)
class Stated:
    """labels: the names of classes; size: the height and width of pictures that the model was trained with; licence: its SPDX name, as far as
    the file says one."""

    labels: Sequence[str] = ()
    size: tuple[int, int] | None = None
    licence: str = ""


def stated_by(path: Path) -> Stated:
    """What an ONNX file says; nothing of other files, and of those that cannot be read, which the reader of models reports."""
    if path.suffix != ONNX:
        return Stated()
    from ..onnx.model import read_metadata  # noqa: PLC0415 (other tasks need no reader of ONNX files for what they know)

    try:
        metadata = read_metadata(path)
    except FormatError:
        return Stated()
    size = _SIDES.fullmatch(metadata.get("imgsz", ""))
    licence = _LICENCE.match(metadata.get("license", ""))
    return Stated(_labels(metadata), (int(size[1]), int(size[2])) if size else None, licence[0] if licence else "")


def _labels(metadata: Mapping[str, str]) -> Sequence[str]:
    """Of `names`, which is JSON, or as Python prints a dict of numbers and texts; or of `character`, a name a line. None if there are too many."""
    found = metadata["character"].splitlines() if metadata.get("character") else _names(metadata.get("names", ""))
    return tuple(found) if len(found) <= MAX_LABELS else ()


def _names(text: str) -> Sequence[str]:
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _printed(text)
    if isinstance(values, dict):
        values = [values.get(str(k)) for k in range(len(values))]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType, reportUnknownMemberType]
    return values if isinstance(values, list) and all(isinstance(x, str) for x in values) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _printed(text: str) -> Sequence[str]:
    """The names in "{0: 'person', 1: \\"driver's\\"}"; none if it is anything else."""
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        return ()
    inner, at, found = inner[1:-1], 0, []
    while at < len(inner) and (entry := _ENTRY.match(inner, at)) is not None and int(entry[1]) == len(found):
        found.append(_ESCAPED.sub(r"\1", entry[2] if entry[2] is not None else entry[3]))
        at = entry.end()
    return found if not inner[at:].strip() else ()
