"""Memory of the host for what is read from a CUDA device, as far as that needs no card."""

from __future__ import annotations

import gc
from itertools import combinations

import numpy as np

import singe as sg
from singe_cuda.device.pinned import LEAST_BYTES, MOST_BYTES, PinnedMemory


def test_memory_for_reading_serves_again_once_nothing_refers_to_it() -> None:
    known: list[tuple[int, int]] = []
    memory = PinnedMemory(lambda address, count: known.append((address, count)))
    first, second = memory.empty(LEAST_BYTES + 1), memory.empty(LEAST_BYTES + 1)
    assert [count for _, count in known] == [2 * LEAST_BYTES] * 2
    assert memory.holds(first.ctypes.data)
    assert memory.holds(first[100:].ctypes.data)
    view = first.view(np.uint8)[7:]
    del first
    gc.collect()
    assert not np.shares_memory(memory.empty(LEAST_BYTES + 1), view)
    del view, second
    gc.collect()
    kept = [memory.empty(LEAST_BYTES + 1) for _ in range(3)]
    assert len(known) == 3
    assert not any(np.shares_memory(a, b) for a, b in combinations(kept, 2))


def test_small_arrays_and_those_beyond_the_limit_are_of_other_memory() -> None:
    known: list[int] = []
    memory = PinnedMemory(lambda _, count: known.append(count))
    small, large = memory.empty(LEAST_BYTES - 1), memory.empty(MOST_BYTES + 1)
    assert not known
    assert not memory.holds(small.ctypes.data)
    assert large.size == MOST_BYTES + 1


def test_memory_that_the_driver_refuses_is_not_asked_for_again() -> None:
    asked: list[int] = []

    def refuse(_: int, count: int) -> None:
        asked.append(count)
        raise sg.DeviceError("cuda: cuMemHostRegister_v2: operation not supported")

    memory = PinnedMemory(refuse)
    assert [memory.empty(LEAST_BYTES).size for _ in range(2)] == [LEAST_BYTES] * 2
    assert asked == [LEAST_BYTES]
