"""`singe chat`: a conversation with a language model in a terminal."""

from __future__ import annotations

import json
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ..ending import OrderlyEnd, in_order
from ..errors import InputError, SingeError
from ..files import write
from ..files.bounded import read_json_list
from ..report import clean
from ..texts import say
from .options import OF_LANGUAGE
from .progress import doing

HELP: Final = "/reset begins anew, /save FILE and /load FILE keep the conversation as JSON, Ctrl-C stops an answer, /exit or Ctrl-D ends it"
PROMPT: Final = "> "
_OF_SAMPLING: Final = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed")


class TerminalChat:
    """The messages of a conversation, and what the lines that are typed do."""

    def __init__(self, llm: Any, system: str | None, options: dict[str, Any]) -> None:
        self.llm, self.options = llm, options
        self._first = [] if system is None else [{"role": "system", "content": system}]
        self.session = llm.session()
        self.messages = list(self._first)

    def read(self, line: str) -> bool:
        """Do what a line says; whether the conversation goes on."""
        command, _, file = line.strip().partition(" ")
        if command in ("/exit", "/quit"):
            return False
        if command == "/help":
            say(HELP)
        elif command == "/reset":
            self.messages = list(self._first)
        elif command in ("/save", "/load") and file.strip():
            (self._save if command == "/save" else self._load)(Path(file.strip()))
        elif command.startswith("/"):
            say(f"there is no {clean(command)} without more; {HELP}", file=sys.stderr)
        elif line.strip():
            self._answer(line.strip())
        return True

    def _answer(self, text: str) -> None:
        messages = [*self.messages, {"role": "user", "content": text}]
        session = self.session
        answer = session.chat(messages, **self.options) if self.llm.chats else session.generate(text, **self.options)
        with _interrupted() as asked:
            for part in answer:
                say(part, end="")
                if asked():
                    answer.close()
        say()
        self.messages = [*messages, {"role": "assistant", "content": answer.text}]
        usage, timings = answer.usage, answer.timings
        cut = {"length": "; cut off", None: "; stopped"}.get(answer.finish_reason, "")
        say(
            f"[{usage.completion_tokens} tokens, {timings.completion_per_second:.1f} per second; "
            f"{len(self.session.tokens)} of {self.llm.context} in use{cut}]",
            file=sys.stderr,
        )

    def _save(self, path: Path) -> None:
        write(path, [json.dumps(self.messages, indent=1, ensure_ascii=False).encode()])
        say(f"{len(self.messages)} messages: {path}", file=sys.stderr)

    def _load(self, path: Path) -> None:
        found = read_json_list(path)
        sound = all(
            isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in found
        )
        if not sound:
            raise InputError(f"{path}: expected a list of messages, each with a role and content, as /save writes it")
        self.messages = [{"role": m["role"], "content": m["content"]} for m in found]
        say(f"{len(self.messages)} messages", file=sys.stderr)


@contextmanager
def _interrupted() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed in this block; pressed again, it ends the command."""
    was_asked = False

    def handle(*_: Any) -> None:
        nonlocal was_asked
        if was_asked:
            raise KeyboardInterrupt
        was_asked = True

    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        with in_order(OrderlyEnd(lambda: 1.0, lambda: "ended within an answer", ended=True)):
            yield lambda: was_asked
    finally:
        signal.signal(signal.SIGINT, before)


def _typed_lines() -> Iterator[str]:
    """The lines of standard input; on a terminal each after a prompt, and where Python has readline, they can be edited and called back."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    edits = sys.stdout.isatty()
    if edits:
        with suppress(ImportError):  # Windows edits lines itself
            import readline  # noqa: F401, PLC0415 (`input` uses it once it is imported)
    while True:
        if edits:
            try:
                yield input(PROMPT)
            except EOFError:
                return
            continue
        say(PROMPT, end="", file=sys.stderr)
        line = sys.stdin.readline()
        if not line:
            return
        yield line


def chat(args: Namespace) -> None:
    """Talk with a language model: lines are read from standard input, answers are written as they are made."""
    from ..language import load  # noqa: PLC0415 (other commands need no language models)

    with doing("loading") as work:
        given = {name: getattr(args, name) for name in OF_LANGUAGE if getattr(args, name) is not None}
        llm = load(args.model, args.device or "auto", **given)
        work("compiling")
        llm.compile()
    options = {name: getattr(args, name) for name in _OF_SAMPLING if getattr(args, name) is not None}
    if not llm.chats:
        if args.system is not None:
            raise InputError(
                "--system: the model has no chat template, which would say where it stands; leave it out, or give --chat-template"
            )
        say("the model has no chat template: it goes on with each text that you write, alone", file=sys.stderr)
    conversation = TerminalChat(llm, args.system, options)
    asks = sys.stdin.isatty()
    if asks:
        say(f"{llm!r}: {HELP}", file=sys.stderr)
    for line in _typed_lines():
        try:
            if not conversation.read(line):
                return
        except (SingeError, OSError) as e:
            if not asks:
                raise
            say(f"{clean(str(e))}", file=sys.stderr)
