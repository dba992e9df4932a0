"""Where a text may be cut before it is encoded although its tokenizer cuts nowhere: SentencePiece encodes whole texts.

No token reaches across two characters that stand side by side in none. Words that are cut out so are found again among the
pieces whose ids are known, and long pieces take less time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, pairwise

from ..patterns import Splitter
from ..spelling import UNDERLINE


class PairCutter:
    """Cuts a piece between any two characters that stand side by side in no token."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens: Iterable[str] | None = tokens
        self._pairs: set[tuple[str, str]] = set()

    def __call__(self, piece: str) -> list[str]:
        if self._tokens is not None:
            self._pairs.update(chain.from_iterable(map(pairwise, self._tokens)))
            self._tokens = None
        pairs = self._pairs
        cuts = [at for at, pair in enumerate(pairwise(piece), 1) if pair not in pairs]
        return [piece[start:end] for start, end in zip([0, *cuts], [*cuts, len(piece)], strict=True)]


def word_cutter(tokens: Iterable[str]) -> Splitter:
    """Cuts a text before ▁, and before and after ends of lines, where no token reaches across."""
    before_space: set[str] = set()
    before_line: set[str] = set()
    after_line: set[str] = set()
    for token in tokens:
        if UNDERLINE in token[1:]:
            before_space.update(token[at - 1] for at in range(1, len(token)) if token[at] == UNDERLINE)
        if "\n" in token and len(token) > 1:
            before_line.update(token[at - 1] for at in range(1, len(token)) if token[at] == "\n")
            after_line.update(token[at + 1] for at in range(len(token) - 1) if token[at] == "\n")
    return re.compile(
        f"(?={UNDERLINE})(?<={_none_of(before_space)})|(?=\n)(?<={_none_of(before_line)})|(?<=\n)(?={_none_of(after_line)})"
    ).split


def _none_of(characters: Iterable[str]) -> str:
    listed = "".join(map(re.escape, sorted(characters)))
    return f"[^{listed}]" if listed else r"[\s\S]"
