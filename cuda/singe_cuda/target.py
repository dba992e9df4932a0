"""The targets "cuda" and "hip": kernels as CUDA C++ and as HIP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from singe_gpu.kernels.products.cuts import Choose
from singe_gpu.target import GpuTarget

from .code.dialect import CUDA, HIP, TF32


class CudaTarget(GpuTarget):
    """The code generator for NVIDIA's GPUs."""

    def __init__(self, choose: Choose | None = None, tuned_for: str | None = None, tf32: bool = False) -> None:
        """tf32: whether large products of float32 may take their operands as TF32."""
        super().__init__(TF32 if tf32 else CUDA, choose, tuned_for)
        self.settings: Mapping[str, Any] = {"tf32": True} if tf32 else {}


class HipTarget(GpuTarget):
    """The code generator for AMD's GPUs."""

    def __init__(self, choose: Choose | None = None, tuned_for: str | None = None) -> None:
        super().__init__(HIP, choose, tuned_for)
