"""Templates of conversations give the texts that transformers gives; changed ones end, with errors of Singe at most."""

from __future__ import annotations

import gzip
import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from singe.errors import FormatError, InputError, SingeError
from singe.language.templating import ChatTemplate
from singe.language.templating.chat_template import DIRECTIVES, written_time

FIXTURE: Final = json.loads(gzip.decompress(Path(__file__).with_name("templates.json.gz").read_bytes()))
CASES: Final = [*FIXTURE["snippets"], *FIXTURE["chats"]]
HOSTILE: Final = (
    "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
    "{% set ns = namespace(t='a') %}{% for i in range(99) %}{% set ns.t = ns.t + ns.t %}{% endfor %}{{ ns.t }}",
    "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.l }}",
    "{{ 'a' * 1000000000 }}", "{{ [0] * 1000000000 }}", "{{ 9 ** 99 ** 9 }}", "{{ range(1000000000) | list }}",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "{% set x = ['a' * 1000] * 1000 %}{{ x | join('-' * 100000) }}",
    "{{ 'aaaa' * 1000 | replace('a', 'b' * 10000) }}", "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
    "{{ 'x' | indent(100000000) }}", "{% set n = namespace() %}{% set n.n = n %}{{ n }}", "{{ [1] | tojson(indent=1000000) }}",
    "{{ messages.__class__ }}{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ ''.format.__globals__ }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "{{ " + "-" * 5000 + "1 }}", "{{ " + "not " * 5000 + "1 }}",
    "{{ " + "1 + " * 20000 + "1 }}", "{{ a" + ".b" * 20000 + " }}", "{{ a" + "|upper" * 20000 + " }}", "{{ [" + "[" * 5000 + "]" * 5000 + "] }}",
    "{% if 1 %}" * 5000 + "{% endif %}" * 5000, "{% set x = [] %}" + "{% set x = [x] %}" * 500 + "{{ x }}",
    "{{ strftime_now('%' * 100000) }}", "{{ strftime_now('%Q') }}", "{{ strftime_now('%') }}", "{{ strftime_now('%9999999d') }}",
)  # fmt: skip


def rendered(case: dict[str, Any]) -> str:
    named = {k: v for k, v in case.items() if k not in ("source", "text", "messages", "extra")}
    return ChatTemplate(case["source"], "<s>", "</s>").render(case["messages"], **named, **case.get("extra", {}))


def test_texts_are_those_of_transformers() -> None:
    wrong: list[Any] = []
    for case in CASES:
        try:
            text = rendered(case)
        except SingeError as error:
            text = None if case["text"] is None else str(error)
        if text != case["text"]:
            wrong.append((case["source"][:200], text, case["text"]))
    assert wrong == []
    assert len(CASES) > 100


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_template_is_refused_or_does_little(source: str) -> None:
    try:
        text = ChatTemplate(source).render([{"role": "user", "content": "x"}])
    except FormatError:
        return
    assert len(text) < 10


def changed_source(draw: random.Random) -> str:
    """A template with one to three changes."""
    sources = [case["source"] for case in CASES]
    source = draw.choice(sources)
    for _ in range(draw.randrange(1, 4)):
        start = draw.randrange(len(source) + 1)
        end = min(len(source), start + draw.choice((0, 1, 1, 2, 10)))
        other = draw.choice(sources)
        at = draw.randrange(len(other) + 1)
        new = draw.choice(
            ("", other[at : at + 12], draw.choice("{}%'\"()[]|.,:-+*~=<>ax1 \n"), source[: draw.randrange(50)])
        )
        source = source[:start] + new + source[end:]
    return source


@pytest.mark.parametrize("part", range(5))
def test_changed_templates_are_refused_or_end(part: int) -> None:
    draw = random.Random(part)
    for _ in range(100):
        source = changed_source(draw)
        try:
            ChatTemplate(source).render([{"role": "user", "content": "x"}], tools=[{"a": 1}], n=7, l=[1, 2], t="x")
        except SingeError:
            continue


def test_only_values_of_json_reach_a_template() -> None:
    with pytest.raises(InputError, match=r"messages\[0\]"):
        ChatTemplate("{{ messages }}").render([{"role": "user", "content": object()}])
    with pytest.raises(InputError, match="alternate"):
        ChatTemplate("{{ raise_exception('Roles must alternate') }}").render([])


def test_the_time_is_written_as_python_writes_it() -> None:
    for time in (datetime(2026, 1, 5, 0, 7, 9), datetime(2024, 12, 31, 23, 59, 59), datetime(2025, 7, 4, 12, 0, 0)):
        for directive in DIRECTIVES:
            assert written_time(f"<%{directive}>", time) == time.strftime(f"<%{directive}>")
        assert written_time("%-d. %B %Y", time) == f"{time.day}. {time:%B %Y}"
    assert len(ChatTemplate("{{ strftime_now('%Y-%m-%d %%') }}").render([])) == 12
