"""`export` writes a bundle: a folder of static files with which a page runs a model, with no Python.

static/README.md, "The bundle", documents model.json field by field. For each target, a bundle has a Program without its
bytes (in model.json), its code, and its weights in pieces (weights.py). The scripts, a page and the class names are
shared, and weights that the targets have in common. Weights may be stored in fewer bytes than in memory (storage.py); if
that changes the outputs, the effect is measured and reported. The same model gives the same bytes. All files are
written to a temporary folder and then moved, model.json last, so that a page never sees a manifest before its
files. A folder with other contents is not touched.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ... import __version__
from ...compiler.compile import compile_with_uses
from ...compiler.options import OF_PACKED_WEIGHTS, Options
from ...compiler.partition import beyond_scripts
from ...compiler.target import Target, execution_of
from ...errors import InputError
from ...files import write_files
from ...files.assets import static_folder
from ...files.places import MANIFEST
from ...graph import Graph, Node
from ...late_dataclass import dataclass
from ...model.arguments import listed
from ...model.model import Model
from ...program.bundle_reader import MAX_MANIFEST_BYTES
from ...program.container import PROGRAM as FORMAT
from ...program.container import encode_dim
from ...program.folded import MAX_ROWS, folded, repeated
from ...program.folded_texts import folded_texts
from ...program.format import header
from ...program.program import ProgramData
from ...runtime.device import Device
from ...runtime.devices import DEFAULT
from ...shapes import bytes_text, show
from ...tasks.labels import labels_of
from ...tasks.picture.spec import LAYOUTS, PictureSpec
from ...tasks.spec import ChainSpec, TaskSpec
from .page.own_page import CHAT, MODEL, TASK_PAGES, own_page
from .page.scripts import DROP_IN, LANGUAGE, OF_TASKS, bundle_scripts, readable_scripts
from .page.single_page import is_single, write_single_page
from .page.snippet import INDEX, links, version
from .page.types import TYPES, types_of
from .stored.deviation import Deviation, measure
from .stored.encoding import Encoding
from .stored.narrow import uses_of
from .stored.storage import Kept, output_channels
from .stored.weights import BundleWeights, WeightFiles, weight_files
from .subject import ONNX_SUFFIX, of_task, subject_of
from .targets import check_activations, chosen_targets

if TYPE_CHECKING:
    from ...language import LanguageModel
    from ...tasks.calling import AnyTask

_log: Final = logging.getLogger("singe")
RUNNER: Final = {"least": "0.1.0", "below": "0.2.0"}
"""The versions of singe.js that can read this bundle."""
ONNX: Final = "onnx"
"""What the manifest of an ONNX file says of its format."""
TOKENIZER: Final = "tokenizer.json"
ADAPTER: Final = "adapter.bin"
WORTH_A_TRIP: Final = 1 << 16
"""Bytes of the manifest."""
_INDENTATION: Final = re.compile(r"\n[ \t]+")
_OF_TARGETS: Final = re.compile(r"weights-[\w-]+-\d+\.bin|kernels-\w+\.(wasm|json)|program-\w+\.json")
_GENERATED: Final = re.compile(
    rf"({_OF_TARGETS.pattern}|(labels|tokenizer|index|speech)\.json|index\.bin|cmudict\.dict|adapter\.bin|model\.d\.ts|singe(-[a-z0-9-]+)?\.js(\.map)?)"
)
"""Files that one export may write and the next may not: leftovers of an earlier export are removed."""


@dataclass(frozen=True)
class Spoken:
    """What the page of a language model needs beside its decoder: the values of a tokenizer.json, and facts of the manifest. one_token: the
    sizes of its commonest runs, for which targets whose steps are launches have words of their own."""

    tokenizer: Mapping[str, Any]
    facts: Mapping[str, Any]
    one_token: Sequence[Mapping[str, int]]
    adapter: bytes | None = None  # what a file of the adapter has before its numbers


@dataclass(frozen=True)
class Bundle:
    """What was written: the manifest, and all files by name, including the manifest."""

    manifest: Mapping[str, Any]
    files: Mapping[str, bytes]
    kept: Sequence[Kept] = ()  # arrays that stay float32 although a smaller dtype was requested
    deviation: Deviation | None = None  # measured for a smaller dtype
    parts: Mapping[str, Bundle] = field(
        default_factory=dict[str, "Bundle"]
    )  # of a task of several models: the others, by folder

    def __repr__(self) -> str:
        inputs, outputs = (listed(x["name"] for x in self.manifest[key]) for key in ("inputs", "outputs"))
        if self.manifest["format"] == ONNX:
            return f"<ONNX file of opset {self.manifest['opset']}: {inputs} → {outputs}; {bytes_text(sum(map(len, self.files.values())))}>"
        size = bytes_text(sum(map(len, self.files.values())))
        targets = listed(self.manifest["targets"])
        return f"<bundle for {targets}: {inputs} → {outputs}; {len(self.files)} files, {size}>"


def export(
    model: Model | LanguageModel | AnyTask, folder: str | Path,
    targets: Sequence[str] | None = None, *, dtype: str = "float32",
    activations: str = "float32", picture: PictureSpec | None = None,
    labels: str | Path | Mapping[int, str] | Sequence[str] | None = None,
    force: bool = False, samples: Sequence[Mapping[str, np.ndarray]] = (), readable: bool = False, device: str | Device = DEFAULT,
    outputs: Sequence[str] | None = None,
) -> Bundle:  # fmt: skip
    """Write a model's bundle, a folder of static files with which a page runs it without Python. A path that ends in .html becomes one
    page that has all of it, and opens by a double click.

    targets: "wasm", "webgpu" or both, which is what None means. dtype: how weights are stored, "float32", "float16" or "int8". activations: with
    "int8" (and dtype "int8"), matrix products and convolutions on wasm compute in integers: faster, less accurate; with "int16", products
    with packed weights do, at almost no cost in accuracy.
    samples: inputs by name, on which the error of smaller weights is measured; without any, random inputs are used. device: on which
    it is measured; "numpy" gives the same error everywhere. Of a language model, `sg.export(sg.language.load("model.gguf"), "chat")`, the
    folder has its tokenizer and its chat template too, and a page to talk with it. Of a task, `sg.export(sg.task("detect", "net.onnx"),
    "detect")`, it takes pictures as they are, and its page is the task.
    outputs: the names of those that the page gets, in this order; what only others need is left out. None: all.
    picture: how a picture becomes the model's input. labels: the names of the classes, in order or by number, a file of them, or
    "imagenet" or "coco". force: write into a folder that holds other files too. readable: keep the scripts as the modules that they were
    written as, instead of one file of few bytes with a source map, and the kernels as they were generated. The same model gives the same
    bytes.

    Where the name ends with .onnx, an ONNX file is written in place of a folder, for other engines: `sg.export(model, "net.onnx")` does
    what `sg.onnx.save` does, which has its options.
    """
    if Path(folder).suffix == ".wasm":
        raise InputError(
            f"{folder}: expected a folder; one WebAssembly module is written by sg.export_freestanding, or with --freestanding"
        )
    folder = Path(folder)
    chosen = {"picture": picture is not None, "labels": labels is not None, "outputs": bool(outputs)}
    subject = subject_of(model, folder, dtype, activations, chosen)
    if folder.suffix == ONNX_SUFFIX:
        from .onnx_file import write_onnx  # noqa: PLC0415 (`import singe` pays for no writer of ONNX files)

        chosen = {
            "targets": targets is not None, "dtype": dtype != "float32", "activations": activations != "float32", **chosen,
            "samples": bool(samples), "readable": readable, "device": device != DEFAULT, "outputs": outputs is not None,
        }  # fmt: skip
        return Bundle(*write_onnx(subject.model, folder, chosen))
    single = is_single(folder)
    known = not single and _refuse_foreign(folder, force)
    names = labels if labels is None or isinstance(labels, Mapping) else dict(enumerate(labels_of(labels)))
    bundle = draft(
        subject.model, targets, picture, names, dtype, samples, subject.activations, readable, device,
        subject.spoken, subject.task, outputs, subject.files, subject.settings,
    ).alone()  # fmt: skip
    parts: dict[str, Bundle] = {}
    for name, part in subject.before.items():
        made = draft(part, targets, None, None, dtype, (), of_task(part, activations), readable, device).alone()
        needed = {file: data for file, data in made.files.items() if file == MANIFEST or _OF_TARGETS.fullmatch(file)}
        parts[name] = replace(made, files=needed)
    _log.info("writing")
    if single:
        write_single_page(bundle.files, folder)
        return bundle
    for name, part in parts.items():
        _put(part, folder / name, _refuse_foreign(folder / name, force))
    _put(bundle, folder, known)
    return replace(bundle, parts=parts)


@dataclass(frozen=True)
class Draft:
    """A bundle whose weights are not in files yet. finished: gives it, with these files of its weights."""

    weights: Mapping[str, BundleWeights]
    finished: Callable[[WeightFiles], Bundle]

    def alone(self) -> Bundle:
        """The bundle in memory, whose files hold all of its weights."""
        return self.finished(weight_files({"": self.weights})[""])


def export_together(drafts: Mapping[str, Draft], folder: Path, force: bool = False) -> dict[str, Bundle]:
    """Write bundles into folders beside each other. What their weights have in common is in the first that needs it, where the
    others' manifests name it."""
    known = {name: _refuse_foreign(folder / name, force) for name in drafts}
    found = weight_files({name: made.weights for name, made in drafts.items()})
    bundles = {name: made.finished(found[name]) for name, made in drafts.items()}
    for name, bundle in bundles.items():
        _put(bundle, folder / name, known[name])
    return bundles


def draft(
    model: Model,
    targets: Sequence[str] | None = None,
    picture: PictureSpec | None = None,
    labels: Mapping[int, str] | None = None,
    dtype: str = "float32",
    samples: Sequence[Mapping[str, np.ndarray]] = (),
    activations: str = "float32",
    readable: bool = False,
    device: str | Device = DEFAULT,
    spoken: Spoken | None = None,
    task: TaskSpec | ChainSpec | None = None,
    outputs: Sequence[str] | None = None,
    carried: Mapping[str, bytes] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Draft:
    """A model's bundle as far as its weights; see `export`. spoken: of a language model; task: of a task, and carried: what
    travels with it, and settings: what a call may choose."""
    chosen = chosen_targets(targets)
    own = activations == model.options.activations and activations in OF_PACKED_WEIGHTS
    if own and not any(t.integers for t in chosen.values()):
        activations = "float32"  # a model's own choice is for the targets that have another
    check_activations(activations, dtype, chosen)
    graph = model.graph() if outputs is None else _with_outputs(model.graph(), outputs)
    options = replace(model.options, specialised=model.specialised if spoken is None else ())
    one_token = () if spoken is None else [(sizes, model.graph(sizes)) for sizes in spoken.one_token]
    by_token = replace(options, specialised=one_token) if one_token else options
    medium = task.preparation.medium if isinstance(task, TaskSpec) else None
    has_words = spoken is not None or (readable and TOKENIZER in (carried or {}))
    rare = {DROP_IN: False, LANGUAGE: has_words, OF_TASKS: task is not None}
    rare |= {f"{OF_TASKS}{name}": name == medium for name in TASK_PAGES}
    files = _scripts(readable, [name for name, wanted in rare.items() if not wanted])
    encoding = Encoding(dtype, activations, graph)
    weights = {
        name: _weights(name, target, graph, by_token if execution_of(target).launches else options, encoding)
        for name, target in chosen.items()
    }

    def finished(found: WeightFiles) -> Bundle:
        entries = _targets(found, files, readable)
        files.update(found.files)
        deviation = None if dtype == "float32" else measure(graph, encoding, labels, samples, device)
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "singe": __version__,
            "runner": dict(RUNNER),
            "name": model.name,
            "inputs": [_port(x.name, x) for x in graph.inputs],
            "outputs": _outputs(next(iter(entries.values()))["program"]),
            "image": None if picture is None else _image(picture, graph),
            "labels": None,
            "facts": {
                "dtype": dtype,
                "activations": activations,
                "errors": {} if deviation is None else dict(deviation.errors),
            },
            "targets": entries,
        }
        if labels is not None:
            manifest["labels"] = "labels.json"
            dense = sorted(labels) == list(range(len(labels)))
            files["labels.json"] = _json([labels[k] for k in range(len(labels))] if dense else labels)
        if spoken is not None:
            manifest["language"] = {"tokenizer": _file(TOKENIZER, _json(spoken.tokenizer), files), **spoken.facts}
            if spoken.adapter is not None:
                manifest["language"]["adapter"] |= _file(ADAPTER, spoken.adapter, files)
        if task is not None:
            own = {name: _file(name, data, files) for name, data in (carried or {}).items()}
            manifest["task"] = {**task.to_dict(), "settings": dict(settings or {}), **({"files": own} if own else {})}
        if spoken is None:
            files[TYPES] = types_of(model.name, manifest["inputs"], manifest["outputs"], task).encode()
        manifest, written = _written(manifest)
        files.update(written)
        # Readable modules import each other without a version.
        hints = links("./", files, [MANIFEST], "" if readable else f"?v={version(files)}")
        files[INDEX] = own_page(
            CHAT if spoken is not None else MODEL if task is None else TASK_PAGES[medium or "picture"], hints
        )
        return Bundle(manifest, files, tuple(encoding.kept), deviation)

    return Draft(weights, finished)


def _with_outputs(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph with some of its outputs, by name."""
    of = dict(zip(graph.output_names, graph.outputs, strict=True))
    chosen = tuple(dict.fromkeys(names))
    if not chosen or not of.keys() >= set(chosen):
        given = ", ".join(repr(n) for n in chosen if n not in of) or "none"
        raise InputError(f"outputs: got {given}, expected some of {', '.join(of)}")
    return replace(graph, outputs=tuple(of[n] for n in chosen), output_names=chosen, results={})


def _port(name: str, node: Node) -> dict[str, Any]:
    return {"name": name, "dtype": node.dtype.name, "shape": [encode_dim(d) for d in node.shape]}


def _outputs(program: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The outputs as the Programs have them. Their shapes may differ in form from the graph's,
    since compiling may find that two sizes are equal."""
    buffers = [program["buffers"][i] for i in program["outputs"]]
    return [{field: b[field] for field in ("name", "dtype", "shape")} for b in buffers]


def _image(picture: PictureSpec, graph: Graph) -> dict[str, Any]:
    names = [x.name for x in graph.inputs]
    if picture.input not in names and (picture.input or len(names) != 1):
        raise InputError(f"picture: got input {picture.input!r}, expected the name of an input: {', '.join(names)}")
    (shape,) = (x.shape for x in graph.inputs if x.name == (picture.input or names[0]))
    axes = (*picture.size, picture.channels)
    made = tuple(axes[k] for k in LAYOUTS[picture.layout])
    if len(shape) != 4 or any(isinstance(d, int) and d != m for d, m in zip(shape[1:], made, strict=True)):
        raise InputError(
            f"picture: {picture.layout} of {picture.size[0]} × {picture.size[1]} and {picture.channels} channels makes the "
            f"shape {show((1, *made))}, but the input is {show(shape)}; choose size, channels or layout to fit"
        )
    return {
        "input": picture.input or names[0], "size": list(picture.size), "channels": picture.channels,
        "crop": picture.crop, "mean": list(picture.mean), "std": list(picture.std), "layout": picture.layout,
    }  # fmt: skip


# --- targets ----------------------------------------------------------------------------------------------------------


def _weights(name: str, target: Target, graph: Graph, options: Options, encoding: Encoding) -> BundleWeights:
    """A target's Program, compiled with these options, and its weights."""
    _log.info("compiling for %s", name)
    options = replace(options, activations=encoding.activations if target.integers else "float32")
    program, uses = compile_with_uses(graph, target, options)
    if encoding.dtype != "float32":
        encoding.channels = {**encoding.channels, **output_channels(program, uses)}
    beyond = beyond_scripts(program)
    if beyond:
        raise InputError(f"target {name}: {beyond}. Export for other targets, or run the model in Python")
    read = uses_of(uses)
    return BundleWeights(program, encoding.parts(program, read), read)


def _targets(found: WeightFiles, files: dict[str, bytes], readable: bool) -> dict[str, dict[str, Any]]:
    """The targets' entries in the manifest; the files of their code are added to `files`."""
    return {
        name: {
            "program": header(program if readable else _without_names_of_ops(program)),
            "modules": _modules(name, program, files, readable),
            "weights": weights,
        }
        for name, (program, weights) in found.placed.items()
    }


def _without_names_of_ops(program: ProgramData) -> ProgramData:
    """A page reads no facts, and these are as long as the kernels are many; each kernel has its label."""
    return replace(program, facts={name: fact for name, fact in program.facts.items() if name != "fused"})


def _written(manifest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest as it is written, and its files: with the lists of its programs folded, if that saves enough for one more trip to a
    script, and readers unfold so many rows. The program of each of several targets is then a file of its own: a page needs one."""
    programs: dict[str, Any] = {k: folded(entry["program"]) for k, entry in manifest["targets"].items()}
    is_read = all(repeated(program) <= MAX_ROWS for program in programs.values())
    short = _with_programs(manifest, programs)
    files: dict[str, bytes] = {}
    if is_read and len(_json(manifest)) - len(_json(short)) >= WORTH_A_TRIP:
        if len(programs) > 1:
            for k, program in programs.items():
                programs[k] = {"target": program["target"], **_file(f"program-{k}.json", _json(program), files)}
        manifest = _with_programs(manifest, programs)
    files[MANIFEST] = _json(manifest)
    for name, data in files.items():
        if len(data) > MAX_MANIFEST_BYTES:
            raise InputError(
                f"export: {name} would have {len(data)} bytes, and at most {MAX_MANIFEST_BYTES} are read; "
                "export for fewer targets, or a smaller part of the model"
            )
    return manifest, files


def _with_programs(manifest: Mapping[str, Any], programs: Mapping[str, Any]) -> dict[str, Any]:
    targets = {k: {**entry, "program": programs[k]} for k, entry in manifest["targets"].items()}
    return {**manifest, "folded": True, "targets": targets}


def _modules(name: str, program: ProgramData, files: dict[str, bytes], readable: bool) -> dict[str, Any]:
    """Texts go into one file; each binary module gets a separate file, since a page fetches only one of them. Texts of about the same length
    are alike, and what is alike and near is compressed well."""
    texts = {k: code for k, code in program.modules.items() if isinstance(code, str)}
    if len(texts) == len(program.modules):
        if not readable:
            ordered = sorted(texts.items(), key=lambda item: len(item[1]))
            texts = folded_texts({k: _INDENTATION.sub("\n", code) for k, code in ordered})
        return _file(f"kernels-{name}.json", _json(texts), files)
    return {
        k: _file(f"kernels-{k}.wasm", code, files) for k, code in program.modules.items() if isinstance(code, bytes)
    }


def _file(name: str, data: bytes, files: dict[str, bytes]) -> dict[str, Any]:
    files[name] = data
    return {"file": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


# --- scripts ----------------------------------------------------------------------------------------------------------


def _scripts(readable: bool, left_out: Sequence[str]) -> dict[str, bytes]:
    """The runner with all scripts that it may load, and its types, but for those whose names begin with one of `left_out`."""
    static = static_folder()
    types = {path.name: path.read_bytes() for path in sorted(static.glob("*.d.ts"))}
    scripts = readable_scripts() if readable else bundle_scripts()
    return {name: data for name, data in {**scripts, **types}.items() if not name.startswith(tuple(left_out))}


# --- the folder -------------------------------------------------------------------------------------------------------


def _refuse_foreign(folder: Path, force: bool) -> bool:
    """Whether the folder holds a bundle. If it holds anything else: an error, unless `force`."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"{folder}: a file, expected a folder to write the bundle into; give another")
    try:
        held = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        held = None
    if isinstance(held, dict) and str(held.get("format")).startswith("singe/"):
        return True
    if any(folder.iterdir()) and not force:
        raise InputError(
            f"{folder}: not empty, and not a bundle (it has no {MANIFEST} of Singe); give another folder, or --force"
        )
    return False


def _put(bundle: Bundle, folder: Path, known: bool) -> None:
    """Write all files, the manifest last. known: whether the folder held a bundle, of which what is left over goes."""
    write_files(folder, {name: bundle.files[name] for name in sorted(bundle.files, key=MANIFEST.__eq__)})
    if known:
        for old in folder.iterdir():
            if _GENERATED.fullmatch(old.name) and old.name not in bundle.files:
                old.unlink()
