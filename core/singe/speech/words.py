"""When each word of a window's text is said: by the heads of attention that follow the sound, and the cheapest path through what they see.

A word ends where the next one begins. Marks of punctuation belong to the words beside them, and a pause before a sentence to no word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..late_dataclass import dataclass
from .tokens import SECONDS, WhisperTokens
from .whisper.model import SpeechModel

SMOOTHED: Final = 7
"""Over so many positions the median is taken."""
LONGEST: Final = 0.7
"""Seconds: where sentences meet, no word is longer than twice the median, which counts as no more than this."""
_BEFORE: Final = "\"'“¿([{-"
_BEHIND: Final = "\"'.。,，!！?？:：”)]}、"
_ENDS: Final = ".。!！?？"
_UNSPACED: Final = ("zh", "ja", "th", "lo", "my", "yue")
"""Languages without spaces."""
WORDS: Final[Mapping[str, Any]] = {
    "smoothed": SMOOTHED, "longest": LONGEST, "before": _BEFORE, "behind": _BEHIND, "ends": _ENDS, "unspaced": list(_UNSPACED),
}  # fmt: skip
"""All of these, for a page, which does as this module."""


@dataclass(frozen=True)
class TimedWord:
    """text: with the space before it; start and end: in seconds of the window; chance: the mean of its tokens; count: how many these are."""

    text: str
    start: float
    end: float
    chance: float
    count: int


def words_of(ids: Sequence[int], tokens: WhisperTokens, language: str) -> list[tuple[str, int]]:
    """The words of tokens of text, each with how many tokens it has: of languages without spaces, characters."""
    found: list[tuple[str, int]] = []
    held: list[int] = []
    spaced = language not in _UNSPACED
    for token in ids:
        held.append(token)
        text = tokens.text(held)
        if text.endswith("\ufffd"):
            continue
        alone = not any(c.isalnum() for c in text)
        if found and spaced and not text.startswith(" ") and not alone:
            before, count = found[-1]
            found[-1] = before + text, count + len(held)
        else:
            found.append((text, len(held)))
        held = []
    return [*found, *([(tokens.text(held), len(held))] if held else [])]


def timed_words(
    model: SpeechModel, tokens: WhisperTokens, begun: Sequence[int], ids: Sequence[int], frames: int, language: str
) -> list[TimedWord]:
    """The words of tokens of text, which the model has said of the window that it hears, of so many frames."""
    if not ids:
        return []
    seen, scores = model.align([*begun, tokens.no_times, *ids, tokens.end])
    said = scores[len(begun) : len(begun) + len(ids), : tokens.end].astype(np.float64)
    chances = np.exp(said - said.max(1, keepdims=True))
    chances = chances[np.arange(len(ids)), list(ids)] / chances.sum(1)
    rows, places = cheapest_path(-_followed(seen[:, :, : frames // 2])[len(begun) : -1])
    begins = places[np.concatenate([[True], np.diff(rows) > 0])] * SECONDS
    found: list[TimedWord] = []
    at = 0
    for text, count in words_of(ids, tokens, language):
        chance = float(chances[at : at + count].mean())
        found.append(TimedWord(text, float(begins[at]), float(begins[at + count]), chance, count))
        at += count
    return _with_marks(_without_pauses(found))


def _followed(seen: np.ndarray) -> np.ndarray:
    """How much each token (tokens, positions) looks at each position, more than others do."""
    weights = np.exp(seen - seen.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    deviation = weights.std(1, keepdims=True)
    weights = (weights - weights.mean(1, keepdims=True)) / np.where(deviation == 0, 1, deviation)
    side = SMOOTHED // 2
    if weights.shape[-1] > side:
        padded = np.pad(weights, ((0, 0), (0, 0), (side, side)), "reflect")
        weights = np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED, -1), -1)
    return weights.mean(0)


def cheapest_path(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest way from the first to the last of costs (rows, columns), which never goes back: the rows and columns of its steps."""
    rows, columns = costs.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    came = np.zeros((rows + 1, columns + 1), np.int8)
    came[0, :], came[:, 0] = 2, 1
    for diagonal in range(2, rows + columns + 1):
        i = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
        j = diagonal - i
        both, up, left = total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]
        step = np.where((both < up) & (both < left), 0, np.where((up < both) & (up < left), 1, 2))
        total[i, j] = costs[i - 1, j - 1] + np.choose(step, (both, up, left))
        came[i, j] = step
    path: list[tuple[int, int]] = []
    row, column = rows, columns
    while row > 0 or column > 0:
        path.append((row - 1, column - 1))
        step = came[row, column]
        row, column = row - (step != 2), column - (step != 1)
    found = np.array(path[::-1])
    return found[:, 0], found[:, 1]


def _without_pauses(words: Sequence[TimedWord]) -> list[TimedWord]:
    lengths = [word.end - word.start for word in words if word.end > word.start]
    if not lengths:
        return list(words)
    longest = 2 * min(LONGEST, float(np.median(lengths)))
    found = list(words)
    for k, word in enumerate(words):
        if word.end - word.start <= longest:
            continue
        if k and word.text in _ENDS:
            found[k] = TimedWord(word.text, word.start, word.start + longest, word.chance, word.count)
        elif not k or words[k - 1].text in _ENDS:
            found[k] = TimedWord(word.text, word.end - longest, word.end, word.chance, word.count)
    return found


def _with_marks(words: Sequence[TimedWord]) -> list[TimedWord]:
    """The words with the marks before and behind them."""
    found: list[TimedWord] = []
    for word in words:
        last = found[-1] if found else None
        if last is not None and not last.text.endswith(" ") and word.text in _BEHIND:
            found[-1] = TimedWord(last.text + word.text, last.start, last.end, last.chance, last.count + word.count)
        elif last is not None and last.text.startswith(" ") and last.text.strip() in _BEFORE:
            found[-1] = TimedWord(last.text + word.text, word.start, word.end, word.chance, last.count + word.count)
        else:
            found.append(word)
    return found
