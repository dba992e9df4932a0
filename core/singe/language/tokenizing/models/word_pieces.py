"""BERT's words: the longest token that begins a word, then the longest that goes on."""

from __future__ import annotations

from collections.abc import Mapping


class WordPieces:
    """A word that tokens do not make, or of more than `longest` characters, is `unknown`. Tokens that go on begin with `prefix`."""

    def __init__(self, vocabulary: Mapping[str, int], unknown: int, prefix: str = "##", longest: int = 100) -> None:
        self._begin, self._go_on = (
            vocabulary,
            {t[len(prefix) :]: i for t, i in vocabulary.items() if t.startswith(prefix)},
        )
        self._unknown, self._longest = unknown, longest

    def encode(self, piece: str) -> list[int]:
        if len(piece) > self._longest:
            return [self._unknown]
        ids: list[int] = []
        vocabulary, start = self._begin, 0
        while start < len(piece):
            for end in range(len(piece), start, -1):
                known = vocabulary.get(piece[start:end])
                if known is not None:
                    break
            else:
                return [self._unknown]
            ids.append(known)
            vocabulary, start = self._go_on, end
        return ids
