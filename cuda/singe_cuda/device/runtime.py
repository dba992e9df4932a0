"""The backend "cuda" over one card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from singe_gpu.device.runtime import GpuRuntime
from singe_gpu.device.tune import Tuner, wanted

from ..code.dialect import CUDA
from ..target import CudaTarget
from .gpu import CudaGpu


class CudaBackend(GpuRuntime):
    """The card with this number."""

    survives_fork = False

    def __init__(self, number: int) -> None:
        gpu = CudaGpu(number)
        self.tuner = Tuner(gpu, CUDA, gpu.label) if wanted(software=False) else None
        super().__init__(f"cuda:{number}", gpu, CudaTarget(self.tuner.choose if self.tuner else None))

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "autotune": str(self.tuner.path) if self.tuner else "off"}
