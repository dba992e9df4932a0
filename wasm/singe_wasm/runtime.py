"""The backend "wasm" without its engine: arrays in one memory, and the executables of Programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from singe.extension import HostArray, ProgramData, dtype, string

from .executable import WasmExecutable
from .levels import levels_of
from .memory import Engine, WasmArray, WasmMemory
from .target import WasmTarget


class WasmRuntime(WasmMemory):
    """A backend over any Engine; see runtime/backend.Backend."""

    reads_now = True

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.target: Final = WasmTarget(levels_of(engine.features))

    def upload(self, array: np.ndarray) -> WasmArray | HostArray:
        with self.lock:
            self._check_alive()
            kind = dtype(array.dtype)
            if kind is string:
                return HostArray(array.copy(), kind)
            made = WasmArray(self, array.shape, kind)
            self.engine.write(made.address, np.ascontiguousarray(array))
            return made

    def download(self, array: Any) -> np.ndarray:
        own = self.own(array, "the array")
        if isinstance(own, HostArray):
            return own.data.copy()
        out = np.empty(own.shape, own.dtype.numpy)
        with self.lock:
            self.engine.read(own.address, out)
        return out

    def prepare(self, program: ProgramData) -> WasmExecutable:
        with self.lock:
            self._check_alive()
            return WasmExecutable(self, program)

    def synchronize(self) -> None:
        """Calls return when they are done."""

    def describe(self) -> Mapping[str, Any]:
        with self.lock:
            self.reclaim()
            return self.engine.describe()

    def dispose(self) -> None:
        self._alive = False
