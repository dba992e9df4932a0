"""SoundRun: the samples of a sound, as they come, through a task's Graph in rows; the rest is silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..answers import Arrays
from ..medium import Run
from .spec import SoundInput

SAMPLES: Final = "samples"
STATE: Final = "state"
"""The names of a Graph's inputs: rows of samples, and what is remembered, which is an output, too."""
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
        self._held = np.pad(self._held, (0, max(0, needed - len(self._held))))
        return self._rows(left)

    def _rows(self, count: int) -> list[Arrays]:
        found: list[Arrays] = []
        most = self._spec.rows or max(1, MOST // self._spec.width)
        step, width = self._spec.step, self._spec.width
        while count > 0:
            now = min(count, most)
            windows = np.lib.stride_tricks.sliding_window_view(self._held, width)[: (now - 1) * step + 1 : step]
            found.append(self._once(np.ascontiguousarray(windows)))
            self._held = self._held[now * step :]
            count -= now
        return found

    def _once(self, rows: np.ndarray) -> Arrays:
        outputs = dict(self._run({SAMPLES: rows, STATE: self._state}))
        if self._spec.states:
            self._state = outputs.pop(STATE)
        return outputs


def joined(parts: list[Arrays]) -> Arrays:
    """The rows of several runs, one after the other."""
    names: Mapping[str, object] = parts[0] if parts else {}
    return {name: np.concatenate([part[name] for part in parts]) for name in names}
