"""Tiny encoder–decoder networks of each family, whose weights are computed from their names, and what transformers makes of them.

`pairs.json.gz` has for each case the config.json, the shapes of the tensors, what transformers computes in float32 of a source and a text about
it, and the texts that its `generate` gives by each of RULES; `make_pairs.py` writes it.

tiny_marian_onnx.zip and tiny_moonshine_onnx.zip are networks that optimum exported, with the same of them; the sound of the latter is of
draws of NumPy.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from decoder_cases import weights_of

from singe.weights.safetensors import write_safetensors

FIXTURE: Final = Path(__file__).parent / "pairs.json.gz"
VOCABULARY: Final = 60
SAMPLES: Final = 6000
TEXT: Final = 14
"""Tokens of the text about the source, with its start."""
_BART: Final[Mapping[str, Any]] = {
    "d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24, "decoder_ffn_dim": 20, "max_position_embeddings": 48, "vocab_size": VOCABULARY,
}  # fmt: skip
_T5: Final[Mapping[str, Any]] = {
    "d_model": 16, "d_kv": 6, "d_ff": 24, "num_layers": 2, "num_heads": 2, "vocab_size": VOCABULARY, "decoder_start_token_id": 0,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20, "n_positions": 48,
}  # fmt: skip
CASES: Final[Mapping[str, Mapping[str, Any]]] = {
    "marian": {
        **_BART, "model_type": "marian", "scale_embedding": True, "activation_function": "swish", "pad_token_id": 59, "eos_token_id": 0,
        "decoder_start_token_id": 59,
    },
    "m2m_100": {**_BART, "model_type": "m2m_100"},
    "t5": {**_T5, "model_type": "t5"},
    "t5_gated": {**_T5, "model_type": "t5", "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "mt5": {**_T5, "model_type": "mt5"},
    "moonshine": {
        "model_type": "moonshine", "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 24, "encoder_num_hidden_layers": 1,
        "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 2, "decoder_num_attention_heads": 2, "max_position_embeddings": 48,
    },
}  # fmt: skip
RULES: Final[Sequence[Mapping[str, Any]]] = (
    {"max_length": 40},
    {"num_beams": 3, "max_length": 40},
    {"num_beams": 4, "early_stopping": True, "max_length": 30},
    {"num_beams": 4, "length_penalty": 0.2, "max_length": 12},
    {"num_beams": 2, "early_stopping": "never", "length_penalty": 2.0, "max_length": 40},
    {"num_beams": 4, "bad_words_ids": [[7], [9, 11], [13]], "renormalize_logits": True, "max_length": 20},
    {"num_beams": 3, "forced_bos_token_id": 12, "forced_eos_token_id": 2, "min_length": 9, "max_length": 16},
    {"num_beams": 4, "no_repeat_ngram_size": 2, "length_penalty": -0.5, "max_length": 40},
    {"no_repeat_ngram_size": 1, "max_length": 30},
)  # fmt: skip
"""Keys of a generation_config.json."""


def source_of(name: str) -> np.ndarray:
    draws = np.random.default_rng(len(name))
    if name == "moonshine":
        return (0.1 * draws.standard_normal(SAMPLES)).astype(np.float32)
    return draws.integers(3, VOCABULARY - 2, 40).astype(np.int32)


def text_of(start: int) -> list[int]:
    return [start, *np.random.default_rng(1).integers(3, VOCABULARY - 2, TEXT - 1).tolist()]


def numbers_of(shapes: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    """Numbers for each tensor, large enough that texts are not one token again and again."""
    return {
        name: x if len(shapes[name]) < 2 else (x * (6 / shapes[name][-1] ** 0.5)).astype(np.float32)
        for name, x in weights_of(shapes).items()
    }


def folder_of_case(path: Path, case: Mapping[str, Any], **changes: Any) -> Path:
    """A folder of Hugging Face."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps({**case["config"], **changes}))
    (path / "generation_config.json").write_text(json.dumps(case["generation"]))
    write_safetensors(path / "model.safetensors", numbers_of(case["shapes"]))
    return path


def moonshine_folder(path: Path) -> Path:
    """A Moonshine with a tokenizer, whose tokens are signs."""
    folder = folder_of_case(path, read_pairs()["moonshine"])
    vocabulary = {chr(97 + k): k for k in range(VOCABULARY)}
    values = {
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
        "decoder": {"type": "Fuse"},
        "added_tokens": [],
    }
    (folder / "tokenizer.json").write_text(json.dumps(values))
    return folder


def read_pairs() -> dict[str, Any]:
    return json.loads(gzip.decompress(FIXTURE.read_bytes()))["cases"]
