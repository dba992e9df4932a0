"""The text of a conversation, as a model's own template writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn

from ...errors import FormatError, InputError, SingeError
from .interpreter import Interpreter, globals_of
from .parser import parse_template
from .values import from_caller

_DIRECTIVES: Final = frozenset("aAbBdHIjmMpSyY%f")


class ChatTemplate:
    """A model's chat template, in Jinja's language, as transformers runs it.

    A template is a program from a file: it sees messages, tools and marks as values of JSON, calls functions of a closed table,
    and ends after a bounded number of steps.
    """

    def __init__(self, source: str, bos_token: str = "", eos_token: str = "") -> None:
        self.source, self.bos_token, self.eos_token = source, bos_token, eos_token
        try:
            self._nodes = parse_template(source)
        except RecursionError:
            raise FormatError("the template is nested too deeply") from None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **extra: Any,
    ) -> str:
        """The text of messages (`{"role": …, "content": …}`), with the beginning of an answer (`add_generation_prompt`).
        `extra` are names that the template knows, such as `enable_thinking`.
        """
        values = {
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
            "documents": None,
            **extra,
            "messages": list(messages),
            "tools": None if tools is None else list(tools),
            "add_generation_prompt": add_generation_prompt,
        }
        names = {**globals_of(_now, _refuse), **{k: from_caller(v, k) for k, v in values.items()}}
        try:
            return Interpreter(names).run(self._nodes)
        except SingeError:
            raise
        except RecursionError:
            raise FormatError("the template is nested too deeply") from None


def _refuse(message: str) -> NoReturn:
    raise InputError(f"the model's template refuses these messages: {message[:1000]}")


def _now(pattern: str, now: Callable[[], datetime] = datetime.now) -> str:
    parts = pattern.split("%%")
    if len(pattern) > 100 or any(part.endswith("%") for part in parts):
        raise FormatError(f"a template asks for the time as {pattern!r:.60}")
    for part in parts:
        if any(
            after[:1].lstrip("-") not in _DIRECTIVES and after[1:2] not in _DIRECTIVES for after in part.split("%")[1:]
        ):
            raise FormatError(f"a template asks for the time as {pattern!r:.60}")
    return now().strftime(pattern)
