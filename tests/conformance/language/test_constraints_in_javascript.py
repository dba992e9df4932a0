"""JavaScript's masks, calls of tools, shifts and guesses are Python's: by the same cases, in node."""

from __future__ import annotations

import json
import random
import re
from typing import Any, Final

import numpy as np
import tokenizer_fixture as fixture
from test_language_in_javascript import node
from text_cases import (
    CALLS,
    NO_CALLS,
    PATTERNS,
    PEOPLE,
    PERSON,
    REFUSED_PATTERNS,
    REFUSED_SCHEMAS,
    SIGNS,
    TEMPLATE,
    TOOLS,
)  # fmt: skip

from singe.language.constraints.automaton import Automaton
from singe.language.constraints.constraint import TextConstraint, TokenBytes
from singe.language.constraints.json_schema import schema_rules
from singe.language.constraints.regular import RegularExpression
from singe.language.drafts import Drafts
from singe.language.shifting import Shift
from singe.language.tokenizing.tokenizer_json import tokenizer_of

FAMILIES: Final[Any] = fixture.read()["families"]
AUTOMATA: Final = {
    "Automaton": "constraints/singe-language-automaton.js",
    "regularExpression": "constraints/singe-language-regular.js",
    "schemaRules": "constraints/singe-language-schema.js",
}
MATCHES: Final = """
const encoder = new TextEncoder();
const rulesOf = ({ pattern, schema }) => (pattern === undefined ? schemaRules(schema) : new Map([["", regularExpression(pattern).expression]]));
const answer = given.cases.map((each) => {
  try {
    const automaton = new Automaton(rulesOf(each));
    return each.texts.map((text) => {
      let state = automaton.start;
      for (const byte of encoder.encode(text)) state = automaton.row(state)[byte];
      return automaton.accepts[state];
    });
  } catch (error) {
    return [error.name, error.code, error.message];
  }
});
"""


def matches(automaton: Automaton, text: str) -> bool:
    state = automaton.start
    for b in text.encode():
        state = int(automaton.row(state)[b])
    return automaton.accepts[state]


def test_texts_that_match() -> None:
    draw = random.Random(0)
    drawn = ["".join(draw.choices(SIGNS, k=draw.randrange(7))) for _ in range(200)]
    cases: list[dict[str, Any]] = [{"pattern": pattern, "texts": drawn} for pattern in PATTERNS]
    wanted = [[re.fullmatch(pattern, text) is not None for text in drawn] for pattern in PATTERNS]
    people = [json.dumps(value, indent=indent) for value, _ in PEOPLE for indent in (None, 2)]
    cases.append({"schema": PERSON, "texts": people})
    wanted.append([fits for _, fits in PEOPLE for _ in range(2)])
    schemas: list[tuple[Any, list[str]]] = [
        (True, ['{"a": [1, {"b": null}, true], "c": -1.5e3, "\\"": ""}', "[1]", '{"a": 01}', "{}", '{"a": {}}']),
        ({"type": "string", "pattern": r"^\d+[^a]$"}, ['"12b"', '"12""', '"1a"', '"12"']),
        ({"type": "string", "pattern": "ab"}, ['"xaby"', '"ab"', '"a"']),
        (
            {"anyOf": [{"type": ["integer", "null"]}, {"const": [1, "é", {"a": None}]}]},
            ["12", "null", '[1, "é", {"a": null}]', "1.5"],
        ),
        ({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}}, ["{}", '{"a":1,"c":2}', '{"c":1,"a":2}']),
        ({"type": "object", "additionalProperties": False}, ["{}", '{"a":1}']),
        ({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"enum": [1, "b"]}}}, ['{"a": "b"}', '{"a": 2}']),
    ]
    for schema, texts in schemas:
        cases.append({"schema": schema, "texts": texts})
        automaton = Automaton(schema_rules(schema), "")
        wanted.append([matches(automaton, text) for text in texts])
        assert any(wanted[-1])
    assert node(MATCHES, AUTOMATA, cases=cases) == wanted


def test_what_is_not_known_is_refused() -> None:
    patterns: list[dict[str, Any]] = [{"pattern": p, "texts": []} for p, _ in REFUSED_PATTERNS]
    schemas: list[dict[str, Any]] = [{"schema": s, "texts": []} for s, _ in REFUSED_SCHEMAS]
    told = [message for _, message in (*REFUSED_PATTERNS, *REFUSED_SCHEMAS)]
    for answer, message in zip(node(MATCHES, AUTOMATA, cases=[*patterns, *schemas]), told, strict=True):
        assert answer[:2] == ["SingeError", "input"]
        assert re.search(message.replace("'", '"').replace("as a dict", "as an object"), answer[2])


MASKS: Final = """
const answer = given.families.map(({ values, ends, steps }) => {
  const constraints = new TextConstraints(new Tokenizer(values), ends);
  return given.asked.map(({ regex, schema }, at) => {
    const text = constraints.text(schema, regex);
    return steps[at].map((id) => {
      const scores = new Float32Array(given.size);
      text.allow(scores);
      text.add(id);
      return [scores.reduce((sum, score, place) => (score ? sum : (sum * 31 + place) % 65521), 7), text.isWhole];
    });
  });
});
"""


def test_masks_of_tokens() -> None:
    """After each token of a text that is drawn, of every family of tokenizers."""
    asked: list[dict[str, Any]] = [
        {"schema": PERSON},
        {"schema": True},
        {"regex": r"(hello|bye)! \d{2}[é-ü]*"},
        {"regex": ".{0,8}"},
    ]
    size, ends, draw = 1100, [1, 2], np.random.default_rng(0)
    families, wanted = list[Any](), list[Any]()
    for family in FAMILIES.values():
        tokenizer = tokenizer_of(family["tokenizer"], None, "tokenizer.json")
        tokens = TokenBytes(tokenizer)
        steps, told = list[Any](), list[Any]()
        for each in asked:
            rules = schema_rules(each["schema"]) if "schema" in each else None
            found = TextConstraint(rules or {"": RegularExpression(each["regex"]).expression}, tokens)
            place, ids, masks = found.start, list[int](), list[Any]()
            while len(ids) < 12 and not found.is_whole(place):
                allowed = found.mask(place).copy()
                allowed[ends] = found.ends(place)
                may_follow = np.flatnonzero(allowed).tolist()
                if not may_follow:
                    break
                ids.append(int(draw.choice(may_follow)))
                place = found.after(place, b"" if ids[-1] in ends else tokenizer.vocabulary[ids[-1]])
                total = 7
                for i in may_follow:
                    total = (total * 31 + i) % 65521
                masks.append([total, found.is_whole(place)])
            steps.append(ids)
            told.append(masks)
        families.append({"values": family["tokenizer"], "ends": ends, "steps": steps})
        wanted.append(told)
        assert any(steps)
    names = {
        "TextConstraints": "constraints/singe-language-constraint.js",
        "Tokenizer": "singe-language-tokenizer.js",
    }
    assert node(MASKS, names, families=families, asked=asked, size=size) == wanted


READ: Final = """
const answer = given.cases.map(({ template, text, size }) => {
  const reader = callReader(template, given.tools);
  let said = "";
  for (let at = 0; at < text.length; at += size) said += reader.feed(text.slice(at, at + size));
  const { rest, calls } = reader.finish();
  const told = calls.map(({ type, function: { name, arguments: json } }) => [type, name, JSON.parse(json)]);
  return [said + rest, told, calls.every(({ id }) => /^[0-9a-f]{9}$/.test(id))];
});
"""


def test_calls_of_tools() -> None:
    cases, wanted = list[Any](), list[Any]()
    for told_by, text, calls in CALLS:
        before = "I look. " if told_by and text.startswith(told_by) else ""
        for size in (1, 3, 1000):
            cases.append({"template": TEMPLATE.replace("MARK", told_by), "text": before + text, "size": size})
            wanted.append([before, [["function", name, arguments] for name, arguments in calls], True])
    for told_by in {told_by for told_by, _, _ in CALLS}:
        for text in NO_CALLS:
            size = max(len(text) // 2, 1)
            cases.append({"template": TEMPLATE.replace("MARK", told_by), "text": text, "size": size})
            wanted.append([text, [], True])
    assert node(READ, {"callReader": "singe-language-tools.js"}, cases=cases, tools=TOOLS) == wanted


def test_tools_of_another_shape_are_refused() -> None:
    body = """
    const answer = given.tools.map((tools) => {
      try {
        callReader("", tools);
      } catch (error) {
        return error.name + error.message;
      }
    });
    """
    for told in node(body, {"callReader": "singe-language-tools.js"}, tools=["add", [3], [{"type": "function"}], {}]):
        assert re.match("SingeErrortools: got .*expected a list of functions", told)


AHEAD: Final = """
const guesses = given.texts.map((tokens) => {
  const drafts = new Drafts(6, tokens.slice(0, 8));
  return tokens.slice(8).map((token, at) => {
    const guessed = drafts.guess(4);
    if (guessed.length) drafts.tell(at % 3 > 0);
    drafts.add(token);
    return guessed;
  });
});
const answer = { guesses, kept: given.shifts.map(([beginning, room, count]) => new Shift(beginning, room).fitted([...Array(count).keys()])) };
"""


def test_guesses_and_what_a_full_context_keeps() -> None:
    draw = random.Random(1)
    texts = [draw.choices(range(3), k=60) for _ in range(5)]
    shifts = [(b, room, n) for b in (0, 3, 5) for room in (10, 11, 32) for n in (1, 9, 10, 11, 12, 25, 40, 100)]
    guesses = list[Any]()
    for tokens in texts:
        drafts, told = Drafts(6, tokens[:8]), list[Any]()
        for at, token in enumerate(tokens[8:]):
            guessed = drafts.guess(4)
            if guessed:
                drafts.tell(at % 3 > 0)
            drafts.add(token)
            told.append(list(guessed))
        guesses.append(told)
    names = {"Drafts, Shift": "singe-language-ahead.js"}
    found = node(AHEAD, names, texts=texts, shifts=shifts)
    assert found["guesses"] == guesses
    assert any(map(any, guesses))
    assert found["kept"] == [list(Shift(b, room).fitted(range(n))) for b, room, n in shifts]
