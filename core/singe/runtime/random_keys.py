"""Keys of random numbers on the host, and the sequence of keys that everything draws from which got none.

A key is two uint32 words. A sequence of keys is a key, too: its n-th key is n · SALT further in the first word, and what
is left of it after n keys is a sequence that begins there. So a sequence is kept as one key wherever it is: here, or as a
state of a Program.

The shared sequence begins from the operating system's entropy, or where `manual_seed` says.
"""

from __future__ import annotations

import operator
import os
import threading
from typing import Final, SupportsIndex, TypeAlias

import numpy as np

from ..errors import InputError

Words: TypeAlias = tuple[int, int]
"""A key, or a sequence of keys."""
Rng: TypeAlias = "np.random.Generator | int | None"
"""A generator, the seed of one, or None for one of the shared sequence's next key."""

KEY: Final = "key"
"""The name of the state that is a sequence of keys, where it is free."""
SALT: Final = 0x9E3779B9
"""It is odd, so a sequence has 2**32 keys before one comes again; and it is large, so that neighbouring keys share none soon."""
WORD: Final = (1 << 32) - 1
_LONG: Final = (1 << 64) - 1
STEP: Final = 0x9E3779B97F4A7C15
"""Between the numbers that SplitMix64 hashes."""

_lock: Final = threading.Lock()


def after(key: Words, count: int) -> Words:
    """What is left of a sequence after so many keys; with 1, also its next key."""
    return key[0] + count * SALT & WORD, key[1]


def begun(seed: SupportsIndex) -> Words:
    """The sequence of a seed, of which 64 bits count: SplitMix64's hash, so that no two seeds have the same sequence, and
    those of similar seeds have nothing in common. static/model/singe-session.js does the same."""
    z = int(mixed(np.array([operator.index(seed) + STEP & _LONG], np.uint64))[0])
    return z >> 32, z & WORD


def mixed(x: np.ndarray) -> np.ndarray:
    """SplitMix64's hash of uint64 numbers."""
    x = x ^ (x >> np.uint64(30))
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def as_array(key: Words) -> np.ndarray:
    """The words as those of a tensor."""
    return np.array(key, np.uint32)


def checked_seed(seed: object, what: str) -> int:
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise InputError(f"{what}: got the seed {seed!r:.60}, expected an integer")
    return operator.index(seed)  # pyright: ignore[reportArgumentType]


class _Shared:
    """The shared sequence."""

    def __init__(self) -> None:
        self.key = begun(int.from_bytes(os.urandom(8), "little"))


_shared: Final = _Shared()


def manual_seed(seed: SupportsIndex) -> None:
    """Begin the shared sequence; see singe.random."""
    key = begun(checked_seed(seed, "manual_seed"))
    with _lock:
        _shared.key = key


def shared() -> Words:
    """What is left of the shared sequence."""
    return _shared.key


def taken(count: int) -> Words:
    """The shared sequence as it was, before so many of its keys are taken."""
    with _lock:
        found = _shared.key
        _shared.key = after(found, count)
    return found


def next_key() -> Words:
    """The next key of the shared sequence."""
    return after(taken(1), 1)


def new_seed() -> int:
    """A seed of the shared sequence's next key, which JSON's readers keep: it has 53 bits."""
    first, second = next_key()
    return (first << 32 | second) >> 11


def one_generator(rng: Rng) -> np.random.Generator | None:
    """A generator that several draws share, one after the other; None for draws of the shared sequence, each of another key."""
    return None if rng is None else np.random.default_rng(rng)
