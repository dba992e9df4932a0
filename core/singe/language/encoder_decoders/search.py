"""The tokens of a text about a source: one by one the likeliest, or several texts side by side of which the likeliest is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from math import inf
from typing import Protocol

import numpy as np

from ...errors import InputError
from ...late_dataclass import dataclass

Chances = Callable[[np.ndarray, Sequence[int]], np.ndarray]
"""The logarithms of the chances of tokens, of their scores, which may change, after those of a text."""
Choose = Callable[[np.ndarray, Sequence[int]], tuple[int, float]]
"""A token of these scores after those of a text, and the logarithm of its chance."""


class FollowedTexts(Protocol):
    """Texts about a source, each with as many tokens as the others."""

    @property
    def count(self) -> int: ...
    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        """Add tokens to each text, which goes on from the one that `order` names: the scores (texts, rows, vocabulary) after the last."""
        ...


def log_chances(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())


@dataclass(frozen=True)
class FollowedText:
    """A text that was followed. total: the sum of the logarithms of its chances; tokens: with the one that ends it; source: the number of the
    text that it goes on from."""

    total: float
    tokens: tuple[int, ...]
    source: int = 0


class Ending(Protocol):
    """Which texts that ended are kept, and until when others are followed."""

    def take(self, best: Sequence[FollowedText], going: Sequence[FollowedText], last: bool) -> bool:
        """Of the texts of a step, the likeliest first, those that ended; going: those that go on. last: no step follows. Whether all are found."""
        ...


def one_by_one(
    texts: FollowedTexts, scores: np.ndarray, choose: Choose, ends: Collection[int], most: int
) -> Iterator[tuple[int, float]]:  # fmt: skip
    """The tokens of a text, with that which ends it, and the logarithms of their chances. scores: before the first."""
    said = list[int]()
    while True:
        token, chance = choose(scores, said)
        yield token, chance
        said.append(token)
        if token in ends or len(said) >= most:
            return
        scores = texts.add([[token]])[0, 0]


def side_by_side(
    texts: FollowedTexts, scores: np.ndarray, chances: Chances, ends: Collection[int], most: int, ending: Ending
) -> None:  # fmt: skip
    """Follow several texts, until `ending` has found those that it wants. scores: before the first token, of each."""
    count, vocabulary = texts.count, scores.shape[1]
    if sum(token < vocabulary for token in set(ends)) == vocabulary:
        raise InputError(
            f"beams: the model scores {vocabulary} tokens, each of which ends a text; expected some with which a text goes on"
        )
    followed = [FollowedText(-inf if k else 0.0, ()) for k in range(count)]
    each = count + len(ends)
    for step in range(most):
        best = list[FollowedText]()
        for k, text in enumerate(followed):
            row = chances(scores[k], text.tokens)
            tokens = np.argpartition(row, -each)[-each:] if each < len(row) else np.arange(len(row))
            best += [FollowedText(text.total + float(row[t]), (*text.tokens, t), k) for t in tokens.tolist()]
        best.sort(key=lambda text: text.total, reverse=True)
        going = [text for text in best if text.tokens[-1] not in ends][:count]
        if ending.take(best, going, step == most - 1) or step == most - 1:
            return
        followed = going
        scores = texts.add([[text.tokens[-1]] for text in followed], order=[text.source for text in followed])[:, 0]
