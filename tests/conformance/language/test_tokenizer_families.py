"""Tokenizers give the ids that Hugging Face's library gives, of sixteen families and 2,000 texts each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import pytest
import tokenizer_fixture as fixture
from tokenizer_texts import texts

from singe.language.tokenizing import Tokenizer
from singe.language.tokenizing.tokenizer_json import tokenizer_of

FIXTURE: Final = fixture.read()
FAMILIES: Final = tuple(FIXTURE["families"])
GGUF: Final = {
    "gpt-2": "gpt-2", "smollm": "smollm", "llama-3": "llama-bpe", "gpt-4o": "gpt-4o", "tekken": "tekken", "deepseek-3": "deepseek-v3",
}  # fmt: skip
"""The families that GGUF knows by the names of their cuts."""
Json = dict[str, Any]


@cache
def drawn() -> tuple[str, ...]:
    return tuple(texts(fixture.TEXTS))


@cache
def of_json(name: str) -> Tokenizer:
    return tokenizer_of(FIXTURE["families"][name]["tokenizer"], None, name)


def gguf_metadata(values: Json, kind: str) -> Mapping[str, object]:
    """A tokenizer of byte pairs as a GGUF file has it."""
    vocabulary = {**values["model"]["vocab"], **{token["content"]: token["id"] for token in values["added_tokens"]}}
    special = {token["id"] for token in values["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    keys = {
        "model": "gpt2",
        "pre": kind,
        "tokens": tokens,
        "token_type": [3 if i in special else 1 for i in range(len(tokens))],
        "merges": [" ".join(merge) for merge in values["model"]["merges"]],
        "bos_token_id": 700,
        "add_bos_token": values["post_processor"] is not None,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def agrees(tokenizer: Tokenizer, name: str, number: int) -> bool:
    total = fixture.part_sum(
        fixture.part(drawn(), number), lambda t, special: tokenizer.encode(t, parse_special=special), tokenizer.decode
    )
    return total == FIXTURE["families"][name]["sums"][number]


@pytest.mark.parametrize("name", FAMILIES)
def test_texts_that_are_spelled_out(name: str) -> None:
    tokenizer = of_json(name)
    for text, parsed, plain, decoded in FIXTURE["families"][name]["spelled"]:
        assert tokenizer.encode(text) == parsed, text
        assert tokenizer.encode(text, parse_special=False) == plain, text
        assert tokenizer.decode(parsed) == decoded


@pytest.mark.parametrize("part", range(fixture.PARTS))
@pytest.mark.parametrize("name", FAMILIES)
def test_ids_and_texts_are_those_of_hugging_face(name: str, part: int) -> None:
    assert agrees(of_json(name), name, part)


@pytest.mark.parametrize("part", range(fixture.PARTS))
@pytest.mark.parametrize("name", GGUF)
def test_a_gguf_file_gives_the_same_ids(name: str, part: int) -> None:
    tokenizer = Tokenizer.of_gguf(gguf_metadata(FIXTURE["families"][name]["tokenizer"], GGUF[name]))
    assert agrees(tokenizer, name, part)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_stream_gives_the_text_that_decoding_gives(name: str) -> None:
    tokenizer = of_json(name)
    if name == "clip":
        pytest.skip("a text of CLIP loses its last space when it is decoded whole")
    for text in fixture.part(drawn(), 0):
        ids = tokenizer.encode(text)
        stream = tokenizer.stream()
        assert "".join(map(stream.feed, ids)) + stream.finish() == tokenizer.decode(ids)


def test_the_fixture_is_what_the_library_gives_now() -> None:
    library = pytest.importorskip("tokenizers", reason="Hugging Face's tokenizers is not installed")
    for family in FIXTURE["families"].values():
        tokenizer = library.Tokenizer.from_str(json.dumps(family["tokenizer"]))
        for text, parsed, _, decoded in family["spelled"]:
            assert tokenizer.encode(text).ids[-len(parsed) :] == parsed
            assert tokenizer.decode(parsed) == decoded
