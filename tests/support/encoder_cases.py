"""Tiny encoders of each family with each head, whose weights are computed from their names, and what transformers makes of them.

`encoders.json.gz` has for each case the config.json, the shapes of the tensors, and what transformers computes in float32 of two texts, of
which one is shorter; `make_encoders.py` writes it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from decoder_cases import weights_of

from singe.weights.safetensors import write_safetensors

FIXTURE: Final = Path(__file__).parent / "encoders.json.gz"
LENGTHS: Final = (40, 23)
FAR: Final = (150, 23)
"""Tokens of the two texts; of those where distances count."""
MODELS: Final[Mapping[str, str]] = {
    "vectors": "Model", "text": "ForSequenceClassification", "tokens": "ForTokenClassification", "words": "ForMaskedLM",
}  # fmt: skip
"""A head ↦ how the class of transformers ends."""
_SIZES: Final[Mapping[str, Any]] = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50,
    "max_position_embeddings": 160, "hidden_act": "gelu", "num_labels": 3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
CASES: Final[Mapping[str, Mapping[str, Any]]] = {
    "bert": {"model_type": "bert", "layer_norm_eps": 1e-12},
    "bert_tanh": {"model_type": "bert", "hidden_act": "gelu_new", "tie_word_embeddings": False},
    "distilbert": {"model_type": "distilbert", "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 4, "activation": "gelu"},
    "roberta": {"model_type": "roberta", "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5},
    "xlm-roberta": {"model_type": "xlm-roberta", "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5},
    "camembert": {"model_type": "camembert", "type_vocab_size": 1, "pad_token_id": 1},
    "mpnet": {"model_type": "mpnet", "pad_token_id": 1, "relative_attention_num_buckets": 32},
}  # fmt: skip
"""What is not as in _SIZES, by case."""


def config_of(name: str) -> dict[str, Any]:
    return {**_SIZES, **CASES[name]}


def inputs_of(name: str, head: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, mask and types of two texts, of which each second half is the other of a pair."""
    lengths = FAR if name == "mpnet" and head == "vectors" else LENGTHS
    ids = np.random.default_rng(len(name)).integers(5, 50, (2, lengths[0])).astype(np.int32)
    places = np.arange(lengths[0])
    mask = (places < np.array(lengths)[:, None]).astype(np.int32)
    types = ((places >= np.array(lengths)[:, None] // 2) & (mask == 1)).astype(np.int32)
    typed = config_of(name).get("type_vocab_size", 2) > 1
    return np.where(mask == 1, ids, 1).astype(np.int32), mask, types if typed else types * 0


def numbers_of(shapes: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    """Numbers for each tensor; weights of norms are near 1."""
    norms = {name for name in shapes if name.endswith("LayerNorm.weight")}
    return {name: x + np.float32(name in norms) for name, x in weights_of(shapes).items()}


def folder_of_case(path: Path, case: Mapping[str, Any], **changes: Any) -> Path:
    """A folder of Hugging Face."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps({**case["config"], **changes}))
    write_safetensors(path / "model.safetensors", numbers_of(case["shapes"]))
    return path


def read_encoders() -> dict[str, Any]:
    return json.loads(gzip.decompress(FIXTURE.read_bytes()))
