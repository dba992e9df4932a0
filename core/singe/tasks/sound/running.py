"""SoundRun: the samples of a sound, as they come, through a task's Graph in rows; the rest is silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..answers import Arrays
from ..medium import Run
from .spec import SoundInput

SAMPLES: Final = "samples"
LENGTHS: Final = "lengths"
STATE: Final = "state"
"""The names of a Graph's inputs: rows of samples, how many of each are of the sound, and what is remembered, which is an output, too."""
MOST: Final = 1 << 18
"""About so many samples go through the Graph at once."""


class SoundRun:
    """Of one sound. count: how many samples came."""

    def __init__(self, run: Run, spec: SoundInput) -> None:
        self._run = run
        self._spec = spec
        self._state = np.zeros(spec.states, np.float32)
        self._held = np.zeros(spec.before, np.float32)
        self.count = 0

    def push(self, samples: np.ndarray) -> list[Arrays]:
        """The outputs of the rows that are complete now, in one or several runs."""
        self.count += len(samples)
        self._held = np.concatenate([self._held, samples])
        return self._rows((len(self._held) - self._spec.before - self._spec.after) // self._spec.step)

    def finish(self) -> list[Arrays]:
        """The outputs of the rows that are left; silence follows."""
        left = -(-max(0, len(self._held) - self._spec.before) // self._spec.step)
        needed = self._spec.before + left * self._spec.step + self._spec.after
        real = len(self._held)
        self._held = np.pad(self._held, (0, max(0, needed - real)))
        return self._rows(left, real)

    def _rows(self, count: int, real: float = np.inf) -> list[Arrays]:
        """real: how many of the samples that are held are of the sound."""
        found: list[Arrays] = []
        most = self._spec.rows or max(1, MOST // self._spec.width)
        step, width = self._spec.step, self._spec.width
        while count > 0:
            now = min(count, most)
            windows = np.lib.stride_tricks.sliding_window_view(self._held, width)[: (now - 1) * step + 1 : step]
            lengths = np.clip(real - np.arange(now) * step, 0, width).astype(np.float32)
            found.append(self._once(np.ascontiguousarray(windows), lengths))
            self._held = self._held[now * step :]
            real -= now * step
            count -= now
        return found

    def _once(self, rows: np.ndarray, lengths: np.ndarray) -> Arrays:
        outputs = dict(self._run({SAMPLES: rows, LENGTHS: lengths, STATE: self._state}))
        if self._spec.states:
            self._state = outputs.pop(STATE)
        return outputs


def raised(samples: np.ndarray, level: float) -> np.ndarray:
    """Samples whose mean power is so many decibels below 1 at least."""
    power = float(np.mean(np.square(samples, dtype=np.float64))) if len(samples) else 0.0
    short = -level - 10 * np.log10(power) if power > 0 else 0.0
    return samples if short <= 0 else (samples * 10 ** (short / 20)).astype(np.float32)


def joined(parts: list[Arrays]) -> Arrays:
    """The rows of several runs, one after the other."""
    names: Mapping[str, object] = parts[0] if parts else {}
    return {name: np.concatenate([part[name] for part in parts]) for name in names}
