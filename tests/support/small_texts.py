"""A tokenizer of a few words, and a network of tokens, for tasks that take texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import singe as sg

WORDS: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"),
    "the", "cat", "dog", "sat", "on", "mat", "##s", ".", ",", "é", "日", "本")  # fmt: skip


def tokenizer_json() -> dict[str, Any]:
    """BERT's form."""
    marks = [
        {"id": k, "content": WORDS[k], "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        for k in range(5)
    ]  # fmt: skip
    words = list(dict.fromkeys(WORDS))
    sides = {
        "A": (
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
        )
    }
    second = ({"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}})
    return {
        "version": "1.0",
        "added_tokens": marks,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [*sides["A"]], "pair": [*sides["A"], *second],
            "special_tokens": {name: {"id": name, "ids": [words.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": {word: k for k, word in enumerate(words)},
        },
    }  # fmt: skip


def folder_of(path: Path, **files: Any) -> Path:
    """A folder with the tokenizer, and other files of JSON, by their names without the ending."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    for name, values in files.items():
        (path / f"{name}.json").write_text(json.dumps(values))
    return path


def token_vectors(width: int = 8, seed: int = 7, device: Any = "numpy") -> sg.Model:
    """Each token's vector: its own, and a little of the mean of all that count."""
    table = np.random.default_rng(seed).normal(size=(len(WORDS), width)).astype(np.float32)

    def function(input_ids: sg.Tensor, attention_mask: sg.Tensor, token_type_ids: sg.Tensor) -> Mapping[str, sg.Tensor]:
        own = sg.tensor(table).take(input_ids, axis=0)
        counts = attention_mask.to(dtype="float32").unsqueeze(2)
        whole = (own * counts).sum(1, keepdims=True) / counts.sum(1, keepdims=True)
        return {"last_hidden_state": own + 0.5 * whole + token_type_ids.to(dtype="float32").unsqueeze(2)}

    shape = ("batch", "sequence")
    names = ("input_ids", "attention_mask", "token_type_ids")
    return sg.Model.of(function, dict.fromkeys(names, shape), device, dtypes=dict.fromkeys(names, "int64"))


def vector_of(text: str, width: int = 8, seed: int = 7) -> np.ndarray:
    """What `token_vectors` and a mean make of a text that is one window, in NumPy."""
    ids = sg.language.Tokenizer.of_values(tokenizer_json()).encode(text)
    table = np.random.default_rng(seed).normal(size=(len(WORDS), width)).astype(np.float32)[ids]
    mean = 1.5 * table.mean(0)
    return mean / np.linalg.norm(mean)


def of_pairs(width: int, device: Any = "numpy") -> sg.Model:
    """Scores of texts: sums of what their tokens have, by the type."""
    table = np.random.default_rng(5).normal(size=(len(WORDS), width)).astype(np.float32)

    def function(input_ids: sg.Tensor, attention_mask: sg.Tensor, token_type_ids: sg.Tensor) -> sg.Tensor:
        counts = (attention_mask * (1 + 2 * token_type_ids)).to(dtype="float32").unsqueeze(2)
        return (sg.tensor(table).take(input_ids, axis=0) * counts).sum(1) / counts.sum(1)

    names = ("input_ids", "attention_mask", "token_type_ids")
    return sg.Model.of(
        function, dict.fromkeys(names, ("batch", "sequence")), device, dtypes=dict.fromkeys(names, "int64")
    )


def of_tokens(classes: int, chosen: dict[str, int], device: Any = "numpy") -> sg.Model:
    """Each token's class is that of its word in `chosen`, others' is 0."""
    table = np.zeros((len(dict.fromkeys(WORDS)), classes), np.float32)
    words = list(dict.fromkeys(WORDS))
    for k, word in enumerate(words):
        table[k, chosen.get(word, 0)] = 4.0

    def function(input_ids: sg.Tensor, attention_mask: sg.Tensor) -> sg.Tensor:
        return sg.tensor(table).take(input_ids, axis=0) + attention_mask.to(dtype="float32").unsqueeze(2) * 0.0

    names = ("input_ids", "attention_mask")
    return sg.Model.of(
        function, dict.fromkeys(names, ("batch", "sequence")), device, dtypes=dict.fromkeys(names, "int64")
    )


TAGS: Final = ("O", "B-ANIMAL", "I-ANIMAL", "B-PLACE", "I-PLACE")
ENTITIES: Final[dict[str, list[tuple[str, str]]]] = {
    "The cats sat on 日本, dog dog.": [("ANIMAL", "cats"), ("PLACE", "日本"), ("ANIMAL", "dog dog")],
    "👩‍👩‍👧 cat": [("ANIMAL", "cat")],
    "e\u0301 CAT e\u0301": [("ANIMAL", "CAT")],
    "the mat": [],
    "": [],
}
"""A text ↦ what is found in it, where the words cat, dog and 日本 have their labels."""
