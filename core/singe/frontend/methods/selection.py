"""Methods that select or replace elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...ops import ROWS
from ...shapes import axis_of
from .. import indexing, shaping
from ..shaping import unpacked
from ..tensor import Tensor, TensorLike, apply
from .attach import method
from .rows import call_row


@method
def __getitem__(x: Tensor, key: Any) -> Tensor:
    """Elements by integers, slices, None, ... and one array of integers; see indexing.py."""
    places: list[Any] = []
    index: Any = None
    for item in key if isinstance(key, tuple) else (key,):
        if isinstance(item, Tensor):
            index, item = item, indexing.ArrayIndex(item.dtype.numpy)
        elif isinstance(item, (np.ndarray, list)):
            index = np.asarray(item, np.int64 if isinstance(item, list) and not item else None)
            item = indexing.ArrayIndex(index.dtype, index)
            index = index.astype(np.int64)
        places.append(item)
    return apply(indexing.parse_key(x.shape, places).build, x, index)


@method
def __iter__(x: Tensor) -> Iterator[Tensor]:
    return (x[i] for i in range(len(x)))


@method
def take(x: Tensor, index: Tensor | np.ndarray | Sequence[int], axis: int = 0) -> Tensor:
    """The slices along an axis at the given indices; negative ones count from the end."""
    at = axis_of(axis, x.ndim, "take")
    return x[(slice(None),) * at + (index if isinstance(index, (Tensor, np.ndarray)) else list(index),)]


@method
def split(x: Tensor, sizes: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Pieces along an axis: of the given sizes, or all of one size, where the last may be smaller."""
    at = axis_of(axis, x.ndim, "split")
    return tuple(x[(slice(None),) * at + (part,)] for part in shaping.split_slices(sizes, x.shape, at))


@method
def update_slice(x: Tensor, part: TensorLike, *starts: Any) -> Tensor:
    """The tensor with a part replaced, which begins at a start along each axis: `cache.update_slice(row, at, 0)`.

    The starts are integers, or tensors of one integer. One is moved so that the part lies within the tensor."""
    return call_row(ROWS["update_slice"], (x, part, *unpacked(starts)))


@method
def top_k(x: Tensor, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis, in order, and their places."""
    return call_row(ROWS["top_k"], (x,), axis=axis, k=k, largest=largest)
