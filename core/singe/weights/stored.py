"""Weights: the arrays of a file by name, each of which is read when it is asked for, and the file's metadata.

A reader of a format checks the whole file, and makes a StoredArray for every array. What is read is read-only, and often
a view of the mapped file, which must not change while it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import DType, dtype, outward
from ..errors import FormatError
from ..late_dataclass import dataclass
from ..shapes import MAX_ELEMENTS, MAX_RANK


class PackedMatrix(NamedTuple):
    """A matrix of weights as the row `dot_blocks` takes it: (inputs, outputs), in words, with scales and zeros of blocks.

    order: which input each row belongs to, where rows are not in the order of the inputs."""

    words: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    bits: int
    block: int
    order: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class StoredArray:
    """An array in a file: its shape, the dtype that reading gives, and how the file stores it ("Q4_K", "float16").

    packed: gives a matrix (outputs, inputs) of weights of a few bits as it is; None where it is not such a one."""

    shape: tuple[int, ...]
    dtype: DType
    stored: str
    read: Callable[[], np.ndarray]
    packed: Callable[[], PackedMatrix] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(outward(self.read()), dtype, copy=copy)


@dataclass(frozen=True, repr=False)
class Weights(Mapping[str, np.ndarray]):
    """The arrays of a file by name: `weights["conv.weight"]` reads one. `stored` tells the shape and dtype of each without
    reading it, `metadata` what else the file says, as its format has it."""

    stored: Mapping[str, StoredArray]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        return outward(self.stored[name].read())

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def __repr__(self) -> str:
        return f"<weights: {len(self)} arrays of {sum(math.prod(a.shape) for a in self.stored.values()):,} elements>"


def present(array: np.ndarray) -> StoredArray:
    """An array that is in memory already."""
    array.flags.writeable = False
    kind = dtype(array.dtype)
    return StoredArray(array.shape, kind, kind.name, lambda: array)


def viewed(data: memoryview, kind: DType, shape: tuple[int, ...]) -> StoredArray:
    """An array of little-endian elements, which are all of `data`."""
    return StoredArray(shape, kind, kind.name, lambda: elements(data, kind, shape))


def elements(data: memoryview, kind: DType, shape: tuple[int, ...]) -> np.ndarray:
    """A view of the data; a copy where a view would not be aligned, or a bool other than 0 and 1."""
    if kind.kind == "bool":
        made = np.frombuffer(data, np.uint8) != 0
    else:
        little = kind.numpy if kind.held else kind.numpy.newbyteorder("<")
        made = np.require(np.frombuffer(data, little), kind.numpy, "A")
    made = made.reshape(shape)
    made.flags.writeable = False
    return made


def element_count(shape: tuple[int, ...], what: str) -> int:
    """How many elements a shape of a file has; FormatError if its rank or that number is beyond what Singe takes."""
    if len(shape) > MAX_RANK:
        raise FormatError(f"{what} has {len(shape)} axes, at most {MAX_RANK} are possible")
    # Beside a dimension of 0, others may not be of any size either: NumPy counts without it.
    if any(n < 0 for n in shape) or math.prod(max(n, 1) for n in shape) > MAX_ELEMENTS:
        raise FormatError(f"{what} has the shape {shape}, expected counts, of at most {MAX_ELEMENTS} elements")
    return math.prod(shape)
