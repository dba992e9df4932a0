"""Sound to text, window by window: each begins where the text of the one before ended, and is given that text.

As OpenAI's reference does it: a text that repeats itself, or of which the model is unsure, is drawn again at higher temperatures; a window
in which nothing seems to be said is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..language.sampling import TokenDraws
from ..late_dataclass import dataclass
from .search import WindowText, window_text
from .tokens import SECONDS, WhisperTokens
from .transcript import SpokenPart, Transcript
from .whisper.model import SpeechModel
from .whisper.spectrogram import MARGIN, RATE, STEP, frames_of
from .words import timed_words

TEMPERATURES: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
REPEATING: Final = 2.4
"""A text that can be compressed further than to this part repeats itself."""
UNSURE: Final = -1.0
"""The least mean logarithm of the chances of tokens."""
SILENT: Final = 0.6
"""The chance that nothing is said from which on a window is silent, if the model is unsure of its text, too."""
DRAWN: Final = 0.5
"""A text of a higher temperature is not given to the next window."""
MAX_BEAMS: Final = 32
_KEPT: Final = -(-MARGIN // STEP)
"""Frames before a window's first, whose samples are heard with it."""
LIVE_EVERY: Final = 1.0
"""Seconds of new sound after which the text of a stream is made anew."""
RULES: Final[Mapping[str, Any]] = {
    "temperatures": list(TEMPERATURES), "repeating": REPEATING, "unsure": UNSURE, "silent": SILENT, "drawn": DRAWN, "live": LIVE_EVERY,
    "seconds": SECONDS,
}  # fmt: skip
"""These numbers, for a page, which does as this module."""


@dataclass(frozen=True)
class TranscribeOptions:
    """language: its code; None: it is found. translate: to English. prompt: words that may come, such as names. beams: how many texts are
    followed side by side; 1: the likeliest token is taken. words: whether each word has its times. seed: of what is drawn."""

    language: str | None = None
    translate: bool = False
    prompt: str = ""
    beams: int = 1
    words: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if type(self.beams) is not int or not 0 < self.beams <= MAX_BEAMS:
            raise InputError(f"transcribe: beams {self.beams!r:.40}, expected a number from 1 to {MAX_BEAMS}")


class Transcriber:
    """A model that hears, with the tokenizer of its files."""

    def __init__(self, model: SpeechModel, tokens: WhisperTokens) -> None:
        self.model: Final = model
        self.tokens: Final = tokens

    def __call__(self, samples: np.ndarray, options: TranscribeOptions) -> Transcript:
        """What is said in samples (count,), 16,000 a second."""
        course = Course(self, options)
        course.hear(samples)
        course.finish()
        return course.transcript()

    def stream(self, blocks: Iterable[np.ndarray], options: TranscribeOptions) -> Iterator[Transcript]:
        """What is said so far, as blocks of samples come; the last parts may still change."""
        course, heard, told = Course(self, options), 0, 0
        for block in blocks:
            course.hear(block)
            heard += len(block)
            if heard - told >= LIVE_EVERY * RATE:
                told = heard
                yield course.so_far()
        course.finish()
        yield course.transcript()


class Course:
    """A transcription under way: the sound that was heard, and what has been said for good."""

    def __init__(self, transcriber: Transcriber, options: TranscribeOptions) -> None:
        tokens = transcriber.tokens
        self._model, self._tokens, self._options = transcriber.model, tokens, options
        self._language = options.language or (None if tokens.languages else "en")
        if self._language is not None:
            tokens.begun(self._language, options.translate)
        self._draws = TokenDraws(options.seed)
        self._samples = np.zeros(0, np.float32)  # without the first `_gone` frames
        self._gone = 0
        self._place = 0  # in frames: what comes before it has been written down
        self._peak = -np.inf
        prompt = options.prompt.strip()
        self._before = tokens.tokenizer.encode(f" {prompt}", add_special=False) if prompt else []
        self._chunks = list[SpokenPart]()

    @property
    def _left(self) -> int:
        """Frames that were heard and are not written down."""
        return self._gone + frames_of(len(self._samples)) - self._place

    def hear(self, block: np.ndarray) -> None:
        """Add samples."""
        self._samples = np.concatenate([self._samples, np.asarray(block, np.float32)])

    def so_far(self) -> Transcript:
        """The text, with that of a window of which the rest is still to come."""
        self._write_windows(self._model.description.frames + 2)
        if self._left <= 0:
            return self.transcript()
        self._take(self._left)
        text = self._text_at(0.0, 1)
        return self.transcript([] if _is_silent(text) else self._parts(text, self._left)[0])

    def finish(self) -> None:
        """Write down all that is left. The loudest of all of it decides what is silent."""
        frames = self._model.description.frames
        for first in range(self._place, self._place + self._left, frames) if self._left > frames else ():
            self._peak = max(self._peak, self._model.window(self._samples, first - self._gone)[1])
        self._write_windows(1)

    def transcript(self, more: Sequence[SpokenPart] = ()) -> Transcript:
        chunks = [*self._chunks, *more]
        return Transcript("".join(x.text for x in chunks).strip(), chunks, self._language or "")

    def _write_windows(self, least: int) -> None:
        """Write down windows while at least so many frames are left."""
        while self._left >= least:
            size = min(self._left, self._model.description.frames)
            self._take(size)
            text = self._text()
            if _is_silent(text):
                self._pass(size)
                continue
            chunks, used = self._parts(text, size)
            said = [chunk for chunk in chunks if chunk.text.strip() and chunk.start != chunk.end]
            if self._options.words:
                said = self._with_words(said, size)
            self._chunks += said
            self._before = [] if text.temperature > DRAWN else [*self._before, *(t for x in said for t in x.tokens)]
            self._pass(used)

    def _pass(self, frames: int) -> None:
        """Go on behind so many frames, and let go of the samples of which no window is made any more."""
        self._place += frames
        gone = max(self._place - _KEPT - self._gone, 0)
        self._samples, self._gone = self._samples[gone * STEP :], self._gone + gone

    def _take(self, size: int) -> None:
        """Let the model hear the window of so many frames."""
        window, loudest = self._model.window(self._samples, self._place - self._gone)
        self._peak = max(self._peak, loudest)
        self._model.hear(window, self._peak, size)
        if self._language is None:
            # Of what is heard; OpenAI's program hears the window with silence behind it once more for this.
            scores = self._model.texts(1).add([[self._tokens.start]])[0, 0]
            self._language = max(self._tokens.languages, key=lambda code: scores[self._tokens.languages[code]])

    def _text_at(self, temperature: float, beams: int) -> WindowText:
        begun = self._tokens.begun(self._language, self._options.translate)
        return window_text(self._model, self._tokens, self._before, begun, temperature, self._draws, beams)

    def _text(self) -> WindowText:
        """The text of the window, at the first temperature of which it is fit."""
        text = None
        for temperature in TEMPERATURES:
            text = self._text_at(temperature, self._options.beams)
            unsure = text.likelihood < UNSURE
            if not (unsure or text.repetition > REPEATING) or (unsure and text.no_speech > SILENT):
                break
        assert text is not None
        return text

    def _parts(self, text: WindowText, size: int) -> tuple[list[SpokenPart], int]:
        """The parts of a window's text, and how many frames of it they cover."""
        tokens, times = text.tokens, self._tokens.times
        is_time = [t >= times for t in tokens]
        ends = [k + 1 for k, both in enumerate(pairwise(is_time)) if all(both)]
        closed = is_time[-2:] == [False, True]
        if not ends:
            last = next((t - times for t in reversed(tokens) if t >= times), 0)
            return [self._part(tokens, 0, last or size // 2, text)], size
        if closed:
            ends.append(len(tokens))
        parts = [
            self._part(part, part[0] - times, part[-1] - times, text)
            for part in (tokens[a:b] for a, b in pairwise([0, *ends]))
        ]
        return parts, size if closed else 2 * (tokens[ends[-1] - 1] - times)

    def _with_words(self, parts: Sequence[SpokenPart], size: int) -> list[SpokenPart]:
        """The parts of the window that the model hears, with the times of their words."""
        tokens, first = self._tokens, self._place * STEP / RATE
        texts = [[t for t in part.tokens if t < tokens.end] for part in parts]
        begun = tokens.begun(self._language, self._options.translate)
        words = timed_words(self._model, tokens, begun, [t for text in texts for t in text], size, self._language or "")
        found: list[SpokenPart] = []
        for part, text in zip(parts, texts, strict=True):
            own, count = list[SpokenPart](), 0
            while words and count < len(text):
                word = words.pop(0)
                count += word.count
                own.append(SpokenPart(word.text, round(first + word.start, 2), round(first + word.end, 2), word.chance))
            found.append(replace(part, words=tuple(own)))
        return found

    def _part(self, tokens: Sequence[int], start: int, end: int, text: WindowText) -> SpokenPart:
        first = self._place * STEP / RATE
        return SpokenPart(
            self._tokens.text(tokens),
            first + start * SECONDS,
            first + end * SECONDS,
            exp(text.likelihood),
            tuple(tokens),
        )


def _is_silent(text: WindowText) -> bool:
    return text.no_speech > SILENT and text.likelihood <= UNSURE
