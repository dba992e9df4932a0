"""Texts that must match: regular expressions and JSON schemas as automata, and what a model writes under them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import numpy as np
import pytest
from tiny_language import tiny_gguf

import singe as sg
from singe.errors import InputError
from singe.language.constraints.automaton import Automaton
from singe.language.constraints.json_schema import schema_rules
from singe.language.constraints.regular import RegularExpression
from singe.language.llm import LanguageModel

PERSON: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 10},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
        "child": {"$ref": "#"},
    },
    "required": ["name", "tags"],
}


def matches(automaton: Automaton, text: str) -> bool:
    state = automaton.start
    for b in text.encode("utf-8", "surrogatepass"):
        state = int(automaton.row(state)[b])
    return automaton.accepts[state]


@pytest.mark.parametrize(
    "pattern",
    [
        r"a+b?c{2,3}", r"[^a-c]é|ü*", r"\d{3}-\w+\.", r"(x|(?:yz)+)?", r"[\u4e00-\u9fff]{2}", r"[^x]", r".", r"^a{,2}$",
        r"[\x00-\uffff]", r"\$[]a-]+\\", r"[\s\S]{0,4}", r"(a|ab)(c|bcd)?",
    ],
)  # fmt: skip
def test_a_regular_expression_matches_what_re_matches(pattern: str) -> None:
    automaton = Automaton({"": RegularExpression(pattern).expression}, "")
    rng = np.random.default_rng(0)
    signs = "aabbccxyz0129-_.$\\]é ü中文\n\U0001f600\u07ff\u0800\uffff\ue000\x7f\x80"
    for _ in range(400):
        text = "".join(signs[i] for i in rng.integers(0, len(signs), rng.integers(0, 7)))
        assert matches(automaton, text) == (re.fullmatch(pattern, text) is not None), text


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"(?=a)", "not supported but as"), (r"(a)\1", "not supported"), (r"\bword", "not supported"), ("a{2000}", "above 1000"),
        ("(", "too early"), ("a)", r"without its \("), ("[b-a]", "not in order"), ("*a", "nothing before it"), ("a^b", "inside"),
        ("x" * 20_000, "at most 10000"), ("(" * 60 + ")" * 60, "more than 50 groups"), ("(((a{900}){900}){9})", "more than 100000 places"),
    ],
)  # fmt: skip
def test_what_an_automaton_cannot_do_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Automaton({"": RegularExpression(pattern).expression}, "")


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"name": "x", "tags": ["a"]}, True),
        ({"name": "x", "age": -3, "tags": ["a", "b"], "child": {"name": "é", "tags": ["b"]}}, True),
        ({"name": "x"}, False),
        ({"tags": ["a"]}, False),
        ({"name": "x" * 11, "tags": ["a"]}, False),
        ({"name": "x", "tags": ["c"]}, False),
        ({"name": "x", "tags": []}, False),
        ({"name": "x", "age": 1.5, "tags": ["a"]}, False),
        ({"name": "x", "tags": ["a"], "more": 1}, False),
    ],
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
    [
        ({"type": "string", "format": "date"}, "keyword 'format' of string is not supported"),
        ({"type": "integer", "minimum": 0}, "keyword 'minimum'"),
        ({"oneOf": [{}]}, "keyword 'oneOf' is not supported"),
        ({"type": "thing"}, "the type 'thing'"),
        ({"$ref": "other.json"}, "the \\$ref"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "minItems is above maxItems"),
        ({"type": "object", "required": ["a"]}, "none of the properties"),
        ({"enum": []}, "expected a list of 1 to"),
        ("text", "expected a JSON schema as a dict"),
    ],
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
