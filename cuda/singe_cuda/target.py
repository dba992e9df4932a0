"""The target "cuda": kernels as CUDA C++."""

from __future__ import annotations

from singe_gpu.kernels.cuts import Choose
from singe_gpu.target import GpuTarget

from .code.dialect import CUDA


class CudaTarget(GpuTarget):
    """The code generator for NVIDIA's GPUs."""

    def __init__(self, choose: Choose | None = None, tuned_for: str | None = None) -> None:
        super().__init__(CUDA, choose, tuned_for)
