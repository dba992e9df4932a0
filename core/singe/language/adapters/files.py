"""Adapters on disk: a folder as PEFT writes it, and a GGUF file as llama.cpp reads it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import FormatError, InputError
from ...files import write
from ...files.bounded import read_json_object
from ...tensors.functions.creation import tensor
from ...weights import read_weights
from ...weights.gguf.writer import gguf_pieces
from ...weights.safetensors import safetensors_pieces
from ...weights.stored import StoredArray
from ..layers import floats
from .lora import MAX_RANK, LanguageAdapter, LowRank, check_matrices, frozen_of
from .names import hugging_names, target_of, turned, turned_axes

if TYPE_CHECKING:
    from ..llm import LanguageModel

CONFIG: Final = "adapter_config.json"
TENSORS: Final = "adapter_model.safetensors"
_SUFFIX: Final = ".gguf"
_PEFT: Final = re.compile(r"base_model\.model\.(.+)\.lora_([AB])(?:\.\w+)?\.weight")
_GGUF: Final = re.compile(r"(.+)\.weight\.lora_([ab])")
_PLAIN: Final[Mapping[str, Any]] = {
    "bias": "none", "use_dora": False, "alpha_pattern": {}, "modules_to_save": None, "layer_replication": None, "lora_bias": False,
    "trainable_token_indices": None,
}  # fmt: skip
"""What must be so in PEFT's config, where it is there at all: Singe has no more than plain LoRA."""


def save_adapter(adapter: LanguageAdapter, path: Path) -> None:
    """See LanguageAdapter.save."""
    frozen = adapter.frozen
    d, row = frozen.description, frozen.description.architecture
    if path.suffix == _SUFFIX:
        write(path, adapter_pieces(adapter))
        return
    arrays = _arrays(adapter)
    names = hugging_names(d)
    held = {}
    for name, (down, up) in arrays.items():
        held[f"base_model.model.{names[name]}.lora_A.weight"] = down
        held[f"base_model.model.{names[name]}.lora_B.weight"] = turned(up, name, d, d.adjacent, False)
    ranks = {len(down) for down, _ in arrays.values()}
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": frozen.name, "r": max(ranks), "lora_alpha": adapter.alpha,
        "target_modules": sorted({target_of(names[name]) for name in arrays}), "lora_dropout": 0.0, "bias": "none",
        "fan_in_fan_out": row.transposed, "use_rslora": False, "use_dora": False, "inference_mode": True,
        "rank_pattern": {names[name]: len(down) for name, (down, _) in arrays.items() if len(down) != max(ranks)},
    }  # fmt: skip
    path.mkdir(parents=True, exist_ok=True)
    write(path / TENSORS, safetensors_pieces(held, {"format": "pt"}))
    write(path / CONFIG, [json.dumps(config, indent=2).encode()])


def adapter_pieces(adapter: LanguageAdapter) -> Iterator[bytes]:
    """The bytes of its GGUF file: what comes before the numbers, then for each matrix those of lora_A and of lora_B."""
    d, row = adapter.frozen.description, adapter.frozen.description.architecture
    held: dict[str, np.ndarray] = {}
    for name, (down, up) in _arrays(adapter).items():
        held[f"{name}.weight.lora_a"] = down
        held[f"{name}.weight.lora_b"] = turned(up, name, d, d.adjacent, row.adjacent)
    told = {
        "general.architecture": row.name, "general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": adapter.alpha,
        "general.name": adapter.frozen.name,
    }  # fmt: skip
    return gguf_pieces(told, held)


def adapter_rows(adapter: LanguageAdapter) -> Iterator[tuple[str, list[int] | None]]:
    """For each array of its GGUF file the path of the matrix's weight, and where its rows change their order the sizes of the axes that
    these have, of which the last two are exchanged."""
    d, row = adapter.frozen.description, adapter.frozen.description.architecture
    for name, m in adapter.matrices.items():
        yield f"{name}.lora_A", None
        yield f"{name}.lora_B", turned_axes(m.shape[0], name, d, d.adjacent, row.adjacent)


def _arrays(adapter: LanguageAdapter) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {
        name: (np.asarray(m.lora_A.numpy(), np.float32), np.asarray(m.lora_B.numpy(), np.float32))
        for name, m in adapter.matrices.items()
    }


def load_adapter(llm: LanguageModel, path: str | Path) -> LanguageAdapter:
    """The adapter in a folder of PEFT (adapter_config.json, adapter_model.safetensors), or in a GGUF file, for a model."""
    local = Path(path)
    pairs, alpha, by_root = _peft(llm, local) if local.is_dir() else _gguf(llm, local)
    matrices: dict[str, LowRank] = {}
    for name, (down, up) in pairs.items():
        rank = down.shape[0] if len(down.shape) == 2 else 0
        if not 1 <= rank <= MAX_RANK or len(up.shape) != 2 or up.shape[1] != rank:
            raise FormatError(
                f"{path}: the matrices for {name} are {down.shape} and {up.shape}, expected (rank, inputs) and (outputs, rank)"
            )
        rows = turned(floats(up), name, llm.description, _adjacent(llm, local), llm.description.adjacent)
        scale = alpha / (math.sqrt(rank) if by_root else rank)
        matrices[name] = LowRank(tensor(floats(down)), tensor(rows), scale)
    check_matrices(str(path), llm.network, matrices)
    if not matrices:
        raise FormatError(f"{path}: no matrices of an adapter")
    return LanguageAdapter(frozen_of(llm), matrices, alpha)


def _adjacent(llm: LanguageModel, path: Path) -> bool:
    """Whether the file holds rotated pairs as neighbours."""
    return not path.is_dir() and llm.description.architecture.adjacent


_Pairs = Mapping[str, "tuple[StoredArray, StoredArray]"]


def _paired(found: Mapping[tuple[str, bool], StoredArray], path: Path) -> _Pairs:
    names = dict.fromkeys(name for name, _ in found)
    alone = [name for name in names if (name, True) not in found or (name, False) not in found]
    if alone:
        raise FormatError(f"{path}: of {alone[0]} there is one matrix, expected two")
    return {name: (found[name, True], found[name, False]) for name in names}


def _number(value: Any, what: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise FormatError(f"{what}: {value!r:.40}, expected a number above 0")
    return float(value)


def _peft(llm: LanguageModel, folder: Path) -> tuple[_Pairs, float, bool]:
    config = read_json_object(folder / CONFIG)
    kind = config.get("peft_type")
    if kind != "LORA":
        raise FormatError(f"{folder / CONFIG}: an adapter of the kind {kind!r:.40}; Singe knows LORA")
    for key, plain in _PLAIN.items():
        if config.get(key, plain) not in (plain, None):
            raise FormatError(
                f"{folder / CONFIG}: {key} is {config[key]!r:.80}, which Singe does not know; expected {plain!r}"
            )
    alpha = _number(config.get("lora_alpha"), f"{folder / CONFIG}: lora_alpha")
    ours = {hf: gguf for gguf, hf in hugging_names(llm.description).items()}
    found: dict[tuple[str, bool], StoredArray] = {}
    for key, array in read_weights(folder / TENSORS).stored.items():
        match = _PEFT.fullmatch(key)
        name = None if match is None else ours.get(match[1]) or ours.get(f"model.{match[1]}")
        if match is None or name is None:
            raise FormatError(
                f"{folder / TENSORS}: the tensor {key!r:.120}, which Singe does not know in {llm.description.architecture.name}"
            )
        found[name, match[2] == "A"] = array
    return _paired(found, folder), alpha, bool(config.get("use_rslora"))


def _gguf(llm: LanguageModel, path: Path) -> tuple[_Pairs, float, bool]:
    weights = read_weights(path)
    told = weights.metadata
    if told.get("general.type") != "adapter" or told.get("adapter.type") != "lora":
        raise FormatError(
            f"{path}: not an adapter (general.type is {told.get('general.type')!r:.40}); expected a folder of PEFT, or a GGUF file of an adapter"
        )
    of, own = told.get("general.architecture"), llm.description.architecture.name
    if of != own:
        raise InputError(f"{path}: an adapter for {of!r:.40}, the model is of the architecture {own}")
    found: dict[tuple[str, bool], StoredArray] = {}
    for key, array in weights.stored.items():
        match = _GGUF.fullmatch(key)
        if match is None:
            raise FormatError(f"{path}: the tensor {key!r:.120}, expected names as blk.0.attn_q.weight.lora_a")
        found[match[1], match[2] == "a"] = array
    return _paired(found, path), _number(told.get("adapter.lora.alpha"), f"{path}: adapter.lora.alpha"), False
