"""`x[key]` as rows: one slice, one reshape, and one gather where an axis is indexed by an array of integers.

Keys may hold integers, slices with any step, None (a new axis), ... (all axes in between), and one integer array, with
NumPy's meaning. Boolean masks are refused, because the shape of their result depends on data.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..errors import InputError, ShapeError
from ..shapes import Dim, Shape, Size, at_least, ceildiv, dim_min, show

SUPPORTED: Final = "integers, slices, None, ... and one array of integers"


class ArrayIndex:
    """The place of an integer array in a key; `array` if its values are known and can be checked."""

    def __init__(self, dtype: Any, array: np.ndarray | None = None) -> None:
        if np.dtype(dtype).kind == "b":
            raise InputError(
                "index: the shape of a selection by a mask depends on data; use where(mask, x, other), or NumPy's nonzero on mask.numpy()"
            )
        if np.dtype(dtype).kind not in "iu":
            raise InputError(f"index: got an array of {np.dtype(dtype)}, expected integers")
        self.array: Final = array


@dataclass(frozen=True)
class Selection:
    """A parsed key: a slice of every axis, then a reshape, then (unless None) a gather along an axis."""

    starts: Shape
    steps: tuple[int, ...]
    sizes: Shape
    shape: Shape
    axis: int | None

    def build(self, b: Any, x: Any, index: Any = None) -> Any:
        whole = all(step == 1 for step in self.steps) and self.sizes == x.shape
        y = x if whole else b.slice(x, starts=self.starts, steps=self.steps, sizes=self.sizes)
        y = y if self.shape == y.shape else b.reshape(y, shape=self.shape)
        return y if self.axis is None else b.gather(y, index, axis=self.axis)


def parse_key(shape: Shape, key: Sequence[Any]) -> Selection:
    """Parse a key, in which arrays and tensors are replaced by ArrayIndexes."""
    key = _spread(shape, key)
    _check_arrays(key)
    starts: list[Dim] = []
    steps: list[int] = []
    sizes: list[Dim] = []
    kept: list[Dim] = []
    axis: int | None = None
    for item in key:
        if item is None:
            kept.append(1)
            continue
        d = shape[len(starts)]
        where = f"index: axis {len(starts)} of {show(shape)}"
        start, step, count = 0, 1, d
        if isinstance(item, ArrayIndex):
            axis = len(kept)
            _check_range(item, d, where)
            kept.append(d)
        elif isinstance(item, slice):
            start, step, count = _slice(item, d, where)
            kept.append(count)
        else:
            start, count = _integer(item, d, where), 1
        starts.append(start)
        steps.append(step)
        sizes.append(count)
    return Selection(tuple(starts), tuple(steps), tuple(sizes), tuple(kept), axis)


def _spread(shape: Shape, key: Sequence[Any]) -> list[Any]:
    """The key with full slices in place of ... and for the missing axes."""
    dots = [i for i, item in enumerate(key) if item is Ellipsis]
    if len(dots) > 1:
        raise InputError("index: got ... twice, expected it at most once")
    named = sum(item is not None and item is not Ellipsis for item in key)
    if named > len(shape):
        raise ShapeError(f"index: {named} axes are indexed, {show(shape)} has {len(shape)}")
    at = dots[0] if dots else len(key)
    rest = [slice(None)] * (len(shape) - named)
    return [*key[:at], *rest, *key[at + 1 :]]


def _check_arrays(key: Sequence[Any]) -> None:
    """Check: at most one array, and no slice between it and an integer (NumPy would move the axis to the front)."""
    arrays = [i for i, item in enumerate(key) if isinstance(item, ArrayIndex)]
    if len(arrays) > 1:
        raise InputError(
            f"index: got {len(arrays)} arrays; supported are {SUPPORTED}. Index one axis at a time, or flatten and index once"
        )
    if arrays:
        advanced = [i for i, item in enumerate(key) if item is not None and not isinstance(item, slice)]
        if advanced[-1] - advanced[0] + 1 != len(advanced):
            raise InputError(
                "index: got an integer and an array with a slice between them; index twice, as in x[0][:, array]"
            )


def _check_range(item: ArrayIndex, d: Dim, where: str) -> None:
    if item.array is not None and item.array.size and isinstance(d, int):
        low, high = int(item.array.min()), int(item.array.max())
        if low < -d or high >= d:
            raise InputError(f"{where}: the indices run from {low} to {high}, expected from {-d} to {d - 1}")


def _integer(item: Any, d: Dim, where: str) -> Dim:
    if isinstance(item, (bool, np.bool_)):
        raise InputError(f"{where}: got a bool; supported are {SUPPORTED}")
    try:
        i = operator.index(item)
    except TypeError:
        raise InputError(f"{where}: got {item!r:.80}, a {type(item).__name__}; supported are {SUPPORTED}") from None
    if isinstance(d, int) and not -d <= i < d:
        raise InputError(f"{where}: got {i}, expected from {-d} to {d - 1}")
    return i if i >= 0 else d + i


def _slice(item: slice, d: Dim, where: str) -> tuple[Dim, int, Dim]:
    """A slice as (start, step, number of elements)."""
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise InputError(f"{where}: the step of a slice is 0")
    if isinstance(d, int):
        start, stop, step = item.indices(d)
        return start, step, len(range(start, stop, step))
    if step < 0:
        if item.start is not None or item.stop is not None:
            raise InputError(f"{where}: an open axis can be reversed only as a whole: x[::{step}]")
        return d - 1, step, ceildiv(d, -step)
    start = _bound(item.start, 0, d)
    stop = _bound(item.stop, d, d)
    return start, step, ceildiv(stop - start, step)


def _bound(given: Any, default: Dim, d: Dim) -> Dim:
    """The start or the end of a slice of a symbolic axis."""
    if given is None:
        return default
    if isinstance(given, Size) and at_least(given, 0):
        return dim_min(given, d)
    i = operator.index(given)
    return dim_min(i, d) if i > 0 else i if i == 0 else d + i
