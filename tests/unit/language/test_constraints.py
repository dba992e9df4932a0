"""Texts that must match: regular expressions and JSON schemas as automata, and what a model writes under them."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from text_cases import PATTERNS, PEOPLE, PERSON, REFUSED_PATTERNS, REFUSED_SCHEMAS, SIGNS
from tiny_language import tiny_gguf

import singe as sg
from singe.errors import InputError
from singe.language.constraints.automaton import Automaton
from singe.language.constraints.json_schema import schema_rules
from singe.language.constraints.regular import RegularExpression
from singe.language.llm import LanguageModel


def matches(automaton: Automaton, text: str) -> bool:
    state = automaton.start
    for b in text.encode("utf-8", "surrogatepass"):
        state = int(automaton.row(state)[b])
    return automaton.accepts[state]


@pytest.mark.parametrize(
    "pattern",
    PATTERNS,
)
def test_a_regular_expression_matches_what_re_matches(pattern: str) -> None:
    automaton = Automaton({"": RegularExpression(pattern).expression}, "")
    rng = np.random.default_rng(0)
    for _ in range(400):
        text = "".join(SIGNS[i] for i in rng.integers(0, len(SIGNS), rng.integers(0, 7)))
        assert matches(automaton, text) == (re.fullmatch(pattern, text) is not None), text


@pytest.mark.parametrize(
    ("pattern", "message"),
    REFUSED_PATTERNS,
)
def test_what_an_automaton_cannot_do_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Automaton({"": RegularExpression(pattern).expression}, "")


@pytest.mark.parametrize(
    ("value", "fits"),
    PEOPLE,
)
def test_a_schema_matches_the_json_of_what_fits(value: Any, fits: bool) -> None:
    automaton = Automaton(schema_rules(PERSON), "")
    for indent in (None, 2):
        for ascii_only in (True, False):
            assert matches(automaton, json.dumps(value, indent=indent, ensure_ascii=ascii_only)) is fits


def test_any_object_and_patterns_of_strings() -> None:
    any_object = Automaton(schema_rules(True), "")
    assert matches(any_object, '{"a": [1, {"b": null}, true], "c": -1.5e3, "\\"": ""}')
    assert not matches(any_object, "[1]")
    assert not matches(any_object, '{"a": 01}')
    pattern = Automaton(schema_rules({"type": "string", "pattern": r"^\d+[^a]$"}), "")
    assert matches(pattern, '"12b"')
    assert not matches(pattern, '"12""')
    either = Automaton(schema_rules({"anyOf": [{"type": ["integer", "null"]}, {"const": [1, "é"]}]}), "")
    assert all(matches(either, text) for text in ("12", "null", '[1, "é"]'))


@pytest.mark.parametrize(
    ("schema", "message"),
    REFUSED_SCHEMAS,
)
def test_what_a_schema_says_that_is_not_known_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        schema_rules(schema)


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return sg.language.load(tiny_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf"), "numpy", context=256)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_model_writes_what_matches(llm: LanguageModel, seed: int | None) -> None:
    options: dict[str, Any] = {"temperature": 0} if seed is None else {"seed": seed, "temperature": 1.5}
    written = llm.generate("hello", regex=r"(hello|bye)! \d{2}", **options)
    assert re.fullmatch(r"(hello|bye)! \d{2}", written.text)
    assert written.finish_reason == "stop"
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "of": {"enum": ["x", None]}},
        "required": ["ok", "of"],
    }
    found = json.loads(llm.chat([{"role": "user", "content": "hello"}], schema=schema, **options).text)
    assert found["ok"] in (True, False)
    assert found["of"] in ("x", None)


def test_what_matches_nothing_is_refused(llm: LanguageModel) -> None:
    with pytest.raises(InputError, match="no token can follow"):
        _ = llm.generate("hello", regex="[^\\s\\S]").text
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(InputError, match=r"nested too deeply|values of JSON"):
        llm.generate("hello", schema=deep)
    with pytest.raises(InputError, match="schema and regex"):
        llm.generate("hello", regex="a", schema=True)
