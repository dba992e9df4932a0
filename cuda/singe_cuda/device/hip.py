"""An AMD card as a Gpu, by HIP: CudaGpu with the names that HIP has for the functions of CUDA's driver and compiler. Its calls and its
kernels are tested as far as that goes without a card; nothing has run on one.

Not used: DLPack, graphs of the driver's, and the instructions for matrices and packed bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from singe_gpu.device.memory import Command
from singe_gpu.device.runtime import GpuRuntime
from singe_gpu.device.tune import Tuner, wanted
from singe_gpu.dialect import SUBGROUPS

from ..code.dialect import HIP
from ..code.text import prelude
from ..target import HipTarget
from .driver import Library, version
from .gpu import CudaGpu, DeviceMemory

_MISSING: Final = (
    'no ROCm is here ({}): install it, or use another device: "webgpu" takes any GPU, "torch" that of PyTorch for ROCm'
)
HIP_DRIVER: Final = Library(
    "HIP",
    "hip",
    ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"),
    _MISSING.format("libamdhip64"),
    {
        "CtxSynchronize": "DeviceSynchronize",
        "DeviceTotalMem_v2": "DeviceTotalMem",
        "DevicePrimaryCtxRelease_v2": "DevicePrimaryCtxRelease",
        "DeviceGetCount": "GetDeviceCount",
        "EventCreate": "EventCreateWithFlags",
        "EventDestroy_v2": "EventDestroy",
        "GetErrorString": "DrvGetErrorString",
        "LaunchKernel": "ModuleLaunchKernel",
        "MemAllocAsync": "MallocAsync",
        "MemFreeAsync": "FreeAsync",
        "MemHostRegister_v2": "HostRegister",
        "MemcpyDtoDAsync_v2": "MemcpyDtoDAsync",
        "MemcpyDtoHAsync_v2": "MemcpyDtoHAsync",
        "MemcpyHtoDAsync_v2": "MemcpyHtoDAsync",
        "StreamCreate": "StreamCreateWithFlags",
        "StreamDestroy_v2": "StreamDestroy",
    },
)
HIPRTC: Final = Library(
    "HIPRTC", "hiprtc", ("libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so"), _MISSING.format("libhiprtc"), code="Code"
)
OPTIONS: Final = ("-std=c++17",)
"""HIPRTC's options for every text; without an architecture it compiles for the card that the thread uses."""


def whole(code: str) -> str:
    """A kernel with what stands before it, of which every function is the device's."""
    return "\n".join((
        "#pragma clang force_cuda_host_device begin", prelude("amd.hpp"), code, "#pragma clang force_cuda_host_device end", "",
    ))  # fmt: skip


class HipGpu(CudaGpu):
    """See the module's docstring."""

    library = HIP_DRIVER
    compiler = HIPRTC
    name = "hip"

    def _examine(self) -> None:
        self.features = frozenset((SUBGROUPS,))
        self._binary = True
        self._version = f"{version(HIPRTC)}, {self.card}"

    def _source(self, code: str) -> tuple[str, Sequence[str]]:
        self._enter()  # each thread that compiles, since the card decides
        return whole(code), OPTIONS

    def write(self, buffer: DeviceMemory, offset: int, data: np.ndarray) -> None:
        super().write(buffer, offset, data)
        self.wait()  # the driver may still read the memory of the host

    def record(self, commands: Sequence[Command]) -> Sequence[Command]:
        return list(commands)

    def describe(self) -> Mapping[str, Any]:
        return {
            "adapter": self.card,
            "software": False,
            "memory": self.memory,
            "driver": f"HIP {self.driver.number('DriverGetVersion')}",
            "compiler": f"HIPRTC {version(HIPRTC)}",
            "features": sorted(self.features),
            "limits": {"buffer": self.limits.buffer, "binding": self.limits.binding, "workgroups": self.limits.groups},
        }


class HipBackend(GpuRuntime):
    """The card with this number."""

    survives_fork = False

    def __init__(self, number: int) -> None:
        gpu = HipGpu(number)
        tuner = Tuner(gpu, HIP, gpu.label) if wanted(software=False) else None
        target = HipTarget(tuner.choose, gpu.label) if tuner else HipTarget()
        super().__init__(f"hip:{number}", gpu, target)
