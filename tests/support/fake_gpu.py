"""A Gpu of which only the memory is there: it computes nothing, and notes what it has given out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from singe.errors import DeviceError
from singe_gpu.device.memory import Binding, Command, Handle, Limits, Timed, Transfer


class FakeBuffer:
    """A buffer of some bytes."""

    def __init__(self, size: int) -> None:
        self.size = size


class FakeGpu:
    """`memory`: the most bytes that it has."""

    features: frozenset[str] = frozenset()
    has_timestamps = False
    lost = False

    def __init__(self, shares_buffers: bool = True, memory: int = 1 << 40, buffer: int = 1 << 30) -> None:
        self.shares_buffers = shares_buffers
        self.memory = memory
        self.limits = Limits(buffer, buffer, 65535)
        self.buffers: dict[int, FakeBuffer] = {}
        self.allocations = 0

    @property
    def taken(self) -> int:
        return sum(buffer.size for buffer in self.buffers.values())

    def allocate(self, size: int) -> Handle:
        if self.taken + size > self.memory:
            raise DeviceError("the fake has no more memory")
        self.allocations += 1
        made = FakeBuffer(size)
        self.buffers[id(made)] = made
        return made

    def free(self, buffer: Handle) -> None:
        del self.buffers[id(buffer)]  # an error if it is freed twice

    def trim(self) -> None: ...

    def write(self, buffer: Handle, offset: int, data: np.ndarray) -> None: ...

    def read(self, buffer: Handle, count: int, offset: int = 0) -> np.ndarray:
        return np.zeros(count, np.uint8)

    def pipelines(self, codes: Sequence[str]) -> list[Handle]:
        return list(codes)

    def bind(self, pipeline: Handle, bindings: Sequence[Binding]) -> Handle:
        return tuple(bindings)

    def record(self, commands: Sequence[Command]) -> Sequence[Command]:
        return commands

    def submit(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, Transfer):
                assert command.source.buffer is not command.target.buffer, "WebGPU copies between two buffers only"

    def timed(self, commands: Sequence[Command]) -> Timed:
        return Timed(0.0, [(0.0, 0.0, 0.0) for _ in commands], "none")

    def wait(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {}

    def destroy(self) -> None: ...
