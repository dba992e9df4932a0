"""The backend "cuda" over one card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from singe.extension import HostArray
from singe_gpu.device.pool import GpuArray
from singe_gpu.device.runtime import GpuRuntime
from singe_gpu.device.tune import Tuner, wanted

from ..code.dialect import CUDA
from ..target import CudaTarget
from .gpu import CudaGpu
from .sharing import KIND, Shared, Taken


class CudaBackend(GpuRuntime):
    """The card with this number. tf32: see CudaTarget."""

    survives_fork = False

    def __init__(self, number: int, tf32: bool = False) -> None:
        gpu = CudaGpu(number)
        self.tuner = Tuner(gpu, CUDA, gpu.label) if wanted(software=False) else None
        self._number: Final = number
        self._card: Final = gpu
        choose, tuned_for = (self.tuner.choose, gpu.label) if self.tuner else (None, None)
        super().__init__(f"cuda:{'tf32:' * tf32}{number}", gpu, CudaTarget(choose, tuned_for, tf32))

    def export(self, array: GpuArray | HostArray) -> Any:
        """What DLPack takes: over the array's own memory."""
        if isinstance(array, HostArray):
            return self.download(array)
        return Shared(array, self._number, self._card.wait_for_all, lambda: self.download(array))

    def adopt(self, array: Any) -> GpuArray | HostArray:
        """A copy on the card of what DLPack gives there; of memory elsewhere, what the host has of it."""
        if array.__dlpack_device__() != (KIND, self._number):
            return self.upload(np.from_dlpack(array))
        taken = Taken(array, self._number)
        try:
            if not taken.contiguous:
                raise BufferError("its elements are not contiguous: give a contiguous copy")
            out = GpuArray(self.pool, taken.shape, taken.dtype, self.target.element_size(taken.dtype))
            self._card.copy_from(out.piece.buffer, out.piece.offset, taken.address, out.bytes)
            self.gpu.wait()
            return out
        finally:
            taken.close()

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "autotune": str(self.tuner.path or "in memory") if self.tuner else "off"}
