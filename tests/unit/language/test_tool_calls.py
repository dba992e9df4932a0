"""Calls of tools in a model's text: the formats of its families, parts of a stream, and what only looks like a call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from text_cases import CALLS, NO_CALLS, NOW, TEMPLATE, TOOLS, written
from tiny_language import tiny_gguf

import singe as sg
from singe.language.templating import CallForm, CallReader, ChatTemplate
from singe.language.templating.tool_calls import FORMATS

HELLO = [{"role": "user", "content": "hello"}]


def form(told_by: str) -> CallForm:
    found = ChatTemplate(TEMPLATE.replace("MARK", told_by)).call_form(TOOLS)
    assert found is not None
    return found


def said(calls: Any) -> list[tuple[str, Any]]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize(("told_by", "text", "wanted"), CALLS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_each_format_is_read_from_parts_of_any_size(told_by: str, text: str, wanted: Any, size: int) -> None:
    before = "I look. " if told_by and text.startswith(told_by) else ""
    reader = CallReader(form(told_by))
    parts = [reader.feed((before + text)[i : i + size]) for i in range(0, len(before + text), size)]
    rest, calls = reader.finish()
    assert "".join(parts) + rest == before
    assert said(calls) == wanted
    assert len({call["id"] for call in calls}) == len(calls)
    assert all(re.fullmatch("[0-9a-f]{9}", call["id"]) and call["type"] == "function" for call in calls)


@pytest.mark.parametrize("told_by", [row.told_by for row in FORMATS])
@pytest.mark.parametrize(
    "text",
    NO_CALLS,
    ids=lambda text: text[:20],
)
def test_what_only_looks_like_a_call_stays_text(told_by: str, text: str) -> None:
    reader = CallReader(form(told_by))
    parts = [reader.feed(text[: len(text) // 2]), reader.feed(text[len(text) // 2 :])]
    rest, calls = reader.finish()
    assert "".join(parts) + rest == text
    assert calls == ()


def test_a_text_without_calls_is_not_held_back() -> None:
    reader = CallReader(form("<tool_call>"))
    assert reader.feed("a is < b <tool") == "a is < b "
    assert reader.feed("box>, so") == "<toolbox>, so"


def test_templates_get_arguments_as_objects() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    text = ChatTemplate(TEMPLATE).render([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert '"arguments": {"a": 1}' in text


@pytest.mark.parametrize("tools", ["add", [3], [{"type": "function"}], {"name": "add"}])
def test_tools_of_another_shape_are_refused(tools: Any) -> None:
    with pytest.raises(sg.InputError, match=r"tools: got .*expected a list of functions"):
        ChatTemplate(TEMPLATE).call_form(tools)


@pytest.mark.slow
def test_a_model_tells_its_calls_at_the_end(tmp_path: Path) -> None:
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf"), "numpy", context=128)
    options: dict[str, Any] = {"regex": re.escape(f"[{written(NOW)}]"), "temperature": 0}
    for talk in (llm, llm.session()):
        answer = talk.chat(HELLO, tools=TOOLS, **options)
        assert (answer.text, answer.finish_reason, said(answer.tool_calls)) == ("", "tool_calls", [NOW])
    plain = llm.chat(HELLO, **options)
    assert (plain.text, plain.finish_reason, plain.tool_calls) == (f"[{written(NOW)}]", "stop", ())
    cut = llm.chat(HELLO, tools=TOOLS, max_tokens=9, **options)
    assert (cut.text, cut.finish_reason, cut.tool_calls) == (f"[{written(NOW)}]"[: len(cut.text)], "length", ())
