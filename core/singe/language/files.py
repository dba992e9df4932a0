"""The files of a language model: a GGUF file, perhaps in several pieces, or a folder of Hugging Face.

Both become tensors under GGUF's names, a description, and what the files say of text. Nothing is read of a tensor until a decoder
takes it, which checks its shape first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import FormatError, InputError
from ..files import reason
from ..files.bounded import read_json_object
from ..files.places import local_file
from ..files.urls import is_url
from ..late_dataclass import dataclass
from ..weights import read_weights
from ..weights.quantised import quantised_matrices
from ..weights.rounding import rounded
from ..weights.stored import StoredArray, Weights
from .architectures import Architecture
from .description import MAX_VOCABULARY, DecoderDescription, of_config, of_gguf

MAX_PIECES: Final = 1000
_PIECE: Final = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
_CONFIG: Final = "config.json"
_INDEX: Final = "model.safetensors.index.json"
_TENSORS: Final = "model.safetensors"
IGNORED: Final = re.compile(r".*\.(attn\.(masked_)?bias|rotary_emb\.inv_freq)")
"""Tensors of older folders that hold what a description says."""


_TABLES: Final = ("token_embd.weight", "output.weight")
_OF_TABLES: Final = "q8_0"


class Tensors:
    """Tensors by GGUF's names; a decoder takes each, and what is left over at the end is an error."""

    def __init__(self, stored: Mapping[str, StoredArray], name: str) -> None:
        self._stored, self.name = dict(stored), name
        self._taken: set[str] = set()

    def has(self, name: str) -> bool:
        return name in self._stored

    def take(self, name: str, shape: Sequence[int]) -> StoredArray:
        """The tensor of this name, which must have this shape."""
        found = self._stored.get(name)
        if found is None:
            raise FormatError(f"{self.name}: the tensor {name} is missing, expected one of the shape {tuple(shape)}")
        if found.shape != tuple(shape):
            raise FormatError(f"{self.name}: the tensor {name} has the shape {found.shape}, expected {tuple(shape)}")
        self._taken.add(name)
        return found

    def round(self, form: str) -> None:
        """Let the matrices of floats be rounded to a form of few bits: those of the layers, and the tables of tokens to 8 bits at least."""
        for name, array in self._stored.items():
            table = name in _TABLES
            if table or (name.startswith("blk.") and name.endswith(".weight") and ".shortconv.conv." not in name):
                self._stored[name] = rounded(array, _OF_TABLES if table else form)

    def check_all_taken(self) -> None:
        """Refuse a file with tensors that the decoder did not use: what they do would be missing."""
        rest = [k for k in self._stored if k not in self._taken]
        if rest:
            raise FormatError(
                f"{self.name}: {len(rest)} tensors that Singe does not know in this architecture: {', '.join(rest[:4])}"
            )


@dataclass(frozen=True)
class ModelFiles:
    """A language model on disk. metadata: GGUF's, empty for a folder; folder: of a model of Hugging Face; paths: of the files that say
    what it computes."""

    name: str
    description: DecoderDescription
    tensors: Tensors
    metadata: Mapping[str, Any]
    folder: Path | None
    paths: Sequence[Path]


def open_model(path: str | Path, context: int) -> ModelFiles:
    """The model in a file or a folder. context: the positions for which room will be made."""
    local = Path(path)
    try:
        is_folder = local.is_dir()
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be opened: {reason(e)}") from None
    if is_folder:
        return _folder(local, context)
    if not is_url(path) and not local.exists():
        raise InputError(
            f"{path}: there is no such file or folder here; give a GGUF file, or a folder of Hugging Face with config.json and safetensors"
        )
    return _gguf(path, context)


def _gguf(path: str | Path, context: int) -> ModelFiles:
    name = str(path)
    weights, paths = _pieces(path, name)
    if "general.architecture" not in weights.metadata:
        raise FormatError(
            f"{name}: weights without general.architecture; a language model is a GGUF file, or a folder with config.json "
            "and safetensors"
        )
    stored = dict(weights.stored)
    table = stored.get("token_embd.weight")
    if table is None or len(table.shape) != 2 or not 0 < table.shape[0] <= MAX_VOCABULARY:
        raise FormatError(f"{name}: the tensor token_embd.weight is {table and table.shape}, expected (tokens, width)")
    factors = [k for k in _FACTORS if k in stored]

    def vector(key: str, count: int) -> tuple[float, ...]:
        found = stored.get(key)
        if found is None:
            return ()
        if found.shape != (count,):
            raise FormatError(f"{name}: the tensor {key} has the shape {found.shape}, expected ({count},)")
        values = np.asarray(found.read(), np.float64)
        if not (np.isfinite(values) & (values > 0)).all():
            raise FormatError(f"{name}: the tensor {key} has numbers that are not above 0")
        return tuple(values.tolist())

    description = of_gguf(weights.metadata, vector, table.shape[0], context, name)
    for key in factors:
        del stored[key]
    return ModelFiles(name, description, Tensors(stored, name), weights.metadata, None, paths)


_FACTORS: Final = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def _pieces(path: str | Path, name: str) -> tuple[Weights, Sequence[Path]]:
    """The tensors of a file, and of those that belong to it, NAME-00001-of-00003.gguf and so on; and the paths of all."""
    first = read_weights(path)
    paths = [local_file(path)]
    count = first.metadata.get("split.count", 1)
    if type(count) is not int or count <= 1:
        return first, paths
    file = Path(path).name
    found = _PIECE.fullmatch(file)
    if found is None or count > MAX_PIECES or int(found[3]) != count:
        raise FormatError(f"{name}: one of {count} pieces, expected a name as NAME-00001-of-{count:05d}.gguf")
    if int(found[2]) != 1:
        raise InputError(
            f"{name}: the piece {found[2]} of {count}; give the first one, {found[1]}-00001-of-{found[3]}.gguf"
        )
    stored = dict(first.stored)
    for i in range(2, count + 1):
        paths.append(local_file(path, beside=f"{found[1]}-{i:05d}-of-{found[3]}.gguf"))
        piece = read_weights(paths[-1])
        twice = stored.keys() & piece.stored.keys()
        if twice:
            raise FormatError(f"{name}: {min(twice)} is in several pieces")
        stored |= piece.stored
    return Weights(stored, first.metadata), paths


def _folder(folder: Path, context: int) -> ModelFiles:
    name = str(folder)
    if not (folder / _CONFIG).exists():
        raise InputError(f"{name}: without {_CONFIG}; give a folder of Hugging Face, with safetensors, or a GGUF file")
    config = read_json_object(folder / _CONFIG)
    description = of_config(config, context, f"{name}/{_CONFIG}")
    file = next((folder / f for f in (_INDEX, _TENSORS) if (folder / f).exists()), None)
    if file is None:
        pickled = next(folder.glob("*.bin"), None) or next(folder.glob("*.pth"), None)
        told = (
            ""
            if pickled is None
            else f"; {pickled.name} is a pickle, which could run code: convert it with safetensors"
        )
        raise FormatError(f"{name}: neither {_TENSORS} nor {_INDEX} is in the folder{told}")
    row = description.architecture
    rules = [(re.compile(pattern), new) for pattern, new in row.tensors.items()]
    stored: dict[str, StoredArray] = {}
    plain: Mapping[str, StoredArray] = read_weights(file).stored
    matrices: Mapping[str, StoredArray] = {}
    if config.get("quantization_config") or config.get("quantization"):
        matrices, plain = quantised_matrices(config, plain, str(file))
    for key, array in (*plain.items(), *matrices.items()):
        if IGNORED.fullmatch(key):
            continue
        base, _, end = key.rpartition(".")
        new = next((m.expand(to) for rule, to in rules if (m := rule.fullmatch(base))), None)
        if new is None or end not in ("weight", "bias"):
            raise FormatError(f"{file}: the tensor {key!r:.80}, which Singe does not know in {row.name}")
        if f"{new}.{end}" in stored:
            raise FormatError(f"{file}: the tensor {key!r:.80} comes twice")
        # Matrices that are quantised are (outputs, inputs) in all methods.
        stored[f"{new}.{end}"] = array if key in matrices else _as_in_gguf(array, f"{new}.{end}", row)
    if config.get("tie_word_embeddings", row.tied):
        stored.pop("output.weight", None)
    elif "output.weight" not in stored:
        raise FormatError(
            f"{file}: the tensor lm_head.weight is missing, and the config does not tie it to the embeddings"
        )
    shards = sorted(set(json.loads(file.read_bytes())["weight_map"].values())) if file.name == _INDEX else []
    paths = [folder / _CONFIG, file, *(folder / shard for shard in shards)]
    return ModelFiles(name, description, Tensors(stored, name), {}, folder, paths)


def _as_in_gguf(array: StoredArray, name: str, row: Architecture) -> StoredArray:
    """A tensor of a folder as GGUF holds it."""
    if row.one_plus and name.endswith("norm.weight"):
        return _computed(array, array.shape, lambda x: x.astype(np.float32) + np.float32(1))
    if row.transposed and name.startswith("blk.") and len(array.shape) == 2:
        return _computed(array, array.shape[::-1], lambda x: np.ascontiguousarray(x.T))
    if name.endswith(".shortconv.conv.weight") and len(array.shape) == 3 and array.shape[1] == 1:
        return _computed(array, (array.shape[0], array.shape[2]), lambda x: x[:, 0])
    return array


def _computed(array: StoredArray, shape: tuple[int, ...], change: Callable[[np.ndarray], np.ndarray]) -> StoredArray:
    return StoredArray(shape, array.dtype, array.stored, lambda: change(np.asarray(array.read())))
