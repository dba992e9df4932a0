"""The text of a window: token by token the likeliest, or drawn, or several texts side by side of which the likeliest is kept."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from ..language.sampling import TokenDraws
from ..late_dataclass import dataclass
from .tokens import WhisperTokens
from .whisper.model import SpeechModel, TextsSideBySide


@dataclass(frozen=True)
class WindowText:
    """tokens: those of text and of times, without marks. likelihood: the mean logarithm of their chances; no_speech: the chance that nothing
    is said; temperature: 0 of the likeliest, above it of drawn tokens."""

    tokens: Sequence[int]
    likelihood: float
    no_speech: float
    temperature: float
    text: str

    @property
    def repetition(self) -> float:
        """How many times shorter the text is when it is compressed."""
        data = self.text.encode()
        return len(data) / len(zlib.compress(data))


def log_chances(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())


def window_text(
    model: SpeechModel, tokens: WhisperTokens, before: Sequence[int], begun: Sequence[int],
    temperature: float = 0.0, draws: TokenDraws | None = None, beams: int = 1,
) -> WindowText:  # fmt: skip
    """The text of the window that the model hears. before: the tokens of what was said before; begun: those with which it begins. beams:
    texts side by side, where nothing is drawn."""
    room = model.description.room
    prompt = [*tokens.after(before, room), *begun]
    most = min(room // 2, room + 1 - len(prompt))
    texts = model.texts(1 if temperature else beams)
    rows = len(begun)
    scores = texts.add([prompt] * texts.count, rows)
    no_speech = float(np.exp(log_chances(scores[0, 0])[tokens.no_speech]))
    if texts.count > 1:
        said, likelihood = _several(texts, tokens, scores[:, -1], most)
    else:
        said, likelihood = _one(texts, tokens, scores[0, -1], most, temperature, draws)
    return WindowText(said, likelihood / (len(said) + 1), no_speech, temperature, tokens.text(said).strip())


def _one(
    texts: TextsSideBySide, tokens: WhisperTokens, scores: np.ndarray, most: int, temperature: float, draws: TokenDraws | None
) -> tuple[list[int], float]:  # fmt: skip
    """The tokens of a text, and the sum of the logarithms of their chances."""
    said, total = list[int](), 0.0
    for _ in range(most):
        tokens.allow(scores, said)
        chances = log_chances(scores)
        if temperature and draws is not None:
            ends = np.exp(log_chances(scores.astype(np.float64) / temperature)).cumsum()
            token = int(np.searchsorted(ends, draws.random() * ends[-1], side="right"))
        else:
            token = int(scores.argmax())
        total += float(chances[token])
        if token == tokens.end:
            break
        said.append(token)
        if len(said) < most:
            scores = texts.add([[token]])[0, 0]
    return said, total


def _several(texts: TextsSideBySide, tokens: WhisperTokens, scores: np.ndarray, most: int) -> tuple[list[int], float]:
    """The likeliest of several texts, for its length."""
    count = texts.count
    said: list[list[int]] = [[] for _ in range(count)]
    totals = [0.0] * count
    ended: dict[tuple[int, ...], float] = {}
    for step in range(most):
        found = dict[tuple[int, ...], tuple[float, int]]()
        for k in range(count):
            row = scores[k]
            tokens.allow(row, said[k])
            chances = log_chances(row)
            best = np.argpartition(chances, -(count + 1))[-(count + 1) :]
            for token in best.tolist():
                found[(*said[k], token)] = (totals[k] + float(chances[token]), k)
        next_said, next_totals, order = list[list[int]](), list[float](), list[int]()
        newly = dict[tuple[int, ...], float]()
        for text in sorted(found, key=lambda x: found[x][0], reverse=True):
            total, source = found[text]
            if text[-1] == tokens.end:
                newly[text[:-1]] = total
                continue
            next_said.append(list(text))
            next_totals.append(total)
            order.append(source)
            if len(order) == count:
                break
        for text, total in newly.items():
            if len(ended) < count:
                ended[text] = total
        said, totals = next_said, next_totals
        if len(ended) == count or step == most - 1:
            break
        scores = texts.add([[text[-1]] for text in said], order=order)[:, 0]
    for k in sorted(range(len(said)), key=lambda k: totals[k], reverse=True):
        if len(ended) < count:
            ended.setdefault(tuple(said[k]), totals[k])
    best = max(ended, key=lambda text: ended[text] / max(1, len(text)))
    return list(best), ended[best]
