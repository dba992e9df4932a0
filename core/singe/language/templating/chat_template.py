"""The text of a conversation, as a model's own template writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn

from ...errors import FormatError, InputError, SingeError
from .interpreter import Interpreter, globals_of
from .parser import parse_template
from .tool_calls import CallForm, format_of, tool_names, with_objects
from .values import from_caller

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DIRECTIVES: Final[Mapping[str, Callable[[datetime], str]]] = {
    "%": lambda _: "%",
    "A": lambda time: _DAYS[time.weekday()],
    "B": lambda time: _MONTHS[time.month - 1],
    "H": lambda time: f"{time.hour:02}",
    "I": lambda time: f"{time.hour % 12 or 12:02}",
    "M": lambda time: f"{time.minute:02}",
    "S": lambda time: f"{time.second:02}",
    "Y": lambda time: f"{time.year:04}",
    "a": lambda time: _DAYS[time.weekday()][:3],
    "b": lambda time: _MONTHS[time.month - 1][:3],
    "d": lambda time: f"{time.day:02}",
    "j": lambda time: f"{time.timetuple().tm_yday:03}",
    "m": lambda time: f"{time.month:02}",
    "p": lambda time: "AM" if time.hour < 12 else "PM",
    "y": lambda time: f"{time.year % 100:02}",
}
"""How `strftime_now` writes the time, in English anywhere; after %- without zeros before."""


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
            "messages": with_objects(messages),
            "tools": None if tools is None else list(tools),
            "add_generation_prompt": add_generation_prompt,
        }
        names = {
            **globals_of(lambda pattern: written_time(pattern, datetime.now()), _refuse),
            **{k: from_caller(v, k) for k, v in values.items()},
        }
        try:
            return Interpreter(names).run(self._nodes)
        except SingeError:
            raise
        except RecursionError:
            raise FormatError("the template is nested too deeply") from None

    def call_form(self, tools: Any) -> CallForm | None:
        """How the model writes calls of tools; None without any."""
        return CallForm(format_of(self.source), tool_names(tools)) if tools else None


def check_messages(messages: object) -> None:
    """Refuse what a template would write as something else: the letters of a text as so many messages, or None as a word."""
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)) or not messages:
        raise InputError(
            f'got {messages!r:.80} as messages, expected a list of some, as in [{{"role": "user", "content": "Hello"}}]; generate goes on with a text'
        )
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(
                f'got the message {message!r:.80}, expected a role and a content, as in {{"role": "user", "content": "Hello"}}'
            )
        content = message.get("content")
        if not isinstance(content, (str, Sequence)) and not (content is None and message.keys() - {"role", "content"}):
            raise InputError(
                f"got {content!r:.80} as the content of a message of {message['role']!r:.80}, expected a text"
            )


def _refuse(message: str) -> NoReturn:
    raise InputError(f"the model's template refuses these messages: {message[:1000]}")


def written_time(pattern: str, time: datetime) -> str:
    """A time by a pattern such as "%d %b %Y"."""

    def written(match: re.Match[str]) -> str:
        if match[2] not in DIRECTIVES:
            raise FormatError(
                f"a template asks for the time as {pattern!r:.60}, expected % and one of {', '.join(DIRECTIVES)}"
            )
        text = DIRECTIVES[match[2]](time)
        return (text.lstrip("0") or "0") if match[1] else text

    if len(pattern) > 100:
        raise FormatError(f"a template asks for the time in {len(pattern)} characters, expected at most 100")
    return re.sub("%(-?)(.?)", written, pattern, flags=re.DOTALL)
