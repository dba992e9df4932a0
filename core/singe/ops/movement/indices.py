"""Indices into axes. Of an index that a device computes, all devices take the lower 32 bits; negative ones count from the end,
and those beyond the range name the nearest element. An axis that is empty has no element to name: then there must be no index.

What the host knows is refused before it comes here, if it is out of range: compiler/index_ranges.py, tensors/nodes/indexing.py."""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import int32, int64
from ...errors import ShapeError
from ...ir import scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, select, size
from ...shapes import Dim, at_least, axis_of, dim_min, product, require, same, show
from ..kinds import Shaped


def index_at(at: Expr, d: Dim) -> Expr:
    """An index as 0 to d − 1: negative ones count from the end, others are clipped to the range."""
    at = scalar.cast(at, int32)
    if at.word == "const" and (
        isinstance(d, int) or at.value in (0, -1)
    ):  # plain coordinates, where there are elements
        place = at.value + d if at.value < 0 else at.value
        return size(min(max(place, 0), max(d - 1, 0)) if isinstance(d, int) else place)
    return scalar.clip(select(at < 0, at + size(d), at), 0, size(d) - 1)


def wrapped(xp: ArrayAdapter, indices: Array, d: int) -> Array:
    """Indices as 0 to d − 1: negative ones count from the end, others are clipped to the range."""
    indices = xp.cast(indices, int32)
    return xp.clip(xp.where(indices < 0, indices + d, indices), 0, max(d - 1, 0))


def places_along(xp: ArrayAdapter, indices: Array, axis: int, d: int) -> list[Array]:
    """The places that indices along an axis of length d name; their other coordinates are those of the indices."""
    rank = indices.ndim
    places = [
        xp.reshape(xp.arange(n, int64), tuple(n if i == k else 1 for i in range(rank)))
        for k, n in enumerate(indices.shape)
    ]
    places[axis] = wrapped(xp, indices, d)
    return places


def places_of(xp: ArrayAdapter, indices: Array, lengths: Sequence[int]) -> list[Array]:
    """The places in axes of these lengths that the last axis of the indices names."""
    return [wrapped(xp, indices[..., k], d) for k, d in enumerate(lengths)]


def check_room(text: str, d: Dim, count: Dim) -> None:
    """If axis d is empty, there must be no index: `count` must be 0."""
    if not at_least(d, 1):  # if d is 0, so is the first term; otherwise it exceeds every count
        require(dim_min(d, 1) * (1 << 31) - count, text)


def check_elements(what: str, x: Shaped, part: Shaped, indices: Shaped, axis: int) -> None:
    """Check that `part` fits x: its elements go to `indices` along an axis, and keep their index along the others."""
    axis = axis_of(axis, len(x.shape), what)
    text = f"{what}: part {show(part.shape)} and indices {show(indices.shape)} into {show(x.shape)}"
    if len(part.shape) != len(x.shape) or len(indices.shape) != len(x.shape):
        raise ShapeError(f"{text}: expected the same number of axes")
    for i, (d, p, k) in enumerate(zip(x.shape, part.shape, indices.shape, strict=True)):
        if not same(p, k, text):
            raise ShapeError(f"{text}: expected an index for each element of the part")
        if i == axis:
            check_room(f"{text}: axis {i} is empty", d, product(part.shape))
        else:
            require(d - p, f"{text}: axis {i} of the part is too long")


def check_nd(what: str, x: Shaped, part: Shaped, indices: Shaped) -> None:
    """Check that `part` fits x: its slices go to the places in x that the last axis of the indices names."""
    text = f"{what}: part {show(part.shape)} and indices {show(indices.shape)} into {show(x.shape)}"
    rank = indices.shape[-1] if indices.shape else None
    if not isinstance(rank, int) or not 0 < rank <= len(x.shape):
        raise ShapeError(f"{text}: the last axis of the indices must name 1 to {len(x.shape)} axes")
    wanted = (*indices.shape[:-1], *x.shape[rank:])
    if len(part.shape) != len(wanted) or not all(same(a, b, text) for a, b in zip(part.shape, wanted, strict=True)):
        raise ShapeError(f"{text}: expected a part {show(wanted)}")
    for d in x.shape[:rank]:
        check_room(f"{text}: an axis is empty", d, product(part.shape))
