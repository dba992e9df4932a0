"""A language model of random weights, with a tokenizer of single bytes and a chat template: small enough for every test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from decoder_cases import config_of, read_fixture, weights_of
from gguf_decoders import Form, write_gguf

from singe.language.tokenizing.gguf import gguf_tokenizer_values
from singe.language.tokenizing.spelling import ALPHABET
from singe.weights.safetensors import write_safetensors

TEMPLATE: Final = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
_TOKENS: Final = ["<|end|>", "<|start|>", *ALPHABET.values(), "he", "ll"]
_TEXTS: Final = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "qwen2",
    "tokenizer.ggml.tokens": _TOKENS,
    "tokenizer.ggml.token_type": [3, 3] + [1] * (len(_TOKENS) - 2),
    "tokenizer.ggml.merges": ["h e", "l l"],
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.chat_template": TEMPLATE,
}


def _shapes(case: str) -> dict[str, list[int]]:
    """Those of a case with the tokens of ours."""
    shapes: dict[str, list[int]] = read_fixture()["cases"][case]["shapes"]
    tables = ("embed_tokens.weight", "lm_head.weight", "wte.weight")
    return {name: [len(_TOKENS), *rest] if name.endswith(tables) else [n, *rest] for name, (n, *rest) in shapes.items()}


def tiny_gguf(path: Path, case: str = "llama3", form: Form | None = None) -> Path:
    """Written to a path that ends in .gguf. case: of decoder_cases.py. form: of write_gguf."""
    pytest.importorskip("gguf")
    write_gguf(path, config_of(case), weights_of(_shapes(case)), form, texts=_TEXTS)
    return path


def tiny_folder(path: Path, case: str) -> Path:
    """The same as a folder of Hugging Face."""
    path.mkdir()
    config = read_fixture()["cases"][case]["config"] | {
        "vocab_size": len(_TOKENS),
        "eos_token_id": 0,
        "bos_token_id": None,
    }
    parts = {
        "config.json": config, "tokenizer.json": gguf_tokenizer_values(_TEXTS), "tokenizer_config.json": {"chat_template": TEMPLATE},
    }  # fmt: skip
    for name, values in parts.items():
        path.joinpath(name).write_text(json.dumps(values))
    write_safetensors(path / "model.safetensors", weights_of(_shapes(case)))
    return path
