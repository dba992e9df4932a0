"""Task: a model that takes pictures and gives answers. `task` makes one of a model's file, of a record, or of a bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from ..errors import InputError
from ..files import write, zoo
from ..files.places import local_file
from ..files.urls import ZOO
from ..model.files import load
from ..model.model import Model
from ..program.bundle_reader import bundle_at, read_manifest
from ..program.container import RECORD, format_of
from ..runtime.device import Device
from ..texts import escaped
from ..weights.records import model_record, read_task
from .answers import Answer
from .building import PICTURE, Wishes, build, kind_named
from .calling import AnyTask
from .chains import CHAINS
from .chains.task import ChainTask, chain_task
from .labels import labels_of
from .media import pixels_of
from .spec import TaskSpec


class Task(AnyTask):
    """A model with its preparation and its decoding: `sg.task("detect", "yolox.onnx", labels="coco")`.

        for found in detect("photo.jpg"):
            print(found.label, found.score, found.box)

    info: the facts of the task. model: the Model of it all, which takes `picture`, uint8 (height, width, 4).
    """

    def __init__(self, model: Model, info: TaskSpec) -> None:
        self._kind = kind_named(info.kind)
        super().__init__(info.kind, self._kind.settings)
        self.info = info
        self._model: Model | None = model

    @property
    def model(self) -> Model:
        if self._model is None:
            raise self._closed()
        return self._model

    @property
    def device(self) -> Device:
        return self.model.device

    def close(self) -> None:
        self._model = None

    def save(self, path: str | Path, dtype: str | None = None) -> None:
        """Write a record, which `sg.task` and `sg.load` read; dtype as in `sg.save`."""
        write(Path(path), [model_record(self.model.graph(), dtype, self.info.to_dict())])

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Answer]:
        return lambda source: self._answer(source, settings)

    def _answer(self, source: Any, settings: Mapping[str, Any]) -> Answer:
        pixels = pixels_of(source)
        program = self.model.program()
        outputs = dict(zip((x.name for x in program.outputs), program.run([pixels]), strict=True))
        return self._kind.answer(outputs, self.info, pixels, settings)

    def __repr__(self) -> str:
        if self._model is None:
            return f"<task {self.info.kind}, closed>"
        labels = f", {len(self.info.labels)} labels" if self.info.labels else ""
        return f"<task {self.info.kind}: {escaped(self._model.name)} on {self._model.device.name}, {self.info.preparation}{labels}>"


@overload
def task(  # pyright: ignore[reportOverlappingOverload] (another text may be one of these, too)
    kind: Literal["ocr", "landmarks"], model: str | Path | None = None, *, device: str | Device = "auto"
) -> ChainTask: ...


@overload
def task(
    kind: str, model: str | Path | Model | None = None, *, labels: str | Path | Sequence[str] | Mapping[int, str] | None = None,
    device: str | Device = "auto", size: tuple[int, int] | int | None = None, head: str = "", licence: str = "", **picture: Any,
) -> Task: ...  # fmt: skip


def task(
    kind: str, model: str | Path | Model | None = None, *, labels: str | Path | Sequence[str] | Mapping[int, str] | None = None,
    device: str | Device = "auto", size: tuple[int, int] | int | None = None, head: str = "", licence: str = "", **picture: Any,
) -> Task | ChainTask:  # fmt: skip
    """A task of a kind ("classify", "detect", "faces", "segment", "cutout", "depth", "embed-image", "landmarks", "ocr") with a
    model.

    model: an ONNX file or a record, of which the decoding is recognised by the shapes of its outputs; the record or the bundle of a
    task, which know all; or a Model, whose device is used unless another is given. Without it, the zoo's model for this kind is
    fetched, if it has one (`singe zoo` lists them). labels: "coco", a file, or a list. size: height and
    width, where the model leaves them open.
    head: the name of the decoding, to choose it. picture: how a picture is prepared, where it differs from what models of this
    head expect: mean, std, crop, fit ("cover", "contain", "corner", "stretch"), order ("rgb", "bgr"), fill, filter, layout.

    "landmarks" and "ocr" have several models, and take a device and nothing else. "landmarks": of hands, "zoo:pose", "zoo:face-mesh", or a
    folder with such files. "ocr": those of the zoo, or of a folder with det.onnx, rec.onnx, and cls.onnx and characters.txt if they are
    needed.
    """
    if kind not in CHAINS:
        kind_named(kind)
    if model is None:
        model = zoo.default_for(kind)
    if isinstance(model, str) and model.startswith(ZOO) and kind not in CHAINS:
        row, _ = zoo.zoo_file(model)
        labels, licence, size = (
            labels or row.options.get("labels"),
            licence or row.licence,
            size or row.options.get("size"),
        )
        picture = {name: x for name, x in row.options.items() if name not in ("labels", "size")} | picture
    given = {
        name: x
        for name, x in {"labels": labels, "size": size, "head": head, "licence": licence, **picture}.items()
        if x
    }
    if kind in CHAINS:
        return _chain(kind, model, given, device)
    if not isinstance(model, Model):
        path = local_file(model)
        facts = _facts(path)
        if facts is not None:
            return _ready(kind, path, TaskSpec.from_dict(facts, str(model)), given, device)
        model = load(path, device, name=Path(path).stem)
    unknown = picture.keys() - {"mean", "std", "crop", "fit", "order", "fill", "filter", "layout"}
    if unknown:
        raise InputError(f"task: got {', '.join(sorted(unknown))}, which it does not take; see help(sg.task)")
    for name in picture.keys() & {"mean", "std"}:
        value = picture[name]
        picture[name] = tuple(map(float, value)) if isinstance(value, Sequence) else (float(value),)
    wishes = Wishes(labels_of(labels), (size, size) if isinstance(size, int) else size, head, licence, picture)
    graph, info = build(model, kind, wishes)
    return Task(Model(graph, model.device if device == "auto" else device, model.name), info)


def _chain(kind: str, model: str | Path | Model, given: Mapping[str, Any], device: str | Device) -> ChainTask:
    if given:
        raise InputError(f"{kind}: got {', '.join(given)}; a task of several models takes a device alone")
    if isinstance(model, Model):
        raise InputError(f"{kind}: got a Model, expected zoo:NAME, or a folder with its several models")
    return chain_task(CHAINS[kind], model, device)


def _facts(path: str | Path) -> Any:
    """The facts of a task in a record or a bundle; None if the model is no task yet."""
    if (folder := bundle_at(path)) is not None:
        return read_manifest(folder).get("task")
    return read_task(Path(path).read_bytes(), str(path)) if format_of(path) == RECORD else None


def _ready(kind: str, path: str | Path, info: TaskSpec, given: Mapping[str, Any], device: str | Device) -> Task:
    if info.kind != kind:
        raise InputError(f"{path}: its task is {info.kind!r}, got {kind!r}; give the kind that it has")
    if given:
        raise InputError(
            f"{path}: a task already, which takes no {', '.join(given)}; make it anew from the model's file"
        )
    made = load(path, device)
    if [x.name for x in made.inputs] != [PICTURE]:
        raise InputError(f"{path}: a task's model takes {PICTURE!r}, this one takes {', '.join(map(str, made.inputs))}")
    return Task(made, info)
