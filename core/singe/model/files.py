"""Models from files and URLs, and what is written to files: `load` and `save`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ..awaitables import IN_PAGE
from ..compiler.options import Options
from ..errors import FormatError, InputError
from ..files import mapped, write
from ..files.places import MANIFEST, bundle_at, fetched_bytes, local_file
from ..files.urls import is_url, stem_of
from ..lazy_names import LateModule
from ..program.container import MAGIC, PROGRAM, format_of
from ..program.format import from_bytes, read_program
from ..runtime.device import Device
from ..runtime.devices import device as find_device
from ..runtime.devices import device_async
from ..shapes import show
from .kept import model_of_file
from .model import Model
from .sizes import without_bounds

if TYPE_CHECKING:
    from .. import graph as graphs
    from .. import tflite
    from ..graph import Graph
    from ..nn import Module
    from ..onnx.model import OnnxModel
    from ..onnx.module import OnnxModule
    from ..program import bundle_reader
    from . import source as sources
    from . import states as pairs
    from .source import Source
else:
    graphs, tflite, bundle_reader = map(LateModule, ("graph", "tflite", "program.bundle_reader"))
    sources, pairs = LateModule("model.source"), LateModule("model.states")

OTHERS: Final = frozenset(
    {
        ".bin",
        ".ckpt",
        ".gguf",
        ".h5",
        ".keras",
        ".npy",
        ".npz",
        ".onnx",
        ".pb",
        ".pickle",
        ".pkl",
        ".pt",
        ".pth",
        ".tflite",
    }
)
"""Suffixes of formats that `save` does not write."""
MODELS: Final = frozenset({".onnx", ".singe", ".tflite"})
"""Suffixes of files that `load` reads."""


class Serialized(Protocol):
    """A model in memory: onnx.ModelProto."""

    def SerializeToString(self) -> bytes: ...


def load(
    path: str | Path | bytes | Serialized,
    device: str | Device = "auto",
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    name: str | None = None,
    states: Mapping[str, str] | None = None,
    *,
    fail_on_host: bool = False,
    donate: Sequence[str] = (),
) -> Model:
    """A Model from an ONNX or TensorFlow Lite file, a record that `save` wrote, a Program's file, or a bundle's folder: a path, bytes, a
    ModelProto, or a URL, such as hf://owner/repo/file, which is kept in a cache folder (singe/files/download.py). What was compiled before
    (Programs, bundles) runs, and takes no options beside the device. A model with ops that Singe lacks is refused, with a list
    of them, and so is one whose nodes do not fit together, as far as that does not depend on a run. input_shapes gives
    numbers, or names, for dimensions that it leaves open. "L<=512" in place of the name L also limits it: memory for 512
    is allocated once, and larger runs are refused.

    states: each input and the output that is its next value, as in {"past": "present"}: the Model keeps them from run to
    run, starting with zeros (see `session`). fail_on_host: refuse a model with an op that would run on the host. donate: inputs
    in whose memory outputs may be computed, as in `Model.of`.
    """
    path = _readable(path)
    url = path if isinstance(path, str) and is_url(path) else None
    if url is not None:
        path, name = local_file(url), name or stem_of(url)
    if isinstance(path, (str, Path)) and not os.path.exists(path):
        raise _missing(Path(path))  # before a device is opened, which takes a second
    name = name or (Path(path).stem if isinstance(path, (str, Path)) else "model")
    if device != "auto":
        device = find_device(device)
    compiled = _compiled(path, device, name)
    if compiled is not None:
        given = {"input_shapes": input_shapes, "states": states, "fail_on_host": fail_on_host, "donate": donate}
        said = [k for k, v in given.items() if v]
        if said:
            raise InputError(
                f"load: {name} was compiled before, and takes no {' or '.join(said)}; load the model's own file"
            )
        return compiled
    shapes, bounds = without_bounds(input_shapes)

    def read() -> tuple[Source, Sequence[str]]:
        source, beside = _source(path, url, name, shapes)
        return pairs.PairedSource(source, states) if states else source, beside

    options = Options(fail_on_host=fail_on_host, bounds=bounds, donate=donate)
    model = model_of_file(path, read, find_device(device), name, [shapes, states or {}], options)
    if fail_on_host and not model.source.objects and not model.needed:
        model.program()
    return model


def _source(
    path: str | Path | bytes, url: str | None, name: str, shapes: Mapping[str, Sequence[int | str]]
) -> tuple[Source, Sequence[str]]:
    """What a Model is compiled from, and the names of the files beside it that the file names."""
    record = _record(path)
    if record is not None:
        from ..weights.records import read_graph  # noqa: PLC0415 (nor for records)

        shown = str(path) if isinstance(path, (str, Path)) else name
        return sources.GraphSource(_closed(read_graph(record, shown), shapes)), ()
    if is_tflite_file(path):
        from ..tflite.importer import import_model  # noqa: PLC0415 (`import singe` pays for no importer)
        from ..tflite.model import read_model  # noqa: PLC0415

        shown = url or (name if isinstance(path, bytes) else str(path))
        return sources.GraphSource(import_model(read_model(path, name=shown), shapes)), ()
    from ..onnx.source import OnnxSource  # noqa: PLC0415

    model = _onnx_model(path, url, name)
    return OnnxSource(model, shapes), model.files


def _missing(path: Path) -> InputError:
    """The error for a path at which nothing is; it names files of that folder which are called alike."""
    from ..hints import spelt_like  # noqa: PLC0415 (only an error needs it)

    meant = ""
    with suppress(OSError):  # there is no such folder
        meant = spelt_like(path.name, os.listdir(path.parent))
    return InputError(f"{path}: cannot be read: no such file or folder{meant}")


def _readable(source: str | Path | bytes | Serialized) -> str | Path | bytes:
    if isinstance(source, (str, Path, bytes)):
        return source
    if not hasattr(source, "SerializeToString"):
        raise InputError(f"load: got {source!r:.80}, expected a path, a URL, bytes or a ModelProto")
    return source.SerializeToString()


def _compiled(path: str | Path | bytes, device: str | Device, name: str) -> Model | None:
    """The Model of a Program's file, or of a bundle; None if the path is neither."""
    folder = None if isinstance(path, bytes) else bundle_at(path)
    if folder is None and format_of(path) != PROGRAM:
        return None
    from .compiled import of_bundle, of_program  # noqa: PLC0415

    if folder is not None:
        return of_bundle(folder, device, folder.resolve().name)
    data = from_bytes(path, name) if isinstance(path, bytes) else read_program(path)
    return of_program(data, device, name)


def load_module(path: str | Path | bytes, input_shapes: Mapping[str, Sequence[int | str]] | None = None) -> OnnxModule:
    """The model of an ONNX file (or of a URL) as a Module whose weights are parameters: for a Learner, a TrainStep, `sg.grad`.
    Weights have the file's names. `sg.Model.of(module, shapes)` makes a Model of it again."""
    from ..onnx.module import OnnxModule  # noqa: PLC0415

    url = path if isinstance(path, str) and is_url(path) else None
    file = path if url is None else local_file(url)
    if _record(file) is not None:
        raise InputError(f"{path!r:.80}: a record holds weights as constants; load_module reads ONNX files")
    return OnnxModule(_onnx_model(file, url, "model"), input_shapes)


def _onnx_model(path: str | Path | bytes, url: str | None, name: str) -> OnnxModel:
    """What an ONNX file holds; the error for another one says what it is. url: from where the file came; name: of bytes."""
    from ..onnx.model import read_model  # noqa: PLC0415

    if not isinstance(path, bytes) and Path(path).is_dir():
        raise InputError(
            f"{path}: a folder, which is no bundle without a {MANIFEST}; give the path of a file{_models_in(Path(path))}"
        )
    try:
        model = read_model(path, name=url, fetch=None if url is None else partial(local_file, url))
        if bundle_reader.STUB in model.metadata:
            raise InputError(f"{model.path}: a stub, which stands for a model: give its bundle, {model.path}.singe")
        return model
    except FormatError as e:
        from ..weights.files import foreign, is_text, kind_of  # noqa: PLC0415

        data = memoryview(path) if isinstance(path, bytes) else mapped(Path(path))
        what, kind = foreign(data), kind_of(data)
        if what is None and kind is not None:
            what = f"these are weights without a model ({kind}): singe.load_weights(module, path) reads them"
        elif what is None and is_text(data):
            what = (
                f"it is text, which begins with {bytes(data[:20]).decode(errors='replace')!r}, expected an ONNX or TensorFlow Lite model, a record, "
                "a Program or a bundle"
            )
        if what is None:
            raise
        raise FormatError(f"{url or (name if isinstance(path, bytes) else path)}: {what}") from e


def _models_in(folder: Path) -> str:
    """For an error: the first ONNX file or record in a folder."""
    found = sorted(p for p in folder.iterdir() if p.suffix in MODELS)
    return f", such as {found[0]}" if found else ""


def _record(path: str | Path | bytes) -> bytes | None:
    """The bytes of a file of Singe; None if it is another file, or cannot be read (the ONNX reader reports that)."""
    if isinstance(path, bytes):
        return path if path[: len(MAGIC)] == MAGIC else None
    try:
        with Path(path).open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return None
            file.seek(0)
            return file.read()
    except OSError:
        return None


def is_tflite_file(path: str | Path | bytes) -> bool:
    """Whether a file begins like one of TensorFlow Lite; one that cannot be read does not."""
    try:
        return tflite.is_tflite(path if isinstance(path, bytes) else mapped(Path(path)))
    except (OSError, ValueError):
        return False


def _closed(graph: Graph, shapes: Mapping[str, Sequence[int | str]]) -> Graph:
    """The graph with the numbers that these shapes give for its sizes."""
    inputs = {x.name: x for x in graph.inputs}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in inputs:
            raise InputError(f"a shape is given for {name!r}; the inputs are {', '.join(inputs) or 'none'}")
        own = inputs[name].shape
        for d, n in zip(own, shape, strict=len(own) == len(shape)):
            known = d if isinstance(d, int) else sizes.setdefault(str(d), n) if isinstance(n, int) else n
            if len(own) != len(shape) or known != n:
                raise InputError(
                    f"the input {name!r} has the shape {show(own)}, got {tuple(shape)}; expected one that fits it: an equal number for each number"
                )
    return graphs.specialise(graph, sizes) if sizes else graph


def save(what: Model | Module, path: str | Path, dtype: str | None = None, shard_bytes: int | None = None) -> None:
    """Write a record: a Model, which `load` reads, or the weights of a Module, which `load_weights` reads. Weights are written
    as safetensors if the path ends so; shard_bytes then splits them into files of about that size, with an index. A record's
    path ends in .singe, or as the caller likes, but not in the suffix of another format.

    dtype="float16" stores float32s in half the bytes; reading widens them again.
    """
    from ..nn import Module  # noqa: PLC0415
    from ..weights.records import model_record, stored_as, weights_record  # noqa: PLC0415
    from ..weights.safetensors import SAFETENSORS, write_safetensors  # noqa: PLC0415

    if not isinstance(what, (Model, Module)):
        raise InputError(f"save: got a {type(what).__name__}, expected a Model or a Module; a Program has save(path)")
    suffix, stem = Path(path).suffix.lower(), Path(path).stem
    if isinstance(what, Model):
        if suffix in OTHERS or suffix == SAFETENSORS:
            onnx = "; sg.onnx.save(model, path) writes ONNX files" if suffix == ".onnx" else ""
            raise InputError(
                f"save: {path}: a Model is written as a record, {stem}.singe, not as {suffix}; give a name with that ending{onnx}"
            )
        return write(Path(path), [model_record(what.graph(), dtype)])
    if suffix in OTHERS:
        raise InputError(
            f"save: {path}: the weights of a Module are written as {stem}{SAFETENSORS}, or as a record, {stem}.singe, not as {suffix}"
            "; give a name with that ending"
        )
    state = {name: t.numpy() for name, t in what.state_dict().items()}
    if suffix == SAFETENSORS:
        return write_safetensors(Path(path), {k: stored_as(a, dtype) for k, a in state.items()}, shard_bytes)
    if shard_bytes is not None:
        raise InputError(f"save: {path} is one file; only {SAFETENSORS} files are split by shard_bytes")
    return write(Path(path), [weights_record(state, dtype)])


async def load_async(
    path: str | Path | bytes,
    device: str | Device = "auto",
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    name: str | None = None,
    states: Mapping[str, str] | None = None,
    *,
    fail_on_host: bool = False,
    donate: Sequence[str] = (),
) -> Model:
    """`load` for a page, where a device must be awaited; there, a URL is fetched by the browser, which keeps it in its own cache."""
    on = await device_async(device)
    if IN_PAGE and isinstance(path, str) and is_url(path):
        url, path = path, await fetched_bytes(path)
        name = name or stem_of(url)
    return load(path, on, input_shapes, name, states, fail_on_host=fail_on_host, donate=donate)
