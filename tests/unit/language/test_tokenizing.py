"""Tokenizers: ids as Hugging Face's library gives them, texts that come back, files that are refused."""

from __future__ import annotations

import pytest

from singe.errors import FormatError, InputError
from singe.language.tokenizing import Tokenizer
from singe.language.tokenizing.spelling import ALPHABET

Metadata = dict[str, object]


def byte_pairs(**changes: object) -> Metadata:
    """The metadata of a GGUF file: all bytes, few merges, two marks."""
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or"]
    tokens = ["<|end|>", "<|im_start|>", *ALPHABET.values(), *(merge.replace(" ", "") for merge in merges)]
    keys = {
        "model": "gpt2",
        "pre": "qwen2",
        "tokens": tokens,
        "token_type": [3, 3] + [1] * (len(tokens) - 2),
        "merges": merges,
        "eos_token_id": 0,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in {**keys, **changes}.items()}


def test_merges_join_the_pair_of_the_lowest_rank() -> None:
    tokenizer = Tokenizer.of_gguf(byte_pairs())
    ids = tokenizer.encode("hello world")
    assert [tokenizer.vocabulary[i] for i in ids] == [b"hello", b" wor", b"l", b"d"]


def test_marks_in_a_text_are_text_when_they_are_not_parsed() -> None:
    tokenizer = Tokenizer.of_gguf(byte_pairs())
    text = "<|im_start|>hello"
    assert tokenizer.encode(text)[0] == 1
    plain = tokenizer.encode(text, parse_special=False)
    assert 1 not in plain
    assert tokenizer.decode(plain) == text
    assert tokenizer.decode(tokenizer.encode(text)) == "hello"
    assert tokenizer.decode(tokenizer.encode(text), skip_special=False) == text
    assert tokenizer.end_of_turn == {0}


def test_a_stream_gives_characters_when_they_are_complete() -> None:
    tokenizer = Tokenizer.of_gguf(byte_pairs())
    ids = tokenizer.encode("é😀")
    stream = tokenizer.stream()
    assert [stream.feed(i) for i in ids] == ["", "é", "", "", "", "😀"]
    assert stream.feed(ids[0]) == ""
    assert stream.finish() == "\ufffd"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "rwkv"}, "rwkv"),
        ({"pre": "unheard-of"}, "unheard-of"),
        ({"tokens": []}, "0 tokens"),
        ({"tokens": 3}, "a list of texts"),
        ({"token_type": [1]}, "as many as the tokens"),
        ({"merges": ["h zz"]}, "not of tokens"),
        ({"merges": ["he"]}, "a space between"),
        ({"eos_token_id": 1 << 40}, "one of the"),
    ],
)
def test_damaged_metadata_is_refused_by_name(change: Metadata, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Tokenizer.of_gguf(byte_pairs(**change))


def test_ids_beyond_the_vocabulary_are_refused() -> None:
    tokenizer = Tokenizer.of_gguf(byte_pairs())
    with pytest.raises(InputError, match="99999"):
        tokenizer.decode([99999])
