"""Rows that write part of a tensor: update_slice, scatter_elements, scatter_nd.
They work in place if the tensor is not needed afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtypes import int32, int64
from ...errors import ShapeError
from ...ir import scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const, size
from ...shapes import Shape, axis_of, product, require, show
from ..kinds import Read, Shaped, Update, register
from .indices import check_elements, check_nd, index_at, places_along, places_of
from .move import numbered

# --- update_slice ----------------------------------------------------------------------------------------------------


def _slice_check(x: Shaped, part: Shaped, *starts: Shaped) -> None:
    if len(part.shape) != len(x.shape) or len(starts) != len(x.shape):
        raise ShapeError(
            f"update_slice: part {show(part.shape)} with {len(starts)} starts into {show(x.shape)}; "
            "expected the same number of axes, and a start for each"
        )
    for axis, (d, p) in enumerate(zip(x.shape, part.shape, strict=True)):
        require(d - p, f"update_slice: axis {axis} of the part has {p} elements, that of {show(x.shape)} has {d}")
    if any(product(s.shape) != 1 for s in starts):
        raise ShapeError("update_slice: a start is not a scalar")


def _slice_where(coords: Sequence[Expr], read: Read, x: Shaped, part: Shaped, *starts: Shaped) -> list[Expr]:
    """The coordinates in x of an element of the part; starts are moved so that the part lies within x."""
    found = []
    for axis, (c, d, p) in enumerate(zip(coords, x.shape, part.shape, strict=True)):
        at = read(2 + axis, (const(0, int32),) * len(starts[axis].shape))
        at = scalar.clip(at, const(0, at.dtype), scalar.cast(size(d - p), at.dtype))
        found.append(scalar.cast(at, int32) + c)
    return found


def _slice_evaluate(xp: ArrayAdapter, x: Array, part: Array, *starts: Array) -> Array:
    cuts = []
    for start, d, p in zip(starts, x.shape, part.shape, strict=True):
        at = min(max(xp.item(start), 0), d - p)
        cuts.append(slice(at, at + p))
    return xp.put(x, cuts, part)


def _slice_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    _, part, *starts = inputs
    zeros = b.expand(b.const(0, part.dtype), shape=part.shape)
    return [b.update_slice(g, zeros, *starts), slice_at(b, g, part.shape, starts), *[None] * len(starts)]


def slice_at(b: Any, x: Any, shape: Shape, starts: Sequence[Any]) -> Any:
    """The slice of x of a shape that update_slice with these starts would replace."""
    for axis, (start, d, n) in enumerate(zip(starts, x.shape, shape, strict=True)):
        if d == n:
            continue
        limit = b.sub(b.const(d, int64), b.const(n, int64))
        at = b.minimum(b.maximum(b.cast(b.reshape(start, shape=()), to=int64), b.const(0, int64)), limit)
        places = b.reshape(at, shape=(1,)) if n == 1 else b.add(numbered(b, n, int64), at)
        x = b.gather(x, places, axis=axis)
    return x


# --- scatter ---------------------------------------------------------------------------------------------------------


def _elements_check(x: Shaped, part: Shaped, indices: Shaped, axis: int) -> None:
    check_elements("scatter_elements", x, part, indices, axis)


def _elements_where(
    coords: Sequence[Expr], read: Read, x: Shaped, part: Shaped, indices: Shaped, axis: int
) -> list[Expr]:
    axis = axis_of(axis, len(x.shape), "scatter_elements")
    at = index_at(read(2, coords), x.shape[axis])
    return [at if i == axis else c for i, c in enumerate(coords)]


def _elements_evaluate(xp: ArrayAdapter, x: Array, part: Array, indices: Array, axis: int) -> Array:
    return xp.put(x, places_along(xp, indices, axis, x.shape[axis]), part)


def _elements_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int) -> list[Any]:
    _, part, indices = inputs
    zeros = b.expand(b.const(0, part.dtype), shape=part.shape)
    return [b.scatter_elements(g, zeros, indices, axis=axis), b.gather_elements(g, indices, axis=axis), None]


def _nd_check(x: Shaped, part: Shaped, indices: Shaped) -> None:
    check_nd("scatter_nd", x, part, indices)


def _nd_where(coords: Sequence[Expr], read: Read, x: Shaped, part: Shaped, indices: Shaped) -> list[Expr]:
    outer, rank = len(indices.shape) - 1, indices.shape[-1]
    assert isinstance(rank, int)
    at = [index_at(read(2, [*coords[:outer], const(k, int32)]), x.shape[k]) for k in range(rank)]
    return [*at, *coords[outer:]]


def _nd_evaluate(xp: ArrayAdapter, x: Array, part: Array, indices: Array) -> Array:
    return xp.put(x, places_of(xp, indices, x.shape[: indices.shape[-1]]), part)


def _nd_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    _, part, indices = inputs
    zeros = b.expand(b.const(0, part.dtype), shape=part.shape)
    return [b.scatter_nd(g, zeros, indices), b.gather_nd(g, indices, batch=0), None]


register(
    Update(name="update_slice", doc="a tensor with a slice replaced; a start is moved so that the slice fits",
           check=_slice_check, where=_slice_where, evaluate=_slice_evaluate, vjp=_slice_vjp),
    Update(name="scatter_elements", public=False, doc="a tensor with elements at indices along an axis replaced",
           check=_elements_check, where=_elements_where, evaluate=_elements_evaluate, vjp=_elements_vjp),
    Update(name="scatter_nd", public=False, doc="a tensor with slices at indices replaced",
           check=_nd_check, where=_nd_where, evaluate=_nd_evaluate, vjp=_nd_vjp),
)  # fmt: skip
