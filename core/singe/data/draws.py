"""Random numbers that belong to items: the same for the same seed, epoch and index, whoever makes the item and when.

A number is a hash (SplitMix64's) of the item's key and the number's place, so those of a whole batch are drawn at once,
and are equal on every machine and with every version of NumPy.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..runtime.random_keys import STEP, mixed, new_seed
from ..tensors.default_keys import refuse_host_draws

_WORD: Final = (1 << 64) - 1
_ITEMS, _ORDERS = 1, 2
"""Numbers of items and those of orders are independent."""


class Draws:
    """The random numbers of some items, one row for each. Every call draws new ones."""

    def __init__(self, seed: int | None, indices: Iterable[int] | np.ndarray, epoch: int = 0) -> None:
        found = np.asarray(indices if isinstance(indices, np.ndarray) else list(indices), np.int64)
        self._keys = _keys(_ITEMS, seed, epoch, found)
        self._used = 0

    def __len__(self) -> int:
        return len(self._keys)

    def bits(self, *shape: int) -> np.ndarray:
        """uint64 numbers (len(self), *shape)."""
        count = int(np.prod(shape, dtype=np.int64))
        places = np.arange(self._used + 1, self._used + count + 1, dtype=np.uint64) * np.uint64(STEP)
        self._used += count
        return mixed(self._keys[:, None] + places).reshape(len(self), *shape)

    def uniform(self, low: float = 0.0, high: float = 1.0, shape: tuple[int, ...] = ()) -> np.ndarray:
        """float32 numbers from low to high."""
        unit = (self.bits(*shape) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
        return unit if (low, high) == (0, 1) else unit * np.float32(high - low) + np.float32(low)

    def normal(self, shape: tuple[int, ...] = ()) -> np.ndarray:
        """float32 numbers of the normal distribution."""
        radius = np.sqrt(-2 * np.log1p(-self.uniform(shape=shape)))
        return radius * np.cos(self.uniform(0, 2 * np.pi, shape))

    def integers(self, low: int, high: int, shape: tuple[int, ...] = ()) -> np.ndarray:
        """int64 numbers from low (inclusive) to high (exclusive)."""
        if not 0 < high - low < 1 << 32:
            raise InputError(f"random integers from {low} to {high}: expected a range of 1 to 2**32 - 1 numbers")
        return ((self.bits(*shape) >> np.uint64(32)) * np.uint64(high - low) >> np.uint64(32)).astype(np.int64) + low

    def generators(self) -> list[np.random.Generator]:
        """A generator for each item, for code that draws item by item."""
        return [np.random.Generator(np.random.Philox(int(key))) for key in self.bits()]


def permutation(count: int, seed: int | None, epoch: int = 0) -> np.ndarray:
    """The integers below `count` in the random order of a seed and an epoch."""
    keys = _keys(_ORDERS, seed, epoch, np.arange(count))
    return np.argsort(keys, kind="stable")


def with_replacement(count: int, bound: int, seed: int | None) -> np.ndarray:
    """`count` random integers below `bound`."""
    keys = _keys(_ORDERS, seed, 0, np.arange(count))
    return ((keys >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)


def as_seed(seed: Any) -> int:
    """A seed as an int, by default one of the sequence that `sg.manual_seed` begins; InputError for what is none."""
    if seed is None:
        refuse_host_draws("an order or change of data")
        return new_seed()
    try:
        if not isinstance(seed, bool):
            return operator.index(seed)
    except TypeError:
        pass
    raise InputError(f"got the seed {seed!r:.60}, expected an integer")


def _keys(purpose: int, seed: int | None, epoch: int, indices: np.ndarray) -> np.ndarray:
    base = np.zeros(1, np.uint64)
    for part in (purpose, as_seed(seed), epoch):
        base = mixed((base ^ np.uint64(part & _WORD)) + np.uint64(STEP))
    return mixed(base + indices.astype(np.uint64) * np.uint64(STEP))
