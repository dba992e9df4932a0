"""`write_onnx`: what `export` does where the name of an ONNX file is given, in place of that of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...files import mapped
from ...model.model import Model
from ...onnx.saving.save import OnnxFiles, save
from ...program.container import encode_dim
from ...report import LEFT, RIGHT, fields, table
from ...shapes import bytes_text
from .bundle import ONNX


def write_onnx(model: Model, path: Path, given: Mapping[str, bool]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Write a model as an ONNX file; returns a manifest, and the files by name. given: each option of a page ↦ whether it is given."""
    pages = [option for option, is_given in given.items() if is_given]
    if pages:
        raise InputError(
            f"{path}: {', '.join(pages)}: for a page's folder; an ONNX file takes none of it (sg.onnx.save has its options)"
        )
    made = save(model, path)
    ports = {"inputs": model.graph().leaves, "outputs": model.graph().roots}
    names = {"inputs": made.inputs, "outputs": made.outputs}
    manifest = {
        "format": ONNX, "name": model.name, "opset": made.opset, "states": dict(made.states), "targets": {},
        **{
            key: [
                {"name": name, "dtype": n.dtype.name, "shape": [encode_dim(d) for d in n.shape]}
                for name, n in zip(names[key], nodes, strict=True)
            ]
            for key, nodes in ports.items()
        },
    }  # fmt: skip
    return manifest, {name: mapped(path.with_name(name)) for name in made.files}


def describe_onnx(made: OnnxFiles, model: Model) -> str:
    """The files with their sizes, and what goes in and out."""
    listing = table(
        [("file", LEFT), ("bytes", RIGHT)], [(name, bytes_text(count)) for name, count in made.files.items()]
    )
    facts = [("opset", str(made.opset)), *(("input", str(p)) for p in (*model.inputs, *model.states))]
    return f"{listing}\n\n{fields([*facts, ('outputs', ', '.join(made.outputs))])}"
