"""A Whisper of two layers with weights by a formula, in a folder of Hugging Face, in one of CTranslate2, and what its network answers.

tiny_whisper.npz has what OpenAI's own network gives for these weights: `features` for the window `window()`, of which COUNT frames are of
the sound, and `scores` (tokens, vocabulary) after each of IDS; tiny_whisper_onnx.zip what optimum 2.1 exports of them.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from singe.speech.whisper.files import WhisperFiles, files_in, open_whisper
from singe.weights.safetensors import safetensors_pieces

WIDTH, FORWARD, BANDS, POSITIONS, ROOM, LAYERS = 16, 64, 8, 20, 12, 2
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
MARKS: Final = (
    "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>",
    "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>",
)  # fmt: skip
VOCABULARY: Final = len(LETTERS) + 1 + len(MARKS) + POSITIONS + 3
COUNT: Final = 33
IDS: Final = (28, 29, 32, 45, 7, 20, 46)
_DATA: Final = Path(__file__).with_suffix(".npz")


def arrays() -> dict[str, np.ndarray]:
    """The weights under Hugging Face's names."""
    made: dict[str, np.ndarray] = {}

    def put(name: str, *shape: int, base: float = 0.0) -> None:
        places = np.arange(int(np.prod(shape))) + 1000.0 * len(made)
        made[name] = (base + 0.4 * np.sin(places * places % 6.2831 + places)).astype(np.float32).reshape(shape)

    def pair(name: str, *shape: int, base: float = 0.0) -> None:
        put(f"{name}.weight", *shape, base=base)
        put(f"{name}.bias", shape[0])

    pair("model.encoder.conv1", WIDTH, BANDS, 3)
    pair("model.encoder.conv2", WIDTH, WIDTH, 3)
    put("model.encoder.embed_positions.weight", POSITIONS, WIDTH)
    put("model.decoder.embed_tokens.weight", VOCABULARY, WIDTH)
    put("model.decoder.embed_positions.weight", ROOM, WIDTH)
    for part, kinds in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for k in range(LAYERS):
            path = f"model.{part}.layers.{k}"
            for kind in kinds:
                for name in ("q_proj", "v_proj", "out_proj"):
                    pair(f"{path}.{kind}.{name}", WIDTH, WIDTH)
                put(f"{path}.{kind}.k_proj.weight", WIDTH, WIDTH)
                pair(f"{path}.{kind}_layer_norm", WIDTH, base=1.0)
            pair(f"{path}.fc1", FORWARD, WIDTH)
            pair(f"{path}.fc2", WIDTH, FORWARD)
            pair(f"{path}.final_layer_norm", WIDTH, base=1.0)
        pair(f"model.{part}.layer_norm", WIDTH, base=1.0)
    return made


def window() -> np.ndarray:
    """The logarithms of powers (frames, bands)."""
    places = np.arange(2 * POSITIONS * BANDS, dtype=np.float64)
    return (5 * np.sin(places * places % 6.2831) - 4).astype(np.float32).reshape(-1, BANDS)


def expected() -> Mapping[str, np.ndarray]:
    return np.load(_DATA)


def tokenizer() -> dict[str, Any]:
    words = {letter: k for k, letter in enumerate(LETTERS)} | {"Ġ": len(LETTERS)}
    marks = [
        {"id": len(words) + k, "content": mark, "special": True, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
        for k, mark in enumerate(MARKS)
    ]  # fmt: skip
    return {
        "model": {"type": "BPE", "vocab": words, "merges": []}, "added_tokens": marks, "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}, "post_processor": None,
    }  # fmt: skip


def config() -> dict[str, Any]:
    return {
        "model_type": "whisper", "d_model": WIDTH, "num_mel_bins": BANDS, "max_source_positions": POSITIONS,
        "max_target_positions": ROOM, "vocab_size": VOCABULARY, "encoder_layers": LAYERS, "encoder_attention_heads": 2,
        "encoder_ffn_dim": FORWARD, "decoder_layers": LAYERS, "decoder_attention_heads": 2, "decoder_ffn_dim": FORWARD,
        "activation_function": "gelu", "scale_embedding": False,
    }  # fmt: skip


def hugging_face(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config()))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "model.safetensors").write_bytes(b"".join(map(bytes, safetensors_pieces(arrays(), {}))))
    return folder


def onnx_files(folder: Path, *names: str) -> Path:
    """The same as Hugging Face's own exporter writes it: its encoder, and these files of its decoder."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config()))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    with zipfile.ZipFile(_DATA.with_name("tiny_whisper_onnx.zip")) as archive:
        for name in ("encoder_model.onnx", *names):
            (folder / "onnx" / name).write_bytes(archive.read(name))
    return folder


def ctranslate2(folder: Path, int8: bool = False) -> Path:
    """The same as a converter of CTranslate2 writes it, in float32, or its matrices in 8 bits."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"suppress_ids": [], "suppress_ids_begin": []}))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "model.bin").write_bytes(ctranslate2_bytes(int8))
    return folder


def ctranslate2_bytes(int8: bool = False) -> bytes:
    own, made = arrays(), dict[str, np.ndarray]()

    def norm(to: str, of: str) -> None:
        made[f"{to}/gamma"], made[f"{to}/beta"] = own[f"{of}.weight"], own[f"{of}.bias"]

    def joined(to: str, of: str, names: Sequence[str]) -> None:
        made[f"{to}/weight"] = np.concatenate([own[f"{of}.{x}.weight"] for x in names])
        made[f"{to}/bias"] = np.concatenate([own.get(f"{of}.{x}.bias", np.zeros(WIDTH, np.float32)) for x in names])

    for k in (1, 2):
        joined(f"encoder/conv{k}", "model.encoder", [f"conv{k}"])
    made["decoder/embeddings/weight"] = own["model.decoder.embed_tokens.weight"]
    for part in ("encoder", "decoder"):
        made[f"{part}/num_heads"] = np.array(2, np.int16)
        made[f"{part}/position_encodings/encodings"] = own[f"model.{part}.embed_positions.weight"]
        norm(f"{part}/layer_norm", f"model.{part}.layer_norm")
        for k in range(LAYERS):
            to, of = f"{part}/layer_{k}", f"model.{part}.layers.{k}"
            joined(f"{to}/self_attention/linear_0", f"{of}.self_attn", ["q_proj", "k_proj", "v_proj"])
            joined(f"{to}/self_attention/linear_1", f"{of}.self_attn", ["out_proj"])
            norm(f"{to}/self_attention/layer_norm", f"{of}.self_attn_layer_norm")
            for n in (1, 2):
                joined(f"{to}/ffn/linear_{n - 1}", of, [f"fc{n}"])
            norm(f"{to}/ffn/layer_norm", f"{of}.final_layer_norm")
            if part == "decoder":
                for n, names in enumerate((["q_proj"], ["k_proj", "v_proj"], ["out_proj"])):
                    joined(f"{to}/attention/linear_{n}", f"{of}.encoder_attn", names)
                norm(f"{to}/attention/layer_norm", f"{of}.encoder_attn_layer_norm")
    for name in [k for k, x in made.items() if int8 and x.ndim == 2 and k.endswith("/weight")]:
        scale = 127 / np.abs(made[name]).max(1)
        made[f"{name}_scale"] = scale.astype(np.float32)
        made[name] = np.round(made[name] * scale[:, None]).astype(np.int8)
    for name in ("alibi", "alibi_use_positive_positions", "scale_alibi"):
        made[f"decoder/{name}"] = np.array(0, np.int8)
    types = {"float32": 0, "int8": 1, "int16": 2}
    data = [struct.pack("<I", 6), _text("WhisperSpec"), struct.pack("<II", 3, len(made))]
    for name, array in made.items():
        shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        data += [_text(name), shape, struct.pack("<BI", types[array.dtype.name], array.nbytes), array.tobytes()]
    data += [struct.pack("<I", 1), _text("decoder/projection/weight"), _text("decoder/embeddings/weight")]
    return b"".join(data)


def _text(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"


def opened(folder: Path) -> WhisperFiles:
    return open_whisper(files_in(folder), str(folder))
