"""Rows that read elements at computed places: single elements (gather_elements), and slices by coordinates (gather_nd).

Negative indices count from the end; indices beyond the range read the nearest element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import int32, int64
from ...errors import ShapeError
from ...ir.scalar import Expr, const
from ...shapes import Shape, axis_of, product, require, same, show
from .._reference import movement as reference
from .._row import Read, Shaped, View, register
from .indices import check_room, index_at, wrapped
from .move import numbered_along

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


def _elements_whole(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    axis %= x.ndim
    repeated = [i for i, step in enumerate(index.strides) if step == 0 and i != axis and index.size]
    few = index[tuple(slice(0, 1) if i in repeated else slice(None) for i in range(x.ndim))]
    few = wrapped(few.astype(np.int64), x.shape[axis])
    if few.size == index.shape[axis]:
        cut = x[tuple(slice(None) if i == axis else slice(0, d) for i, d in enumerate(index.shape))]
        return np.take(cut, few.reshape(-1), axis=axis)
    places: list[np.ndarray] = list(np.indices(index.shape, sparse=True))
    places[axis] = few
    return x[tuple(places)]


def _elements_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int) -> list[Any]:
    x, index = inputs
    zeros = b.expand(b.const(0, x.dtype), shape=x.shape)
    return [b.scatter_elements_reduce(zeros, g, index, axis=axis, reduction="add"), None]


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


def _nd_whole(x: np.ndarray, index: np.ndarray, batch: int) -> np.ndarray:
    outer, count = index.ndim - 1, index.shape[-1]
    places = wrapped(index.astype(np.int64), np.array(x.shape[batch : batch + count], np.int64))
    own = np.indices(index.shape[:-1], sparse=True)[:batch]
    found = x[(*own, *np.moveaxis(places, -1, 0))]
    return np.ascontiguousarray(found.reshape(*index.shape[:outer], *x.shape[batch + count :]))


def _nd_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, batch: int) -> list[Any]:
    """Slices are added where they came from; the indices name the batch, too."""
    x, index = inputs
    shape = (*index.shape[:-1], 1)
    own = [b.expand(numbered_along(b, shape, axis, int64), shape=shape) for axis in range(batch)]
    places = b.concat(*own, b.cast(index, to=int64), axis=len(shape) - 1)
    zeros = b.expand(b.const(0, x.dtype), shape=x.shape)
    return [b.scatter_nd_reduce(zeros, g, places, reduction="add"), None]


register(
    View(name="gather_elements", doc="for each index the element at it along an axis; its other coordinates are those of the index",
         shape=_elements_shape, value=_elements_value, whole=_elements_whole, vjp=_elements_vjp, index_inputs=(1,),
         reference=reference.gather_elements),
    View(name="gather_nd", doc="slices at the coordinates in the last axis of the second input; the first `batch` axes of both are one",
         shape=_nd_shape, value=_nd_value, whole=_nd_whole, vjp=_nd_vjp, index_inputs=(1,), reference=reference.gather_nd),
)  # fmt: skip
