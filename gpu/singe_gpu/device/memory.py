"""Arrays on a GPU: how elements are stored, the pool of buffers, and the commands that a GPU accepts.

A Gpu is the small set of calls that a device offers (native.py, over wgpu-py). Buffers are untyped handles. A buffer
may be returned to the pool while submitted work still reads it: the queue runs in order.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from singe.extension import DeviceError, DType, bytes_text, from_stored, stored_type, to_stored

Handle: TypeAlias = Any
"""A device's own object: a buffer, a pipeline, a bind group."""

MIN_BUFFER_BYTES: Final = 256
"""The smallest buffer: an empty one cannot be bound, and offsets are multiples of this."""


@dataclass(frozen=True)
class Limits:
    """The limits of a device: bytes of a buffer and of a binding, workgroups in a dimension."""

    buffer: int
    binding: int
    groups: int


@dataclass(frozen=True)
class Binding:
    """A range of a buffer, as a bind group takes it."""

    buffer: Handle
    offset: int
    bytes: int


@dataclass(frozen=True)
class Launch:
    """Run a pipeline over bound buffers."""

    pipeline: Handle
    bindings: Handle
    groups: tuple[int, int, int]


@dataclass(frozen=True)
class Transfer:
    """Copy bytes from one buffer to another."""

    source: Binding
    target: Binding


Command: TypeAlias = "Launch | Transfer"


@dataclass(frozen=True)
class Timed:
    """Seconds from submit until all commands were done; for each command its begin, its duration and the overhead
    included, as in runtime/backend.py's Span; and the clock."""

    seconds: float
    commands: Sequence[tuple[float, float, float]]
    clock: str


class Gpu(Protocol):
    """A device; failures are raised as DeviceError, a lost device as DeviceLost."""

    features: frozenset[str]
    limits: Limits
    has_timestamps: bool
    lost: bool
    """Whether an error said that the device is lost."""

    def allocate(self, size: int) -> Handle: ...

    def free(self, buffer: Handle) -> None: ...

    def write(self, buffer: Handle, offset: int, data: np.ndarray) -> None:
        """Write bytes to a buffer, after all work submitted before."""
        ...

    def read(self, buffer: Handle, count: int, offset: int = 0) -> np.ndarray:
        """`count` bytes of a buffer from an offset, a multiple of 4, once all work submitted before is done."""
        ...

    def pipelines(self, codes: Sequence[str]) -> list[Handle]:
        """Compute pipelines of shaders, created together; cached by their text while in use, and a while longer."""
        ...

    def bind(self, pipeline: Handle, bindings: Sequence[Binding]) -> Handle: ...

    def record(self, commands: Sequence[Command]) -> Sequence[Command]:
        """The same commands in the form in which they are submitted fastest, again and again."""
        ...

    def submit(self, commands: Sequence[Command]) -> None: ...

    def timed(self, commands: Sequence[Command]) -> Timed:
        """`submit` and `wait`, with the time of each command."""
        ...

    def wait(self) -> None: ...

    def describe(self) -> Mapping[str, Any]: ...

    def destroy(self) -> None: ...


def size_class(count: int) -> int:
    """The size of the buffer that serves a request: four classes for each power of two."""
    step = max(MIN_BUFFER_BYTES, 1 << max(0, count - 1).bit_length() >> 3)
    return max(MIN_BUFFER_BYTES, -(-count // step) * step)


class Pool:
    """Reuses buffers that were returned; more than `idle_limit` bytes of idle buffers are destroyed.

    Finalizers run in any thread and in the middle of anything, so they only note with `release` what is to be freed.
    """

    def __init__(self, gpu: Gpu, idle_limit: int = 1 << 28) -> None:
        self.gpu = gpu
        self._idle_limit = idle_limit
        self._free: dict[int, list[Handle]] = defaultdict(list)
        self._idle = 0
        self._released: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self.bytes = 0
        self.open = True

    def release(self, free: Callable[..., object], *buffer: Any) -> None:
        """Have `free(*given)` called when memory is next taken."""
        self._released.append((free, buffer))

    def reclaim(self) -> None:
        """Free what was released."""
        while self._released:
            free, given = self._released.popleft()
            free(*given)

    def take(self, count: int, what: str) -> Handle:
        self.reclaim()
        size, limit = self._size(count), self.gpu.limits.buffer
        if size > limit:
            raise DeviceError(
                f"{what} takes {count} bytes ({bytes_text(count)}), a buffer of this device holds at most {limit} ({bytes_text(limit)})"
            )
        free = self._free[size]
        if free:
            self._idle -= size
            return free.pop()
        self.bytes += size
        return self.gpu.allocate(size)

    def give(self, buffer: Handle, count: int) -> None:
        """Return a buffer; `count` is the number of bytes that it was taken for."""
        if not self.open:
            return
        size = self._size(count)
        if self._idle + size > self._idle_limit:
            self.gpu.free(buffer)
            self.bytes -= size
            return
        self._free[size].append(buffer)
        self._idle += size

    def _size(self, count: int) -> int:
        """The size of the buffer for so many bytes: that of their class, or just theirs where no buffer can be as large."""
        size = size_class(count)
        return size if size <= self.gpu.limits.buffer else max(MIN_BUFFER_BYTES, -(-count // 4) * 4)

    def close(self) -> None:
        self.open = False
        self._free.clear()


class SlotBuffers:
    """The slots of an executable. All of its runs share them, since a device executes commands in order."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._held: list[tuple[Handle, int]] = []

    @property
    def bytes(self) -> int:
        return sum(count for _, count in self._held)

    def __getitem__(self, number: int) -> Handle:
        return self._held[number][0]

    def fit(self, counts: Sequence[int]) -> bool:
        """Whether the slots have at least these numbers of bytes."""
        held = [count for _, count in self._held]
        return len(held) >= len(counts) and all(n <= have for n, have in zip(counts, held, strict=False))

    def grow(self, number: int, count: int) -> None:
        """Make room for `count` bytes in a slot; if it was smaller, its contents are lost."""
        what = f"slot {number} of the scratch memory"
        while number >= len(self._held):
            self._held.append((self._pool.take(0, what), 0))
        buffer, have = self._held[number]
        if count > have:
            empty = self._pool.take(0, what)
            self._held[number] = empty, 0  # and so it stays if there is no memory for more
            self._pool.give(buffer, have)
            self._held[number] = self._pool.take(count, what), count
            self._pool.give(empty, 0)

    def close(self) -> None:
        for buffer, count in self._held:
            self._pool.release(self._pool.give, buffer, count)
        self._held.clear()


class GpuArray:
    """A tensor's elements in a buffer of the pool, returned to it with the last reference."""

    def __init__(self, pool: Pool, shape: tuple[int, ...], dtype: DType, element_size: int) -> None:
        self.shape = shape
        self.dtype = dtype
        self.element_size = element_size
        self.bytes = math.prod(shape) * element_size
        self.buffer = pool.take(self.bytes, f"an array of shape {shape} and type {dtype}")
        weakref.finalize(self, pool.release, pool.give, self.buffer, self.bytes).atexit = False


def to_device(array: np.ndarray, element_size: int) -> np.ndarray:
    """The bytes of an array as they are stored in device memory, padded to whole words."""
    flat = to_stored(np.ascontiguousarray(array).reshape(-1), element_size).view(np.uint8)
    return np.concatenate([flat, np.zeros(-flat.size % 4, np.uint8)]) if flat.size % 4 else flat


def from_device(raw: np.ndarray, shape: tuple[int, ...], dtype: DType, element_size: int) -> np.ndarray:
    """The inverse of `to_device`, as an array that owns its memory."""
    return np.array(from_stored(raw.view(stored_type(dtype, element_size)), dtype)).reshape(shape)
