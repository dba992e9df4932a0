"""ChainTask: a task of several models, made of a row of the zoo or of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...files import zoo
from ...files.urls import ZOO
from ...model.files import load
from ...model.model import Model
from ...runtime.device import Device
from ..answers import Answer, Arrays
from ..calling import AnyTask
from ..media import pixels_of
from .base import Chain, ChainParts


class ChainTask(AnyTask):
    """A task of several models: `sg.task("ocr")`. models: each with its preparation and decoding, by name."""

    def __init__(self, chain: Chain, models: Mapping[str, Model], parts: ChainParts) -> None:
        super().__init__(chain.name, chain.settings)
        self.chain = chain
        self._models: Mapping[str, Model] | None = models
        self._parts = parts

    @property
    def models(self) -> Mapping[str, Model]:
        if self._models is None:
            raise self._closed()
        return self._models

    @property
    def device(self) -> Device:
        return next(iter(self.models.values())).device

    def close(self) -> None:
        self._models, self._parts = None, ChainParts({}, ())

    def _answer(self, source: Any, settings: Mapping[str, Any]) -> Answer:
        if self._models is None:
            raise self._closed()
        return self.chain.answer(self._parts, pixels_of(source), settings)

    def __repr__(self) -> str:
        if self._models is None:
            return f"<task {self.kind}, closed>"
        return f"<task {self.kind}: {', '.join(self._models)} on {self.device.name}>"


def chain_task(chain: Chain, source: str | Path, device: str | Device) -> ChainTask:
    """The task of a row of the zoo, `zoo:NAME`, or of a folder with files of the same names."""
    files = _files(chain, source)
    models: dict[str, Model] = {}
    for name, part in chain.parts.items():
        if name in files:
            model = load(files[name], device, name=name)
            device = model.device
            models[name] = Model(part.build(model), device, name)
    steps = {name: partial(_run, model) for name, model in models.items()}
    return ChainTask(chain, models, ChainParts(steps, chain.labels(files)))


def _run(model: Model, given: Mapping[str, np.ndarray]) -> Arrays:
    program = model.program()
    outputs = program.run([given[x.name] for x in program.inputs])
    return dict(zip((x.name for x in program.outputs), outputs, strict=True))


def _files(chain: Chain, source: str | Path) -> dict[str, Path]:
    """The files that there are: a part's by its name, others by theirs."""
    wanted = {name: part.file for name, part in chain.parts.items()} | {name: name for name in chain.files}
    if isinstance(source, str) and source.startswith(ZOO):
        row = zoo.find(source)
        here = {f.name for f in row.files}
        found = {name: file for name, file in wanted.items() if file in here}
        _need_all(chain, source, found)
        return {name: zoo.fetch(f"{ZOO}{row.name}/{file}") for name, file in found.items()}
    folder = Path(source)
    found = {name: folder / file for name, file in wanted.items() if (folder / file).is_file()}
    _need_all(chain, source, found)
    return found


def _need_all(chain: Chain, source: str | Path, found: Mapping[str, Any]) -> None:
    lacking = [part.file for name, part in chain.parts.items() if name not in found and not part.optional]
    if lacking:
        raise InputError(
            f"{chain.name}: {source} has no {' and no '.join(lacking)}; expected zoo:NAME, or a folder with "
            f"{', '.join(part.file for part in chain.parts.values())}"
        )
