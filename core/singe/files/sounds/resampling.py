"""Samples at another rate, by a sinc function in a Kaiser window: as a whole, or block by block with the same numbers.

What lies above 0.88 of the lower of the two limits (half of a rate) is weakened, and what lies above the limit itself is left out, both to
4e-5 of a tone. static/singe-sound.js computes the same.
"""

from __future__ import annotations

from math import ceil, gcd
from typing import Final

import numpy as np

from ...errors import InputError

CROSSINGS: Final = 48
"""How many zero crossings of the sinc function are used on each side of a sample."""
BETA: Final = 9.0
"""The shape of the Kaiser window: what should be left out is weakened to 3e-5."""
EDGE: Final = 0.94
"""Where the filter has fallen to a half, as a part of the lower limit: it ends at the limit."""
MAX_WEIGHTS: Final = 1 << 20
"""The most weights that are kept; unusual rates have more, which are computed for the samples at hand."""
CHUNK: Final = 1 << 12


class Resampler:
    """Takes blocks of any size with `push`, and gives the samples that they complete; `finish` gives those that are left.

    All together are what `resample` makes of the whole: ceil(count · wanted / rate) samples; where the rates are equal, those that come.
    """

    def __init__(self, rate: int, wanted: int) -> None:
        for given in (rate, wanted):
            if not given > 0:
                raise InputError(f"resample: got a rate of {given}, expected a whole number of samples a second")
        self._passes = rate == wanted
        shared = gcd(rate, wanted)
        self._up, self._down = wanted // shared, rate // shared
        self._cutoff = min(1.0, wanted / rate) * EDGE  # of the frequencies of what comes in
        self._reach = ceil(CROSSINGS / self._cutoff)
        self._table = self._weights(np.arange(self._up)) if self._up * 2 * self._reach <= MAX_WEIGHTS else None
        self._start()

    def _start(self) -> None:
        self._held = np.zeros(self._reach - 1)
        """Samples from number `first` on: those that are still used."""
        self._first = 1 - self._reach
        self._count = 0
        self._made = 0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """The samples that are known now, float32."""
        if self._passes:
            return np.asarray(samples, np.float32)
        self._held = np.concatenate([self._held, np.asarray(samples, np.float64)])
        self._count += len(samples)
        # Number n lies at n · down / up, and needs what is up to `reach` behind that.
        return self._until(max(0, ((self._count - self._reach) * self._up - 1) // self._down + 1))

    def finish(self) -> np.ndarray:
        """The samples that are left; silence follows. The next block begins another sound."""
        if self._passes:
            return np.zeros(0, np.float32)
        self._held = np.concatenate([self._held, np.zeros(self._reach)])
        last = self._until(-(-self._count * self._up // self._down))
        self._start()
        return last

    def _until(self, end: int) -> np.ndarray:
        found = np.empty(max(0, end - self._made), np.float32)
        numbers = np.arange(self._made, self._made + len(found), dtype=np.int64) * self._down
        places, parts = numbers // self._up + 1 - self._reach - self._first, numbers % self._up
        (self._by_table if self._table is not None else self._by_weight)(found, places, parts)
        self._made += len(found)
        self._drop()
        return found

    def _drop(self) -> None:
        """Let go of samples that no later one needs."""
        unused = self._made * self._down // self._up + 1 - self._reach - self._first
        if unused > 0:
            self._held = self._held[unused:]
            self._first += unused

    def _by_table(self, found: np.ndarray, places: np.ndarray, parts: np.ndarray) -> None:
        """All samples that lie alike between two others have the same weights."""
        assert self._table is not None
        for k in range(min(self._up, len(found))):
            windows = np.lib.stride_tricks.sliding_window_view(self._held, 2 * self._reach)[places[k] :: self._down]
            mine = found[k :: self._up]
            # Not a product of matrices: its order of additions depends on how many there are.
            mine[:] = np.einsum("nk,k->n", windows[: len(mine)], self._table[parts[k]])

    def _by_weight(self, found: np.ndarray, places: np.ndarray, parts: np.ndarray) -> None:
        for k in range(0, len(found), CHUNK):
            here = slice(k, k + CHUNK)
            around = self._held[places[here, None] + np.arange(2 * self._reach)]
            found[here] = np.einsum("nk,nk->n", around, self._weights(parts[here]))

    def _weights(self, parts: np.ndarray) -> np.ndarray:
        """The weights (parts, 2 · reach) of the samples around places that lie part / up of the way between two of them."""
        around = np.arange(2 * self._reach) + 1 - self._reach
        distance = (around - parts[:, None] / self._up) * self._cutoff
        inside = 1 - (distance / CROSSINGS) ** 2
        window = np.where(inside < 0, 0.0, np.i0(BETA * np.sqrt(np.abs(inside))) / np.i0(BETA))
        return np.sinc(distance) * window * self._cutoff


def resample(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """All samples of a sound of `rate` a second as `wanted` a second, float32; before and after them is silence."""
    resampler = Resampler(rate, wanted)
    return np.concatenate([resampler.push(samples), resampler.finish()])
