"""Tokens that are found in a text before it is cut: marks of turns, ends of texts, words that were added to a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ...late_dataclass import dataclass
from .patterns import SPACE

_SPACES_AT_END: Final = re.compile(f"[{SPACE}]*\\Z")
_SPACES: Final = re.compile(f"[{SPACE}]*")
_WORD: Final = re.compile(r"\w")


@dataclass(frozen=True)
class AddedToken:
    """A token that a text may spell; `special` ones are marks, which text of a user should not make (`parse_special`).

    `strip_left`, `strip_right`: spaces beside it belong to it. `whole_word`: no letter stands beside it. `normalized`: it is
    looked for in the normalized text.
    """

    id: int
    text: str
    special: bool = True
    strip_left: bool = False
    strip_right: bool = False
    whole_word: bool = False
    normalized: bool = False


class AddedTokens:
    """Finds added tokens in texts: the leftmost, of those that begin at one place the longest."""

    def __init__(self, tokens: Iterable[AddedToken], spell: Callable[[str], str] = lambda text: text) -> None:
        self._tokens: Mapping[str, AddedToken] = {t: token for token in tokens if (t := spell(token.text))}
        starts = "".join(map(re.escape, sorted({t[0] for t in self._tokens})))
        self._first = re.compile(f"[{starts}]" if starts else "(?!)")
        lengths: dict[str, set[int]] = {}
        for text in self._tokens:
            lengths.setdefault(text[:2], set()).add(len(text))
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}

    def split(self, text: str, parse_special: bool) -> list[str | int]:
        """The ids of added tokens, and the text between them."""
        parts: list[str | int] = []
        done = at = 0
        while match := self._first.search(text, at):
            start = match.start()
            token = self._at(text, start, parse_special)
            if token is None:
                at = start + 1
                continue
            at = end = start + len(token[0])
            added = token[1]
            if added.whole_word and (_WORD.match(text, end) or (start and _WORD.match(text, start - 1))):
                continue
            if added.strip_left:
                start = max(done, done + _spaces_at_end(text[done:start]))
            if added.strip_right:
                at = end = _SPACES.match(text, end).end()  # pyright: ignore[reportOptionalMemberAccess]
            if done < start:
                parts.append(text[done:start])
            parts.append(added.id)
            done = end
        if done < len(text):
            parts.append(text[done:])
        return parts

    def _at(self, text: str, start: int, parse_special: bool) -> tuple[str, AddedToken] | None:
        for length in (*self._lengths.get(text[start : start + 2], ()), *self._lengths.get(text[start], ())):
            spelled = text[start : start + length]
            token = self._tokens.get(spelled)
            if token is not None and (parse_special or not token.special):
                return spelled, token
        return None


def _spaces_at_end(text: str) -> int:
    return len(text.rstrip()) if text.isascii() else _SPACES_AT_END.search(text).start()  # pyright: ignore[reportOptionalMemberAccess]
