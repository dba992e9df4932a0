"""The buffers of a Program while it is compiled, and their places; weights go into one block."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...dtypes import DType
from ...errors import CompileError
from ...graph import Node
from ...program.block import BlockWriter
from ...program.elements import to_stored
from ...program.program import Buffer, Place
from ...shapes import Dim, Shape, guessed, product, symbols
from ..target import Packer, Target

LONG_HELD_ITEMS: Final = 8
"""A value that is held for more items than these is held for long, such as one for the way back of a training step."""
MAX_SLOT_RATIO: Final = 2
"""How many times its own bytes the slot of such a value may have."""


class BufferTable:
    """See the module's docstring."""

    def __init__(self, target: Target, weights: BlockWriter) -> None:
        self._target = target
        self.buffers: list[Buffer] = []
        self.weights = weights
        self._consts: dict[Any, int] = {}
        self._views: dict[Any, int] = {}

    def size(self, kind: DType) -> int:
        return self._target.element_size(kind) if kind.size else 0

    def add(self, name: str, kind: DType, shape: Shape, place: Place, size: int | None = None) -> int:
        self.buffers.append(Buffer(name, kind, shape, size or self.size(kind), place))
        return len(self.buffers) - 1

    def move(self, buffer: int, place: Place) -> None:
        """Change the place of a buffer, as long as nothing refers to the old one."""
        self.buffers[buffer] = replace(self.buffers[buffer], place=place)

    def seen(self, buffer: int, shape: Shape) -> int:
        """A view of the buffer with another shape."""
        b = self.buffers[buffer]
        if b.shape == shape:
            return buffer
        key = b.place, b.name, shape
        if key not in self._views:
            self._views[key] = self.add(b.name, b.dtype, shape, b.place, b.size)
        return self._views[key]

    def const(self, n: Node, packer: Packer | None = None) -> int:
        """The buffer of a constant, plain or packed for a kernel; equal bytes are stored once."""
        assert n.value is not None
        if n.value.dtype == object:
            names = symbols(n.value.ravel().tolist())
            raise CompileError(
                f"a constant holds the sizes {', '.join(sorted(names))}, which only a run knows, so it cannot be stored"
            )
        return self.array(n.name or "constant", n.value, n.dtype, packer)

    def array(self, name: str, value: np.ndarray, kind: DType, packer: Packer | None = None) -> int:
        """The buffer of an array among the weights."""
        stored = to_stored(value, self.size(kind)) if packer is None else packer(value)
        shape = value.shape if packer is None else stored.shape
        return self._placed(name, kind, shape, stored.dtype.itemsize, self.weights.add(_bytes(stored), kind.name))

    def shared(self, n: Node, packer: Packer) -> int | None:
        """The buffer of a packed constant whose bytes are among the weights already; None where they are not."""
        assert n.value is not None
        stored = packer(n.value)
        at = self.weights.find(_bytes(stored), n.dtype.name)
        if at is None:
            return None
        return self._placed(n.name or "constant", n.dtype, stored.shape, stored.dtype.itemsize, at)

    def _placed(self, name: str, kind: DType, shape: Shape, size: int, at: int) -> int:
        """The buffer of what lies at that place of the weights."""
        key = kind, shape, at
        if key not in self._consts:
            self._consts[key] = self.add(name, kind, shape, ("weights", at), size)
        return self._consts[key]


class Slots:
    """Allocates slots and frees them. `late`: the sizes found in mid-run.

    `take` chooses the free slot that fits best, so that a chain of layers uses two or three; a value that is held for
    long takes none that is much too large. The buffers of a slot all depend on the same late sizes (usually none), so that
    a slot never has to grow while it holds a value.
    """

    def __init__(self, late: Iterable[str]) -> None:
        self.late = frozenset(late)
        self._room: list[Dim] = []
        self._sizes: list[frozenset[str]] = []
        self._free: list[int] = []

    @property
    def count(self) -> int:
        return len(self._room)

    def acquire(self, bytes_: Dim, held: int = 0) -> int:
        """A slot for this many bytes: the smallest free one that is large enough; if none is, the largest, which grows.
        held: how many items come before the last one that reads the value."""
        need, late = weight(bytes_), symbols(bytes_) & self.late
        most = math.inf if held <= LONG_HELD_ITEMS else MAX_SLOT_RATIO * need
        free = [s for s in self._free if self._sizes[s] == late and weight(self._room[s]) <= most]
        enough = [s for s in free if weight(self._room[s]) >= need]
        if not free:
            self._room.append(bytes_)
            self._sizes.append(late)
            return len(self._room) - 1
        slot = (
            min(enough, key=lambda s: weight(self._room[s]))
            if enough
            else max(free, key=lambda s: weight(self._room[s]))
        )
        self._free.remove(slot)
        self._room[slot] = max(self._room[slot], bytes_, key=weight)
        return slot

    def release(self, slots: Iterable[int]) -> None:
        self._free += slots


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def bytes_of(shape: Shape, kind: DType) -> Dim:
    return product(shape) * kind.size


def weight(dim: Dim) -> int:
    """A dimension as a number to compare by, with one number for every size in it."""
    return guessed(dim, 8)
