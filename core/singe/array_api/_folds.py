"""Functions that fold axes: statistics, searching, sorting, sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..dtypes import DType, dtype, int64, uint64
from ..errors import InputError
from ..ir.scalar import Number
from ..tensors.argument_errors import check_functions
from ..tensors.functions import creation
from ..tensors.numpy_fallback import numpy_fallback, on_device
from ..tensors.tensor import Tensor
from ._types import result_type

Axes: TypeAlias = int | Sequence[int] | None


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


# statistics


def _sum_type(x: Tensor, argument: Any) -> DType:
    """The dtype in which elements are added: integers become wide, with their sign."""
    if argument is not None:
        return dtype(argument)
    if x.dtype.kind == "uint":
        return uint64
    return int64 if x.dtype.kind in ("int", "bool") else x.dtype


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements along axes."""
    return x.sum(axis, keepdims, _sum_type(x, dtype))


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product of the elements along axes."""
    return x.prod(axis, keepdims, _sum_type(x, dtype))


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements along axes."""
    if x.dtype.kind == "complex":
        return numpy_fallback("mean", np.mean, x, axis=_tuple(axis), keepdims=keepdims)
    return x.mean(axis, keepdims)


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance of the elements along axes."""
    return x.var(axis, correction, keepdims)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation of the elements along axes."""
    return x.std(axis, correction, keepdims)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element along axes."""
    return x.amax(axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element along axes."""
    return x.amin(axis, keepdims)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:  # fmt: skip
    """The sums of the elements up to each, along an axis."""
    return _cumulative(x, "cumsum", 0, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:  # fmt: skip
    """The products of the elements up to each, along an axis."""
    return _cumulative(x, "cumprod", 1, axis, dtype, include_initial)


def _cumulative(
    x: Tensor, method: str, first: int, axis: int | None, dtype_argument: Any, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise InputError(f"{method}: the array has {x.ndim} axes; name one")
        axis = 0
    kind = _sum_type(x, dtype_argument)
    y = getattr(x, method)(axis, kind)
    if not include_initial:
        return y
    shape = [1 if i == axis % x.ndim else d for i, d in enumerate(x.shape)]
    start = on_device(np.full(shape, first), x.device, kind)
    return creation.concat([start, y], axis)


def _tuple(axis: Axes) -> Any:
    return tuple(axis) if isinstance(axis, Sequence) else axis


# truth


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true, along axes."""
    return x.all(axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true, along axes."""
    return x.any(axis, keepdims)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:  # fmt: skip
    """The differences between neighbours along an axis, taken n times."""
    return x.diff(n, axis, prepend, append)


# searching


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element along an axis, or of all."""
    return x.argmax(axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along an axis, or of all."""
    return x.argmin(axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero, along axes."""
    return x.count_nonzero(axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """For each axis, the coordinates of the elements that are not zero."""
    if not x.ndim:
        raise InputError("nonzero: the array has no axes, expected one or more; reshape it to (1,)")
    return x.nonzero().unbind(1)


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The indices in a vector in order at which the elements of x2 would be inserted to keep the order."""
    if side not in ("left", "right"):
        raise InputError(f"searchsorted: the side is {side!r}, expected 'left' or 'right'")
    ordered = x1 if sorter is None else x1.take(sorter, 0)
    return ordered.searchsorted(x2, right=side == "right")


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 where the condition holds, x2 elsewhere."""
    kind = result_type(x1, x2)
    first, second = (x.cast(kind) if isinstance(x, Tensor) else on_device(x, condition.device, kind) for x in (x1, x2))
    return creation.where(condition, first, second)


# sorting and sets


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return x.sort(axis, descending).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the elements along an axis."""
    return x.sort(axis, descending).indices


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, the index where each is first, the index of every element's value among them, and counts.
    Every NaN is distinct."""

    def found(array: np.ndarray) -> tuple[np.ndarray, ...]:
        values, first, back, counts = np.unique(array, True, True, True, equal_nan=False)
        return values, first, back.reshape(array.shape), counts

    return UniqueAll(*numpy_fallback("unique_all", found, x))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The different elements, and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different elements, and for each element which one it is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements."""
    return unique_all(x).values


check_functions(globals())
