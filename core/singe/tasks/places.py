"""Where a task's model is, and the files beside it that say something of it: of a file, a folder of Hugging Face, or a row of the zoo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..errors import InputError
from ..files import zoo
from ..files.places import bundle_at, local_file
from ..files.urls import ZOO, is_url
from ..late_dataclass import dataclass

MODELS: Final = (
    "model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx", "onnx/model_int8.onnx", "model.safetensors",
)  # fmt: skip
"""The names of the model in a folder, the first that is there."""
OWN_FACTS: Final = "model.json"
"""What a file is called here that has the name of the model beside it, and says something of it."""


@dataclass(frozen=True)
class Place:
    """model: its file, or the folder of a bundle; name: what it is called; files: those beside it, by the names they have in the folder."""

    model: Path
    name: str
    files: Mapping[str, Path]


def model_place(model: str | Path, reads: Sequence[str]) -> Place:
    """reads: the names of the files beside a model that count."""
    if isinstance(model, str) and model.startswith(ZOO):
        row = zoo.find(model.partition("/")[0])
        if "/" in model or len(row.files) == 1 or not reads:
            return Place(path := local_file(model), path.stem, {})
        return _of_row(row, reads)
    if isinstance(model, str) and is_url(model):
        return Place(path := local_file(model), path.stem, {})
    path = Path(model)
    if bundle_at(path) is not None or not path.is_dir():
        folder = path.parent.parent if path.parent.name == "onnx" else path.parent
        own = path.with_suffix(".json")
        told = {OWN_FACTS: own} if OWN_FACTS in reads and own.is_file() else {}
        return Place(path, path.stem, {**files_beside(folder, reads), **told})
    found = next((path / name for name in MODELS if (path / name).is_file()), None)
    if found is None or not reads:
        raise InputError(f"{path}: a folder with no model: expected one of {', '.join(MODELS)}")
    return Place(found, path.resolve().name, files_beside(path, reads))


def _of_row(row: zoo.ZooModel, reads: Sequence[str]) -> Place:
    """The first file is the model."""
    paths = zoo.fetch_all(row.name)
    return Place(paths[row.files[0].name], row.name, {name: paths[name] for name in reads if name in paths})


def files_beside(folder: Path, reads: Sequence[str]) -> Mapping[str, Path]:
    """Those of these names that are in a folder."""
    return {name: folder / name for name in reads if (folder / name).is_file()}
