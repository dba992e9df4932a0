"""The source of a template as text, statements and expressions, these as tokens.

White space is as transformers has it: `trim_blocks` (an end of line after a statement or comment goes), `lstrip_blocks` (spaces
before one that begins a line go), and the marks - and +.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ...errors import FormatError

MAX_SOURCE: Final = 1 << 20
"""The characters of a template."""


class TemplateToken(NamedTuple):
    """A token of an expression: its kind (name, text, integer, float, operator), what it says, its line."""

    kind: str
    value: str
    line: int


class TemplatePart(NamedTuple):
    """A part of a template: its kind (text, statement, expression), the text, or the tokens within."""

    kind: str
    text: str
    tokens: Sequence[TemplateToken]
    line: int


_OPEN: Final = re.compile(r"\{(?:%|\{|#)")
_RAW: Final = re.compile(r"\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})")
_END_RAW: Final = re.compile(r"\{%([-+]?)\s*endraw\s*(?:(-%\})\s*|\+%\}|%\}\n?)")
_TOKEN: Final = re.compile(
    r"""\s+|(?P<float>\d+(?:_\d+)*(?:\.\d+(?:_\d+)*(?:[eE][+-]?\d+)?|[eE][+-]?\d+))|(?P<integer>\d+(?:_\d+)*)"""
    r"""|(?P<name>[^\W\d]\w*)|(?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")"""
    r"""|(?P<operator>\*\*|//|==|!=|<=|>=|[-+*/%~<>=()\[\]{}.,:|])""",
    re.DOTALL,
)
_CLOSE: Final = {"%": re.compile(r"([-+]?)%\}"), "{": re.compile(r"([-+]?)\}\}")}
_ESCAPE: Final = re.compile(r"\\(\n|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES: Final = {
    "\n": "", "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v",
}  # fmt: skip


def _unescaped(text: str, line: int) -> str:
    """What a literal of a text means."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code in _ESCAPES:
            return _ESCAPES[code]
        if code[0] in "01234567":
            return chr(int(code, 8))
        if len(code) == 1:
            return match[0]
        number = int(code[1:], 16)
        if number > 0x10FFFF:
            raise FormatError(f"template, line {line}: {match[0]} is no character")
        return chr(number)

    return _ESCAPE.sub(character, text[1:-1])


def template_parts(source: str) -> list[TemplatePart]:
    """The parts of a template, in order."""
    if len(source) > MAX_SOURCE:
        raise FormatError(f"a template has {len(source)} characters, expected at most {MAX_SOURCE}")
    source = source.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return list(_parts(source))


def _parts(source: str) -> Iterator[TemplatePart]:
    at, line = 0, 1
    strip_next, at_line_start = False, True
    while True:
        opening = _OPEN.search(source, at)
        text = source[at : opening.start() if opening else len(source)]
        line_before = line
        line += text.count("\n")
        if strip_next:
            text = text.lstrip()
        if opening is None:
            if text:
                yield TemplatePart("text", text, (), line_before)
            return
        kind, start = source[opening.start() + 1], opening.end()
        mark = source[start : start + 1]
        if mark == "-":
            text = text.rstrip()
        elif kind != "{" and mark != "+":
            text = _without_indent(text, at_line_start)
        if text:
            yield TemplatePart("text", text, (), line_before)
        raw = _RAW.match(source, opening.start())
        if raw:
            ending = _END_RAW.search(source, raw.end())
            if ending is None:
                raise FormatError(f"template, line {line}: raw is not ended by endraw")
            inner = source[raw.end() : ending.start()]
            inner = inner.rstrip() if ending[1] == "-" else inner if ending[1] else _without_indent(inner, False)
            yield TemplatePart("text", inner, (), line)
            at, strip_next = ending.end(), ending[2] is not None
        elif kind == "#":
            close = source.find("#}", start)
            if close < 0:
                raise FormatError(f"template, line {line}: a comment is not ended by #}}")
            strip_next = source[close - 1] == "-" and close > start
            keep = source[close - 1] == "+" and close > start
            at = close + 2
            if not strip_next and not keep and source.startswith("\n", at):
                at += 1
        else:
            tokens, close, mark = _tokens(source, start + (mark in ("-", "+") and mark != ""), line, _CLOSE[kind])
            yield TemplatePart("statement" if kind == "%" else "expression", "", tokens, line)
            at, strip_next = close, mark == "-"
            if kind == "%" and not mark and source.startswith("\n", at):
                at += 1
        line += source.count("\n", opening.start(), at)
        at_line_start = source[at - 1] == "\n"


def _without_indent(text: str, at_line_start: bool) -> str:
    """A text without the spaces after its last end of line."""
    start = text.rfind("\n") + 1
    return text[:start] if (start or at_line_start) and not text[start:].strip() else text


def _tokens(source: str, at: int, line: int, closing: re.Pattern[str]) -> tuple[list[TemplateToken], int, str]:
    """The tokens up to the end of a statement or expression, where it ends, and the mark that stands there."""
    tokens: list[TemplateToken] = []
    open_brackets: list[str] = []
    while True:
        if not open_brackets:
            close = closing.match(source, at)
            if close:
                return tokens, close.end(), close[1]
        token = _TOKEN.match(source, at)
        if token is None:
            found = repr(source[at : at + 10]) if at < len(source) else "the end of the template"
            raise FormatError(
                f"template, line {line}: {found} in an expression, expected a name, a value or an operator"
            )
        text = token[0]
        if token.lastgroup:
            value = _unescaped(text, line) if token.lastgroup == "text" else text
            tokens.append(TemplateToken(token.lastgroup, value, line))
            if token.lastgroup == "operator" and text in "([{":
                open_brackets.append({"(": ")", "[": "]", "{": "}"}[text])
            elif token.lastgroup == "operator" and text in ")]}" and (not open_brackets or open_brackets.pop() != text):
                raise FormatError(f"template, line {line}: {text} closes nothing")
        line += text.count("\n")
        at = token.end()
