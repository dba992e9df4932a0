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
from ...files.places import MANIFEST
from ...late_dataclass import dataclass
from ...model.files import load
from ...model.model import Model
from ...onnx.model import OnnxModel, read_model
from ...program.bundle_reader import NAME, STUB
from ...runtime.devices import DEFAULT
from ...shapes import bytes_text
from .bundle import Bundle, Draft, draft, export, export_together
from .page.scripts import drop_in_scripts
from .stored.weights import WORTH

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
    _refuse_other(file, force)
    bundle = export(model, _folder_of(file), force=force, **options)
    _put_stub(file, bundle, url, bool(options.get("readable")))
    return bundle


def export_folder(
    source: str | Path, out: str | Path, *, url: str | None = None, force: bool = False, **options: Any
) -> Stubs:
    """Write a stub and a bundle for each .onnx file of a folder, and copy its other files; external data, which the bundles hold,
    is left out, with an empty file in its place. A model that cannot be exported is left out, with the reason. Weights that
    several models of one folder have are in the bundle of the first.

    url: the address of the new folder as pages will have it. options: those of `draft`.
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
    names = {path: path.relative_to(source).as_posix() for path in models}
    for name in names.values():
        _refuse_other(out / name, force)
    bundles: dict[str, Bundle] = {}
    left_out: dict[str, str] = {}
    external: set[Path] = set()
    constants: dict[Path, set[bytes]] = {}
    for path, name in names.items():
        try:
            model = read_model(path)
            external |= {path.parent / part for part in model.files}
            constants[path] = _constants(model) if NAME.fullmatch(_folder_of(path).name) else set()
        except SingeError as e:
            left_out[name] = str(e)
    for family in _families(constants):
        drafts: dict[str, Draft] = {}
        for path in family:
            _log.info("%s, %d of %d", names[path], len(bundles) + len(drafts) + len(left_out) + 1, len(models))
            try:
                drafts[names[path]] = draft(load(path, DEFAULT), **options)
            except SingeError as e:
                left_out[names[path]] = str(e)
        folder = (out / names[family[0]]).parent
        made = export_together({_folder_of(out / name).name: x for name, x in drafts.items()}, folder, force)
        for name, bundle in zip(drafts, made.values(), strict=True):
            place = None if url is None else f"{url.rstrip('/')}/{name}{SUFFIX}"
            _put_stub(out / name, bundle, place, bool(options.get("readable")))
            bundles[name] = bundle
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
    return Stubs({name: bundles[name] for name in names.values() if name in bundles}, left_out, tuple(copied))


def _constants(model: OnnxModel) -> set[bytes]:
    """The hashes of a model's large constants."""
    large = (x for x in model.graph.initializers.values() if x.nbytes >= WORTH and not x.dtype.hasobject)
    return {hashlib.blake2b(x.tobytes(), digest_size=16).digest() for x in large}


def _families(constants: Mapping[Path, set[bytes]]) -> list[list[Path]]:
    """The models of which each has constants in common with another of its family, in the same folder: they are in memory at once."""
    families: list[tuple[list[Path], set[bytes]]] = []
    for path, own in constants.items():
        kin = [f for f in families if f[0][0].parent == path.parent and not own.isdisjoint(f[1])]
        families = [f for f in families if f not in kin]
        families.append(([*(p for f in kin for p in f[0]), path], own.union(*(f[1] for f in kin))))
    return [paths for paths, _ in families]


def describe_stubs(stubs: Stubs) -> str:
    """A line for each model, and one for what was copied."""
    lines: list[str] = []
    for name, bundle in stubs.bundles.items():
        size = bytes_text(sum(map(len, bundle.files.values())))
        needed = " and ".join(f"{folder}/" for folder in _folders_needed(bundle))
        lines.append(f"{name}  a stub; its bundle has {size}" + (f"; weights are in {needed}, too" if needed else ""))
    lines += [f"{name}  left out: {why}" for name, why in stubs.left_out.items()]
    return "\n".join([*lines, f"copied: {', '.join(stubs.copied) or 'no other files'}"])


def _folders_needed(bundle: Bundle) -> list[str]:
    """The folders of other bundles whose weights a bundle names."""
    files = [w["file"].split("/") for target in bundle.manifest["targets"].values() for w in target["weights"]]
    return sorted({parts[1] for parts in files if len(parts) > 1})


def is_stub(file: Path) -> bool:
    """Whether a file is a stub."""
    try:
        return file.stat().st_size <= MOST_BYTES and STUB in read_model(file).metadata
    except FormatError:
        return False


def _folder_of(file: Path) -> Path:
    """The folder of a stub's bundle."""
    return file.with_name(file.name + SUFFIX)


def _refuse_other(file: Path, force: bool) -> None:
    """Refuse to write a stub over a file that is none, unless it is forced."""
    if file.suffix != MODEL:
        raise InputError(f"{file}: expected the name of a file that ends with {MODEL}, in whose place the stub will be")
    if file.exists() and not force and not is_stub(file):
        raise InputError(f"{file}: a file that is no stub is there; give another name, or --force to replace it")


def _put_stub(file: Path, bundle: Bundle, url: str | None, readable: bool) -> None:
    folder = _folder_of(file)
    write_files(folder, drop_in_scripts(readable))
    write(file, [stub_of(folder.name, bundle, url)])


def _files(folder: Path, root: Path) -> Iterator[Path]:
    """The files in a folder, without hidden ones, such as those of git."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts):
            yield path


def _is_bundle(folder: Path) -> bool:
    return folder.suffix == SUFFIX and (folder / MANIFEST).is_file()


# --- the file ---------------------------------------------------------------------------------------------------------


def stub_of(folder: str, bundle: Bundle, url: str | None = None) -> bytes:
    """A stub for a bundle in a folder of this name: a ModelProto. url: of the folder; pages put a slash behind it, and behind two of them
    the weights that are in the folder of another model would not be found."""
    digest = hashlib.sha256(bundle.files[MANIFEST]).hexdigest()
    told = {"bundle": folder, "sha256": digest, **({} if url is None else {"url": url.rstrip("/")})}
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
