"""The model of a session, as Models of Singe.

onnxruntime runs one graph for all inputs; Singe compiles a Graph in which every rank is known. So a session has more than one Model
where its caller uses what a file leaves open: an input without a rank (or declared as a scalar, which onnxruntime does not check),
values for weights that may be overridden, or different sizes under one name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...awaitables import resolve
from ...compiler.options import Options
from ...dtypes import own
from ...errors import ValueNeeded
from ...lazy_names import LateModule
from ...model.arguments import bind
from ...model.kept import model_of_file
from ...model.model import Model
from ...onnx.model import OnnxValue
from ...runtime.device import Device
from ...runtime.recent_values import Recent
from ...shapes import Shape
from ..placed import PlacedTensor
from .model_file import ModelFile

if TYPE_CHECKING:
    from ...model.profiling import Profile
    from ...onnx import importer
    from ...onnx import source as sources
    from ...onnx.source import OnnxSource
else:
    importer, sources = LateModule("onnx.importer"), LateModule("onnx.source")

MAX_VARIANTS: Final = 8
"""How many Models a session keeps."""

OpenShape = tuple["int | None", ...]


class Variants:
    """See the module's docstring."""

    def __init__(self, file: ModelFile, device: Device, name: str) -> None:
        self._file: Final = file
        self.device: Final = device
        self.name: Final = name
        self.inputs: Final[Mapping[str, OnnxValue]] = {v.name: v for v in file.interface.inputs}
        self.overridable: Final[Mapping[str, OnnxValue]] = {v.name: v for v in file.interface.overridable}
        self._apart: frozenset[str] = frozenset()
        self._models: Final[Recent[Model]] = Recent(MAX_VARIANTS)
        self._loose: Final = {
            v.name for v in (*self.inputs.values(), *self.overridable.values()) if _is_tensor(v) and not v.shape
        }
        """The inputs that may have any rank."""
        if any(_is_tensor(v) and v.shape is None for v in self.inputs.values()):
            importer.check_ops(file.model)
        else:
            self._model((), ())

    def shapes(self) -> Mapping[str, Shape]:
        """The shapes of the outputs as far as the ops give them; empty if that depends on a run."""
        if self._loose & {name for name, v in self.inputs.items() if v.shape is None}:
            return {}
        return {x.name: x.shape for x in self._model((), ()).outputs if x.shape is not None}

    def run(self, feed: Mapping[str, Any], kept: Collection[str] = ()) -> dict[str, Any]:
        """The outputs by name. kept: those that stay on the device; inputs may lie there, too."""
        model = self._of(feed)
        if kept or any(isinstance(value, PlacedTensor) for value in feed.values()):
            return self._run_on_device(model, feed, kept)
        model, arrays = model.bound((dict(feed),), {})
        program = model.program({k: a.shape for k, a in arrays.items()}, arrays)
        outputs = model.results(program, program.run([arrays[p.name] for p in program.inputs]))
        return dict(zip(model.source.output_names, outputs, strict=True))

    def profile(self, feed: Mapping[str, Any]) -> Profile:
        """The times of the steps of a run."""
        feed = _on_host(feed)
        return self._of(feed).profile(feed, repeat=1)

    def _of(self, feed: Mapping[str, Any]) -> Model:
        """The Model for these inputs."""
        given = tuple(name for name in feed if name in self.overridable)
        shapes = tuple((k, self._other_shape(k, feed[k])) for k in feed if k in self._loose)
        self._separate(feed)
        return self._model(given, tuple((k, shape) for k, shape in shapes if shape is not None))

    def _run_on_device(self, model: Model, feed: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any]:
        placed = {name: value for name, value in feed.items() if isinstance(value, PlacedTensor)}
        if model.source.objects:  # lists and dicts are made of arrays
            return self.run(_on_host(feed))
        others = {name: value for name, value in feed.items() if name not in placed}
        arrays = bind([p for p in model.inputs if p.name not in placed], (others,), {})
        try:
            program = model.program({name: x.shape for name, x in {**arrays, **placed}.items()}, arrays)
        except ValueNeeded:  # what is computed depends on elements that lie there
            if not placed:
                raise
            return self._run_on_device(model, _on_host(feed), kept)
        indices = {r.input for r in program.data.ranges}
        inputs = [
            arrays[p.name]
            if p.name in arrays
            else own(placed[p.name].array())
            if k in indices
            else placed[p.name].value
            for k, p in enumerate(program.inputs)
        ]
        names = model.source.output_names
        numbers = {k for k, name in enumerate(names) if name in kept}
        outputs = resolve(program.start_on_device(inputs, None, numbers), "await session.run_async(…)")
        return {
            name: PlacedTensor(self.device, x) if k in numbers else x
            for k, (name, x) in enumerate(zip(names, outputs, strict=True))
        }

    def _shape(self, name: str) -> Sequence[int | str | None] | None:
        found = self.inputs.get(name) or self.overridable[name]
        return found.shape

    def _other_shape(self, name: str, array: np.ndarray | PlacedTensor) -> tuple[int | None, ...] | None:
        """The shape of an input that may have any rank, if it is not the file's: open sizes where the file says nothing, and those
        of the array where it declares a scalar."""
        if self._shape(name) is None:
            return (None,) * len(array.shape)
        return array.shape or None

    def _separate(self, feed: Mapping[str, Any]) -> None:
        """Note the names that the file gives to sizes which differ in this run."""
        met: dict[str, int] = {}
        apart: set[str] = set()
        for name, value in feed.items():
            if isinstance(value, (np.ndarray, PlacedTensor)):
                for d, n in zip(self._shape(name) or (), value.shape, strict=False):
                    if isinstance(d, str) and met.setdefault(d, n) != n:
                        apart.add(d)
        self._apart |= apart

    def _model(self, given: tuple[str, ...], shapes: tuple[tuple[str, OpenShape], ...]) -> Model:
        """The Model in which these weights are inputs, and these inputs have these shapes."""
        with self.device.lock:
            apart = self._apart
            return self._models.at((given, shapes, apart), lambda: self._made(frozenset(given), dict(shapes), apart))

    def _made(self, given: frozenset[str], shapes: Mapping[str, OpenShape], apart: frozenset[str]) -> Model:
        file = self._file  # not self: the Model would keep the session in memory, and the session the Model

        def source() -> tuple[OnnxSource, Sequence[str]]:
            model = file.model
            made = replace(
                model.graph,
                initializers={k: v for k, v in model.graph.initializers.items() if k not in given},
                inputs=tuple(_reshaped(v, shapes.get(v.name), apart) for v in model.graph.inputs),
            )
            return sources.OnnxSource(replace(model, graph=made)), model.files

        whole = file.whole
        if whole is None:
            model = Model(source()[0], self.device, self.name)
            model.check()
            return model
        facts = ["singe.ort", dict(file.sizes), sorted(given), dict(shapes), sorted(apart)]
        return model_of_file(whole, source, self.device, self.name, facts, Options(), digest=file.digest)


def _on_host(feed: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of which none lies on a device."""
    return {name: own(value.array()) if isinstance(value, PlacedTensor) else value for name, value in feed.items()}


def _is_tensor(value: OnnxValue) -> bool:
    return value.type is not None and value.type.kind == "tensor"


def _reshaped(value: OnnxValue, shape: OpenShape | None, apart: frozenset[str]) -> OnnxValue:
    """An input of another shape, and without the names that stand for different sizes."""
    if value.type is None or (shape is None and not apart):
        return value
    found = value.shape if shape is None else shape
    opened = None if found is None else tuple(None if d in apart else d for d in found)
    return replace(value, type=replace(value.type, shape=opened))
