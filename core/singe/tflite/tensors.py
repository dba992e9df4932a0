"""The data of constants as NumPy arrays: views of the file, sparse tensors with their zeros, and numbers of 4 bits as int8.

The shape is compared with the bytes present before anything is allocated. A sparse tensor lists, dimension by dimension, where its
elements are: all indices of a dense dimension, or those that are stored, segment by segment, one segment for each place in the
dimensions before. Dimensions beyond the tensor's rank are blocks, each of one of the tensor's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import ImportFailure
from .flatbuffer import FlatSource, TablePosition
from .schema import INDEX_VECTORS

FORMS: Final = {
    "float32": "<f4", "float16": "<f2", "int32": "<i4", "uint8": "|u1", "int64": "<i8", "bool": "|u1", "int16": "<i2", "complex64": "<c8",
    "int8": "|i1", "float64": "<f8", "complex128": "<c16", "uint64": "<u8", "uint32": "<u4", "uint16": "<u2",
}  # fmt: skip
"""Element type ↦ how NumPy reads it."""
NIBBLES: Final = {"int4": 8, "uint4": 0}
"""Element type of 4 bits, two in a byte, the first one below ↦ how much less than the number without a sign the upper half is, by 2."""
MAX_SPARSE: Final = 64
"""The most elements of a large sparse tensor for each value in the file."""
MAX_SMALL: Final = 1 << 16
"""The most elements of a sparse tensor that is not large."""
DENSE, COMPRESSED = 0, 1
"""The formats of a dimension of a sparse tensor."""


def array_of(
    data: memoryview,
    dtype: str,
    shape: tuple[int, ...],
    sparsity: Mapping[str, Any] | None,
    source: FlatSource,
    position: TablePosition,
) -> np.ndarray | None:
    """The constant with this data; None for a type whose data is not read."""
    if dtype == "bool" or dtype in NIBBLES:  # copies, of a buffer that tensors may share
        source.spend(len(data), position)
    if sparsity is not None:
        return _dense(_numbers(data, dtype, None, position), shape, sparsity, source, position.field("sparsity"))
    found = _numbers(data, dtype, math.prod(shape), position)
    return None if found is None else found.reshape(shape)


def _numbers(data: memoryview, dtype: str, count: int | None, position: TablePosition) -> np.ndarray | None:
    """The numbers in the bytes; count: how many there must be, if that is known."""
    if dtype in NIBBLES:
        if count is not None and len(data) != (count + 1) // 2:
            raise position.fault(f"{len(data)} bytes for {count} elements of {dtype}; expected {(count + 1) // 2}")
        raw = np.frombuffer(data, np.uint8)
        halves = np.stack((raw & 15, raw >> 4), axis=-1).reshape(-1)[:count].astype(np.int8)
        return np.where(halves >= 8, halves - 2 * NIBBLES[dtype], halves).astype(np.int8)
    if dtype not in FORMS:
        return None
    form = np.dtype(FORMS[dtype])
    wanted = len(data) // form.itemsize if count is None else count
    if len(data) != wanted * form.itemsize:
        raise position.fault(f"{len(data)} bytes for {wanted} elements of {dtype}; expected {wanted * form.itemsize}")
    found = np.frombuffer(data, form)
    return found != 0 if dtype == "bool" else found


def _dense(
    values: np.ndarray | None,
    shape: tuple[int, ...],
    sparsity: Mapping[str, Any],
    source: FlatSource,
    position: TablePosition,
) -> np.ndarray | None:
    """A sparse tensor with its zeros."""
    if values is None:
        return None
    count, rank = math.prod(shape), len(shape)
    most = max(MAX_SMALL, MAX_SPARSE * values.size)
    if count > most:
        raise position.fault(
            f"{values.size} values for {count} elements; at most {most} are supported for so many values",
            kind=ImportFailure,
        )
    source.spend(count // MAX_SPARSE, position)
    order, blocks, dimensions = (sparsity[k] for k in ("order", "block_map", "dimensions"))
    levels = len(dimensions)
    fits = levels == len(order) == rank + len(blocks) <= 2 * rank and sorted(order.tolist()) == list(range(levels))
    if not fits or any(not 0 <= k < rank for k in blocks.tolist()) or len(set(blocks.tolist())) < len(blocks):
        raise position.fault(
            f"dimensions in the order {order.tolist()[:99]} with blocks of {blocks.tolist()[:99]} do not fit the shape {shape}"
        )
    sizes = _sizes(order, blocks, dimensions, shape, position)
    starts: dict[int, np.ndarray] = {}
    places = np.zeros(1, np.int64)  # of the positions so far, each as how many there are before it
    for level, fields in enumerate(dimensions):
        here = position.field("dimensions", level)
        before, index = _level(fields, len(places), sizes[int(order[level])], values.size, here)
        starts = {axis: at[before] for axis, at in starts.items()}
        starts[int(order[level])] = index
        places = before
    if len(places) != values.size:
        raise position.fault(f"{values.size} values for {len(places)} places")
    for k, axis in enumerate(blocks.tolist()):  # an index is that of a block, and then that within the block
        starts[axis] = starts[axis] * sizes[rank + k] + starts.pop(rank + k)
    out = np.zeros(shape, values.dtype)
    out[tuple(starts[axis] for axis in range(rank))] = values
    return out


def _sizes(
    order: np.ndarray,
    blocks: np.ndarray,
    dimensions: Sequence[Mapping[str, Any]],
    shape: tuple[int, ...],
    position: TablePosition,
) -> list[int]:
    """The length of each dimension: of the tensor's, counted in blocks, then of the blocks. A compressed one has the length that is left."""
    told = {int(k): d["dense_size"] for k, d in zip(order, dimensions, strict=True) if d["format"] == DENSE}
    within = [told.get(len(shape) + k, 0) for k in range(len(blocks))]
    if any(n < 1 for n in within):
        raise position.fault("a block has no length")
    sizes = list(shape)
    for axis, n in zip(blocks.tolist(), within, strict=True):
        if sizes[axis] % n:
            raise position.fault(f"blocks of {n} do not fit axis {axis} of the shape {shape}")
        sizes[axis] //= n
    sizes += within
    if any(sizes[k] != n for k, n in told.items()):
        raise position.fault(f"dense dimensions {told} do not fit the lengths {sizes}")
    return sizes


def _level(
    fields: Mapping[str, Any], parents: int, size: int, most: int, position: TablePosition
) -> tuple[np.ndarray, np.ndarray]:
    """For each position with one more dimension: that without it, and its index. There are at most as many as values."""
    if fields["format"] == DENSE:
        if parents * size > most:
            raise position.fault(f"{parents * size} places for {most} values")
        return np.repeat(np.arange(parents), size), np.tile(np.arange(size), parents)
    if fields["format"] != COMPRESSED:
        raise position.fault(f"format {fields['format']}; expected 0 or 1", kind=ImportFailure)
    segments, indices = (_vector(fields, name, position) for name in ("segments", "indices"))
    steps = np.diff(segments)
    if len(segments) != parents + 1 or segments[0] != 0 or (steps < 0).any() or segments[-1] != len(indices):
        raise position.fault(f"{len(segments)} segments of {len(indices)} indices do not fit {parents} places")
    if len(indices) > most or (len(indices) and not 0 <= indices.min() <= indices.max() < size):
        raise position.fault(f"{len(indices)} indices; expected at most {most}, each from 0 to {size - 1}")
    return np.repeat(np.arange(parents), steps), indices


def _vector(fields: Mapping[str, Any], name: str, position: TablePosition) -> np.ndarray:
    kind, table = fields[f"{name}_type"], fields[name]
    if kind not in INDEX_VECTORS or table is None:
        raise position.fault(f"{name} of type {kind}; expected 1 to {max(INDEX_VECTORS)}")
    return table.read(INDEX_VECTORS[kind])["values"].astype(np.int64)
