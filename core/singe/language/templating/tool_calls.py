"""Calls of tools: what a model's text must look like to be one, and what it says, in OpenAI's shape.

A format is a row, chosen by the text of the model's chat template. Every model may also write a call as plain JSON, as do those whose
mark is a special token, which is no text. What does not parse, or calls no tool that the model was told of, stays text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from ...errors import InputError
from ...late_dataclass import dataclass

ARGUMENTS: Final = ("arguments", "parameters")
"""How models call the object with a call's arguments."""
SEPARATORS: Final = " \t\r\n,;"
"""What may stand between calls."""


@dataclass(frozen=True)
class ToolFormat:
    """How a family of models writes calls: told_by is in its template; mark and end are around JSON, one call or a list."""

    name: str
    told_by: str
    mark: str
    end: str = ""


FORMATS: Final = (
    ToolFormat("hermes", "<tool_call>", "<tool_call>", "</tool_call>"),
    ToolFormat("mistral", "[TOOL_CALLS]", "[TOOL_CALLS]"),
    ToolFormat("llama3", "<|python_tag|>", "<|python_tag|>"),
    ToolFormat("json", "", ""),
)
"""The first whose `told_by` is in the template is the model's."""


def format_of(template: str) -> ToolFormat:
    """The format in which a model with this template writes calls."""
    return next(row for row in FORMATS if row.told_by in template)


def tool_names(tools: Any) -> frozenset[str]:
    """The names of functions that are described in OpenAI's shape, with or without what is around a function."""
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise _wrong(tools)
    return frozenset(_name(tool) for tool in tools)


def _name(tool: Any) -> str:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name:
        raise _wrong(tool)
    return name


def _wrong(tools: Any) -> InputError:
    shape = '[{"type": "function", "function": {"name": …, "description": …, "parameters": …}}]'
    return InputError(f"tools: got {tools!r:.80}, expected a list of functions: {shape}")


def with_objects(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Messages whose calls have their arguments as objects, which templates write as JSON; clients send them as JSON texts."""
    return [
        {**m, "tool_calls": [_with_object(call) for call in m["tool_calls"]]}
        if isinstance(m, Mapping) and isinstance(m.get("tool_calls"), list)
        else m
        for m in messages
    ]


def _with_object(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return call
    try:
        return {**call, "function": {**function, "arguments": json.loads(arguments)}}
    except (ValueError, RecursionError):
        return call


@dataclass(frozen=True)
class CallForm:
    """A model's format, and the names of the tools that it was told of."""

    format: ToolFormat
    names: frozenset[str]

    def calls(self, text: str) -> tuple[dict[str, Any], ...]:
        """The calls of which a text consists; none if it has anything else."""
        found, mark, end = list[dict[str, Any]](), self.format.mark, self.format.end
        text, at = text.strip(), 0
        while at < len(text):
            at += len(mark) if mark and text.startswith(mark, at) else 0
            try:
                value, at = _DECODER.raw_decode(text, _past(text, at))
            except (ValueError, RecursionError):
                return ()
            calls = [self._call(item) for item in (value if isinstance(value, list) else [value])]
            if not calls or None in calls:
                return ()
            found += [call for call in calls if call is not None]
            at = _past(text, at)
            at = _past(text, at + len(end)) if end and text.startswith(end, at) else at
        return tuple(found)

    def _call(self, value: Any) -> dict[str, Any] | None:
        """A call in OpenAI's shape."""
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in self.names:
            return None
        arguments = next((value[k] for k in ARGUMENTS if isinstance(value.get(k), dict)), None)
        if arguments is None:
            return None
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        # Nine letters and digits, which templates of Mistral ask for.
        return {"id": secrets.token_hex(5)[:9], "type": "function", "function": function}


class CallReader:
    """A text that comes in parts, of which what may be calls waits for its end."""

    def __init__(self, form: CallForm) -> None:
        self._form, self._waiting = form, ""
        self._is_call = self._has_begun = False

    def feed(self, text: str) -> str:
        """The text that is certain to be no call."""
        self._waiting += text
        waiting, mark = self._waiting, self._form.format.mark
        if not self._has_begun and (begin := waiting.lstrip()):
            self._has_begun, self._is_call = True, begin[0] in "{["
        if self._is_call or not self._has_begun:
            return ""
        at = waiting.find(mark) if mark else -1
        self._is_call = at >= 0
        if at < 0:
            partial = (n for n in range(min(len(mark) - 1, len(waiting)), 0, -1) if waiting.endswith(mark[:n]))
            at = len(waiting) - next(partial, 0)
        self._waiting = waiting[at:]
        return waiting[:at]

    def finish(self) -> tuple[str, tuple[dict[str, Any], ...]]:
        """At the end: the text that is left, or the calls that it was."""
        waiting, self._waiting = self._waiting, ""
        calls = self._form.calls(waiting) if self._is_call else ()
        return ("" if calls else waiting), calls


def _past(text: str, at: int) -> int:
    """The place of the first character from here on that separates nothing."""
    while at < len(text) and text[at] in SEPARATORS:
        at += 1
    return at


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
