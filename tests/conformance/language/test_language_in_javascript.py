"""JavaScript's tokenizers and templates give what Python's give: by the same fixtures, in node."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
import tokenizer_fixture as fixture
from test_hostile_tokenizers import TEXTS, changed
from test_templates import HOSTILE, changed_source
from tokenizer_texts import texts

from singe.errors import FormatError
from singe.language.templating.chat_template import DIRECTIVES, written_time
from singe.language.tokenizing import Tokenizer, patterns
from singe.language.tokenizing.gguf import gguf_tokenizer_values
from singe.language.tokenizing.vocabulary import shortened

LANGUAGE: Final = Path(__file__).parents[3] / "static" / "language"
FIXTURE: Final = fixture.read()
FAMILIES: Final = tuple(FIXTURE["families"])
SCRIPT: Final = """
import { readFileSync } from "node:fs";
IMPORTS
const given = JSON.parse(readFileSync(0, "utf8"));
BODY
process.stdout.write(JSON.stringify(answer));
"""
SUMS: Final = """
const tokenizer = new Tokenizer(given.values);
const encoder = new TextEncoder();
const sum = (numbers, start) => {
  for (const number of numbers) start = (start * 31 + number + 1) % 2147483647;
  return start;
};
const answer = given.parts.map((texts) => {
  let total = 7;
  for (const text of texts) {
    const ids = tokenizer.encode(text);
    total = sum(ids, total);
    total = sum(tokenizer.encode(text, { parseSpecial: false }), total);
    total = sum(encoder.encode(tokenizer.decode(ids)), total);
  }
  return total;
});
"""


def node(body: str, names: dict[str, str], **given: Any) -> Any:
    """What a script in node answers."""
    if shutil.which("node") is None:
        pytest.skip("no node here")
    imports = "\n".join(f'import {{ {name} }} from "{(LANGUAGE / module).as_uri()}";' for name, module in names.items())
    script = SCRIPT.replace("IMPORTS", imports).replace("BODY", body)
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_and_texts_are_those_of_hugging_face(name: str) -> None:
    drawn = texts(fixture.TEXTS)
    parts = [fixture.part(drawn, number) for number in range(fixture.PARTS)]
    family = FIXTURE["families"][name]
    assert (
        node(SUMS, {"Tokenizer": "singe-language-tokenizer.js"}, values=family["tokenizer"], parts=parts)
        == family["sums"]
    )


SHORT: Final = {name: shortened(family["tokenizer"]) for name, family in FIXTURE["families"].items()}


@pytest.mark.parametrize("name", ["smollm", "clip", "llama-2"])
def test_short_lists_say_what_long_ones_say(name: str) -> None:
    """Of byte pairs whose merges lie as their tokens do, of those with ends of words, and of those whose merges do not."""
    family, short = FIXTURE["families"][name], SHORT[name]
    long = family["tokenizer"]["model"]
    assert isinstance(long["vocab"], dict)
    assert isinstance(short["model"]["vocab"], list)
    assert isinstance(short["model"]["merges"], list) == (name == "llama-2")
    drawn = fixture.part(texts(fixture.TEXTS), 0)
    answer = node(SUMS, {"Tokenizer": "singe-language-tokenizer.js"}, values=short, parts=[drawn])
    assert answer == family["sums"][:1]
    ours, theirs = Tokenizer.of_values(short), Tokenizer.of_values(family["tokenizer"])
    assert [ours.encode(text) for text in drawn[:50]] == [theirs.encode(text) for text in drawn[:50]]


@pytest.mark.parametrize(
    "changed_parts",
    [
        {"vocab": ["a", "b", 3]},
        {"merges": {"first": 2, "left": [2]}},
        {"merges": {"first": 2, "left": [1.5]}},
        {"merges": {"first": 2, "left": [1, 1]}},
        {"merges": {"first": -1, "left": [1]}},
        {"merges": {"first": 2}},
    ],
)
def test_short_lists_that_say_nothing_are_refused(changed_parts: dict[str, Any]) -> None:
    model = {"type": "BPE", "vocab": ["a", "b", "ab"], "merges": {"first": 2, "left": [1]}}
    assert Tokenizer.of_values({"model": model}).encode("ab") == [2]
    values = {"model": {**model, **changed_parts}}
    with pytest.raises(FormatError):
        Tokenizer.of_values(values)
    body = """let answer = "read";
    try { new Tokenizer(given.values); } catch (error) { answer = error.code; }"""
    assert node(body, {"Tokenizer": "singe-language-tokenizer.js"}, values=values) == "format"


def test_a_tokenizer_of_gguf_gives_the_same_ids() -> None:
    vocabulary = FIXTURE["families"]["t5"]["tokenizer"]["model"]["vocab"]
    keys = {
        "model": "llama",
        "tokens": [token for token, _ in vocabulary],
        "scores": [score for _, score in vocabulary],
        "token_type": [3 if i < 2 else 2 if i == 2 else 1 for i in range(len(vocabulary))],
        "unknown_token_id": 2,
        "eos_token_id": 1,
    }
    metadata = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    drawn = fixture.part(texts(fixture.TEXTS), 0)
    body = """const tokenizer = new Tokenizer(given.values);
    const answer = [given.texts.map((text) => tokenizer.encode(text)), [...tokenizer.endOfTurn]];"""
    ids, ends = node(
        body, {"Tokenizer": "singe-language-tokenizer.js"}, values=gguf_tokenizer_values(metadata), texts=drawn
    )
    tokenizer = Tokenizer.of_gguf(metadata)
    assert ids == [tokenizer.encode(text) for text in drawn]
    assert set(ends) == tokenizer.end_of_turn


PAIRS: Final[dict[str, tuple[dict[str, int], list[str], dict[str, list[int]]]]] = {
    "a token is joined of two pairs": (
        {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5}, ["a b", "b c", "a bc", "ab c"], {"abc": [5], "bc": [4], "cab": [2, 3]},
    ),
    "two tokens have one number": ({"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 3}, ["a b", "b c"], {"ab": [3], "bc": [3], "abc": [3, 2]}),
    "a pair comes twice": ({"a": 0, "b": 1, "ab": 2, "ba": 3}, ["a b", "b a", "a b"], {"aba": [0, 3]}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_merges_that_are_not_one_for_each_token(name: str) -> None:
    ids, merges, texts_of = PAIRS[name]
    values = {"model": {"type": "BPE", "vocab": ids, "merges": merges}}
    body = "const tokenizer = new Tokenizer(given.values); const answer = given.texts.map((t) => tokenizer.encode(t));"
    answer = node(body, {"Tokenizer": "singe-language-tokenizer.js"}, values=values, texts=list(texts_of))
    tokenizer = Tokenizer.of_values(values)
    assert answer == [tokenizer.encode(text) for text in texts_of] == list(texts_of.values())


def test_both_languages_know_the_same_patterns() -> None:
    assert set(node("const answer = [...KNOWN];", {"KNOWN": "singe-language-patterns.js"})) == patterns.KNOWN


@pytest.mark.parametrize("part", range(10))
def test_changed_files_are_read_or_refused(part: int) -> None:
    """Errors are SingeErrors, as Python's are."""
    draw = random.Random(part)
    files = [*(family["tokenizer"] for family in FIXTURE["families"].values()), *SHORT.values()]
    values = [changed(draw.choice(files), draw) for _ in range(50)]
    body = """
    const answer = { read: 0, refused: 0, others: [] };
    for (const values of given.values) {
      try {
        const tokenizer = new Tokenizer(values);
        for (const text of given.texts) tokenizer.decode(tokenizer.encode(text));
        answer.read++;
      } catch (error) {
        if (error.name === "SingeError") answer.refused++;
        else answer.others.push(String(error.stack).slice(0, 400));
      }
    }
    """
    answer = node(
        body, {"Tokenizer": "singe-language-tokenizer.js"}, values=json.loads(json.dumps(values)), texts=TEXTS
    )
    assert answer["others"] == []
    assert answer["read"]
    assert answer["refused"]


RENDER: Final = """
const answer = given.cases.map(({ source, messages, tools, add_generation_prompt: addGenerationPrompt, extra }) => {
  try {
    return [new ChatTemplate(source, "<s>", "</s>").render(messages, { tools, addGenerationPrompt, extra })];
  } catch (error) {
    return error.name === "SingeError" ? null : [String(error.stack).slice(0, 400), "unexpected"];
  }
});
"""


def test_texts_are_those_of_transformers() -> None:
    stored = json.loads(gzip.decompress(Path(__file__).with_name("templates.json.gz").read_bytes()))
    # JavaScript does not tell 2.0 from 2.
    cases = [case for case in (*stored["snippets"], *stored["chats"]) if "{# whole floats #}" not in case["source"]]
    named = ("source", "messages", "tools", "add_generation_prompt", "text")
    given = [{**case, "extra": case.get("extra", {k: v for k, v in case.items() if k not in named})} for case in cases]
    answers = node(RENDER, {"ChatTemplate": "singe-language-template.js"}, cases=given)
    expected = [None if case["text"] is None else [case["text"]] for case in cases]
    wrong = [(case["source"][:200], a) for case, a, e in zip(cases, answers, expected, strict=True) if a != e]
    assert wrong == []


def test_hostile_templates_are_refused_or_do_little() -> None:
    cases = [{"source": source, "messages": [{"role": "user", "content": "x"}]} for source in HOSTILE]
    answers = node(RENDER, {"ChatTemplate": "singe-language-template.js"}, cases=cases)
    assert [
        (source[:80], a) for source, a in zip(HOSTILE, answers, strict=True) if a is not None and len(a[0]) > 10
    ] == []


@pytest.mark.parametrize("part", range(5))
def test_changed_templates_are_refused_or_end(part: int) -> None:
    draw = random.Random(part)
    cases = [
        {
            "source": changed_source(draw),
            "messages": [{"role": "user", "content": "x"}],
            "extra": {"n": 7, "l": [1, 2], "t": "x"},
        }
        for _ in range(100)
    ]
    answers = node(RENDER, {"ChatTemplate": "singe-language-template.js"}, cases=cases)
    assert [(case["source"], a) for case, a in zip(cases, answers, strict=True) if a is not None and len(a) > 1] == []


def test_both_languages_write_the_time_alike() -> None:
    time = datetime(2024, 12, 30, 9, 5, 3)
    pattern = " ".join(f"%{directive}" for directive in DIRECTIVES) + " %-d %-I"
    source = f"{{{{ strftime_now('{pattern}') }}}}"
    body = """
    const RealDate = Date;
    globalThis.Date = class extends RealDate {
      constructor(...given) {
        if (given.length) super(...given);
        else super(2024, 11, 30, 9, 5, 3);
      }
    };
    const answer = new ChatTemplate(given.source).render([]);
    """
    assert node(body, {"ChatTemplate": "singe-language-template.js"}, source=source) == written_time(pattern, time)
