"""Moonshine: what is said in a sound, of samples as they are. Long sounds are cut where they are quietest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from ..language.encoder_decoders.generating import GenerationRules, generated
from ..language.encoder_decoders.running import SourceReader
from ..language.encoder_decoders.sounds import LEAST_SAMPLES, MAX_SECONDS, RATE
from ..language.tokenizing import Tokenizer
from .transcript import SpokenPart, Transcript

LIVE_EVERY: Final = 1.0
"""Seconds of new sound after which the text of a stream is made anew."""
_SEARCHED: Final = 10
"""Seconds before the end of a window in which its quietest place is looked for."""
_QUIET: Final = RATE // 10
"""Samples whose power is compared."""
CUT: Final[Mapping[str, float]] = {"live": LIVE_EVERY, "seconds": MAX_SECONDS, "searched": _SEARCHED, "quiet": _QUIET}
"""All of these, for a page, which does as this module."""


class MoonshineTranscriber:
    """A model that hears, with the tokenizer of its files."""

    def __init__(self, model: SourceReader, tokenizer: Tokenizer, rules: GenerationRules) -> None:
        self.model: Final = model
        self.rules: Final = rules
        self._tokenizer = tokenizer

    def __call__(self, samples: np.ndarray, beams: int | None) -> Transcript:
        """What is said in samples (count,), 16,000 a second."""
        *_, last = self.stream([samples], beams, np.inf)
        return last

    def stream(
        self, blocks: Iterable[np.ndarray], beams: int | None, every: float = LIVE_EVERY
    ) -> Iterator[Transcript]:
        """What is said so far, as blocks of samples come; the last part may still change."""
        chunks, held, place, told = list[SpokenPart](), np.zeros(0, np.float32), 0, 0.0
        most = MAX_SECONDS * RATE
        for block in blocks:
            held = np.concatenate([held, np.asarray(block, np.float32)])
            told += len(block) / RATE
            while len(held) > most:
                count = _quietest(held[:most])
                chunks += self._part(held[:count], place, beams)
                held, place = held[count:], place + count
            if told >= every:
                told = 0.0
                yield _transcript([*chunks, *self._part(held, place, beams)])
        yield _transcript([*chunks, *self._part(held, place, beams)])

    def _part(self, samples: np.ndarray, place: int, beams: int | None) -> list[SpokenPart]:
        """What is said in a window that begins at a place; nothing if nothing is."""
        if len(samples) < LEAST_SAMPLES:
            return []
        self.model.hear(samples)
        rules = self.rules if beams is None else replace(self.rules, beams=beams)
        tokens, _ = generated(self.model, rules)
        text = self._tokenizer.decode(tokens).strip()
        seconds = place / RATE, (place + len(samples)) / RATE
        return [SpokenPart(f" {text}", *seconds, 1.0, tuple(tokens))] if text else []


def _quietest(samples: np.ndarray) -> int:
    """The place near the end of a window at which it is quietest."""
    first = len(samples) - _SEARCHED * RATE
    count = (len(samples) - first) // _QUIET
    power = np.square(samples[first : first + count * _QUIET]).reshape(count, _QUIET).sum(1)
    return first + int(power.argmin()) * _QUIET + _QUIET // 2


def _transcript(chunks: list[SpokenPart]) -> Transcript:
    return Transcript("".join(x.text for x in chunks).strip(), chunks, "")
