"""The text of a window: token by token the likeliest, or drawn, or several texts side by side of which the likeliest is kept."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from ..language.encoder_decoders.search import FollowedText, FollowedTexts, log_chances, one_by_one, side_by_side
from ..language.sampling import TokenDraws
from ..late_dataclass import dataclass
from .tokens import WhisperTokens
from .whisper.model import SpeechModel


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
    texts: FollowedTexts, tokens: WhisperTokens, scores: np.ndarray, most: int, temperature: float, draws: TokenDraws | None
) -> tuple[list[int], float]:  # fmt: skip
    """The tokens of a text, and the sum of the logarithms of their chances."""

    def choose(scores: np.ndarray, said: Sequence[int]) -> tuple[int, float]:
        tokens.allow(scores, said)
        chances = log_chances(scores)
        if temperature:
            assert draws is not None, "a temperature needs draws"
            ends = np.exp(log_chances(scores.astype(np.float64) / temperature)).cumsum()
            token = int(np.searchsorted(ends, draws.random() * ends[-1], side="right"))
        else:
            token = int(scores.argmax())
        return token, float(chances[token])

    found = list(one_by_one(texts, scores, choose, (tokens.end,), most))
    return [token for token, _ in found if token != tokens.end], sum(chance for _, chance in found)


class _FirstEnded:
    """The first texts that ended, as many as are followed; at the last step those that go on fill up the rest."""

    def __init__(self, count: int, end: int) -> None:
        self._count, self._end = count, end
        self._ended: dict[tuple[int, ...], float] = {}

    def take(self, best: Sequence[FollowedText], going: Sequence[FollowedText], last: bool) -> bool:
        for text in best:
            if text is going[-1]:
                break
            if text.tokens[-1] == self._end:
                self._keep(text.tokens[:-1], text.total)
        if last:
            for text in going:
                self._keep(text.tokens, text.total)
        return len(self._ended) == self._count

    def _keep(self, tokens: tuple[int, ...], total: float) -> None:
        if len(self._ended) < self._count:
            self._ended.setdefault(tokens, total)

    def best(self) -> tuple[list[int], float]:
        """The likeliest for its length, and the sum of the logarithms of its chances."""
        found = max(self._ended, key=lambda text: self._ended[text] / max(1, len(text)))
        return list(found), self._ended[found]


def _several(texts: FollowedTexts, tokens: WhisperTokens, scores: np.ndarray, most: int) -> tuple[list[int], float]:
    """The likeliest of several texts, for its length."""

    def chances(scores: np.ndarray, said: Sequence[int]) -> np.ndarray:
        tokens.allow(scores, said)
        return log_chances(scores)

    ending = _FirstEnded(texts.count, tokens.end)
    side_by_side(texts, scores, chances, (tokens.end,), most, ending)
    return ending.best()
