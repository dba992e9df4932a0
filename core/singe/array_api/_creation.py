"""Functions that make arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, float32
from ..dtypes import dtype as dtype_of
from ..errors import InputError
from ..ir.scalar import Number
from ..runtime.devices import device_or_default
from ..tensors.argument_errors import check_functions
from ..tensors.functions import creation
from ..tensors.nodes.promotion import plain_array
from ..tensors.numpy_fallback import on_device
from ..tensors.tensor import Tensor


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array of numbers, nested sequences, another array, or what has DLPack or the buffer protocol."""
    if isinstance(obj, Tensor):
        moved = obj if device is None else obj.to(device)
        return moved if dtype is None else moved.cast(dtype)
    if copy is False:
        raise ValueError("asarray: the elements of other objects are always copied; leave copy out")
    if not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__"):
        made = creation.from_dlpack(obj, device=device, copy=True)
        return made if dtype is None else made.cast(dtype)
    kind = None if dtype is None else dtype_of(dtype)
    if kind is None and isinstance(obj, (np.ndarray, np.generic)):
        kind = dtype_of(obj.dtype)
    if kind is None and isinstance(obj, (list, tuple)) and np.asarray(_plain(obj)).dtype == np.complex128:
        kind = dtype_of("complex64")
    if kind is None and isinstance(obj, complex):
        kind = dtype_of("complex64")
    on = device_or_default(device)
    return Tensor(on, on.upload(plain_array(_plain(obj), kind)))


def _plain(obj: Any) -> Any:
    """Nested sequences with the elements of arrays of no axes."""
    if isinstance(obj, (list, tuple)):
        return [_plain(x) for x in obj]
    return obj.tolist() if isinstance(obj, Tensor) else obj


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:  # fmt: skip
    """start, start + step, … below stop."""
    if isinstance(start, (int, float)) and isinstance(stop, (int, float, type(None))):
        first, end = (0, start) if stop is None else (start, stop)
        floats = any(isinstance(v, float) for v in (first, end, step))
        kind = dtype_of(dtype) if dtype is not None else None
        array = np.arange(first, end, step)
        return on_device(array, device_or_default(device), kind or (float32 if floats else dtype_of("int64")))
    return creation.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:  # fmt: skip
    """`num` numbers at equal distances from start to stop."""
    kind = dtype_of(dtype) if dtype is not None else None
    if kind is None:
        kind = dtype_of("complex64") if isinstance(start, complex) or isinstance(stop, complex) else float32
    if kind.is_int:
        raise InputError(f"linspace: got {kind}, expected a floating-point dtype")
    array = np.linspace(start, stop, num, endpoint=endpoint, dtype=kind.numpy if not kind.held else None)
    return on_device(array, device_or_default(device), kind)


def full(shape: int | Sequence[int], fill_value: Number, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of a shape with one value in all places."""
    kind = dtype
    if kind is None and isinstance(fill_value, complex):
        kind = "complex64"
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    if any(not isinstance(d, int) for d in ([shape] if isinstance(shape, int) else shape)):
        return creation.full(shape, value, kind, device)
    chosen = dtype_of(kind) if kind is not None else None
    array = np.broadcast_to(plain_array(value, chosen), shape)
    return on_device(np.array(array), device_or_default(device))


def zeros(shape: int | Sequence[int], *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return full(shape, 0.0 if dtype is None else 0, dtype=dtype, device=device)


def ones(shape: int | Sequence[int], *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return full(shape, 1.0 if dtype is None else 1, dtype=dtype, device=device)


def empty(shape: int | Sequence[int], *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of any elements: zeros."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Number, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of the shape of another, with one value in all places."""
    like = x if device is None else x.to(device)
    if dtype is None and x.dtype.is_int and isinstance(fill_value, float):
        raise InputError(f"full_like: got {fill_value} for an array of {x.dtype}; pass dtype")
    return creation.full_like(like, fill_value.item() if isinstance(fill_value, Tensor) else fill_value, dtype)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros of the shape of another."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones of the shape of another."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape with any elements: zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    kind: DType = float32 if dtype is None else dtype_of(dtype)
    return on_device(np.eye(n_rows, n_cols, k), device_or_default(device), kind)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """For vectors of coordinates, the coordinates of every point of the grid that they span."""
    return list(creation.meshgrid(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and below the k-th diagonal of each matrix; zeros elsewhere."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and above the k-th diagonal of each matrix; zeros elsewhere."""
    return x.triu(k)


check_functions(globals())
