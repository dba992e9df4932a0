"""Bundles that are made in a page, for its own scripts: `singe/ort` calls `compiled` under Pyodide for a model that has no bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...errors import InputError, SingeError
from ...model.files import load
from ...runtime.devices import DEFAULT
from .bundle import draft


def compiled(files: Any, targets: Any) -> Any:
    """The files of a bundle by name, as an object of JavaScript; of a model that Singe refuses, the reason, a text.

    files: an object of JavaScript with the bytes of the ONNX file and of its external data by their paths; the model is the first.
    targets: an array of names, empty for all.
    """
    from pyodide.ffi import to_js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    try:
        return to_js(bundle_of(files.to_py(), tuple(targets)))
    except SingeError as e:
        return str(e)


def bundle_of(files: Mapping[str, bytes], targets: Sequence[str]) -> dict[str, bytes]:
    """The bundle's files but for its scripts and its page, which a page with `singe/ort` has."""
    with TemporaryDirectory() as folder:
        for name, data in files.items():
            path = Path(folder, name)
            if not path.resolve().is_relative_to(Path(folder).resolve()):
                raise InputError(f"external data: got the path {name!r:.80}, expected one beside the model")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        bundle = draft(load(Path(folder, next(iter(files))), DEFAULT), targets or None).alone()
    return {name: data for name, data in bundle.files.items() if not name.endswith((".js", ".map", ".ts", ".html"))}
