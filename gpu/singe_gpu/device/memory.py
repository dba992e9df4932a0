"""How elements are stored in the memory of a GPU, and the commands that a GPU accepts.

A Gpu is the small set of calls that a device offers (native.py, over wgpu-py). Buffers are untyped handles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from singe.extension import DType, from_stored, stored_type, to_stored

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
    shares_buffers: bool
    """Whether a dispatch may read a part of a buffer and write another part of it."""

    def allocate(self, size: int) -> Handle: ...

    def free(self, buffer: Handle) -> None: ...

    def trim(self) -> None:
        """Give memory that was freed, and what the device keeps for itself and can do without, back to the system."""
        ...

    def write(self, buffer: Handle, offset: int, data: np.ndarray) -> None:
        """Write bytes to a buffer, after all work submitted before."""
        ...

    def read(self, buffer: Handle, count: int, offset: int = 0) -> np.ndarray:
        """`count` bytes of a buffer from an offset, a multiple of 4, once all work submitted before is done: in memory that nothing else
        has."""
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


def to_device(array: np.ndarray, element_size: int) -> np.ndarray:
    """The bytes of an array as they are stored in device memory, padded to whole words."""
    flat = to_stored(np.ascontiguousarray(array).reshape(-1), element_size).view(np.uint8)
    return np.concatenate([flat, np.zeros(-flat.size % 4, np.uint8)]) if flat.size % 4 else flat


def from_device(raw: np.ndarray, shape: tuple[int, ...], dtype: DType, element_size: int) -> np.ndarray:
    """The inverse of `to_device`, as an array over the same memory where that can be."""
    return from_stored(raw.view(stored_type(dtype, element_size)), dtype).reshape(shape)
