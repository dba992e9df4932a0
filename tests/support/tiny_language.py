"""A language model of random weights, with a tokenizer of single bytes and a chat template: small enough for every test."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from decoder_cases import config_of, read_fixture, weights_of
from gguf_decoders import Form, write_gguf

from singe.language.tokenizing.spelling import ALPHABET

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


def tiny_gguf(path: Path, case: str = "llama3", form: Form | None = None) -> Path:
    """Written to a path that ends in .gguf. case: of decoder_cases.py, with tied embeddings. form: of write_gguf."""
    pytest.importorskip("gguf")
    shapes = read_fixture()["cases"][case]["shapes"] | {"model.embed_tokens.weight": [len(_TOKENS), 64]}
    write_gguf(path, config_of(case), weights_of(shapes), form, texts=_TEXTS)
    return path
