"""Stubs: small .onnx files in the place of models, for code that fetches an ONNX model and hands it to `singe/ort`.

`export_stub` writes MODEL.onnx, a stub, and the bundle beside it, in MODEL.onnx.singe. `export_folder` does so for each model
in a folder as Hugging Face has them, and copies its other files. static/README.md, "Stubs", documents what a stub says; it is a
valid ONNX model with an empty graph, so that other tools can read what it is.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...errors import FormatError, InputError, SingeError
from ...files import write, write_files
from ...late_dataclass import dataclass
from ...model.files import load
from ...model.model import Model
from ...onnx.model import read_model
from ...program.bundle_reader import MANIFEST, STUB
from ...runtime.devices import DEFAULT
from ...shapes import bytes_text
from .bundle import Bundle, export
from .page.scripts import drop_in_scripts

SUFFIX: Final = ".singe"
"""What follows the name of a stub in that of its bundle."""
MODEL: Final = ".onnx"
MOST_BYTES: Final = 4096
"""The length of a stub at most."""
_IR_VERSION: Final = 8
_OPSET: Final = 17

_log: Final = logging.getLogger("singe")


@dataclass(frozen=True)
class Stubs:
    """What `export_folder` wrote: for each model, by its path in the folder, its bundle; for those that have none, the reason; the
    other files that were copied."""

    bundles: Mapping[str, Bundle]
    left_out: Mapping[str, str]
    copied: tuple[str, ...]


def export_stub(
    model: Model, file: str | Path, *, url: str | None = None, force: bool = False, **options: Any
) -> Bundle:
    """Write a model's bundle to the folder FILE.singe, and a stub that names it to FILE.

    url: the address of that folder as pages will have it; without one, a page looks beside the file that it fetched. force:
    replace a file that is no stub. options: those of `export`.
    """
    file = Path(file)
    if file.suffix != MODEL:
        raise InputError(f"{file}: expected the name of a file that ends with {MODEL}, in whose place the stub will be")
    if file.exists() and not force and not is_stub(file):
        raise InputError(f"{file}: a file that is no stub is there; give another name, or --force to replace it")
    folder = file.with_name(file.name + SUFFIX)
    bundle = export(model, folder, force=force, **options)
    write_files(folder, drop_in_scripts(bool(options.get("readable"))))
    write(file, [stub_of(folder.name, bundle, url)])
    return bundle


def export_folder(
    source: str | Path, out: str | Path, *, url: str | None = None, force: bool = False, **options: Any
) -> Stubs:
    """Write a stub and a bundle for each .onnx file of a folder, and copy its other files; external data, which the bundles hold,
    is left out, with an empty file in its place. A model that cannot be exported is left out, with the reason.

    url: the address of the new folder as pages will have it. options: those of `export`.
    """
    source, out = Path(source), Path(out)
    if not source.is_dir():
        raise InputError(f"{source}: expected a folder with models, as Hugging Face has them")
    if out.resolve().is_relative_to(source.resolve()) or source.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{out}: the new folder and {source} must be apart, since stubs would replace the models")
    paths = [path for path in _files(source, source) if not _is_bundle(path.parent)]
    models = [path for path in paths if path.suffix == MODEL]
    if not models:
        raise InputError(f"{source}: no {MODEL} file is in it")
    bundles: dict[str, Bundle] = {}
    left_out: dict[str, str] = {}
    external: set[Path] = set()
    for number, path in enumerate(models, 1):
        name = path.relative_to(source).as_posix()
        _log.info("%s, %d of %d", name, number, len(models))
        try:
            external |= {path.parent / part for part in read_model(path).files}
            model = load(path, DEFAULT)
            place = None if url is None else f"{url.rstrip('/')}/{name}{SUFFIX}/"
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            bundles[name] = export_stub(model, out / name, url=place, force=force, **options)
        except SingeError as e:
            left_out[name] = str(e)
    copied = []
    for path in paths:
        if path.suffix == MODEL:
            continue
        to = out / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path in external:
            to.write_bytes(b"")
        else:
            shutil.copyfile(path, to)
            copied.append(path.relative_to(source).as_posix())
    return Stubs(bundles, left_out, tuple(copied))


def describe_stubs(stubs: Stubs) -> str:
    """A line for each model, and one for what was copied."""
    lines = [
        f"{name}  a stub; its bundle has {bytes_text(sum(map(len, bundle.files.values())))}"
        for name, bundle in stubs.bundles.items()
    ]
    lines += [f"{name}  left out: {why}" for name, why in stubs.left_out.items()]
    return "\n".join([*lines, f"copied: {', '.join(stubs.copied) or 'no other files'}"])


def is_stub(file: Path) -> bool:
    """Whether a file is a stub."""
    try:
        return file.stat().st_size <= MOST_BYTES and STUB in read_model(file).metadata
    except FormatError:
        return False


def _files(folder: Path, root: Path) -> Iterator[Path]:
    """The files in a folder, without hidden ones, such as those of git."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts):
            yield path


def _is_bundle(folder: Path) -> bool:
    return folder.suffix == SUFFIX and (folder / MANIFEST).is_file()


# --- the file ---------------------------------------------------------------------------------------------------------


def stub_of(folder: str, bundle: Bundle, url: str | None = None) -> bytes:
    """A stub for a bundle in a folder of this name: a ModelProto."""
    digest = hashlib.sha256(bundle.files[MANIFEST]).hexdigest()
    told = {"bundle": folder, "sha256": digest, **({} if url is None else {"url": url})}
    # Braces within the entry would end it for a reader that searches for it.
    entry = "{" + json.dumps(told)[1:-1].replace("{", "\\u007b").replace("}", "\\u007d") + "}"
    doc = f"The place of a model that Singe compiled. Its bundle is the folder {folder} beside this file."
    made = b"".join([
        _number(1, _IR_VERSION), _text(2, "singe"), _text(3, __version__), _text(6, doc),
        _bytes(7, _text(2, "stub") + _text(10, doc)), _bytes(8, _text(1, "") + _number(2, _OPSET)),
        _bytes(14, _text(1, STUB) + _text(2, f"stub {entry}")),
    ])  # fmt: skip
    if len(made) > MOST_BYTES:
        raise InputError(
            f"a stub has at most {MOST_BYTES} bytes, this one would have {len(made)}: give a shorter name or --url"
        )
    return made


def _varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())
