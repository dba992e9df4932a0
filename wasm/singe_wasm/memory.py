"""The memory of the backend "wasm", which is one for all that it holds: arrays, blocks of weights, scratch memory.

The bytes of an array are freed when nothing refers to it.
"""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from weakref import WeakSet

import numpy as np

from singe.extension import (
    DeviceError,
    DType,
    HostArray,
    InputError,
    Memory,
    MemoryKind,
    MemoryLedger,
    MemoryUse,
    align,
    string,
)

from .calls import MOST_PARTS


class Engine(Protocol):
    """One memory, and an engine that runs modules in it. Addresses are byte offsets; failures raise DeviceError."""

    features: frozenset[str]
    strategy: str
    """How it takes memory: one of those of sg.Memory, of which it has no other."""
    limit: int | None
    """The most bytes that it takes."""

    @property
    def reserved(self) -> int | None:
        """The bytes of the memory; None if it is not the engine's own."""
        ...

    @property
    def untouched(self) -> int | None:
        """The address from which on the memory is zero, as nothing was ever there; None if it is not known."""
        ...

    def leave_untouched(self, address: int, count: int) -> None:
        """Note that this part of the untouched memory is to take room only where it is written."""
        ...

    def trim(self) -> None:
        """Give the end of the memory, if it is idle, back to the system, where that can be."""
        ...

    def take(self, count: int) -> int:
        """Allocate `count` bytes; returns their address, a multiple of 256."""
        ...

    def hold(self, block: np.ndarray) -> int:
        """The address of a block of constant bytes, or of a copy of it."""
        ...

    def give(self, address: int, count: int) -> None:
        """Free an address that `take`, or `hold` of a block of `count` bytes, returned."""
        ...

    def write(self, address: int, array: np.ndarray) -> None: ...

    def read(self, address: int, out: np.ndarray) -> None:
        """Bytes of the memory into a contiguous array."""
        ...

    def link(self, binary: bytes) -> Any:
        """A module in the form that `run` takes."""
        ...

    def arguments(self, module: Any, name: str) -> int | None:
        """How many arguments, all int32, a module's function takes; None if there is no such function."""
        ...

    threads: int
    """How many threads share a run."""

    def use_threads(self, count: int) -> None:
        """Have so many share a run, if it can."""
        ...

    def can_share(self, module: Any) -> bool:
        """Whether they can share the runs of a module."""
        ...

    def run(self, module: Any, words: np.ndarray, at: int, spaces: tuple[int, int] | None) -> int:
        """Execute int32 words from word `at` on (see driver.py); returns the word at which it stopped. It may change them. spaces: the
        address of the first workspace of other threads, which share calls, and the bytes between two; None: no calls are shared."""
        ...

    def describe(self) -> Mapping[str, Any]: ...


class WasmArray:
    """Elements in a backend's memory."""

    def __init__(self, backend: WasmMemory, shape: tuple[int, ...], kind: DType, use: MemoryKind = "tensors") -> None:
        self.backend: Final = backend
        self.shape: Final = shape
        self.dtype: Final = kind
        self.bytes: Final = math.prod(shape) * kind.size
        self.address: Final = backend.take(self.bytes, lambda: f"an array of shape {shape} and type {kind}", use)
        weakref.finalize(self, backend.release, self.address, self.bytes, use).atexit = False


class Resting(Protocol):
    """What holds scratch memory between runs."""

    def rest(self) -> None:
        """Let go of it."""
        ...


class WasmMemory:
    """The memory of one device: what is in it, and what of it may be freed."""

    name = "wasm"

    def __init__(self, engine: Engine) -> None:
        self.engine: Final = engine
        self.lock: Final = threading.RLock()
        self._blocks: Final[dict[int, int]] = {}  # the identity of a block of weights ↦ its address
        self._users: Final[Counter[int]] = Counter()  # how many Programs hold the block at an address
        self._released: Final[deque[tuple[int, int, MemoryKind]]] = deque()
        self._ledger: Final = MemoryLedger()
        self.executables: Final[WeakSet[Resting]] = WeakSet()
        self.runs = 0
        """The runs that have begun and not ended: a step on the host may call anything."""
        self._alive = True

    def take(self, count: int, what: Callable[[], str], use: MemoryKind = "tensors") -> int:
        """The address of so many bytes, which `release` gives back."""
        self.reclaim()
        try:
            address = self.engine.take(count)
        except DeviceError:
            address = self._tried_again(lambda: self.engine.take(count), count, what())
        self._ledger.add(use, self.engine.strategy, count, align(count or 1))
        return address

    def hold(self, block: np.ndarray) -> int:
        """The address of a block of weights, which is in memory once for all Programs that hold it."""
        self.reclaim()
        if id(block) not in self._blocks:
            try:
                address = self.engine.hold(block)
            except DeviceError:
                address = self._tried_again(lambda: self.engine.hold(block), block.size, "a block of weights")
            self._ledger.add("weights", self.engine.strategy, block.size, align(block.size or 1))
            self._blocks[id(block)] = address
        self._users[self._blocks[id(block)]] += 1
        return self._blocks[id(block)]

    def _tried_again(self, take: Callable[[], int], count: int, what: str) -> int:
        """Memory that there was not, once cycles that hold arrays are collected."""
        gc.collect()
        self.reclaim()
        try:
            return take()
        except DeviceError as e:
            raise self._ledger.refusal(what, count, str(e)) from e

    def release(self, address: int, count: int, use: MemoryKind) -> None:
        """Have memory freed. Finalizers call this, in any thread and in the middle of anything, so it only takes note."""
        self._released.append((address, count, use))

    def reclaim(self) -> None:
        """Free what was released; the caller holds the lock."""
        while self._released:
            address, count, use = self._released.popleft()
            if address in self._users:
                self._users[address] -= 1
                if self._users[address]:
                    continue
                del self._users[address]
                for block in [block for block, at in self._blocks.items() if at == address]:
                    del self._blocks[block]
            self._ledger.remove(use, self.engine.strategy, count, align(count or 1))
            if self._alive:
                self.engine.give(address, count)

    def configure(self, memory: Memory) -> None:
        why = "its arrays are slices of one memory" if self.engine.strategy == "pages" else "its arrays are NumPy's"
        memory.check_strategy((self.engine.strategy,), self.name, why)
        if memory.keep is not None:
            raise DeviceError(
                f"{self.name}: keep={memory.keep} cannot be had, since WebAssembly's memory only grows; leave it out, and call "
                "device.clean(), which makes it smaller where the engine can"
            )
        self.engine.limit = memory.limit

    def use_threads(self, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_PARTS:
            raise InputError(f"threads: got {count!r:.80}, expected a number from 1 to {MOST_PARTS}")
        with self.lock:
            self.engine.use_threads(count)
            for executable in self.executables if not self.runs else ():
                executable.rest()  # their plans say what is shared

    def memory(self) -> MemoryUse:
        with self.lock:
            self.reclaim()
            reserved = self._ledger.held if self.engine.reserved is None else self.engine.reserved
            return self._ledger.use({self.engine.strategy: reserved}, self.engine.limit)

    def clean(self) -> None:
        with self.lock:
            for executable in self.executables if not self.runs else ():
                executable.rest()
            self.reclaim()
            if not self.runs:
                self.engine.trim()

    def reset_peak(self) -> None:
        with self.lock:
            self.reclaim()
            self._ledger.reset_peak()

    def own(self, array: Any, what: str) -> WasmArray | HostArray:
        """The array, after a check that it is of this device; strings are on the host."""
        self._check_alive()
        if isinstance(array, HostArray) and array.dtype is string:
            return array
        if not isinstance(array, WasmArray) or array.backend is not self:
            raise DeviceError(
                f"wasm: {what} is a {type(array).__name__}, expected an array of this device; upload it first"
            )
        return array

    def _check_alive(self) -> None:
        if not self._alive:
            raise DeviceError("wasm: this device was disposed of")
