"""SentencePiece's unigram model: of all ways to write a piece in tokens, that whose scores have the greatest sum."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from ....errors import FormatError
from .merging import fallback_tokens

MAX_TOKEN: Final = 512
"""The characters of a token: time is proportional to it."""
UNKNOWN_PENALTY: Final = 10.0
"""By how much a character that is no token is worse than the worst token."""


class Unigram:
    """The best tokens of a piece. A run of characters that are no tokens becomes their bytes, where `byte_fallback` is set and
    the vocabulary has the tokens of all 256, else one `unknown`.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        scores: Mapping[str, float],
        unknown: int | None,
        byte_fallback: bool = False,
    ) -> None:
        longest = max(map(len, scores), default=0)
        if longest > MAX_TOKEN:
            raise FormatError(f"a token has {longest} characters, expected at most {MAX_TOKEN}")
        self._vocabulary, self._scores, self._unknown = vocabulary, scores, unknown
        self._unknown_score = min(scores.values(), default=0.0) - UNKNOWN_PENALTY
        self._fallback = fallback_tokens(vocabulary) if byte_fallback else None
        self._longest: dict[str, int] = {}
        for token in scores:
            if token and len(token) > self._longest.get(token[0], 0):
                self._longest[token[0]] = len(token)

    def encode(self, piece: str) -> list[int]:
        ids: list[int] = []
        unknown = ""
        for token in self._best(piece):
            if token in self._scores:
                ids += self._unknown_ids(unknown)
                unknown = ""
                ids.append(self._vocabulary[token])
            else:
                unknown += token
        return ids + self._unknown_ids(unknown)

    def _unknown_ids(self, text: str) -> list[int]:
        if not text:
            return []
        if self._fallback:
            return [self._vocabulary[self._fallback[byte]] for byte in text.encode()]
        if self._unknown is None:
            raise FormatError(f"{text!r:.60} is in no token, and the tokenizer names none for what is unknown")
        return [self._unknown]

    def _best(self, piece: str) -> list[str]:
        count = len(piece)
        scores, longest = self._scores, self._longest
        best = [0.0] + [-inf] * count
        starts = [0] * (count + 1)
        for start in range(count):
            here = best[start]
            for end in range(start + 1, min(start + longest.get(piece[start], 0), count) + 1):
                score = scores.get(piece[start:end])
                if score is not None and here + score > best[end]:
                    best[end], starts[end] = here + score, start
            if piece[start] not in scores and here + self._unknown_score > best[start + 1]:
                best[start + 1], starts[start + 1] = here + self._unknown_score, start
        tokens: list[str] = []
        end = count
        while end:
            tokens.append(piece[starts[end] : end])
            end = starts[end]
        return tokens[::-1]
