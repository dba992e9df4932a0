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
    """The index of an extreme element along an axis, as int64."""
    y = getattr(b, row)(x, axis=axis)
    return y if keepdims else b.reshape(y, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))
