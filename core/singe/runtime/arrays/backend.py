"""ArrayBackend: a device of an array library, which runs Programs of whole-array steps by ArrayExecutable.

The library's own file gives the adapter and opens the device; this one needs no library.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final
from weakref import WeakValueDictionary, finalize

import numpy as np

from ...compiler.array_target import ArrayTarget
from ...dtypes import DType, dtype
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...program.program import HOST, ProgramData
from ..backend import LibraryArray
from ..memory.usage import MemoryUse
from .executable import ArrayExecutable


class ArrayBackend:
    """name: the device's address. facts: what it tells about itself. on_host: whether its memory is the host's, so that reading waits
    for nothing."""

    target_name: Final = HOST

    def __init__(self, name: str, arrays: ArrayAdapter, facts: Mapping[str, Any], on_host: bool) -> None:
        self.name, self.arrays, self._facts = name, arrays, facts
        self.target: Final = ArrayTarget(arrays)
        self.reads_now: Final = on_host
        self.survives_fork: Final = False
        self._weights: Final[dict[int, MutableMapping[Any, Array]]] = {}

    def upload(self, array: np.ndarray) -> LibraryArray:
        return LibraryArray(self._held(array, dtype(array.dtype)), dtype(array.dtype))

    def download(self, array: LibraryArray) -> np.ndarray:
        if isinstance(array.data, np.ndarray):
            return array.data.copy()
        with self.arrays.scope():
            found = self.arrays.host(array.data)
        shared = self.reads_now or not found.flags.writeable
        return found.copy() if shared else found

    def export(self, array: LibraryArray) -> Any:
        return array.data

    def adopt(self, array: Any) -> LibraryArray:
        with self.arrays.scope():
            found = self.arrays.from_dlpack(array)
            return LibraryArray(found, self.arrays.dtype(found))

    def prepare(self, program: ProgramData) -> ArrayExecutable:
        return ArrayExecutable(program, self.name, self.arrays, self._weight)

    def synchronize(self) -> None:
        self.arrays.wait(())

    def describe(self) -> Mapping[str, Any]:
        return self._facts

    def memory(self) -> MemoryUse:
        """As the library counts, whoever in this process uses it."""
        in_use, reserved, peak = self.arrays.bytes_held()
        return MemoryUse(in_use=in_use, reserved=reserved, peak=peak)

    def clean(self) -> None:
        self.arrays.clean()

    def reset_peak(self) -> None:
        self.arrays.reset_peak()

    def dispose(self) -> None:
        self._weights.clear()

    def _held(self, array: np.ndarray, kind: DType) -> Array:
        if kind not in self.arrays.dtypes:
            return array
        with self.arrays.scope():
            return self.arrays.asarray(array, kind)

    def _weight(self, array: np.ndarray, kind: DType) -> Array:
        """The device's array of a view of a block. Programs of one Model share blocks, which the device holds once."""
        block = array
        while isinstance(block.base, np.ndarray):
            block = block.base
        if kind not in self.arrays.dtypes or not array.nbytes:
            return self._held(array, kind)
        if id(block) not in self._weights:
            self._weights[id(block)] = WeakValueDictionary()
            finalize(block, self._weights.pop, id(block), None)
        found = self._weights[id(block)]
        key = array.__array_interface__["data"][0], array.shape, kind.name
        held = found.get(key)
        if held is None:
            held = found[key] = self._held(array, kind)
        return held
