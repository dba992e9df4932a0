"""The choice of the next token where the scores are: what sampling.py does, as a part of the decoder's run.

A run takes a row of numbers for each token that it chooses, `SAMPLING` and the random number of the draw, so that the host decides
nothing between a token and the next. The likeliest `MOST_CHOSEN` are found by counting, in blocks of the vocabulary and then among
the likeliest of all blocks: each step is a plain fold, so that a token has no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..ops.movement.move import numbered
from ..tensors.functions.creation import concat, full, where
from ..tensors.tensor import Tensor, apply
from .sampling import REMEMBERED, SamplingOptions

MOST_CHOSEN: Final = 64
"""A draw is among so many likeliest tokens at most."""
SAMPLING: Final = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "draw",
    "tokens",
)
"""The numbers of a row: options, a number of [0, 1), and how many tokens the tokenizer has."""
NOT_CHOSEN: Final = np.empty((0, len(SAMPLING)), np.float32), np.empty((0, REMEMBERED), np.int32)
"""The inputs of a run that chooses nothing."""
LATEST_TOKEN: Final = -1
"""In the place of a token's number: that which the run before has chosen."""
NO_TOKEN: Final = -2
NOT_FINITE: Final = -1
"""Chosen if scores are not finite."""
BLOCK: Final = 512
"""Elements among which the likeliest are found at once, with BLOCK² comparisons."""
LAST_BLOCK: Final = 1024


def can_choose(options: SamplingOptions) -> bool:
    """Whether a run can choose with these options."""
    return options.temperature == 0 or 0 < options.top_k <= MOST_CHOSEN


def remembered(tokens: Sequence[int]) -> np.ndarray:
    """The tokens that are penalised when they come again, as a row of a run. One may be `LATEST_TOKEN`."""
    some = tokens[-REMEMBERED:]
    return np.array([[*some, *[NO_TOKEN] * (REMEMBERED - len(some))]], np.int32)


def chosen(scores: Tensor, sampling: Tensor, before: Tensor) -> Tensor:
    """scores (S, vocabulary), sampling (S, numbers), before (S, REMEMBERED) ↦ tokens (S,)."""
    option = {name: sampling[:, k : k + 1] for k, name in enumerate(SAMPLING)}
    values, tokens = _likeliest(_penalised(scores, option, before))
    rank = _numbers(scores, MOST_CHOSEN)
    best = values[:, :1]
    chances = where(rank.float() < option["top_k"], (values - best).exp(), 0.0)
    earlier = _is_earlier(rank)
    before_sum = (chances.unsqueeze(1) * earlier).sum(-1)
    is_likely = (before_sum < option["top_p"] * chances.sum(-1, keepdim=True)) | (before_sum == 0.0)
    is_kept = is_likely & (chances >= option["min_p"]) & (chances > 0.0)
    is_drawn = option["temperature"] > 0.0
    weights = where(is_kept, ((values - best) / where(is_drawn, option["temperature"], 1.0)).exp(), 0.0)
    ends = (weights.unsqueeze(1) * (1.0 - earlier.transpose(0, 1))).sum(-1)
    passed = (ends <= option["draw"] * ends[:, -1:]) & is_drawn & is_kept
    place = passed.int().sum(-1, keepdim=True)
    last = is_kept.int().sum(-1, keepdim=True) - 1
    is_own = rank == where(place < last, place, last)
    token = where(is_own, tokens, 0).sum(-1)
    return where((best[:, 0] - best[:, 0]) == 0.0, token, NOT_FINITE).int()


def _penalised(scores: Tensor, option: dict[str, Tensor], before: Tensor) -> Tensor:
    """The scores with penalties for tokens before, −∞ for what is no token, and ∞ for what is no number."""
    token = _numbers(scores, scores.shape[1])
    times = (before.unsqueeze(1) == token.unsqueeze(1)).int().sum(-1).float()
    repeat = option["repeat_penalty"]
    less = where(scores > 0.0, scores / repeat, scores * repeat)
    less = less - times * option["frequency_penalty"] - option["presence_penalty"]
    adjusted = where(times > 0.0, less, scores)
    adjusted = where(adjusted == adjusted, adjusted, np.inf)
    return where(token.float() < option["tokens"], adjusted, -np.inf)


def _likeliest(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The highest scores (S, MOST_CHOSEN), the highest first, of equal ones the first, and their tokens."""
    outer, count = scores.shape
    assert isinstance(count, int)
    values, tokens = scores, _numbers(scores, count).unsqueeze(0)
    while True:
        block = count if count <= LAST_BLOCK else BLOCK
        block = max(block, MOST_CHOSEN)
        blocks = -(-count // block)
        values = _filled(values, blocks * block, -np.inf).reshape(outer, blocks, block)
        tokens = _filled(tokens, blocks * block, 0)
        tokens = tokens.reshape(tokens.shape[0], blocks, block)
        values, tokens = (x.reshape(outer, blocks * MOST_CHOSEN) for x in _sorted(values, tokens))
        count = blocks * MOST_CHOSEN
        if blocks == 1:
            return values, tokens


def _numbers(x: Tensor, count: int) -> Tensor:
    """0, 1, … beside a tensor. Many are no constant."""
    return apply(lambda b, _: numbered(b, count), x)


def _is_earlier(place: Tensor) -> Tensor:
    """1 where the place of a column comes before that of its row, else 0: floats, which all devices store alike."""
    return (place.unsqueeze(0) < place.unsqueeze(1)).float()


def _filled(x: Tensor, count: int, value: float) -> Tensor:
    rows, have = x.shape
    return x if have == count else concat([x, full((rows, count - have), value, dtype=x.dtype)], 1)


def _sorted(values: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """The highest of each block, and their tokens."""
    mine, other = values.unsqueeze(-1), values.unsqueeze(-2)
    earlier = _is_earlier(_numbers(values, values.shape[-1]))
    rank = ((other > mine).float() + (other == mine).float() * earlier).sum(-1)
    is_own = rank.unsqueeze(-2) == _numbers(values, MOST_CHOSEN).float().unsqueeze(1)
    return where(is_own, values.unsqueeze(-2), 0.0).sum(-1), where(is_own, tokens.unsqueeze(-2), 0).sum(-1)
