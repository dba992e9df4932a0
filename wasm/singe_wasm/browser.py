"""The backend "wasm" under Pyodide: Programs of WasmTarget run by the page's own WebAssembly.

Generated modules work in Pyodide's memory, which holds NumPy's arrays: addresses are passed, and nothing is copied. If
that memory is not accessible (it is not a public API; singe-python.js looks for it), modules get a separate memory, and
arrays are copied there and back. native.py has the same contract for wasmtime; static/python makes the calls.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import js  # pyright: ignore[reportMissingImports]
import numpy as np
import pyodide_js  # pyright: ignore[reportMissingImports]
from pyodide.ffi import to_js  # pyright: ignore[reportMissingImports]

from singe.extension import (
    ALIGN,
    DeviceError,
    DType,
    Heap,
    MaybeAwaitable,
    ProgramData,
    aligned,
    bytes_text,
    device_error,
    dtype,
    js_errors,
    limit_reached,
    map_result,
    outward,
    scripts,
    writable,
)

from .executable import WasmExecutable
from .runtime import WasmRuntime

_PAGE: Final = 1 << 16
_SIMD: Final = "simd"
_JS_ERRORS: Final = js_errors()


def open_backend(share: bool = True) -> MaybeAwaitable[WasmRuntime]:
    """The backend over the page's engine; share=False gives modules a separate memory."""
    return map_result(scripts(), lambda found: _open(found, share))


def _open(page_scripts: Any, share: bool) -> WasmRuntime:
    able = frozenset(page_scripts.wasmFeatures().to_py())
    if _SIMD not in able:
        raise DeviceError("wasm: this browser has no WebAssembly SIMD; use a newer one, or the device numpy")
    probe = np.frombuffer(os.urandom(64), np.uint8)
    memory = page_scripts.pythonMemory(pyodide_js, address_of(probe), to_js(probe)) if share else None
    if memory is None:
        return WasmRuntime(OwnEngine(page_scripts, able))
    return SharedRuntime(SharedEngine(page_scripts, able, memory))


def address_of(array: np.ndarray) -> int:
    """The address of an array's elements in Pyodide's memory."""
    return array.__array_interface__["data"][0]


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


class _PageEngine:
    """The common part of both engines; see runtime.Engine."""

    limit: int | None = None
    threads = 1

    def __init__(self, page_scripts: Any, features: frozenset[str], memory: Any) -> None:
        self.features: Final = features
        self._scripts: Final = page_scripts
        self._memory: Final = memory

    def leave_untouched(self, address: int, count: int) -> None:
        """An engine of a page takes the smallest pages by itself."""

    def link(self, binary: bytes) -> Any:
        try:
            return self._scripts.linkModule(self._memory, to_js(binary))
        except _JS_ERRORS as e:
            raise device_error(e, "wasm: the module does not load") from None

    def arguments(self, module: Any, name: str) -> int | None:
        return getattr(getattr(module, name, None), "length", None)

    def use_threads(self, count: int) -> None:
        if count > 1:
            raise DeviceError(f"wasm: got {count} threads, and Python in a page is on one; leave threads= out")

    def can_share(self, module: Any) -> bool:
        return False

    def _run(self, module: Any, start: int, at: int, count: int) -> int:
        """Execute `count` words at the address `start`, from word `at` on; returns the word at which they stopped."""
        try:
            stopped = module.run(start + 4 * at, start + 4 * count)
        except _JS_ERRORS as e:
            raise device_error(e, "wasm: a kernel failed") from None
        return (stopped % (1 << 32) - start) // 4

    def describe(self) -> Mapping[str, Any]:
        return {"engine": "WebAssembly of this page", "features": sorted(self.features)}


class SharedEngine(_PageEngine):
    """Modules in Pyodide's memory, which work on NumPy's arrays."""

    strategy = "exact"
    reserved = None
    untouched = None

    def __init__(self, page_scripts: Any, features: frozenset[str], memory: Any) -> None:
        super().__init__(page_scripts, features, memory)
        self._blocks: Final[dict[int, tuple[np.ndarray, int]]] = {}

    def trim(self) -> None:
        """Arrays are NumPy's, which frees them at once."""

    def take(self, count: int) -> int:
        used = sum(block.size for block, _ in self._blocks.values()) if self.limit is not None else 0
        if self.limit is not None and used + count > self.limit:
            raise DeviceError(f"wasm: {limit_reached(self.limit, used)}")
        return self._kept(aligned(count))

    def hold(self, block: np.ndarray) -> int:
        return self._kept(placed(block))

    def _kept(self, block: np.ndarray) -> int:
        """The address of a block, which does not move until it has been released as often as it was kept."""
        address = address_of(block)
        _, users = self._blocks.get(address, (block, 0))
        self._blocks[address] = block, users + 1
        return address

    def give(self, address: int, count: int) -> None:
        block, users = self._blocks.pop(address)
        if users > 1:
            self._blocks[address] = block, users - 1

    def write(self, address: int, array: np.ndarray) -> None:
        ctypes.memmove(address, address_of(array), array.nbytes)

    def read(self, address: int, out: np.ndarray) -> None:
        ctypes.memmove(address_of(out), address, out.nbytes)

    def run(self, module: Any, words: np.ndarray, at: int, spaces: tuple[int, int] | None) -> int:
        return self._run(module, address_of(words), at, words.size)

    def describe(self) -> Mapping[str, Any]:
        used = sum(block.size for block, _ in self._blocks.values())
        return {**super().describe(), "shared": True, "memory": self._memory.buffer.byteLength, "used": used}


class OwnEngine(_PageEngine):
    """Modules in a separate memory, to and from which arrays are copied."""

    strategy = "pages"

    def __init__(self, page_scripts: Any, features: frozenset[str]) -> None:
        super().__init__(
            page_scripts, features, js.WebAssembly.Memory.new(js.Object.fromEntries(to_js([["initial", 1]])))
        )
        self._heap: Final = Heap(self._grow)

    def _grow(self, count: int) -> None:
        pages = -(-(count - self.reserved) // _PAGE)
        if pages <= 0:
            return
        if self.limit is not None and self.reserved + pages * _PAGE > self.limit:
            raise DeviceError(f"wasm: {limit_reached(self.limit, self.reserved)}")
        try:
            self._memory.grow(pages)
        except _JS_ERRORS as e:
            raise device_error(e, f"wasm: cannot grow the memory to {bytes_text(count)}") from None

    @property
    def reserved(self) -> int:
        return self._memory.buffer.byteLength

    @property
    def untouched(self) -> int:
        return self._heap.untouched

    def trim(self) -> None:
        """The memory of a module never becomes smaller."""

    def take(self, count: int) -> int:
        return self._heap.take(count)

    def hold(self, block: np.ndarray) -> int:
        address = self.take(block.size)
        self.write(address, block)
        return address

    def give(self, address: int, count: int) -> None:
        self._heap.give(address, count)

    def _view(self, address: int, count: int) -> Any:
        return js.Uint8Array.new(self._memory.buffer, address, count)

    def write(self, address: int, array: np.ndarray) -> None:
        if array.nbytes:
            self._view(address, array.nbytes).assign(_bytes_of(array))

    def read(self, address: int, out: np.ndarray) -> None:
        if out.nbytes:
            self._view(address, out.nbytes).assign_to(_bytes_of(out))

    def run(self, module: Any, words: np.ndarray, at: int, spaces: tuple[int, int] | None) -> int:
        start = self.hold(words)
        try:
            stopped = self._run(module, start, at, words.size)
            if stopped < words.size:
                self.read(start, words)  # the run has changed the counts of remaining turns in them
            return stopped
        finally:
            self.give(start, words.nbytes)

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "shared": False, "memory": self.reserved, "used": self._heap.used}


class SharedRuntime(WasmRuntime):
    """A backend whose executables use NumPy's arrays in place."""

    def prepare(self, program: ProgramData) -> SharedExecutable:
        with self.lock:
            self._check_alive()
            return SharedExecutable(self, program)


class SharedExecutable(WasmExecutable):
    """An executable that reads arrays in place, and writes new ones for the caller; see DirectExecutable."""

    def call(self, inputs: Sequence[np.ndarray], states: Sequence[Any] = ()) -> list[np.ndarray]:
        with self.backend.lock:
            words = self.placed([x.shape for x in inputs], [dtype(x.dtype) for x in inputs])
            given = [x if x.dtype.hasobject else placed(x) for x in writable(self.program, inputs)]
            places = [(x, None if x.dtype.hasobject else address_of(x)) for x in given]
            return [outward(x) for x in self.execute(words, places, states, _new)]


def _new(shape: tuple[int, ...], kind: DType) -> tuple[np.ndarray, int]:
    """A new array that modules can write, and its address."""
    made = aligned(math.prod(shape) * kind.size)
    return made.view(kind.numpy).reshape(shape), address_of(made)


def placed(array: np.ndarray) -> np.ndarray:
    """The array itself if modules can read it in place, otherwise a copy that they can."""
    if array.flags.c_contiguous and address_of(array) % ALIGN == 0:
        return array
    copy = aligned(array.nbytes)
    copy[:] = _bytes_of(np.ascontiguousarray(array))
    return copy.view(array.dtype).reshape(array.shape)
