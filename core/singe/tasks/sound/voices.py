"""When somebody speaks: scores of a voice become segments, with hysteresis. A whole sound, and one that comes, have rules of their own, as
Silero's `get_speech_timestamps` and `VADIterator` have them. static/tasks/singe-task-sounds.js computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...late_dataclass import dataclass

SLACK: Final = 0.15
"""A voice ends at a score that is lower by this than that at which it begins."""


@dataclass(frozen=True)
class VoiceRules:
    """threshold: the score at which a voice begins; the others in samples: silence of `silence` ends a voice, voices shorter than `speech`
    are left out of a whole sound, and `pad` is added at both ends. step: of a score."""

    threshold: float
    speech: float
    silence: float
    pad: float
    step: int

    @staticmethod
    def of(settings: Any, rate: int, step: int) -> VoiceRules:
        speech, silence, pad = (settings[name] * rate for name in ("min_speech", "min_silence", "pad"))
        return VoiceRules(settings["threshold"], speech, silence, pad, step)


def voices_in(scores: Sequence[float], count: int, rules: VoiceRules) -> list[tuple[int, int]]:
    """The first sample of each segment, and the one after its last; count: the samples of the sound."""
    least = max(rules.threshold - SLACK, 0.01)
    found: list[list[int]] = []
    start, quiet = -1, 0
    for k, score in enumerate(scores):
        now = rules.step * k
        if score >= rules.threshold:
            quiet = 0
            start = now if start < 0 else start
        elif score < least and start >= 0:
            quiet = quiet or now
            if now - quiet >= rules.silence:
                if quiet - start > rules.speech:
                    found.append([start, quiet])
                start, quiet = -1, 0
    if start >= 0 and count - start > rules.speech:
        found.append([start, count])
    return _padded(found, count, rules.pad)


def _padded(found: list[list[int]], count: int, pad: float) -> list[tuple[int, int]]:
    """With a margin at both ends, or half of the silence where it is short."""
    for k, segment in enumerate(found):
        if k == 0:
            segment[0] = int(max(0, segment[0] - pad))
        if k == len(found) - 1:
            segment[1] = int(min(count, segment[1] + pad))
            continue
        silence = found[k + 1][0] - segment[1]
        if silence < 2 * pad:
            segment[1] += silence // 2
            found[k + 1][0] = int(max(0, found[k + 1][0] - silence // 2))
        else:
            segment[1] = int(min(count, segment[1] + pad))
            found[k + 1][0] = int(max(0, found[k + 1][0] - pad))
    return [(a, b) for a, b in found]


class VoiceFollower:
    """The same of scores as they come: a voice's beginning is known at once, its end after some silence. start: of the voice that goes on,
    or None."""

    def __init__(self, rules: VoiceRules) -> None:
        self._rules = rules
        self._now = 0
        self._quiet = 0
        self._scores: list[float] = []
        self.start: int | None = None

    def push(self, score: float) -> tuple[int, int, float] | None:
        """The segment that ends with this score, and its mean score."""
        rules = self._rules
        self._now += rules.step
        if self.start is not None:
            self._scores.append(score)
        if score >= rules.threshold:
            self._quiet = 0
            if self.start is None:
                self.start = int(max(0, self._now - rules.pad - rules.step))
                self._scores = [score]
        elif score < rules.threshold - SLACK and self.start is not None:
            self._quiet = self._quiet or self._now
            if self._now - self._quiet >= rules.silence:
                return self.end(int(self._quiet + rules.pad - rules.step))
        return None

    def end(self, at: int | None = None) -> tuple[int, int, float] | None:
        """End the voice that goes on: at a sample, or where the sound ends."""
        if self.start is None:
            return None
        found = (self.start, self._now if at is None else at, float(np.mean(self._scores)))
        self.start, self._quiet = None, 0
        return found
