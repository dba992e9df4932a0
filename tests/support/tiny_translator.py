"""A folder of a Marian model that translates nothing, with random weights and true files: two layers, 60 tokens, a SentencePiece file and a
vocab.json, which has a piece less."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Final

from pair_cases import folder_of_case, read_pairs

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
UNKNOWN, CONTROL = 2, 3
PIECES: Final = (
    ("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN), ("▁", -3.0, 1), *((letter, -5.0 - k / 10, 1) for k, letter in enumerate(LETTERS)),
    *((word, -2.0 - k / 4, 1) for k, word in enumerate(("▁the", "▁cat", "▁hello", "llo", "▁wor", "ld", "er", ".", "!", "▁a", "in", "he"))),
)  # fmt: skip
"""Text, score, type."""
LACKING: Final = "q"
"""The piece that vocab.json has not."""


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _varint(n >> 7)


def sentence_pieces(kind: int = 1, **normalizer: int) -> bytes:
    """A SentencePiece file. kind: 1 of unigrams, 2 of byte pairs; normalizer: numbers of its fields, such as f3."""
    pieces = (
        _field(1, _field(1, text.encode()) + struct.pack("<Bf", 2 << 3 | 5, score) + _number(3, sort))
        for text, score, sort in PIECES
    )
    trainer = _field(2, _number(3, kind) + _number(40, 1))
    rules = b"".join(_number(int(name[1:]), value) for name, value in normalizer.items())
    return b"".join([*pieces, trainer, _field(3, _field(1, b"identity") + rules)])


def vocabulary(*languages: str) -> dict[str, int]:
    texts = [text for text, _, _ in PIECES if text != LACKING]
    texts += [f">>{code}<<" for code in languages]
    texts += [f"unused{k}" for k in range(59 - len(texts))]
    return {text: k for k, text in enumerate((*texts, "<pad>"))}


def translator(folder: Path, *languages: str, **generation: Any) -> Path:
    """The folder. languages: those into which it translates, where it is asked for one; generation: of generation_config.json."""
    case = read_pairs()["marian"]
    folder_of_case(folder, case)
    told = {
        "decoder_start_token_id": 59, "eos_token_id": 0, "pad_token_id": 59, "bad_words_ids": [[59]], "max_length": 16, "num_beams": 2,
        "renormalize_logits": True, **generation,
    }  # fmt: skip
    (folder / "generation_config.json").write_text(json.dumps(told))
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(sentence_pieces())
    (folder / "vocab.json").write_text(json.dumps(vocabulary(*languages)))
    return folder


def translator_of(folder: Path, family: str) -> Path:
    """A folder of another family that knows two languages: "m2m_100", whose languages are marks, or "t5", which has phrases for pairs."""
    case = read_pairs()[family]
    tasks = {
        "translation_en_to_de": {"prefix": "the cat: ", "num_beams": 2, "max_length": 9},
        "translation_en_to_fr": {"prefix": "!"},
    }
    folder_of_case(folder, case, **({"task_specific_params": tasks} if family == "t5" else {}))
    told = {
        **case["generation"], "max_length": 14, "min_length": 7, "num_beams": 3, "no_repeat_ngram_size": 2, "bad_words_ids": [[7], [9, 11]],
    }  # fmt: skip
    (folder / "generation_config.json").write_text(json.dumps(told))
    if family == "t5":
        (folder / "spiece.model").write_bytes(sentence_pieces())
        return folder
    (folder / "sentencepiece.bpe.model").write_bytes(sentence_pieces(2))
    (folder / "vocab.json").write_text(json.dumps({text: k for text, k in vocabulary().items() if k < 58}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["__en__", "__de__"]}))
    return folder
