"""Matrices of floats rounded to few bits, in blocks of inputs, by the rules of GGUF's plain types: (q − zero) · scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from ..dtypes import float32
from ..ops.products.blocks import packed
from .stored import PackedMatrix, StoredArray

BLOCK: Final = 32
_AT_ONCE: Final = 1 << 22
"""Elements that are rounded at once."""
Rounded: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray | float]


def _half(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


def _inverse(scale: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(scale == 0, np.float32(0), np.float32(1) / scale)


def _q4_0(x: np.ndarray) -> Rounded:
    """The number that is farthest from 0 becomes −8."""
    scale = np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1) / np.float32(-8)
    return np.clip(np.floor(x * _inverse(scale) + np.float32(8.5)), 0, 15), _half(scale), 8.0


def _q4_1(x: np.ndarray) -> Rounded:
    """The least number becomes 0, the largest 15."""
    least = x.min(-1, keepdims=True)
    scale = (x.max(-1, keepdims=True) - least) / np.float32(15)
    q = np.clip(np.floor((x - least) * _inverse(scale) + np.float32(0.5)), 0, 15)
    kept = _half(scale)
    flat = kept == 0  # all weights of such a block are the least
    kept = np.where(flat, np.float32(1), kept)
    return np.where(flat, 0, q), kept, -_half(least) / kept


def _q8_0(x: np.ndarray) -> Rounded:
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    steps = x * _inverse(scale)
    return np.copysign(np.floor(np.abs(steps) + np.float32(0.5)), steps) + 128, _half(scale), 128.0


FORMS: Final[Mapping[str, tuple[int, Callable[[np.ndarray], Rounded]]]] = {
    "q4_0": (4, _q4_0),
    "q4_1": (4, _q4_1),
    "q8_0": (8, _q8_0),
}
"""A form ↦ its bits, and what gives for blocks (…, 32) the numbers, and of each block the scale and the zero."""


def rounded(array: StoredArray, form: str) -> StoredArray:
    """The matrix (outputs, inputs) in a form; as it is, if it is of few bits already, or its inputs are no multiple of a block."""
    if array.packed is not None or len(array.shape) != 2 or array.shape[1] % BLOCK or not array.dtype.is_float:
        return array
    bits, rule = FORMS[form]

    def packed_() -> PackedMatrix:
        n, depth = array.shape
        whole = np.asarray(array.read())
        made: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
        zero: np.ndarray | float = 0.0
        for first in range(0, n, max(1, _AT_ONCE // depth)):
            some = whole[first : first + max(1, _AT_ONCE // depth)].astype(np.float32)
            q, scale, zero = rule(some.reshape(len(some), -1, BLOCK))
            words = packed(q.reshape(len(some), depth).astype(np.uint8).T, bits)
            made.append((words, scale[..., 0].T, zero[..., 0].T if isinstance(zero, np.ndarray) else None))
        words, scale = (np.concatenate(parts, axis=1) for parts in ([m[0] for m in made], [m[1] for m in made]))
        every = [z for _, _, z in made if z is not None]
        middle = np.concatenate(every, axis=1, dtype=np.float32) if every else np.asarray(zero, np.float32)
        return PackedMatrix(words, np.ascontiguousarray(scale, np.float32), middle, bits, BLOCK)

    def read() -> np.ndarray:
        n, depth = array.shape
        q, scale, zero = rule(np.asarray(array.read(), np.float32).reshape(n, -1, BLOCK))
        return ((q - zero) * scale).astype(np.float32).reshape(n, depth)

    return replace(array, dtype=float32, stored=form, read=read, packed=packed_)
