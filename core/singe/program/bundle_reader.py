"""Programs of a bundle, the folder that `singe export` writes: everything is checked before it is used.

static/README.md documents model.json, field by field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import FormatError, InputError
from ..files import sha256_of
from ..files.places import MANIFEST
from .container import PROGRAM as FORMAT
from .container import checking, count, string
from .folded import unfolded
from .format import made
from .program import ProgramData
from .weight_codecs import read_piece

NAME: Final = re.compile(r"[\w-][\w.-]*", re.ASCII)
"""How a file of a bundle is called, and a folder whose weights other bundles name."""
_OF_WEIGHTS: Final = re.compile(rf"(\.\./{NAME.pattern}/)?{NAME.pattern}", re.ASCII)
"""Weights may be in a bundle's folder beside this one."""
MAX_MANIFEST_BYTES: Final = 1 << 26
_MAX_TEXTS_BYTES: Final = 1 << 28
STUB: Final = "singe.bundle"
"""The key among the metadata of an ONNX model by which it is a stub, a file that stands for a bundle."""


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a bundle's manifest says."""
    from ..files.bounded import read_json_object  # noqa: PLC0415 (files that `save` wrote need it not)

    path = folder / MANIFEST
    with checking(str(path)):
        manifest = read_json_object(path, MAX_MANIFEST_BYTES)
        if manifest.get("format") != FORMAT:
            raise FormatError(f"format {manifest.get('format')!r:.40}, expected {FORMAT!r}; export the model again")
        if not manifest["targets"] or not isinstance(manifest["targets"], dict):
            raise FormatError("it has no targets")
    return manifest


def read_bundled(folder: Path, manifest: Mapping[str, Any], target: str) -> ProgramData:
    """The Program of one of a bundle's targets."""
    from ..files.bounded import json_of  # noqa: PLC0415 (files that `save` wrote need it not)

    name = str(folder / MANIFEST)
    with checking(name):
        entry = manifest["targets"][target]
        modules = entry["modules"]
        if "file" in modules:
            from .folded_texts import unfolded_texts  # noqa: PLC0415 (other targets need it not)

            texts = json_of(_bytes(folder, modules), modules["file"], _MAX_TEXTS_BYTES)
            code: dict[str, str | bytes] = {**unfolded_texts({string(k): string(text) for k, text in texts.items()})}
        else:
            code = {string(k): _bytes(folder, file) for k, file in modules.items()}
        program = entry["program"]
        if "file" in program:
            program = json_of(_bytes(folder, program), program["file"], MAX_MANIFEST_BYTES)
        return made(
            unfolded(program) if manifest.get("folded") else program, code, _weights(folder, entry["weights"]), name
        )


def read_file(folder: Path, entry: Mapping[str, Any]) -> bytes:
    """A file of a bundle that its manifest describes beside those of its targets."""
    with checking(str(folder / MANIFEST)):
        return _bytes(folder, entry)


def _weights(folder: Path, files: Any) -> np.ndarray:
    pieces = []
    for file in files:
        data = _bytes(folder, file, _OF_WEIGHTS)
        pieces.append(read_piece(file, data) if "parts" in file else np.frombuffer(data, np.uint8))
    return np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)


def _bytes(folder: Path, entry: Mapping[str, Any], name_form: re.Pattern[str] = NAME) -> bytes:
    """A file of a bundle, as its entry describes it."""
    name = string(entry["file"])
    if not name_form.fullmatch(name):
        raise FormatError(f"the file {name!r:.80}: expected a name in the bundle's folder")
    path = folder / name
    try:
        if path.stat().st_size != count(entry["bytes"]):
            raise FormatError(f"{name}: {path.stat().st_size} bytes, expected {entry['bytes']}")
        data = path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e
    if sha256_of(data) != entry["sha256"]:
        raise FormatError(f"{name}: its contents do not match their sha256: the file is damaged")
    return data
