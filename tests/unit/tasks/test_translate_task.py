"""translate: texts between languages, from a folder of Marian's form with random weights."""

from __future__ import annotations

import json
import logging
import random
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from tiny_translator import PIECES, sentence_pieces, translator

import singe as sg
from singe.errors import FormatError, InputError, SingeError
from singe.language.tokenizing import Tokenizer
from singe.language.tokenizing.sentence_piece import sentence_piece_values
from singe.tasks.saying.translate import TranslateTask

pytestmark = pytest.mark.slow
TEXTS = ("hello world", " the  cat.", "quiz €€ in", "</s> hello", "")
LONG = "The cat in the world. " * 12


@pytest.fixture(scope="module")
def translate(tmp_path_factory: pytest.TempPathFactory) -> TranslateTask:
    return sg.task("translate", translator(tmp_path_factory.mktemp("marian")), device="numpy")


@pytest.mark.parametrize(
    ("kind", "normalizer", "expected"),
    [
        (1, {}, [[31, 33, 34], [29, 30, 36], [2, 19, 23, 11, 28, 2, 1, 2, 39], [2, 1, 21, 1, 31], []]),
        (1, {"f3": 0, "f4": 0}, [[40, 32, 33, 34], [29, 2, 30, 36], [19, 23, 11, 28, 2, 1, 2, 39], [1, 21, 1, 31], []]),
        (2, {}, [
            [2, 40, 14, 14, 17, 2, 25, 17, 20, 34], [2, 22, 40, 2, 5, 3, 22, 36], [2, 19, 23, 11, 28, 2, 1, 2, 39],
            [2, 1, 21, 1, 2, 40, 14, 14, 17], [],
        ]),
    ],
)  # fmt: skip
def test_pieces_are_those_of_sentencepiece(kind: int, normalizer: dict[str, int], expected: list[list[int]]) -> None:
    """Version 0.2.3 gave these, of the same file. Names of marks in a text are text."""
    values = sentence_piece_values(sentence_pieces(kind, **normalizer), None, "tiny.spm")
    tokenizer = Tokenizer.of_values(values)
    assert [tokenizer.encode(text, add_special=False, parse_special=False) for text in TEXTS] == expected
    assert tokenizer.decode([31, 33, 34]).strip() == "hello world"
    assert tokenizer.after == [0]


def test_damaged_pieces_are_typed_errors() -> None:
    whole, draws = sentence_pieces(), random.Random(0)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draws.randint(1, 4)):
            data[draws.randrange(len(data))] = draws.randrange(256)
        data = data[: draws.randint(1, len(data))]
        with suppress(SingeError):
            Tokenizer.of_values(sentence_piece_values(bytes(data), None, "x")).encode("hello")
    with pytest.raises(FormatError, match="model_type is 3"):
        sentence_piece_values(sentence_pieces(3), None, "x")
    with pytest.raises(FormatError, match="escape_whitespaces is 0"):
        sentence_piece_values(sentence_pieces(f5=0), None, "x")


def test_answers_are_those_of_transformers(translate: TranslateTask) -> None:
    """MarianMTModel's `generate` gave 15 times the letter of this folder, with two beams."""
    answer = translate("hello world")
    assert answer.to_dict() == {"translation_text": "g" * 15}
    assert answer.cut
    assert answer.windows == 1
    assert [x.text for x in translate(["the cat in the world!", ""])] == ["g" * 15, ""]


def test_partial_texts_grow_to_the_answer(translate: TranslateTask) -> None:
    parts = [answer.text for answer in translate.stream("the cat", beams=1)]
    assert all(later.startswith(earlier) for earlier, later in pairwise(parts))
    assert len(parts) > 5
    assert parts[-1] == translate("the cat", beams=1).text
    assert [x.text for x in translate.stream(["the cat"])] == [translate("the cat").text]


def test_long_texts_are_read_in_windows_and_it_says_so(
    translate: TranslateTask, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "singe"):
        answer = translate(LONG)
    assert answer.windows > 1
    assert answer.text.count("g" * 15) == answer.windows
    assert f"read in {answer.windows} windows" in caplog.text
    assert "still going on" in caplog.text


def test_a_language_is_a_token_before_the_text(tmp_path: Path) -> None:
    task = sg.task("translate", translator(tmp_path, "deu", "fra"), device="numpy")
    assert task.languages == ("deu", "fra")
    assert task("hello", tgt_lang="fra").text
    with pytest.raises(
        InputError, match="tgt_lang is None, expected the code of a language that the model knows: deu, fra"
    ):
        task("hello")
    with pytest.raises(InputError, match="src_lang='en'"):
        task("hello", src_lang="en", tgt_lang="deu")


def test_a_task_of_t5_has_a_phrase_and_rules_of_its_own(translate: TranslateTask, tmp_path: Path) -> None:
    folder = translator(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    tasks = {
        "translation_en_to_de": {"prefix": "the cat ", "max_length": 5},
        "translation_en_to_fr": {"prefix": "!"},
        "summarization": {},
    }
    (folder / "config.json").write_text(json.dumps({**config, "task_specific_params": tasks}))
    task = sg.task("translate", folder, device="numpy")
    assert task.pairs == (("en", "de"), ("en", "fr"))
    assert task("hello", tgt_lang="de").text == "gggg"
    with pytest.raises(InputError, match="expected one of: en to de, en to fr"):
        task("hello")


def test_what_is_not_there_is_named(translate: TranslateTask, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="beams 0"):
        translate("x", beams=0)
    with pytest.raises(InputError, match="expected a text"):
        translate(3)
    with pytest.raises(InputError, match="got tgt_lang='de'"):
        translate("x", tgt_lang="de")
    folder = translator(tmp_path)
    (folder / "source.spm").unlink()
    with pytest.raises(InputError, match=r"without a tokenizer: expected tokenizer\.json"):
        sg.task("translate", folder, device="numpy")
    with pytest.raises(InputError, match=r"expected a folder with config\.json"):
        sg.task("translate", tmp_path / "none")
    task = sg.task("translate", translator(tmp_path / "other"), device="numpy")
    task.close()
    with pytest.raises(InputError, match="closed"):
        task("x")
    assert len(PIECES) == 41
