"""`sg.task("zero-shot-tag")`: what is found is what GLiNER's own package finds, also in long texts, where it is said to stand."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from small_texts import folder_of
from span_models import FILES, LABELS, MAKERS, WIDTH, plain_score, plain_spans, tiny_gliner

import singe as sg
from singe.errors import FormatError, InputError

pytestmark = pytest.mark.slow
KIND: Final = "zero-shot-tag"


def plain(folder: Path, **options: Any) -> Any:
    files = {**FILES, "gliner_config": {**MAKERS["config"], "max_width": WIDTH, **options.pop("config", {})}}
    return sg.task(KIND, plain_spans(), beside=folder_of(folder, **files), **options)


def told(items: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(item["label"], item["text"], item["start"], item["end"]) for item in items]


@pytest.mark.parametrize("name", ["numpy", pytest.param("wasm", marks=pytest.mark.full)])
def test_what_is_found_is_what_the_makers_find(tmp_path: Path, name: str) -> None:
    tag = sg.task(KIND, tiny_gliner(), beside=folder_of(tmp_path, **FILES), device=name)
    assert tag.info.preparation.width == MAKERS["config"]["max_width"]
    together = tag(MAKERS["texts"], labels=MAKERS["labels"])
    for text, found, wanted in zip(MAKERS["texts"], together, MAKERS["answers"], strict=True):
        assert told(found.to_dict()) == told(wanted)
        np.testing.assert_allclose([item.score for item in found], [item["score"] for item in wanted], atol=1e-4)
        assert all(text[item.start : item.end] == item.text for item in found)
    assert sum(map(len, together)) > 20
    assert tag("", labels=["a"]).to_dict() == []


def wanted_in(text: str, labels: list[str], threshold: float) -> list[tuple[Any, ...]]:
    """Of the plain network: of all spans over the threshold, again and again the best that touches none before."""
    tokenizer = sg.language.Tokenizer.of_values(MAKERS["tokenizer"])
    words = [
        (tokenizer.encode(x[0], add_special=False)[0], *x.span()) for x in re.finditer(r"\w+(?:[-_]\w+)*|\S", text)
    ]
    left = [
        (1 / (1 + np.exp(-plain_score(words[a][0], words[a + k][0], c))), a, a + k, c)
        for a, k, c in product(range(len(words)), range(WIDTH), range(len(labels)))
        if a + k < len(words)
    ]
    found: list[tuple[Any, ...]] = []
    while left and (best := max(left, key=lambda x: x[0]))[0] > threshold:
        _, a, b, c = best
        start, end = words[a][1], words[b][2]
        found.append((labels[c], text[start:end], start, end))
        left = [x for x in left if x[1] > b or x[2] < a]
    return sorted(found, key=lambda x: x[2])


@pytest.mark.parametrize("length", [256, 32])
def test_a_long_text_loses_no_span_between_windows(tmp_path: Path, length: int) -> None:
    tag = plain(tmp_path, length=length)
    labels = ["cat", "place"]
    assert len(labels) == LABELS
    windows = []
    for text in (
        "the cat-sat on a_b mat, 日本 é persons 👩🏽 x7 -- c! " * 3,
        "cat",
        "b c d e f g h i j k l m n o p q r s t",
    ):
        for threshold in (0.5, 0.9):
            found = tag(text, labels=labels, threshold=threshold)
            assert told(found.to_dict()) == wanted_in(text, labels, threshold)
            windows.append(found.windows)
    assert (max(windows) > 3) == (length == 32)


def test_it_travels_in_a_record(tmp_path: Path) -> None:
    tag = plain(tmp_path / "files")
    tag.save(tmp_path / "tag.singe")
    again = sg.task(KIND, tmp_path / "tag.singe", device="numpy")
    assert again.info == tag.info
    text = "the cat sat on the mat"
    assert again(text, labels=["a", "b"]) == tag(text, labels=["a", "b"])


def test_what_is_no_model_of_spans_is_refused(tmp_path: Path) -> None:
    tag = plain(tmp_path)

    def of(*names: str) -> sg.Model:
        shapes = dict.fromkeys(names, ("rows", "tokens"))
        return sg.Model.of(
            lambda *x: x[0].unsqueeze(2).unsqueeze(3), shapes, "numpy", dtypes=dict.fromkeys(names, "int64")
        )

    tokens = ("input_ids", "attention_mask", "words_mask", "text_lengths")
    for call, problem in (
        (lambda: sg.task(KIND, of(*tokens), beside=tmp_path), "one that scores tokens in place of spans .* is not taken"),
        (lambda: sg.task(KIND, of(*tokens, "labels_input_ids"), beside=tmp_path), "an encoder of their own is not taken"),
        (lambda: sg.task(KIND, of("input_ids"), beside=tmp_path), "whose inputs are input_ids, attention_mask, words_mask"),
        (lambda: plain(tmp_path / "a", config={"words_splitter_type": "spacy"}), "words_splitter_type is 'spacy', expected 'whitespace'"),
        (lambda: plain(tmp_path / "b", config={"subtoken_pooling": "mean"}), "subtoken_pooling is 'mean', expected 'first'"),
        (lambda: plain(tmp_path / "c", config={"max_width": 5}), "width 5: this model takes 3"),
        (lambda: plain(tmp_path / "d", config={"ent_token": ""}), "marks .* expected two"),
        (lambda: tag("a"), "labels is"),
        (lambda: tag("a", labels=["b"]), r"scores \(1, 3, 2\) of 1 labels"),
        (lambda: tag("a", labels=["a", "b"], threshold=2), "threshold is 2"),
        (lambda: plain(tmp_path / "e", length=12)("a b c d e f g h i j", labels=["cat", "place"] * 2), "no room is left for more than 3 words"),
        (lambda: sg.task(KIND, plain_spans(), beside=folder_of(tmp_path / "f"))("a", labels=["a", "b"]), "no token '<<ENT>>'"),
    ):  # fmt: skip
        with pytest.raises((InputError, FormatError), match=problem):
            call()
