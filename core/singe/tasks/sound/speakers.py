"""Who spoke when: windows whose vectors are alike are of one voice. static/tasks/singe-task-sounds-rules.js computes the same.

Window after window joins the voice whose mean is the most alike, or begins a new one where none is as alike as the threshold. Then voices
that are so alike, or too many, are joined, and each window is of the voice that is the most like it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .spec import SoundInput

COVERAGE: Final = 0.75
"""The part of a window that must be of the sound, but for the first."""


def window_of(spec: SoundInput) -> int:
    """The samples of a window: a row without its margins."""
    return spec.step + spec.after - spec.before


def windows_of(count: int, spec: SoundInput) -> int:
    """How many windows a sound of so many samples fills."""
    return 1 + max(0, int((count - COVERAGE * window_of(spec)) // spec.step))


def turns_of(
    vectors: np.ndarray, segments: Sequence[tuple[float, float]], seconds: float, spec: SoundInput, threshold: float, count: int
) -> list[tuple[int, float, float]]:  # fmt: skip
    """The number of the speaker, the start and the end of each turn. segments: when somebody speaks; count: of speakers, 0 if it is
    unknown."""
    middle, step = window_of(spec) / 2 / spec.rate, spec.step / spec.rate
    edges = [0.0, *(middle + step * (k - 0.5) for k in range(1, len(vectors))), max(seconds, 0.0)]
    parts = [
        (k, max(start, edges[k]), min(end, edges[k + 1]))
        for start, end in sorted(segments)
        for k in range(len(vectors))
        if min(end, edges[k + 1]) > max(start, edges[k])
    ]
    spoken = sorted({k for k, _, _ in parts})
    voices = dict(zip(spoken, voices_of(vectors[spoken].astype(np.float64), threshold, count), strict=True))
    turns: list[tuple[int, float, float]] = []
    for k, start, end in parts:
        if turns and turns[-1][0] == voices[k] and start - turns[-1][2] < 1e-9:
            turns[-1] = (voices[k], turns[-1][1], end)
        else:
            turns.append((voices[k], start, end))
    return turns


def voices_of(vectors: np.ndarray, threshold: float, count: int) -> list[int]:
    """The number of the voice of each vector of length 1, in the order in which they speak first."""
    sums, means, known = np.zeros_like(vectors), np.zeros_like(vectors), 0
    for vector in vectors:
        alike = means[:known] @ vector
        best = int(alike.argmax()) if known else 0
        if not known or alike[best] < threshold:
            best, known = known, known + 1
        sums[best] += vector
        means[best] = _mean(sums[best])
    means = _joined(sums[:known], means[:known], threshold, count)
    nearest = [int(np.argmax(means @ vector)) for vector in vectors]
    order = list(dict.fromkeys(nearest))
    return [order.index(k) for k in nearest]


def _joined(sums: np.ndarray, means: np.ndarray, threshold: float, count: int) -> np.ndarray:
    """The means of the voices that are left when the two that are the most alike were joined, again and again. Of each voice only the later
    one that is the most like it is kept: of all pairs of a long sound there are too many."""
    left = np.ones(len(means), bool)
    nearest, alike = np.arange(len(means)), np.full(len(means), -np.inf)

    def find_nearest(k: int) -> None:
        later = np.where(left[k + 1 :], means[k + 1 :] @ means[k], -np.inf)
        if len(later):
            nearest[k], alike[k] = k + 1 + later.argmax(), later.max()

    for k in range(len(means)):
        find_nearest(k)
    for voices in range(len(means), 1, -1):
        i = int(alike.argmax())
        j = int(nearest[i])
        if voices <= count if count else alike[i] < threshold:
            break
        sums[i] += sums[j]
        means[i], left[j], alike[j] = _mean(sums[i]), False, -np.inf
        again = left & ((nearest == i) | (nearest == j))
        again[i] = True
        before = means[:i] @ means[i]
        closer = left[:i] & ~again[:i] & ((before > alike[:i]) | ((before == alike[:i]) & (i < nearest[:i])))
        nearest[:i][closer], alike[:i][closer] = i, before[closer]
        for k in np.flatnonzero(again).tolist():
            find_nearest(k)
    return means[left]


def _mean(total: np.ndarray) -> np.ndarray:
    return total / max(float(np.linalg.norm(total)), 1e-12)
