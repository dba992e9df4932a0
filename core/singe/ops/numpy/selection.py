"""The largest elements over NumPy's arrays: few of many are chosen, and only these are sorted."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...errors import ShapeError
from ...ir.arrays.numpy import NUMPY_ARRAYS
from ...shapes import show
from ..opaque.selection import ranks

FEW: Final = 4
"""A selection of at most one in so many elements is faster than a sort of all."""


def top_k(x: np.ndarray, axis: int, k: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"top_k: k is {k}, and axis {axis} of {show(x.shape)} has {x.shape[axis]} elements")
    wide = NUMPY_ARRAYS.wide(x)
    few = 0 < k <= x.shape[axis] // FEW
    order = (
        _best(wide, axis, k, largest)
        if few
        else np.take(ranks(NUMPY_ARRAYS, wide, axis, largest), np.arange(k), axis=axis)
    )
    return np.take_along_axis(x, order, axis), order


def _best(x: np.ndarray, axis: int, k: int, descending: bool) -> np.ndarray:
    """The first k of `ranks`, of the elements that are not behind the k-th one."""
    lines = np.moveaxis(x, axis, -1)
    lines, shape = lines.reshape(-1, lines.shape[-1]), lines.shape[:-1]
    place = lines.shape[1] - k if descending else k - 1
    bound = np.partition(lines, place, axis=1)[:, place, None]
    line, at = np.nonzero(~(lines < bound if descending else lines > bound))  # NaN is never left out here
    values = lines[line, at]
    if descending:
        order = at.size - 1 - np.lexsort((values[::-1], -line[::-1]))[::-1]
    else:
        order = np.lexsort((values, line))
    starts = np.searchsorted(line, np.arange(len(lines)))
    return np.moveaxis(at[order[starts[:, None] + np.arange(k)]].reshape(*shape, k), -1, axis)
