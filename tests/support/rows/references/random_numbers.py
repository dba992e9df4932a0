"""Random numbers, one at a time, in Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np


def _turned(x: int, by: int) -> int:
    return (x << by | x >> 32 - by) % (1 << 32)


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32-20: five times four rounds, with the key added before, between and after them."""
    keys = [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    a, b = (counter[0] + keys[0]) % (1 << 32), (counter[1] + keys[1]) % (1 << 32)
    for step in range(1, 6):
        for by in (13, 15, 26, 6) if step % 2 else (17, 29, 16, 24):
            a = (a + b) % (1 << 32)
            b = _turned(b, by) ^ a
        a, b = (a + keys[step % 3]) % (1 << 32), (b + keys[(step + 1) % 3] + step) % (1 << 32)
    return a, b


def bits(key: np.ndarray, shape: Any, stream: int = 0) -> np.ndarray:
    made = [threefry((int(key[0]), int(key[1])), (stream, k))[0] for k in range(math.prod(shape))]
    return np.array(made, np.uint32).reshape(shape)


def unit(key: np.ndarray, shape: Any) -> np.ndarray:
    return (bits(key, shape) // 256) / 2**24


def normal(key: np.ndarray, shape: Any) -> np.ndarray:
    angle = (bits(key, shape, 1) // 256) / 2**24 * 2 * math.pi
    return np.sqrt(-2 * np.log((bits(key, shape) // 256 + 1) / 2**24)) * np.cos(angle)


REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    "random_bits": bits,
    "random_unit": unit,
    "random_normal": normal,
}
"""By the names of rows."""
