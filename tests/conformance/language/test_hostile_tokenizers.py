"""Changed files of tokenizers are read or refused with an error of Singe, in bounded time."""

from __future__ import annotations

import copy
import json
import random
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import tokenizer_fixture as fixture

from singe.errors import SingeError
from singe.language.tokenizing import Tokenizer
from singe.language.tokenizing.models import merging
from singe.language.tokenizing.tokenizer_json import tokenizer_of
from singe.language.tokenizing.vocab_txt import vocab_txt_values

CHANGES: Final = 100
"""In each of the ten parts."""
TEXTS: Final = (
    "Hello, world!  I'll \n\n be <|im_start|> 12345 日本語 é e\u0301 😀", " " * 3000, "a" * 3000, "\ufffd\x00▁▁ﷺ" * 50, "",
)  # fmt: skip
HOSTILE: Final[tuple[Any, ...]] = (
    None, True, False, -1, 0, 1, 2**31, 2**63, 1e308, -0.5, "", "a", " ", "▁", "a" * 100_000, "(a+)+$", "\\p{L}", "[", "(?<=a|b)", "<0x",
    [], {}, [[]], [["a", "b"]], ["a", 2**70], {"type": "Sequence"}, {"String": ""}, {"Regex": "(x+x+)+y"}, {"type": "Digits"},
    "\ud800", "AAAA", "////////", "ByteLevel", "Metaspace", "Unigram", "WordPiece", "BPE",
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of values, of long lists and objects only some."""
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    if len(items) > 40:
        items = items[:10] + items[-10:]
    return [found for key, inner in items for found in [(*path, key), *places(inner, (*path, key))]]


def changed(value: Any, draw: random.Random) -> Any:
    """A value with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(draw.randrange(1, 4)):
        path = draw.choice(places(value) or [()])
        if not path:
            continue
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        way = draw.randrange(4)
        if way == 0:
            del holder[path[-1]]
        elif way == 1:
            other = value
            for key in draw.choice(places(value) or [()]):
                other = other[key]
            holder[path[-1]] = copy.deepcopy(other)
        else:
            holder[path[-1]] = draw.choice(HOSTILE)
    return value


def use(make: Callable[[], Tokenizer]) -> bool:
    """Whether a tokenizer could be made; it is used, and may fail with errors of Singe only."""
    try:
        tokenizer = make()
    except SingeError:
        return False
    for text in TEXTS:
        try:
            ids = tokenizer.encode(text)
            assert len(ids) < 200_000
            tokenizer.decode(ids)
        except SingeError:
            continue
    return True


def families() -> Mapping[str, Any]:
    return fixture.read()["families"]


@pytest.mark.parametrize("part", range(10))
def test_changed_files_are_read_or_refused(part: int) -> None:
    draw = random.Random(part)
    values = [family["tokenizer"] for family in families().values()]
    files = [changed(draw.choice(values), draw) for _ in range(CHANGES)]
    outcomes = {use(lambda file=file: tokenizer_of(file, None, "x")) for file in files}
    assert outcomes == {True, False}


@pytest.mark.parametrize("part", range(10))
def test_damaged_bytes_are_read_or_refused(part: int, tmp_path: Path) -> None:
    draw = random.Random(part)
    texts = [
        json.dumps(family["tokenizer"]).encode() for name, family in families().items() if name in ("gpt-2", "bert")
    ]
    path = tmp_path / "tokenizer.json"
    for _ in range(20):
        data = bytearray(draw.choice(texts))
        for _ in range(draw.randrange(1, 5)):
            data[draw.randrange(2000 if draw.random() < 0.5 else len(data))] = draw.choice(b'"{}[],:0\\\x00\xff')
        path.write_bytes(data[: draw.choice((len(data), draw.randrange(len(data))))])
        use(lambda: Tokenizer.of_file(path))


@pytest.mark.parametrize("part", range(10))
def test_changed_metadata_is_read_or_refused(part: int) -> None:
    draw = random.Random(part)
    vocabulary = families()["t5"]["tokenizer"]["model"]["vocab"]
    charsmap = list(range(256)) * 8
    base = {
        "model": "t5",
        "tokens": [token for token, _ in vocabulary],
        "scores": [score for _, score in vocabulary],
        "token_type": [2 if i == 2 else 1 for i in range(len(vocabulary))],
        "unknown_token_id": 2,
        "eos_token_id": 1,
        "precompiled_charsmap": charsmap,
    }
    for _ in range(CHANGES):
        values = changed({**base, "model": draw.choice(("t5", "llama", "bert", "gemma4"))}, draw)
        use(lambda v=values: Tokenizer.of_gguf({f"tokenizer.ggml.{key}": value for key, value in v.items()}))


@pytest.mark.parametrize("part", range(10))
def test_changed_lists_of_words_are_read_or_refused(part: int) -> None:
    draw = random.Random(part)
    words = list(families()["bert"]["tokenizer"]["model"]["vocab"])
    for _ in range(CHANGES):
        lines = list(words)
        for _ in range(draw.randrange(1, 40)):
            lines[draw.randrange(len(lines))] = draw.choice(
                ("", "[UNK]", "##", "a" * 100_000, "\ufeff", "\x85", "\ud800", draw.choice(words))
            )
        data = bytearray("\n".join(lines).encode(errors="surrogatepass"))
        if draw.random() < 0.3:
            data[draw.randrange(len(data))] = draw.randrange(256)
        data = data[: draw.choice((len(data), draw.randrange(len(data))))]
        use(lambda data=bytes(data): Tokenizer.of_values(vocab_txt_values(data, "vocab.txt")))


@pytest.mark.parametrize("part", range(2))
def test_memory_is_in_proportion_to_the_file(part: int) -> None:
    """Also where a file claims much; the reader itself takes some."""
    draw = random.Random(part)
    values = [family["tokenizer"] for family in families().values()]
    for _ in range(10):
        file = changed(draw.choice(values), draw)
        size = len(json.dumps(file))
        tracemalloc.start()
        try:
            use(lambda file=file: tokenizer_of(file, None, "x"))
            assert tracemalloc.get_traced_memory()[1] < 60 * size + 64_000_000
        finally:
            tracemalloc.stop()


def test_nested_and_endless_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for text in ('{"model":' * 100_000, "[" * 100_000, '{"a":' + "9" * 10_000 + "}"):
        path.write_text(text)
        with pytest.raises(SingeError):
            Tokenizer.of_file(path)
    deep: Any = {"type": "NFC"}
    for _ in range(5000):
        deep = {"type": "Sequence", "normalizers": [deep]}
    with pytest.raises(SingeError, match="nested too deeply"):
        tokenizer_of({"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": deep}, None, "x")


def test_long_words_take_time_in_proportion() -> None:
    """Counts what is looked up, not seconds."""
    counts: list[int] = []
    for size in (2000, 4000, 8000):
        calls = 0

        def rank(pair: tuple[str, str]) -> float | None:
            nonlocal calls
            calls += 1
            return float(len(pair[0] + pair[1])) if len(pair[0] + pair[1]) < 9 else None

        merging.joined(["a"] * size, rank)
        counts.append(calls)
    assert counts[2] < 4.2 * counts[0]
