"""Elements that move in NumPy's arrays: by views, or as slices where indices repeat."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...dtypes import dtype
from ...ir.arrays import convert
from ...ir.arrays.numpy import NUMPY_ARRAYS
from ..movement.indices import wrapped


def arange(start: np.ndarray, step: np.ndarray, count: int) -> np.ndarray:
    """Where a start or a step is a Size, so are the numbers."""
    if object in (start.dtype, step.dtype):
        return start + np.arange(count).astype(object) * step
    compute = dtype(start.dtype).compute.numpy
    turns = np.arange(count, dtype=np.int32).astype(compute)
    return convert(convert(start, compute) + turns * convert(step, compute), start.dtype)


def diagonal(x: np.ndarray, *, axis1: int = 0, axis2: int = 1, offset: int = 0) -> np.ndarray:
    """A view of x."""
    return np.diagonal(x, offset, axis1, axis2)


def gather_elements(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """An index that repeats along the other axes names slices."""
    axis %= x.ndim
    repeated = [i for i, step in enumerate(index.strides) if step == 0 and i != axis and index.size]
    few = index[tuple(slice(0, 1) if i in repeated else slice(None) for i in range(x.ndim))]
    few = wrapped(NUMPY_ARRAYS, few, x.shape[axis])
    if few.size == index.shape[axis]:
        cut = x[tuple(slice(None) if i == axis else slice(0, d) for i, d in enumerate(index.shape))]
        return np.take(cut, few.reshape(-1), axis=axis)
    places: list[np.ndarray] = list(np.indices(index.shape, sparse=True))
    places[axis] = few
    return x[tuple(places)]


def unfold(x: np.ndarray, *, axis: int, length: int, step: int = 1, dilation: int = 1) -> np.ndarray:
    """A view of x."""
    axis %= x.ndim
    every = sliding_window_view(x, (length - 1) * dilation + 1, axis=axis)
    return every[(*(slice(None, None, step) if i == axis else slice(None) for i in range(x.ndim)), slice(None, None, dilation))]  # fmt: skip
