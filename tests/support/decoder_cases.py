"""Tiny decoders of each architecture, whose weights are computed from their names, and what transformers makes of them.

`decoders.json.gz` has for each case the config.json, the shapes of the tensors, ids, and the logits that transformers computes in
float32; `make_decoders.py` writes it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

FIXTURE: Final = Path(__file__).parent / "decoders.json.gz"
LENGTH: Final = 40
"""How many ids each case has."""
ADAPTERS: Final = Path(__file__).parent / "adapters.npz"
_ALL: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ADAPTED: Final[Mapping[str, tuple[str, ...]]] = {
    "llama": _ALL, "qwen2": ("q_proj", "v_proj"), "gemma2": ("k_proj", "down_proj"), "phi3": ("qkv_proj", "gate_up_proj"),
    "lfm2": ("in_proj", "w1"), "gpt2": ("c_attn", "c_fc"),
}  # fmt: skip
"""Cases with an adapter ↦ the matrices that it changes, as PEFT calls them."""
_SIZES: Final[Mapping[str, Any]] = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
    "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False,
}  # fmt: skip
_LLAMA3: Final = {
    "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
    "rope_theta": 500.0,
}  # fmt: skip
CASES: Final[Mapping[str, Mapping[str, Any]]] = {
    "llama": {"model_type": "llama"},
    "llama3": {"model_type": "llama", "rope_scaling": _LLAMA3, "rope_theta": 500.0, "tie_word_embeddings": True},
    "llama_linear_bias": {
        "model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": 4.0}, "attention_bias": True, "mlp_bias": True,
    },
    "smollm3": {"model_type": "smollm3", "num_hidden_layers": 4},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3", "head_dim": 32},
    "gemma2": {
        "model_type": "gemma2", "head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 20, "tie_word_embeddings": True,
        "hidden_activation": "gelu_pytorch_tanh",
    },
    "gemma3": {
        "model_type": "gemma3_text", "num_hidden_layers": 7, "head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 20,
        "tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh",
    },
    "phi3": {"model_type": "phi3", "sliding_window": 8, "partial_rotary_factor": 0.5},
    "phi3_long": {
        "model_type": "phi3", "original_max_position_embeddings": 64,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.5, 2.0, 3.0, 4.0, 4.5], "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]},
    },
    "granite": {
        "model_type": "granite", "embedding_multiplier": 3.0, "residual_multiplier": 0.4, "attention_multiplier": 0.2, "logits_scaling": 4.0,
    },
    "olmo2": {"model_type": "olmo2"},
    "lfm2": {
        "model_type": "lfm2", "layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": True, "block_multiple_of": 16,
        "conv_L_cache": 3, "tie_word_embeddings": True,
    },
    "gpt2": {
        "model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "tie_word_embeddings": True,
        "num_key_value_heads": 4, "intermediate_size": 256,
    },
}  # fmt: skip
"""What is not as in _SIZES, by case."""


def config_of(name: str) -> dict[str, Any]:
    return {**_SIZES, **CASES[name]}


def weights_of(shapes: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    """Numbers for each tensor, of its name: norms are near 1, others small."""
    made: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        draws = np.random.default_rng(zlib.crc32(name.encode()))
        near = 0.2 * draws.standard_normal(shape)
        made[name] = (near + (1.0 if "norm" in name or ".ln_" in name else 0.0)).astype(np.float32)
    return made


def ids_of(name: str) -> list[int]:
    return np.random.default_rng(zlib.crc32(name.encode())).integers(3, 96, LENGTH).tolist()


def lora_batch(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two texts: tokens, those that follow, and which of these count."""
    ids = np.asarray(ids_of(name), np.int32)
    texts = np.stack([ids[:25], ids[15:]])
    mask = np.ones((2, 24), np.float32)
    mask[0, :5], mask[1, 20:] = 0, 0
    return texts[:, :-1].copy(), texts[:, 1:].copy(), mask


def read_fixture() -> dict[str, Any]:
    return json.loads(gzip.decompress(FIXTURE.read_bytes()))
