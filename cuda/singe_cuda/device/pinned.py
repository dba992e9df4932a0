"""Memory of the host that the driver reads and writes by itself, without copying once more: for what is read from a card.

An array has its memory alone; once nothing refers to it, the memory serves the next one. It belongs to Python, so that arrays outlive the
device.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import numpy as np

from singe.extension import DeviceError

LEAST_BYTES: Final = 1 << 16
"""The driver copies less than this as fast."""
MOST_BYTES: Final = 1 << 28
"""All that is taken: the system cannot use such memory for anything else."""


class PinnedMemory:
    """register: makes the driver know memory, by its address and its bytes."""

    def __init__(self, register: Callable[[int, int], None]) -> None:
        self._register: Final = register
        self._unused: Final[defaultdict[int, list[mmap.mmap]]] = defaultdict(list)
        self._taken: Final[list[tuple[int, int]]] = []
        self._refused = False

    def holds(self, address: int) -> bool:
        """Whether an address lies in such memory."""
        return any(first <= address < end for first, end in self._taken)

    def empty(self, count: int) -> np.ndarray:
        """An array of bytes; of other memory if it is small, too much is taken, or the system has none."""
        size = 1 << (count - 1).bit_length()
        unused = self._unused[size]
        if unused:
            memory = unused.pop()
        elif self._refused or count < LEAST_BYTES or size + sum(end - first for first, end in self._taken) > MOST_BYTES:
            return np.empty(count, np.uint8)
        else:
            memory = mmap.mmap(-1, size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            try:
                self._register(address, size)
            except DeviceError:  # some systems have none
                self._refused = True
                return np.empty(count, np.uint8)
            self._taken.append((address, address + size))
        block = (ctypes.c_uint8 * count).from_buffer(memory)
        weakref.finalize(block, unused.append, memory).atexit = False
        return np.frombuffer(memoryview(block), np.uint8)
