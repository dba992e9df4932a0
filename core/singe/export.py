"""`export_model` writes a bundle: a folder of static files with which a page runs a model, with no Python.

static/README.md, "The bundle", documents model.json field by field. A bundle holds, for each target, a Program without
its bytes (in model.json), its code and its weights in pieces; and what all share: the scripts, a page, class names.
The same model gives the same bytes. Files are put together beside the folder and moved in when all are there,
model.json last, so a page never finds a manifest before its files. A folder that holds something else is not touched.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from . import __version__, _shape
from ._errors import InputError
from ._shape import bytes_text
from .assets import static_folder
from .backend import find_target
from .compile import compile_graph
from .graph import Graph, Node
from .images import Recipe
from .model import DEVICE_OF, Model
from .program import ALIGN, FORMAT, Program, header
from .report import LEFT, RIGHT, fields, table

MANIFEST: Final = "model.json"
PIECE: Final = 4_000_000 // ALIGN * ALIGN
"""Bytes of a file of weights at most: small enough to come in parallel and to be fetched again alone."""
TARGETS: Final[Mapping[str, str]] = {device: target for target, device in DEVICE_OF.items() if device != "numpy"}
"""What a page runs on ↦ the code generator for it."""
RUNNER: Final = {"least": "0.1.0", "below": "0.2.0"}
"""The versions of singe.js that read what is written here."""
_GENERATED: Final = re.compile(r"(weights-\w+-\d+\.bin|kernels-\w+\.(wasm|json)|labels\.json)")
"""Names that one export writes and the next may not: those of the last one are removed."""


@dataclass(frozen=True)
class Picture:
    """The input that takes pictures, and how they become tensors."""

    input: str
    recipe: Recipe


@dataclass(frozen=True)
class Bundle:
    """What was written: the manifest, and all files by name, the manifest's included."""

    manifest: Mapping[str, Any]
    files: Mapping[str, bytes]


def export_model(
    model: Model, folder: str | Path, targets: Sequence[str] = tuple(TARGETS), *,
    picture: Picture | None = None, labels: Mapping[int, str] | None = None, force: bool = False,
) -> Bundle:  # fmt: skip
    """Write a model's bundle into a folder; `force` lets it share the folder with other files."""
    folder = Path(folder)
    known = _refuse_foreign(folder, force)
    bundle = make_bundle(model, targets, picture, labels)
    _write(bundle.files, folder)
    if known:
        for old in folder.iterdir():
            if _GENERATED.fullmatch(old.name) and old.name not in bundle.files:
                old.unlink()
    return bundle


def make_bundle(
    model: Model,
    targets: Sequence[str] = tuple(TARGETS),
    picture: Picture | None = None,
    labels: Mapping[int, str] | None = None,
) -> Bundle:
    """The bundle in memory."""
    unknown = [t for t in targets if t not in TARGETS]
    if unknown or not targets:
        raise InputError(f"targets: got {', '.join(unknown) or 'none'}, expected some of {', '.join(TARGETS)}")
    graph = model.graph()
    files = _scripts()
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "singe": __version__,
        "runner": dict(RUNNER),
        "name": model.name,
        "inputs": [_port(x.name, x) for x in graph.inputs],
        "outputs": [_port(name, x) for name, x in zip(graph.output_names, graph.outputs, strict=True)],
        "image": None if picture is None else _image(picture),
        "labels": None,
        "targets": {name: _target(name, graph, files) for name in dict.fromkeys(targets)},
    }
    if labels is not None:
        manifest["labels"] = "labels.json"
        dense = sorted(labels) == list(range(len(labels)))
        files["labels.json"] = _json([labels[k] for k in range(len(labels))] if dense else labels)
    files[MANIFEST] = _json(manifest)
    return Bundle(manifest, files)


def _port(name: str, node: Node) -> dict[str, Any]:
    return {"name": name, "dtype": node.dtype.name, "shape": [_shape.encode(d) for d in node.shape]}


def _image(picture: Picture) -> dict[str, Any]:
    r = picture.recipe
    return {
        "input": picture.input, "size": list(r.size), "channels": r.channels, "crop": r.crop,
        "mean": list(r.mean), "std": list(r.std), "layout": r.layout,
    }  # fmt: skip


# --- targets ----------------------------------------------------------------------------------------------------------


def _target(name: str, graph: Graph, files: dict[str, bytes]) -> dict[str, Any]:
    """A target's entry in the manifest; its files are added to `files`."""
    program = compile_graph(graph, find_target(TARGETS[name]))
    return {
        "program": header(program),
        "modules": _modules(name, program, files),
        "weights": _pieces(name, program, files),
    }


def _modules(name: str, program: Program, files: dict[str, bytes]) -> dict[str, Any]:
    """Text goes into one file; a module of bytes is a file by itself, so that a page fetches one of them."""
    texts = {k: code for k, code in program.modules.items() if isinstance(code, str)}
    if len(texts) == len(program.modules):
        return _file(f"kernels-{name}.json", _json(texts), files)
    return {
        k: _file(f"kernels-{k}.wasm", code, files) for k, code in program.modules.items() if isinstance(code, bytes)
    }


def _pieces(name: str, program: Program, files: dict[str, bytes]) -> list[dict[str, Any]]:
    block = program.weights
    return [
        _file(f"weights-{name}-{number}.bin", block[start : start + PIECE].tobytes(), files)
        for number, start in enumerate(range(0, block.size, PIECE))
    ]


def _file(name: str, data: bytes, files: dict[str, bytes]) -> dict[str, Any]:
    files[name] = data
    return {"file": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


# --- scripts and the page ---------------------------------------------------------------------------------------------


def _scripts() -> dict[str, bytes]:
    """The runner with all that it may load, and the page."""
    static = static_folder()
    found = sorted((*static.glob("singe*.js"), *static.glob("*.d.ts")))
    page = _with_hashes((static / "bundle.html").read_text("utf-8"))
    return {**{path.name: path.read_bytes() for path in found}, "index.html": page.encode()}


def _with_hashes(page: str) -> str:
    """The page, its Content-Security-Policy naming the script and the style that it holds by their hashes."""
    for tag in ("script", "style"):
        text = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.S)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        page = page.replace(f"'{tag}-hash'", f"'sha256-{digest}'")
    return page


# --- the folder -------------------------------------------------------------------------------------------------------


def _refuse_foreign(folder: Path, force: bool) -> bool:
    """Whether the folder holds a bundle; with anything else in it, an error unless `force`."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"{folder}: a file, expected a folder to write the bundle into; give another with -o")
    try:
        held = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        held = None
    if isinstance(held, dict) and str(held.get("format")).startswith("singe/"):
        return True
    if any(folder.iterdir()) and not force:
        raise InputError(
            f"{folder}: not empty, and no bundle (no {MANIFEST} of Singe's); give another folder, or --force"
        )
    return False


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    """All files, complete before the first is in its place; the manifest comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".singe-", dir=folder) as made:
        for name, data in files.items():
            (Path(made) / name).write_bytes(data)
        for name in sorted(files, key=MANIFEST.__eq__):
            os.replace(Path(made) / name, folder / name)


# --- the report -------------------------------------------------------------------------------------------------------


def describe_bundle(bundle: Bundle) -> str:
    """The files with their sizes, and what a page fetches for each target."""
    packed = {name: len(gzip.compress(data, 6)) for name, data in bundle.files.items()}
    rows = [(name, bytes_text(len(data)), bytes_text(packed[name])) for name, data in bundle.files.items()]
    total = ("together", bytes_text(sum(map(len, bundle.files.values()))), bytes_text(sum(packed.values())))
    listing = table([("file", LEFT), ("bytes", RIGHT), ("gzip", RIGHT)], [*rows, total])

    def size(names: Sequence[str]) -> str:
        raw, small = sum(len(bundle.files[n]) for n in names), sum(packed[n] for n in names)
        return f"{bytes_text(raw)} ({bytes_text(small)} gzip)" if names else "none"

    facts = [("scripts", size([n for n in bundle.files if n.endswith(".js")])), ("manifest", size([MANIFEST]))]
    for name, target in bundle.manifest["targets"].items():
        kernels = ", or ".join(f"{size([m['file']])}{label}" for label, m in _choices(target["modules"]))
        facts.append((name, f"weights {size([w['file'] for w in target['weights']])}; kernels {kernels}"))
    return f"{listing}\n\n{fields(facts)}"


def _choices(modules: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The files of code of which a page fetches one, each with its name where there are several."""
    return [("", modules)] if "file" in modules else [(f" ({name})", m) for name, m in modules.items()]
