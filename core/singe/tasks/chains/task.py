"""ChainTask: a task of several models, made of a row of the zoo or of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FormatError, InputError
from ...files import zoo
from ...files.places import bundle_at
from ...files.urls import ZOO
from ...model.files import load
from ...model.kept import kept_by_graph
from ...model.model import Model
from ...program.bundle_reader import read_manifest
from ...runtime.device import Device
from ...texts import escaped
from ..answers import Answer, Arrays
from ..calling import AnyTask
from ..picture.pixels import pixels_of
from ..spec import ChainSpec
from .base import Chain, ChainPart, ChainParts


class ChainTask(AnyTask):
    """A task of several models: `sg.task("ocr")`. info: its facts. models: each with its preparation and decoding, by name."""

    def __init__(self, chain: Chain, models: Mapping[str, Model], info: ChainSpec) -> None:
        super().__init__(chain.name, chain.settings, models)
        self.chain = chain
        self.info = info

    @property
    def models(self) -> Mapping[str, Model]:
        return self._open()

    @property
    def device(self) -> Device:
        return next(iter(self.models.values())).device

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Answer]:
        following = self.chain.begin(
            ChainParts({name: partial(self._run, name) for name in self.models}, self.info), settings
        )
        return lambda source: following(pixels_of(source))

    def _run(self, name: str, given: Mapping[str, np.ndarray]) -> Arrays:
        program = self.models[name].program()
        outputs = program.run([given[x.name] for x in program.inputs])
        return dict(zip((x.name for x in program.outputs), outputs, strict=True))

    def __repr__(self) -> str:
        if self.is_closed:
            return f"<task {self.kind}, closed>"
        names = ", ".join(escaped(model.name) for model in self.models.values())
        return f"<task {self.kind}: {names} on {self.device.name}>"


def chain_task(chain: Chain, source: str | Path, device: str | Device) -> ChainTask:
    """The task of a row of the zoo, `zoo:NAME`, of a folder with files of the same names, or of a bundle."""
    if (folder := bundle_at(source)) is not None:
        return _of_bundle(chain, folder, device)
    files = _files(chain, source)
    nets: dict[str, Model] = {}
    for name in chain.parts:
        if name in files:
            nets[name] = load(files[name], device, name=files[name].stem)
            device = nets[name].device
    labels, options = chain.facts(nets, files)
    licence = zoo.find(str(source)).licence if _is_zoo(source) else ""
    models = {name: _model(chain.parts[name], net, device) for name, net in nets.items()}
    return ChainTask(chain, models, ChainSpec(chain.name, tuple(models), labels, licence, options))


def _model(part: ChainPart, net: Model, device: str | Device) -> Model:
    return kept_by_graph(Model(part.build(net), device, net.name, activations=part.activations))


def _of_bundle(chain: Chain, folder: Path, device: str | Device) -> ChainTask:
    """The task of a bundle: the last part is in the folder itself."""
    info = ChainSpec.from_dict(read_manifest(folder).get("task"), str(folder))
    if info.kind != chain.name:
        raise InputError(f"{folder}: its task is {info.kind!r:.60}, got {chain.name!r}; give the kind that it has")
    wanted = [name for name, part in chain.parts.items() if name in info.parts or not part.optional]
    if list(info.parts) != wanted:
        raise FormatError(
            f"{folder}: has the parts {info.parts}, expected {', '.join(wanted)}; export the task once more"
        )
    models: dict[str, Model] = {}
    for name in wanted:
        models[name] = load(folder if name == wanted[-1] else folder / name, device, name=name)
        device = models[name].device
    return ChainTask(chain, models, info)


def _files(chain: Chain, source: str | Path) -> dict[str, Path]:
    """The files that there are: a part's by its name, others by theirs."""
    if not _is_zoo(source) and Path(source).is_file():
        models = ", ".join(
            " or ".join(part.files) + (" if wanted" if part.optional else "") for part in chain.parts.values()
        )
        raise InputError(
            f"{chain.name}: {source} is one file, and this takes several: {models}; give the folder that has them, or zoo:NAME"
        )
    if not _is_zoo(source) and not Path(source).exists():
        raise InputError(f"{chain.name}: {source}: no such folder, expected one with several models, or zoo:NAME")
    named = {name: part.files for name, part in chain.parts.items()} | {name: (name,) for name in chain.files}
    is_zoo = _is_zoo(source)
    here = [f.name for f in zoo.find(str(source)).files] if is_zoo else _in_folder(Path(source))
    found = {name: file for name, files in named.items() for file in files if file in here}
    words = {name: part.words for name, part in chain.parts.items()} | dict(chain.files)
    for name in words.keys() - found.keys():
        like = [
            file
            for file in here
            if Path(file).suffix == Path(named[name][0]).suffix and _has(Path(file).stem, words[name])
        ]
        if len(like) > 1:
            raise InputError(
                f"{chain.name}: {source} has several files that may be {_either(named[name])}: {', '.join(like)}; give a folder with one"
            )
        if like:
            found[name] = like[0]
    lacking = [_either(part.files) for name, part in chain.parts.items() if name not in found and not part.optional]
    if lacking:
        raise InputError(
            f"{chain.name}: {source} has no {' and no '.join(lacking)}; expected zoo:NAME, or a folder with "
            f"{', '.join(_either(part.files) for part in chain.parts.values())}"
        )
    return {name: zoo.fetch(f"{source}/{file}") if is_zoo else Path(source) / file for name, file in found.items()}


def _is_zoo(source: str | Path) -> bool:
    return isinstance(source, str) and source.startswith(ZOO)


def _in_folder(folder: Path) -> list[str]:
    """The files of a folder, then those of the folders in it."""
    found = [path for form in ("*", "*/*") for path in sorted(folder.glob(form)) if path.is_file()]
    return [path.relative_to(folder).as_posix() for path in found]


def _has(name: str, words: Sequence[str]) -> bool:
    """Whether a name has one of these words among its own; the number of a version ends a word, too."""
    return any(re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", name.lower()) for word in words)


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
