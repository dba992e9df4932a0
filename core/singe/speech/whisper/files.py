"""The files of a Whisper model: a folder of Hugging Face, with config.json and model.safetensors or ONNX files, or one of CTranslate2, with
model.bin.

The tensors of both get one set of names, which are those of `Whisper`'s parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from ...dtypes import float32
from ...errors import FormatError, InputError
from ...files.bounded import read_json_object
from ...language.encoder_decoders.onnx_files import ONNX_FILES, is_onnx, onnx_files_in, onnx_weights
from ...language.files import Tensors
from ...late_dataclass import dataclass
from ...runtime.device import Device
from ...weights import read_weights
from ...weights.renaming import Renaming
from ...weights.rounding import with_rounded
from ...weights.stored import StoredArray, Weights
from .description import WhisperDescription, of_config, of_ctranslate2
from .model import SpeechModel, WhisperModel
from .onnx_model import OnnxWhisper

CONFIG: Final = "config.json"
GENERATION: Final = "generation_config.json"
TOKENIZER: Final = "tokenizer.json"
_HUGGING_FACE: Final = ("model.safetensors", "model.safetensors.index.json")
_CTRANSLATE2: Final = "model.bin"
FILES: Final = (CONFIG, GENERATION, TOKENIZER, *_HUGGING_FACE, _CTRANSLATE2)
"""What a folder may have beside ONNX files."""

_OF_HUGGING_FACE: Final[Mapping[str, str]] = {
    r"model\.encoder\.conv([12])": r"encoder.conv\1",
    r"model\.(en|de)coder\.embed_positions": r"\1coder.positions",
    r"model\.(en|de)coder\.layer_norm": r"\1coder.norm",
    r"model\.decoder\.embed_tokens": "decoder.tokens",
    r"model\.(en|de)coder\.layers\.(\d+)\.self_attn\.([qkv])_proj": r"\1coder.\2.attention.\3",
    r"model\.(en|de)coder\.layers\.(\d+)\.self_attn\.out_proj": r"\1coder.\2.attention.output",
    r"model\.(en|de)coder\.layers\.(\d+)\.self_attn_layer_norm": r"\1coder.\2.attention_norm",
    r"model\.decoder\.layers\.(\d+)\.encoder_attn\.([qkv])_proj": r"decoder.\1.cross.\2",
    r"model\.decoder\.layers\.(\d+)\.encoder_attn\.out_proj": r"decoder.\1.cross.output",
    r"model\.decoder\.layers\.(\d+)\.encoder_attn_layer_norm": r"decoder.\1.cross_norm",
    r"model\.(en|de)coder\.layers\.(\d+)\.fc1": r"\1coder.\2.up",
    r"model\.(en|de)coder\.layers\.(\d+)\.fc2": r"\1coder.\2.down",
    r"model\.(en|de)coder\.layers\.(\d+)\.final_layer_norm": r"\1coder.\2.forward_norm",
}
_OF_CTRANSLATE2: Final[Mapping[str, str]] = {
    r"encoder/conv([12])": r"encoder.conv\1",
    r"(en|de)coder/position_encodings": r"\1coder.positions",
    r"(en|de)coder/layer_norm": r"\1coder.norm",
    r"decoder/embeddings": "decoder.tokens",
    r"(en|de)coder/layer_(\d+)/self_attention/linear_0": r"\1coder.\2.attention.qkv",
    r"(en|de)coder/layer_(\d+)/self_attention/linear_1": r"\1coder.\2.attention.output",
    r"(en|de)coder/layer_(\d+)/self_attention/layer_norm": r"\1coder.\2.attention_norm",
    r"decoder/layer_(\d+)/attention/linear_0": r"decoder.\1.cross.q",
    r"decoder/layer_(\d+)/attention/linear_1": r"decoder.\1.cross.kv",
    r"decoder/layer_(\d+)/attention/linear_2": r"decoder.\1.cross.output",
    r"decoder/layer_(\d+)/attention/layer_norm": r"decoder.\1.cross_norm",
    r"(en|de)coder/layer_(\d+)/ffn/linear_0": r"\1coder.\2.up",
    r"(en|de)coder/layer_(\d+)/ffn/linear_1": r"\1coder.\2.down",
    r"(en|de)coder/layer_(\d+)/ffn/layer_norm": r"\1coder.\2.forward_norm",
}
"""Names of tensors without what comes last ↦ ours."""
_LAST: Final = {"gamma": "weight", "beta": "bias", "encodings": "weight"}
_TABLE: Final = "decoder.tokens.weight"
_TIED: Final = ("proj_out.weight", "decoder/projection/weight")
"""Those are the table of tokens once more."""
_FACTS: Final = re.compile(
    r"(en|de)coder/num_heads|decoder/(activation|alibi|alibi_use_positive_positions|alignment_heads|alignment_layer|pre_norm|"
    r"scale_alibi|scale_embeddings|start_from_zero_embedding|with_relative_position)"
)
"""What a model.bin says of the network, which is the same of every Whisper."""


@dataclass(frozen=True)
class WhisperFiles:
    """tokenizer: a tokenizer.json; model: makes it on a device."""

    name: str
    description: WhisperDescription
    tokenizer: Path
    model: Callable[[str | Device], SpeechModel]


def files_in(folder: Path) -> dict[str, Path]:
    """Those of FILES that a folder has, and its ONNX files."""
    return {name: folder / name for name in FILES if (folder / name).is_file()} | onnx_files_in(folder)


def open_whisper(files: Mapping[str, Path], name: str, form: str | None = None) -> WhisperFiles:
    """The model of files by their names in a folder, those of FILES that there are. name: for errors; form: to which matrices of floats are
    rounded."""
    weights = next((f for f in (*_HUGGING_FACE, _CTRANSLATE2) if f in files), None)
    if (weights is None and not is_onnx(files)) or CONFIG not in files or TOKENIZER not in files:
        raise InputError(
            f"{name}: expected a folder with {CONFIG}, {TOKENIZER}, and {_HUGGING_FACE[0]}, {_CTRANSLATE2} or {ONNX_FILES[0]} with {ONNX_FILES[1]}; "
            f"there are {', '.join(files) or 'none of them'}"
        )
    config = read_json_object(files[CONFIG])
    generation = read_json_object(files[GENERATION]) if GENERATION in files else {}
    found = None if weights is None else read_weights(files[weights])
    if found is not None and weights == _CTRANSLATE2:
        description, rules = of_ctranslate2(found, config, name), _OF_CTRANSLATE2
    else:
        description, rules = of_config(config, generation, name), _OF_HUGGING_FACE

    def tensors() -> Tensors:
        stored = _renamed(found or Weights(onnx_weights(files)), rules, name)
        return Tensors(with_rounded(stored, form, _TABLE, name), name)

    def model(device: str | Device) -> SpeechModel:
        if found is None and form is None:
            return OnnxWhisper(description, files, tensors, device)
        return WhisperModel(description, tensors(), device)

    return WhisperFiles(name, description, files[TOKENIZER], model)


def _renamed(weights: Weights, rules: Mapping[str, str], name: str) -> dict[str, StoredArray]:
    renaming = Renaming(rules, "Whisper", name)
    for key, array in weights.stored.items():
        if key in _TIED or _FACTS.fullmatch(key):
            continue
        base, last = re.split(r"[./](?=[^./]*$)", key) if re.search(r"[./]", key) else (key, "")
        if last == "weight_scale":
            continue
        new, end = renaming.base_of(key, base), _LAST.get(last, last)
        if end not in ("weight", "bias"):
            raise renaming.unknown(key)
        scale = weights.stored.get(f"{base}/weight_scale") if last == "weight" else None
        renaming.keep(key, f"{new}.{end}", array if scale is None else _scaled(array, scale, f"{name}: {key!r:.80}"))
    return renaming.stored


def _scaled(array: StoredArray, scale: StoredArray, what: str) -> StoredArray:
    """The numbers of 8 bits, each row with a divisor, as floats."""
    if array.dtype.name != "int8" or len(array.shape) != 2 or scale.shape != array.shape[:1]:
        raise FormatError(
            f"{what}: {array.dtype}{array.shape} with scales {scale.shape}; expected int8, and one for each row"
        )
    return StoredArray(
        array.shape,
        float32,
        "int8",
        lambda: array.read().astype(np.float32) / np.asarray(scale.read(), np.float32)[:, None],
    )
