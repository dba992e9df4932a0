"""The files of an encoder–decoder network: config.json and model.safetensors of Hugging Face, or ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...errors import InputError
from ...files.bounded import read_json_object
from ...late_dataclass import dataclass
from ...runtime.device import Device
from ...weights import read_weights
from ...weights.renaming import Renaming
from ...weights.rounding import with_rounded
from ...weights.stored import StoredArray
from ..files import Tensors
from .description import PairDescription, of_config
from .network import source_room
from .onnx_files import ONNX_FILES, OnnxPair, OnnxShape, is_onnx, onnx_files_in, onnx_weights
from .running import PairModel, SourceReader

CONFIG: Final = "config.json"
GENERATION: Final = "generation_config.json"
TABLE: Final = "tokens.weight"
WEIGHTS: Final = ("model.safetensors", "model.safetensors.index.json")


@dataclass(frozen=True)
class PairFiles:
    """config, generation: what the files say of texts; vocabulary: tokens; model: makes it on a device."""

    name: str
    vocabulary: int
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    model: Callable[[str | Device], SourceReader]


def files_in(folder: Path, others: Sequence[str]) -> dict[str, Path]:
    """The files of a network that a folder has, and those of other names."""
    names = (CONFIG, GENERATION, *WEIGHTS, *others)
    return {name: folder / name for name in names if (folder / name).is_file()} | onnx_files_in(folder)


def open_pair(files: Mapping[str, Path], name: str, form: str | None = None) -> PairFiles:
    """The model of files by their names in a folder. name: for errors; form: to which matrices of floats are rounded."""
    weights = next((files[f] for f in WEIGHTS if f in files), None)
    if (weights is None and not is_onnx(files)) or CONFIG not in files:
        raise InputError(
            f"{name}: expected a folder with {CONFIG} and {WEIGHTS[0]}, or {ONNX_FILES[0]} and {ONNX_FILES[1]}; there are "
            f"{', '.join(files) or 'none of them'}"
        )
    config = read_json_object(files[CONFIG])
    generation = read_json_object(files[GENERATION]) if GENERATION in files else {}
    description = of_config(config, f"{name}: {CONFIG}")

    def by_weights(device: str | Device) -> SourceReader:
        found = onnx_weights(files) if weights is None else read_weights(weights).stored
        of = name if weights is None else str(weights)
        return PairModel(
            description, Tensors(with_rounded(_renamed(found, description, of), form, TABLE, name), of), device
        )

    def model(device: str | Device) -> SourceReader:
        if weights is not None or form is not None:
            return by_weights(device)
        d = description
        source = "input_values" if d.family.rotated else "input_ids"
        shape = OnnxShape(d.decoder.layers, d.decoder.heads, d.decoder.size, source, (source_room(d), d.room))
        return OnnxPair(shape, files, device, partial(by_weights, device))

    return PairFiles(name, description.vocabulary, config, generation, model)


def _renamed(arrays: Mapping[str, StoredArray], d: PairDescription, name: str) -> dict[str, StoredArray]:
    """The tensors under our names, without those that come twice. A table of tokens that only one part's name has is the table of both."""
    renaming = Renaming(d.family.tensors, d.family.name, name)
    twice: list[StoredArray] = []
    for key, array in arrays.items():
        base, _, last = key.rpartition(".") if key.endswith((".weight", ".bias")) else (key, "", "")
        new = renaming.base_of(key, base)
        if not new or (new == "head" and d.tied):
            twice.append(array)
        else:
            renaming.keep(key, f"{new}.{last}" if last else new, array)
    if TABLE not in renaming.stored and twice:
        renaming.stored[TABLE] = twice[0]
    return renaming.stored
