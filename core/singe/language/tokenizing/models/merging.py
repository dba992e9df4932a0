"""Byte-pair encoding: the symbols of a piece are joined in pairs, the pair of the lowest rank first, of equal ones the leftmost.

The rank of a pair is its place in a list of merges (`Merges`), or the score of what it joins to (`Scores`, as SentencePiece
does). Time is O(n log n) in the symbols of a piece.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import inf
from typing import Final, TypeAlias

from ....errors import FormatError
from .cutting import PairCutter

Rank: TypeAlias = Callable[[tuple[str, str]], float | None]
"""A pair of symbols ↦ when they are joined, or None."""
SHORT: Final = 48
"""Up to so many symbols, looking at all pairs again is faster than a heap."""
LONG: Final = 256
"""Pieces of more characters are cut where no token reaches across; to find out where takes time once."""


def joined(symbols: list[str], rank: Rank) -> list[str]:
    """The symbols after all joins."""
    return _by_heap(symbols, rank) if len(symbols) > SHORT else _by_scan(symbols, rank)


def _by_scan(symbols: list[str], rank: Rank) -> list[str]:
    ranks = [inf if (r := rank(pair)) is None else r for pair in pairwise(symbols)]
    while ranks and (lowest := min(ranks)) != inf:
        at = ranks.index(lowest)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        del ranks[at]
        if at:
            ranks[at - 1] = inf if (r := rank((symbols[at - 1], symbols[at]))) is None else r
        if at < len(ranks):
            ranks[at] = inf if (r := rank((symbols[at], symbols[at + 1]))) is None else r
    return symbols


def _by_heap(symbols: list[str], rank: Rank) -> list[str]:
    count = len(symbols)
    after, before = list(range(1, count + 1)), list(range(-1, count - 1))
    heap = [(r, at, *pair) for at, pair in enumerate(pairwise(symbols)) if (r := rank(pair)) is not None]
    heapify(heap)

    def offer(left: int, right: int) -> None:
        pair = symbols[left], symbols[right]
        if (r := rank(pair)) is not None:
            heappush(heap, (r, left, *pair))

    while heap:
        _, at, left, right = heappop(heap)
        other = after[at]
        if other == count or symbols[at] != left or symbols[other] != right:
            continue  # one of the two was joined to another since
        symbols[at], symbols[other] = left + right, ""
        after[at] = after[other]
        if after[at] < count:
            before[after[at]] = at
            offer(at, after[at])
        if before[at] >= 0:
            offer(before[at], at)
    return [s for s in symbols if s]


def fallback_tokens(vocabulary: Mapping[str, int]) -> list[str] | None:
    """The tokens <0x00> to <0xFF>, None unless the vocabulary has them all."""
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    return names if all(name in vocabulary for name in names) else None


def _ranks(vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]]) -> Rank:
    """The ranks of merges, found by what they join to: nearly every token is joined of one pair."""
    count = max(vocabulary.values(), default=-1) + 1
    ranks, lengths = array("q", [-1]) * count, array("q", [-1]) * count
    others: dict[tuple[str, str], int] = {}
    by_token = len(set(vocabulary.values())) == len(vocabulary)
    find = vocabulary.get
    for rank, (left, right) in enumerate(merges):
        token = find(left + right)
        if token is None or left not in vocabulary or right not in vocabulary:
            raise FormatError(f"the merge of {left!r:.60} and {right!r:.60} is not of tokens of the vocabulary")
        if by_token and lengths[token] in (-1, len(left)):
            ranks[token], lengths[token] = rank, len(left)
        else:
            others[left, right] = rank

    def rank_of(pair: tuple[str, str]) -> int | None:
        left, right = pair
        token = find(left + right)
        if token is None:
            return None
        return ranks[token] if lengths[token] == len(left) else others.get(pair)

    return rank_of


class Merges:
    """Byte-pair encoding by a list of merges, as in `tokenizer.json` and in GGUF's `gpt2`.

    A character that is no token becomes its bytes, where `byte_fallback` is set and the vocabulary has the tokens of all 256,
    else `unknown`, else nothing. `whole`: a piece that is a token stays one, even if merges would not make it. The last
    character of a piece is written with `suffix`.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        merges: Iterable[tuple[str, str]],
        *,
        whole: bool = False,
        byte_fallback: bool = False,
        unknown: str | None = None,
        fuse_unknown: bool = False,
        suffix: str = "",
    ) -> None:
        self.vocabulary = vocabulary
        self._rank: Rank = _ranks(vocabulary, merges)
        self._whole, self.suffix = whole, suffix
        self._fallback = fallback_tokens(vocabulary) if byte_fallback else None
        self._unknown, self._fuse_unknown = unknown, fuse_unknown
        self._cut = PairCutter(vocabulary)

    def encode(self, piece: str) -> list[int]:
        vocabulary = self.vocabulary
        if self.suffix:
            symbols = self._known([*piece[:-1], piece[-1] + self.suffix])
            return [vocabulary[symbol] for symbol in joined(symbols, self._rank)]
        if self._whole and piece in vocabulary:
            return [vocabulary[piece]]
        symbols: list[str] = []
        for part in self._cut(piece) if len(piece) > LONG else [piece]:
            symbols += joined(list(part), self._rank)
        try:
            return [vocabulary[symbol] for symbol in symbols]
        except KeyError:
            return [vocabulary[symbol] for symbol in self._known(symbols)]

    def _known(self, symbols: Iterable[str]) -> list[str]:
        """Symbols, where what is no token (a single character) is replaced. Nothing is joined to it, before or after."""
        known: list[str] = []
        for symbol in symbols:
            if symbol in self.vocabulary:
                known.append(symbol)
            elif self._fallback:
                known += [self._fallback[byte] for byte in symbol.encode()]
            elif self._unknown is not None and not (self._fuse_unknown and known and known[-1] == self._unknown):
                known.append(self._unknown)
        return known


class Scores:
    """SentencePiece's byte-pair encoding: of all pairs that join to a token, that of the best score is next.

    `scores` has the tokens that text may become; `vocabulary` the bytes too, which what is no token becomes, or one
    `unknown` for a run of it.
    """

    def __init__(self, vocabulary: Mapping[str, int], scores: Mapping[str, float], unknown: int | None) -> None:
        self.vocabulary, self._unknown = vocabulary, unknown
        self._tokens = scores
        self._fallback = fallback_tokens(vocabulary)
        self._cut = PairCutter(scores)

    def _rank(self, pair: tuple[str, str]) -> float | None:
        score = self._tokens.get(pair[0] + pair[1])
        return None if score is None else -score

    def encode(self, piece: str) -> list[int]:
        ids: list[int] = []
        for part in self._cut(piece) if len(piece) > LONG else [piece]:
            for symbol in joined(list(part), self._rank):
                if symbol in self._tokens:
                    ids.append(self.vocabulary[symbol])
                elif self._fallback:
                    ids += [self.vocabulary[self._fallback[byte]] for byte in symbol.encode()]
                elif self._unknown is not None and ids[-1:] != [self._unknown]:
                    ids.append(self._unknown)
        return ids
