"""The choice of the next token from the scores of all: penalties, then the likeliest few, then a draw.

Seeded draws are the same again for the same scores. Nothing here knows a device: scores are an array of NumPy. choosing.py is the same
as a part of a run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from ..errors import InputError
from ..late_dataclass import dataclass

REMEMBERED: Final = 64
"""How many of the latest tokens are penalised when they come again."""


@dataclass(frozen=True)
class SamplingOptions:
    """How tokens are chosen. temperature 0: always the likeliest. top_k 0, top_p 1, min_p 0: no limit of the kind."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
                raise InputError(f"{name}: got {value!r:.40}, expected a number from {least} to {most}")
        for name in ("top_k", "seed"):
            value = getattr(self, name)
            if (value is not None or name == "top_k") and (
                isinstance(value, bool) or not isinstance(value, int) or value < 0
            ):
                raise InputError(f"{name}: got {value!r:.40}, expected a whole number, 0 or more")


_RANGES: Final = (
    ("temperature", 0.0, 100.0),
    ("top_p", 0.0, 1.0),
    ("min_p", 0.0, 1.0),
    ("repeat_penalty", 0.01, 100.0),
    ("presence_penalty", -100.0, 100.0),
    ("frequency_penalty", -100.0, 100.0),
)


class TokenDraws:
    """Numbers of [0, 1) from a seed, by SplitMix32: those of singe-language-sampling.js."""

    def __init__(self, seed: int) -> None:
        self._state = seed ^ seed >> 32

    def random(self) -> float:
        self._state = z = (self._state + 0x9E3779B9) & _WORD
        z = (z ^ z >> 16) * 0x21F0AAAD & _WORD
        z = (z ^ z >> 15) * 0x735A2D97 & _WORD
        return (z ^ z >> 15) / 2**32


_WORD: Final = 0xFFFFFFFF


class Chosen(NamedTuple):
    """A token, the logarithm of its probability among all tokens, and the likeliest ones with theirs."""

    token: int
    logprob: float
    likeliest: tuple[tuple[int, float], ...]


class Sampler:
    """Draws one token after the other. `told`: of how many likeliest tokens each choice tells the probabilities."""

    def __init__(self, options: SamplingOptions, told: int = 0) -> None:
        self._options, self._told = options, told
        self._draws = TokenDraws(random.getrandbits(32) if options.seed is None else options.seed)

    def row(self, tokens: int) -> np.ndarray:
        """The numbers with which a run chooses the next token (choosing.py), of so many."""
        o = self._options
        most = o.top_k if o.temperature else 1
        limits = (o.temperature, most, o.top_p, o.min_p, o.repeat_penalty, o.presence_penalty, o.frequency_penalty)
        return np.array([[*limits, self._draws.random() if o.temperature else 0.0, tokens]], np.float32)

    def choose(self, scores: np.ndarray, before: Sequence[int], allowed: np.ndarray | None = None) -> Chosen:
        """scores: (tokens,) of the model; before: the tokens so far; allowed: whether each token may be chosen, None for all."""
        o = self._options
        adjusted = self._penalised(scores, before)
        if allowed is not None:
            adjusted = np.where(allowed, adjusted, -np.inf)
        token = int(adjusted.argmax()) if o.temperature == 0 else self._drawn(adjusted)
        if not math.isfinite(float(scores[token])):
            raise InputError(f"the model's scores are not finite ({float(scores[token])}); its weights may be damaged")
        wide = scores.astype(np.float64)
        total = float(wide.max() + np.log(np.exp(wide - wide.max()).sum()))
        best = np.argsort(-scores, kind="stable")[: self._told] if self._told else ()
        return Chosen(token, float(wide[token]) - total, tuple((int(i), float(wide[i]) - total) for i in best))

    def _penalised(self, scores: np.ndarray, before: Sequence[int]) -> np.ndarray:
        o = self._options
        if (o.repeat_penalty, o.presence_penalty, o.frequency_penalty) == (1.0, 0.0, 0.0) or not before:
            return scores
        found, counts = np.unique(np.asarray(before[-REMEMBERED:]), return_counts=True)
        old = scores[found]
        new = np.where(old > 0, old / o.repeat_penalty, old * o.repeat_penalty)
        made = scores.copy()
        made[found] = new - counts * o.frequency_penalty - o.presence_penalty
        return made

    def _drawn(self, scores: np.ndarray) -> int:
        """A draw from the tokens that pass the limits, in the order of their scores."""
        o = self._options
        count = min(o.top_k or len(scores), len(scores))
        some = np.argpartition(-scores, count - 1)[:count] if count < len(scores) else np.arange(len(scores))
        some = some[np.lexsort((some, -scores[some]))]
        chances = _softmax(scores[some])
        kept = max(1, int(np.searchsorted(np.cumsum(chances), o.top_p)) + 1) if o.top_p < 1 else len(some)
        kept = min(kept, max(1, int((chances >= o.min_p * chances[0]).sum())))
        ends = np.cumsum(_softmax(scores[some[:kept]] / o.temperature))
        return int(some[min(int(np.searchsorted(ends, self._draws.random() * ends[-1], side="right")), kept - 1)])


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores.astype(np.float64) - float(scores.max()))
    return powers / powers.sum()
