"""Task: a model that takes pictures, or texts, and gives answers. `task` makes one of a model's file or folder, of a record, or of a bundle."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numpy as np

from ..errors import InputError
from ..files import write, zoo
from ..files.places import bundle_at
from ..files.urls import ZOO
from ..model.files import is_tflite_file, load
from ..model.kept import kept_by_graph
from ..model.model import Model
from ..program.bundle_reader import read_file, read_manifest
from ..program.container import RECORD, format_of
from ..runtime.device import Device
from ..texts import escaped
from ..weights.records import model_record, read_task
from ..weights.safetensors import SAFETENSORS
from .answers import Answer, Arrays
from .building import build, kind_named
from .calling import AnyTask
from .chains import CHAINS
from .chains.task import ChainTask, chain_task
from .kinds.embed import EMBED
from .kinds.maps import SEGMENT
from .kinds.search import PASSAGES, SEARCH
from .labels import labels_of
from .medium import Files, Medium, Wishes
from .places import Place, files_beside, model_place
from .saying import SAYING
from .spec import TaskSpec
from .stated import Stated, stated_by
from .text.index import checked_texts, joined, read_index

if TYPE_CHECKING:
    from .saying.speak import SpeakTask
    from .saying.transcribe import TranscribeTask
    from .saying.translate import TranslateTask


_log: Final = logging.getLogger("singe")
UNIT: Final = (255.0,)
UNTOLD: Final = (
    "%s: %s is given colours from 0 to 1, as most models of this kind take them; its file does not say. Many want "
    'mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375), some order="bgr"; std=255 says that it is so'
)
UNNAMED: Final = (
    "%s: %s names no classes: each of its maps is taken for the scores of one, and a pixel is of the class with the highest. Where maps mean something "
    "else, as those of a detector of text do, the answer is wrong; labels=[...] says that they are classes"
)


WEIGHTS: Final = (SAFETENSORS, ".pt", ".pth")
"""What the name of a file of weights without a graph ends with."""


class Task(AnyTask):
    """A model with its preparation and its decoding: `sg.task("detect", "yolox.onnx", labels="coco")`.

        for found in detect("photo.jpg"):
            print(found.label, found.score, found.box)

    info: the facts of the task. model: the Model of it all, which takes what its medium gives, such as `picture`, uint8 (height, width,
    4). files: what travels with it, such as a tokenizer.
    """

    def __init__(self, model: Model, info: TaskSpec, files: Files | None = None) -> None:
        self._kind = kind_named(info.kind)
        super().__init__(info.kind, self._kind.settings, model)
        self.info = info
        self.files: Files = files or {}
        self._opened: Final = self._kind.medium.open(self._kind, info, self.files)

    @property
    def model(self) -> Model:
        return self._open()

    @property
    def device(self) -> Device:
        return self.model.device

    def save(self, path: str | Path, dtype: str | None = None) -> None:
        """Write a record, which `sg.task` and `sg.load` read; dtype as in `sg.save`."""
        write(Path(path), [model_record(self.model.graph(), dtype, self.info.to_dict(), self.files)])

    def index(self, texts: Sequence[str], codes: str = "float32", dimensions: int = 0, prompt: str = "") -> Task:
        """Of a search, one that looks through these texts, and through those that it had: `index = sg.task("search").index(texts)`, then
        `index("a query", top=3)`. `save` and `sg.export` write it with its texts.

        codes: how their vectors are stored, "float32" or "int8". dimensions: how many numbers of each are kept, for models that are trained
        for fewer; 0: all. prompt: the name of what is written before each text.
        """
        held = read_index(self.files)
        if self.kind != SEARCH.name:
            raise InputError(f"{self.kind}: only a search has an index; sg.task({SEARCH.name!r}).index(texts)")
        wanted = checked_texts(texts)
        prompts = self.info.preparation.prompts
        name = prompt or next((name for name in PASSAGES if name in prompts), "")
        if held is not None:
            dimensions = held.table.shape[1]
        embed = Task(self.model, replace(self.info, kind=EMBED.name), self.files)
        vectors = [answer.vector for answer in embed(wanted, prompt=name, dimensions=dimensions)]
        table = np.stack(vectors) if vectors else np.zeros((0, dimensions or 1), np.float32)
        return Task(self.model, self.info, {**self.files, **joined(held, wanted, table, codes).files()})

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Answer]:
        following = self._opened(self._run, settings)
        return lambda source: following([source])[0]

    def _several(self, sources: Sequence[Any], settings: Mapping[str, Any]) -> list[Answer]:
        return self._opened(self._run, settings)(sources)

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Answer]:
        whole = self._kind.medium.stream
        return (
            super()._stream(frames, settings)
            if whole is None
            else whole(self._kind, self.info, self._run, settings)(frames)
        )

    def _run(self, given: Mapping[str, np.ndarray]) -> Arrays:
        program = self.model.program()
        outputs = program.run([given[x.name] for x in program.inputs])
        return dict(zip((x.name for x in program.outputs), outputs, strict=True))

    def __repr__(self) -> str:
        if self.is_closed:
            return f"<task {self.info.kind}, closed>"
        labels = f", {len(self.info.labels)} labels" if self.info.labels else ""
        return f"<task {self.info.kind}: {escaped(self.model.name)} on {self.model.device.name}, {self.info.preparation}{labels}>"


@overload
def task(  # pyright: ignore[reportOverlappingOverload] (another text may be one of these, too)
    kind: Literal["ocr", "landmarks"], model: str | Path | None = None, *, device: str | Device = "auto"
) -> ChainTask: ...


@overload
def task(  # pyright: ignore[reportOverlappingOverload]
    kind: Literal["transcribe"],
    model: str | Path | None = None,
    *,
    device: str | Device = "auto",
    weights: str | None = None,
) -> TranscribeTask: ...


@overload
def task(  # pyright: ignore[reportOverlappingOverload]
    kind: Literal["speak"], model: str | Path | None = None, *, device: str | Device = "auto"
) -> SpeakTask: ...


@overload
def task(  # pyright: ignore[reportOverlappingOverload]
    kind: Literal["translate"],
    model: str | Path | None = None,
    *,
    device: str | Device = "auto",
    weights: str | None = None,
) -> TranslateTask: ...


@overload
def task(
    kind: str, model: str | Path | Model | None = None, *, labels: str | Path | Sequence[str] | Mapping[int, str] | None = None,
    device: str | Device = "auto", size: tuple[int, int] | int | None = None, head: str = "", licence: str = "",
    beside: str | Path | None = None, **preparation: Any,
) -> Task: ...  # fmt: skip


def task(
    kind: str, model: str | Path | Model | None = None, *, labels: str | Path | Sequence[str] | Mapping[int, str] | None = None,
    device: str | Device = "auto", size: tuple[int, int] | int | None = None, head: str = "", licence: str = "",
    beside: str | Path | None = None, **preparation: Any,
) -> AnyTask:  # fmt: skip
    """A task of a kind ("classify", "detect", "faces", "pose", "segment", "cutout", "depth", "embed-image", "landmarks", "ocr", "embed",
    "search", "rerank", "classify-text", "zero-shot", "tag", "zero-shot-tag", "fill-mask", "voices", "denoise", "notes", "wake-word", "sounds", "speaker",
    "speakers", "transcribe", "speak", "translate") with a model.

    model: an ONNX file, a folder of Hugging Face or a record, of which the decoding is recognised by the shapes of its outputs; the record
    or the bundle of a task, which know all; or a Model, whose device is used unless another is given. Without it, the zoo's model for this
    kind is fetched, if it has one (`singe zoo` lists them). labels: "coco", a file, or a list. size: height and width, where the model
    leaves them open. head: the name of the decoding, to choose it. picture: how a picture is prepared, where it differs from what models of
    this head expect: mean, std, crop, fit ("cover", "contain", "corner", "stretch"), order ("rgb", "bgr"), fill, filter, layout.

    "landmarks", "ocr", "transcribe", "speak" and "translate" take a device, and what is said here. "landmarks": of hands, "zoo:pose",
    "zoo:face-mesh", or a folder with such files. "ocr": those of the zoo, or of a folder with det.onnx, rec.onnx, and cls.onnx and
    characters.txt if they are needed. "transcribe": a folder of Whisper, of Hugging Face or CTranslate2, or of Moonshine. "speak": a voice of
    Piper, VOICE.onnx, with VOICE.onnx.json beside it, or Kokoro. "translate": a folder of Hugging Face of Marian, M2M100, NLLB, T5 or mT5. All of
    these take their bundles, too. weights, of "transcribe" and "translate": to which form matrices of floats are rounded, such as "q8_0".
    """
    several = kind in CHAINS or kind in SAYING
    if not several:
        kind_named(kind)
    if model is None:
        model = zoo.default_for(kind)
    is_zoo = isinstance(model, str) and model.startswith(ZOO)
    if is_zoo and not several:
        row = zoo.find(str(model))
        labels, licence, head, size = (
            labels or row.options.get("labels"),
            licence or row.licence,
            head or next((x.name for x in kind_named(kind).heads if x.name == row.options.get("head")), ""),
            size or row.options.get("size"),
        )
        own = ("labels", "size", "head")
        preparation = {name: x for name, x in row.options.items() if name not in own} | preparation
    asked = {"labels": labels, "size": size, "head": head, "licence": licence, "beside": beside, **preparation}
    given = {name: x for name, x in asked.items() if x}
    if several:
        return _of_several(kind, model, given, device)
    medium = kind_named(kind).medium
    stated = Stated()
    files = {} if beside is None else files_beside(Path(beside), medium.reads)
    if not isinstance(model, Model):
        place = model_place(model, medium.reads)
        facts, own_files = _facts(place.model)
        if facts is not None:
            named = facts.get("kind") if isinstance(facts, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            if named != kind:
                raise InputError(f"{model}: its task is {named!r:.60}, got {kind!r}; give the kind that it has")
            return _ready(kind, place.model, TaskSpec.from_dict(facts, str(model)), own_files, given, device)
        files = {**place.files, **files}
        stated = stated_by(place.model)
        network = medium.network if place.model.suffix in WEIGHTS else None
        model = _loaded(place, device, medium) if network is None else network(kind_named(kind), place, device)
    medium.refuse(preparation)
    for name in preparation.keys() & {"mean", "std"}:
        value = preparation[name]
        preparation[name] = _numbers(name, value)
    wishes = Wishes(
        labels_of(labels) or (stated.labels if kind_named(kind).labels else ()),
        (size, size) if isinstance(size, int) else size, head, licence or stated.licence, preparation, files, stated.size,
    )  # fmt: skip
    graph, info, carried = build(model, kind, wishes)
    if (
        kind_named(kind).varied
        and not is_zoo
        and not preparation.keys() & {"mean", "std"}
        and info.preparation.std == UNIT
    ):
        _log.warning(UNTOLD, kind, model.name)
    if kind == SEGMENT.name and not info.labels and not info.options.get("chances", True):
        _log.warning(UNNAMED, kind, model.name)
    joined = Model(graph, model.device if device == "auto" else device, model.name)
    return Task(kept_by_graph(joined), info, carried)


def _loaded(place: Place, device: str | Device, medium: Medium) -> Model:
    if not (medium.real_outputs and is_tflite_file(place.model)):
        return load(place.model, device, name=place.name)
    from ..tflite.importer import import_model  # noqa: PLC0415 (other models need none)
    from ..tflite.model import read_model  # noqa: PLC0415

    return Model(import_model(read_model(place.model), real_outputs=True), device, place.name)


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """A mean or a deviation: one number, or one a channel."""
    try:
        return tuple(float(x) for x in np.atleast_1d(np.asarray(value, np.float64)))
    except (TypeError, ValueError):
        raise InputError(
            f"pictures: {name} {value!r:.60}: expected a number, or one a channel, such as (127, 120, 110)"
        ) from None


_TAKEN: Final[Mapping[str, Sequence[str]]] = {"transcribe": ("weights",), "translate": ("weights",)}
"""What a task of several models takes beside a device."""


def _of_several(kind: str, model: str | Path | Model, given: Mapping[str, Any], device: str | Device) -> AnyTask:
    if refused := given.keys() - _TAKEN.get(kind, ()):
        taken = " and ".join(("a device", *_TAKEN.get(kind, ())))
        raise InputError(f"{kind}: got {', '.join(sorted(refused))}; this task of several models takes {taken} alone")
    if isinstance(model, Model):
        raise InputError(f"{kind}: got a Model, expected zoo:NAME, or a folder with its several models")
    return chain_task(CHAINS[kind], model, device) if kind in CHAINS else SAYING[kind](model, device, **given)


def _facts(path: str | Path) -> tuple[Any, Files]:
    """The facts of a task in a record or a bundle, and the files that travel with it; None if the model is no task yet."""
    if (folder := bundle_at(path)) is not None:
        facts = read_manifest(folder).get("task")
        entries = facts.get("files", {}) if isinstance(facts, dict) else {}
        return facts, {name: read_file(folder, entry) for name, entry in entries.items()}
    return read_task(Path(path).read_bytes(), str(path)) if format_of(path) == RECORD else (None, {})


def _ready(
    kind: str, path: str | Path, info: TaskSpec, files: Files, arguments: Mapping[str, Any], device: str | Device
) -> Task:
    if arguments:
        raise InputError(
            f"{path}: a task already, which takes no {', '.join(arguments)}; make it anew from the model's file"
        )
    medium = kind_named(kind).medium
    made = load(path, device)
    fits = isinstance(info.preparation, medium.facts)
    names = list(medium.inputs(info.preparation)) if fits else []
    if not fits or [x.name for x in made.inputs] != names:
        raise InputError(
            f"{path}: a task's model takes {', '.join(map(repr, names)) or medium.name}, this one takes {', '.join(map(str, made.inputs))}"
        )
    return Task(made, info, files)
