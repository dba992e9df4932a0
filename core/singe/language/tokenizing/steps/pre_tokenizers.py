"""How a `tokenizer.json` cuts a normalized text: one function for each kind of pre-tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ....errors import FormatError
from ..fields import Fields
from ..patterns import GPT2, Splitter, isolate, known, split_by
from ..spelling import UNDERLINE

Cut: TypeAlias = Callable[[list[str], bool], list[str]]
"""Pieces, and whether the first stands at the start of the text ↦ smaller pieces."""
MAX_STEPS: Final = 32
_SYMBOLS: Final = r"!-/:-@\[-`{-~\p{P}"
"""Punctuation, as BERT has it: all of ASCII's, and Unicode's category."""
WORDS: Final = r"[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}‌‍Ⓐ-ⓩ]"


def each(splitter: Splitter) -> Cut:
    """Cuts each piece alone."""

    def cut(pieces: list[str], _first: bool) -> list[str]:
        if len(pieces) == 1:
            return splitter(pieces[0])
        return [part for piece in pieces for part in splitter(piece)]

    return cut


def _behavior(fields: Fields, default: str | None = None) -> str:
    return fields.text("behavior", default)


def _split(fields: Fields) -> Cut:
    pattern = fields.node("pattern")
    text = re.escape(pattern.short_text("String")) if "String" in pattern else known(pattern.text("Regex"))
    if not text:
        raise FormatError(f"{pattern.place}: a text cannot be cut at an empty one")
    return each(split_by(text, _behavior(fields), fields.flag("invert", False)))


def _byte_level(fields: Fields) -> Cut:
    """Cuts as GPT-2 does. How pieces are spelled, `tokenizer_json.py` says."""
    splitter = isolate(GPT2) if fields.flag("use_regex", True) else None
    prefix = fields.flag("add_prefix_space", True)

    def cut(pieces: list[str], first: bool) -> list[str]:
        if prefix:
            pieces = [piece if piece.startswith(" ") else " " + piece for piece in pieces]
        return each(splitter)(pieces, first) if splitter else pieces

    return cut


def _metaspace(fields: Fields) -> Cut:
    mark = fields.short_text("replacement", UNDERLINE)
    scheme = fields.text("prepend_scheme", "always" if fields.flag("add_prefix_space", True) else "never")
    if scheme not in ("always", "first", "never"):
        raise FormatError(f"{fields.place}.prepend_scheme is {scheme!r:.60}, expected always, first or never")
    if len(mark) != 1:
        raise FormatError(f"{fields.place}.replacement is {mark!r}, expected one character")
    splitter = split_by(re.escape(mark), "MergedWithNext") if fields.flag("split", True) else None

    def cut(pieces: list[str], first: bool) -> list[str]:
        marked: list[str] = []
        for at, piece in enumerate(pieces):
            text = piece.replace(" ", mark)
            begins = scheme == "always" or (scheme == "first" and first and not at)
            marked.append(mark + text if begins and not text.startswith(mark) else text)
        return each(splitter)(marked, first) if splitter else marked

    return cut


def _delimiter(fields: Fields) -> Cut:
    delimiter = fields.short_text("delimiter")
    if len(delimiter) != 1:
        raise FormatError(f"{fields.place}.delimiter is {delimiter!r}, expected one character")
    return each(split_by(re.escape(delimiter), "Removed"))


def bert_cut(pieces: list[str], first: bool) -> list[str]:
    """Words and single marks of punctuation, without spaces."""
    return each(split_by(rf"[^\s{_SYMBOLS}]+|[{_SYMBOLS}]", "Removed", True))(pieces, first)


KINDS: Final[Mapping[str, Callable[[Fields], Cut]]] = {
    "BertPreTokenizer": lambda _: bert_cut,
    "ByteLevel": _byte_level,
    "CharDelimiterSplit": _delimiter,
    "Digits": lambda fields: each(isolate(r"\p{N}" if fields.flag("individual_digits", False) else r"\p{N}+")),
    "Metaspace": _metaspace,
    "Punctuation": lambda fields: each(split_by(f"[{_SYMBOLS}]", _behavior(fields, "Isolated"))),
    "Split": _split,
    "Whitespace": lambda _: each(split_by(rf"{WORDS}+|[^\s{WORDS[1:-1]}]+", "Removed", True)),
    "WhitespaceSplit": lambda _: each(split_by(r"\s+", "Removed")),
}
"""The pre-tokenizers of `tokenizer.json` by their `type`."""


def pre_tokenizer(steps: Sequence[Fields]) -> Callable[[str, bool], list[str]]:
    """The pre-tokenizers of a `tokenizer.json`, one after the other."""
    if len(steps) > MAX_STEPS:
        raise FormatError(f"{len(steps)} pre-tokenizers, expected at most {MAX_STEPS}")
    cuts = [step.choose(KINDS)(step) for step in steps]
    if any(step.text("type") == "ByteLevel" for step in steps[:-1]):
        raise FormatError(
            f"{steps[0].place}: a pre-tokenizer stands after ByteLevel, expected none: it would see bytes"
        )

    def cut(text: str, first: bool) -> list[str]:
        pieces = [text]
        for step in cuts:
            pieces = step(pieces, first)
        return pieces

    return cut


def flat(fields: Fields | None, inner: str) -> list[Fields]:
    """The steps of a sequence, those of sequences within it included."""
    if fields is None:
        return []
    if fields.text("type") == "Sequence":
        return [step for item in fields.nodes(inner) for step in flat(item, inner)]
    return [fields]
