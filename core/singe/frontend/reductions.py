"""Folds over axes as rows: sums, extremes and the places of extremes. Every function makes nodes with a builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..dtypes import INTS, bool_, int64

SUM_TYPES: Final = {bool_: int64, **{d: int64 for d in INTS if d.bits < 64}}
"""The dtype in which `sum` and `prod` fold integers, as in NumPy and PyTorch."""


def reduced(b: Any, x: Any, row: str, axes: Sequence[int], keepdims: bool) -> Any:
    """A row that folds, over these axes."""
    y = getattr(b, row)(x, axes=axes)
    return y if keepdims else b.reshape(y, shape=tuple(d for i, d in enumerate(x.shape) if i not in axes))


def place_of(b: Any, x: Any, row: str, axis: int, keepdims: bool) -> Any:
    """The index of the first element along an axis that equals the fold of all, as int64."""
    length = x.shape[axis]
    numbers = b.arange(b.const(0), b.const(1), count=length)
    numbers = b.reshape(numbers, shape=(length, *(1,) * (len(x.shape) - axis - 1)))
    hits = b.equal(x, getattr(b, row)(x, axes=(axis,)))
    # NaN equals nothing, so there may be no hit. The result is then the last index, which at least is valid.
    places = b.reduce_min(b.where(hits, numbers, b.const(length - 1, int64)), axes=(axis,))
    return places if keepdims else b.reshape(places, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))
