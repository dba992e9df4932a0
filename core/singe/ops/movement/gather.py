"""Rows that read elements at computed places: slices along an axis (gather), single elements (gather_elements), and
slices by coordinates (gather_nd).

Negative indices count from the end; indices beyond the range read the nearest element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import int32, int64
from ...errors import ShapeError
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.arrays.numpy import NUMPY_ARRAYS
from ...ir.scalar import Expr, const
from ...shapes import Shape, axis_of, product, require, same, show
from ..kinds import Read, Shaped, View, as_dtype, register
from .indices import check_room, index_at, places_along, places_of, wrapped
from .move import amount, numbered_along

# --- gather ----------------------------------------------------------------------------------------------------------

MOST_TAPS: Final = 8
"""The most slices with the same known index for which the gradient of gather is a sum of gathers."""


def _gather_shape(x: Shaped, index: Shaped, axis: int) -> Shape:
    axis = axis_of(axis, len(x.shape), "gather")
    if not index.dtype.is_int:
        raise ShapeError(f"gather: the indices are {index.dtype}, expected an integer type")
    text = f"gather: axis {axis} of {show(x.shape)} is empty: every index is out of range"
    check_room(text, x.shape[axis], product(index.shape))
    return (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def _gather_value(coords: Sequence[Expr], read: Read, x: Shaped, index: Shaped, axis: int) -> Expr:
    axis = axis_of(axis, len(x.shape), "gather")
    rank = len(index.shape)
    at = index_at(read(1, coords[axis : axis + rank]), x.shape[axis])
    return read(0, [*coords[:axis], at, *coords[axis + rank :]])


def _gather_evaluate(xp: ArrayAdapter, x: Array, index: Array, axis: int) -> Array:
    return xp.take(x, wrapped(xp, index, x.shape[axis]), axis=axis)


def _gather_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int) -> list[Any]:
    """The slices are added where they came from."""
    x, index = inputs
    axis = axis_of(axis, len(x.shape), "gather")
    rank, d, count = len(index.shape), x.shape[axis], product(index.shape)
    zeros = b.expand(b.const(0, g.dtype), shape=x.shape)
    if count == 1:
        at = b.reshape(b.cast(index, to=int64), shape=())
        at = b.where(b.less(at, b.const(0)), b.add(at, amount(b, d, int64)), at)
        starts = [at if i == axis else b.const(0) for i in range(len(x.shape))]
        return [b.update_slice(zeros, b.reshape(g, shape=(*x.shape[:axis], 1, *x.shape[axis + 1 :])), *starts), None]
    known = b.value_of(index) if isinstance(d, int) and 0 not in (d, count) else None
    if known is not None and known.dtype != object:
        flat = b.reshape(g, shape=(*x.shape[:axis], count, *x.shape[axis + 1 :]))
        taps = _taps(wrapped(NUMPY_ARRAYS, known.reshape(-1), d), d)
        if len(taps) <= MOST_TAPS:
            return [_summed(b, flat, taps, axis), None]
    ends = (*range(axis), *range(axis + rank, len(y.shape)))
    perm = (*range(axis, axis + rank), *ends)
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(x.shape)))
    first = (axis, *(i for i in range(len(x.shape)) if i != axis))
    wide = as_dtype(b, b.transpose(g, perm=perm), g.dtype.compute)
    room = b.expand(b.const(0, wide.dtype), shape=tuple(x.shape[i] for i in first))
    places = b.reshape(index, shape=(*index.shape, 1))
    summed = b.scatter_nd_reduce(room, wide, places, reduction="add")
    return [as_dtype(b, b.transpose(summed, perm=back), g.dtype), None]


def _taps(index: np.ndarray, d: int) -> np.ndarray:
    """For each place of an axis of length d, the numbers of the indices that name it, one in each row; −1: no more."""
    order = np.argsort(index, kind="stable")
    counts = np.bincount(index, minlength=d)
    taps = np.full((counts.max(), d), -1)
    turn = np.arange(index.size) - np.repeat(np.cumsum(counts) - counts, counts)
    taps[turn, index[order]] = order
    return taps


def _summed(b: Any, g: Any, taps: np.ndarray, axis: int) -> Any:
    """The sum over rows of `taps` of the slices of g that it names."""
    total: Any = None
    for row in taps:
        part = b.gather(g, b.const(np.maximum(row, 0)), axis=axis)
        if (row < 0).any():
            shape = tuple(-1 if i == axis else 1 for i in range(len(g.shape)))
            part = b.where(b.const((row >= 0).reshape(shape)), part, b.const(0, g.dtype))
        total = part if total is None else b.add(total, part)
    return total


# --- gather_elements -------------------------------------------------------------------------------------------------


def _elements_shape(x: Shaped, index: Shaped, axis: int) -> Shape:
    axis = axis_of(axis, len(x.shape), "gather_elements")
    text = f"gather_elements: indices {show(index.shape)} into {show(x.shape)}"
    if len(index.shape) != len(x.shape) or not index.dtype.is_int:
        raise ShapeError(f"{text}: got {index.dtype}, expected integers, and the same number of axes")
    for i, (d, k) in enumerate(zip(x.shape, index.shape, strict=True)):
        if i == axis:
            check_room(f"{text}: axis {i} is empty", d, product(index.shape))
        else:
            require(d - k, f"{text}: axis {i} of the indices is too long")
    return index.shape


def _elements_value(coords: Sequence[Expr], read: Read, x: Shaped, index: Shaped, axis: int) -> Expr:
    axis = axis_of(axis, len(x.shape), "gather_elements")
    at = index_at(read(1, coords), x.shape[axis])
    return read(0, [at if i == axis else c for i, c in enumerate(coords)])


def _elements_evaluate(xp: ArrayAdapter, x: Array, index: Array, axis: int) -> Array:
    return xp.at(x, places_along(xp, index, axis, x.shape[axis]))


def _elements_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int) -> list[Any]:
    x, index = inputs
    wide = as_dtype(b, g, g.dtype.compute)
    zeros = b.expand(b.const(0, wide.dtype), shape=x.shape)
    return [as_dtype(b, b.scatter_elements_reduce(zeros, wide, index, axis=axis, reduction="add"), x.dtype), None]


# --- gather_nd -------------------------------------------------------------------------------------------------------


def _nd_shape(x: Shaped, index: Shaped, batch: int) -> Shape:
    text = f"gather_nd: indices {show(index.shape)} into {show(x.shape)} with {batch} axes of batches"
    count = index.shape[-1] if index.shape else None
    if not index.dtype.is_int or not 0 <= batch < min(len(index.shape), len(x.shape)):
        raise ShapeError(f"{text}: the indices are {index.dtype}, expected integers, and an axis after the batches")
    if not isinstance(count, int) or not 0 < count <= len(x.shape) - batch:
        raise ShapeError(f"{text}: the last axis of the indices must name 1 to {len(x.shape) - batch} axes")
    if not all(same(a, b, text) for a, b in zip(x.shape[:batch], index.shape[:batch], strict=True)):
        raise ShapeError(f"{text}: expected equal batches")
    for d in x.shape[batch : batch + count]:
        check_room(f"{text}: an axis is empty", d, product(index.shape))
    return (*index.shape[:-1], *x.shape[batch + count :])


def _nd_value(coords: Sequence[Expr], read: Read, x: Shaped, index: Shaped, batch: int) -> Expr:
    outer, count = len(index.shape) - 1, index.shape[-1]
    assert isinstance(count, int)
    at = [index_at(read(1, [*coords[:outer], const(k, int32)]), x.shape[batch + k]) for k in range(count)]
    return read(0, [*coords[:batch], *at, *coords[outer:]])


def _nd_evaluate(xp: ArrayAdapter, x: Array, index: Array, batch: int) -> Array:
    places = places_of(xp, index, x.shape[batch : batch + index.shape[-1]])
    shape = index.shape[:-1]
    own = [
        xp.reshape(xp.arange(n, int64), tuple(n if i == k else 1 for i in range(len(shape))))
        for k, n in enumerate(shape[:batch])
    ]
    return xp.at(x, [*own, *places])


def _nd_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, batch: int) -> list[Any]:
    """Slices are added where they came from; the indices name the batch, too."""
    x, index = inputs
    shape = (*index.shape[:-1], 1)
    own = [b.expand(numbered_along(b, shape, axis, int64), shape=shape) for axis in range(batch)]
    places = b.concat(*own, b.cast(index, to=int64), axis=len(shape) - 1)
    wide = as_dtype(b, g, g.dtype.compute)
    zeros = b.expand(b.const(0, wide.dtype), shape=x.shape)
    return [as_dtype(b, b.scatter_nd_reduce(zeros, wide, places, reduction="add"), x.dtype), None]


register(
    View(name="gather", doc="slices of the first input along an axis, chosen by the second; negative indices count from the end",
         shape=_gather_shape, value=_gather_value, evaluate=_gather_evaluate,
         vjp=_gather_vjp, index_inputs=(1,), work=lambda *inputs, axis: 4),
    View(name="gather_elements", public=False, doc="for each index the element at it along an axis; its other coordinates are those of the index",
         shape=_elements_shape, value=_elements_value, evaluate=_elements_evaluate, vjp=_elements_vjp, index_inputs=(1,)),
    View(name="gather_nd", doc="slices at the coordinates in the last axis of the second input; the first `batch` axes of both are one",
         shape=_nd_shape, value=_nd_value, evaluate=_nd_evaluate, vjp=_nd_vjp, index_inputs=(1,)),
)  # fmt: skip
