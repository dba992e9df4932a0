"""Where the tokens of a text stand in it, for any tokenizer.

What is cut into tokens is a normalized text. Each character with its combining marks is normalized alone, and looked for where the one before
it ends; characters that are not found, since normalizing depends on what stands beside them, share a place up to the next that is. The bytes
of tokens say where each stands in its piece; where these are not the piece's, as of unknown words, a token has all of the piece.
"""

from __future__ import annotations

import unicodedata
from itertools import accumulate
from typing import Final

from .spelling import UNDERLINE
from .tokenizer import TextPart, Tokenizer

Spans = list[tuple[int, int]]
_AHEAD: Final = 64
"""So far ahead a character is looked for."""


def encoded(tokenizer: Tokenizer, text: str) -> tuple[list[int], Spans]:
    """The ids of a text, without marks, and for each its first character in the text and the one after its last."""
    ids: list[int] = []
    spans: Spans = []
    start = 0
    for part in tokenizer.parts(text):
        start = max(start, text.find(part.source, start))
        places = _places(tokenizer, part)
        whole = part.normalized.replace(UNDERLINE, " ")
        at = 0
        for piece, own in part.pieces:
            core = piece.replace(UNDERLINE, " ").strip()
            found = whole.find(core, at)
            begin = max(found, at)
            at = begin + (len(core) if found >= 0 else 0)
            for a, b in _within(core, [tokenizer.vocabulary[i] for i in own]):
                first, last = begin + a, min(begin + b, len(places)) - 1
                spans.append((start + places[first][0], start + places[last][1]) if first <= last else (start, start))
            ids += own
        start += len(part.source)
    return ids, spans


def _clusters(text: str) -> list[tuple[int, int]]:
    """Each character with the combining marks after it."""
    starts = [k for k, c in enumerate(text) if not k or not unicodedata.category(c).startswith("M")]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _places(tokenizer: Tokenizer, part: TextPart) -> Spans:
    """For each character of the normalized text, what it was made of."""
    whole = part.normalized
    places: Spans = []
    lost = 0
    for begin, end in _clusters(part.source):
        made = tokenizer.normalized(part.source[begin:end])
        if not made:
            continue
        found = whole.find(made, len(places), len(places) + len(made) + _AHEAD)
        if found < 0:
            continue
        places += [(lost, begin)] * (found - len(places)) + [(begin, end)] * len(made)
        lost = end
    return places + [(lost, len(part.source))] * (len(whole) - len(places))


def _within(core: str, tokens: list[bytes]) -> Spans:
    """The characters of each token in a piece."""
    sizes = [len(token) for token in tokens]
    if tokens:
        sizes[0] = len(tokens[0].lstrip(b" "))
    data = core.encode()
    if len(tokens) == 1 or sum(sizes) != len(data):
        return [(0, len(core))] * len(tokens)
    ends = list(accumulate(sizes, initial=0))
    before = [len(data[:n].decode("utf-8", "ignore")) for n in ends[:-1]]
    after = [
        len(data[:n].decode("utf-8", "replace")) for n in ends[1:]
    ]  # a character of which a token has a part counts
    return list(zip(before, after, strict=True))
