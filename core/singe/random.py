"""Random tensors from keys: `import singe`, then `singe.random.normal(key, (2, 3))`.

A key is a number, or a tensor of two uint32 numbers, which `key` makes of a number. Equal keys give equal numbers, which
each device makes by itself (ops/whole/random.py); `split` makes new keys of one. A traced function may take its key as an
input, so that a compiled model draws new numbers in every run. `rand`, `randn`, `randint` and `randperm` take the next key
of a sequence that `manual_seed` begins, as in PyTorch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from .dtypes import DType, float32, int64, uint32
from .dtypes import dtype as dtype_of
from .errors import InputError
from .frontend.creation import tensor
from .frontend.tensor import Tensor
from .ir.scalar import Number
from .runtime.device import Device

Key: TypeAlias = int | Tensor
Shape: TypeAlias = Sequence[int]

_SALT: Final = 0x9E3779B9
_WORD: Final = (1 << 32) - 1
_STREAM_OF_KEYS: Final = 2
"""Keys are made of other numbers than those that random_normal takes from the streams 0 and 1."""
_state: Final = {"seed": 0, "drawn": 0}
_drawing: Final = threading.Lock()


# --- keys ------------------------------------------------------------------------------------------------------------


def key(seed: int, device: str | Device | None = None) -> Tensor:
    """The key of a seed, of which 64 bits count, as a tensor on a device."""
    return tensor([seed >> 32 & _WORD, seed & _WORD], uint32, device)


def split(given: Key, count: int = 2, *, device: str | Device | None = None) -> Tensor:
    """`count` new keys of one; use each for one draw."""
    return _tensor(given, device).random_bits(shape=(count, 2), stream=_STREAM_OF_KEYS)


def _tensor(given: Key, device: str | Device | None) -> Tensor:
    if isinstance(given, Tensor):
        return given if device is None else given.to(device)
    if isinstance(given, bool) or not isinstance(given, int):
        raise InputError(f"random: got the key {given!r:.40}, expected an integer, or a tensor of two uint32 numbers")
    return key(given, device)


# --- distributions ---------------------------------------------------------------------------------------------------


def uniform(
    key: Key, shape: Shape, low: Number = 0.0, high: Number = 1.0, *, dtype: Any = float32, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Numbers from low (inclusive) to high (exclusive), all equally likely."""
    y = _tensor(key, device).random_unit(shape=tuple(shape))
    return (y if (low, high) == (0.0, 1.0) else y * (high - low) + low).cast(_floating(dtype))


def normal(
    key: Key, shape: Shape, mean: Number = 0.0, std: Number = 1.0, *, dtype: Any = float32, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Numbers of a normal distribution."""
    y = _tensor(key, device).random_normal(shape=tuple(shape))
    return (y if (mean, std) == (0.0, 1.0) else y * std + mean).cast(_floating(dtype))


def integers(
    key: Key, shape: Shape, low: int, high: int, *, dtype: Any = int64, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Integers from low (inclusive) to high (exclusive). The likelihoods of n numbers differ by less than n / 2³²."""
    if not 0 < high - low <= _WORD:
        raise InputError(f"random: integers from {low} to {high}; expected a range of 1 to 2**32 - 1 numbers")
    bits = _tensor(key, device).random_bits(shape=tuple(shape))
    return (bits % (high - low)).cast(int64).add(low).cast(dtype)


def bernoulli(key: Key, shape: Shape, p: Any = 0.5, *, device: str | Device | None = None) -> Tensor:
    """True with probability p, else False."""
    return uniform(key, shape, device=device) < p


def permutation(key: Key, n: int, *, device: str | Device | None = None) -> Tensor:
    """The integers below n in random order."""
    return _tensor(key, device).random_bits(shape=(n,)).argsort()


def _floating(given: Any) -> DType:
    kind = dtype_of(given)
    if not kind.is_float:
        raise InputError(f"random: got {kind}, expected a floating-point dtype")
    return kind


# --- the shared sequence ---------------------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Begin the sequence of keys that rand, randn, randint and randperm share."""
    with _drawing:
        _state.update(seed=seed, drawn=0)


def next_key() -> int:
    """The next key of the shared sequence."""
    with _drawing:
        _state["drawn"] += 1
        entropy = [_state["seed"] & _WORD, _state["drawn"], _SALT]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def rand(*shape: int, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Numbers from 0 to 1, with the next key."""
    return uniform(next_key(), shape, dtype=dtype, device=device)


def randn(*shape: int, dtype: Any = float32, device: str | Device | None = None) -> Tensor:
    """Numbers of the normal distribution, with the next key."""
    return normal(next_key(), shape, dtype=dtype, device=device)


def randint(low: int, high: int, shape: Shape, *, dtype: Any = int64, device: str | Device | None = None) -> Tensor:
    """Integers from low to high − 1, with the next key."""
    return integers(next_key(), shape, low, high, dtype=dtype, device=device)


def randperm(n: int, *, device: str | Device | None = None) -> Tensor:
    """The integers below n in random order, with the next key."""
    return permutation(next_key(), n, device=device)
