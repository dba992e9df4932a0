"""Elements of arrays as device memory holds them: at aligned addresses, some in wider types than their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import DType, dtype
from .container import ALIGN


def aligned(count: int) -> np.ndarray:
    """`count` zero bytes at an address that is a multiple of ALIGN."""
    room = np.zeros(count + ALIGN, np.uint8)
    start = -room.__array_interface__["data"][0] % ALIGN
    return room[start : start + count]


def stored_type(kind: DType, size: int) -> np.dtype[Any]:
    """The NumPy type of an element that takes `size` bytes in device memory: its own, or a wider one."""
    return kind.numpy if size == kind.size else kind.wide


def to_stored(array: np.ndarray, size: int) -> np.ndarray:
    """Elements as device memory holds them, `size` bytes each."""
    kind = dtype(array.dtype)
    if size == kind.size:
        return array
    return (array[kind.name] if kind.held else array).astype(kind.wide)


def from_stored(array: np.ndarray, kind: DType) -> np.ndarray:
    """The inverse of `to_stored`: elements from device memory as an array of their dtype."""
    if array.dtype == kind.numpy:
        return array
    return array.astype(kind.held).view(kind.numpy) if kind.held else array.astype(kind.numpy)
