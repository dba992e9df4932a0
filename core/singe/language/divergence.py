"""How far a language model is from another on a text: by the chances that each gives to what may follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from .llm import LanguageModel

TOKENS: Final = 256
"""The most tokens on which models are compared."""
_TEXTS: Final = 16


@dataclass(frozen=True)
class Divergence:
    """tokens: on how many it was measured; mean: of the Kullback-Leibler divergence, in nats a token; same: the part of tokens at which the
    likeliest next one is the same."""

    tokens: int
    mean: float
    same: float

    def __str__(self) -> str:
        return (
            f"mean KLD {self.mean:.2g}, the same likeliest token at {self.same:.1%} of {self.tokens} tokens of the text"
        )


def divergence(exact: LanguageModel, other: LanguageModel, text: str | None = None) -> Divergence:
    """How far `other` is from `exact`. text: of which the first tokens count; without one, a text that `exact` writes."""
    ids = (own_text(exact) if text is None else exact.tokenizer.encode(text))[: min(TOKENS, exact.context - 1)]
    if len(ids) < 2:
        raise InputError("divergence: the text has fewer than two tokens; give a longer one")
    return compared(exact.logits(ids), other.logits(ids))


def own_text(llm: LanguageModel) -> list[int]:
    """The tokens of texts that the model writes, always the same ones."""
    ids: list[int] = []
    for seed in range(_TEXTS):
        if len(ids) < TOKENS:
            ids += llm.tokenizer.encode(
                "The" + llm.generate("The", max_tokens=min(TOKENS, llm.context - 8), temperature=1.0, seed=seed).text
            )
    return ids


def compared(exact: Sequence[np.ndarray] | np.ndarray, other: Sequence[np.ndarray] | np.ndarray) -> Divergence:
    """Of the scores (tokens, vocabulary) of both."""
    total, same = 0.0, 0
    for a, b in zip(exact, other, strict=True):
        p, q = _log_chances(a), _log_chances(b)
        total += float((np.exp(p) * (p - q)).sum())
        same += int(a.argmax() == b.argmax())
    return Divergence(len(exact), max(0.0, total / len(exact)), same / len(exact))


def _log_chances(scores: np.ndarray) -> np.ndarray:
    x = scores.astype(np.float64) - scores.max()
    return x - np.log(np.exp(x).sum())
