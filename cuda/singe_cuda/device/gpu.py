"""A CUDA device as a Gpu: one stream, on which all work runs in order.

Compiled kernels are kept from one process to the next (singe/files/kept.py), by a hash of all that they depend on.
A list of commands that is submitted a second time becomes a graph of the driver's: see graphs.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_char_p, c_float, c_size_t, c_uint64, c_void_p
from itertools import pairwise
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from singe.extension import DeviceError, DeviceLost, bytes_text, entry_key, keep_entry, recall_entry
from singe_gpu.device.memory import Binding, Command, Handle, Launch, Limits, Timed
from singe_gpu.dialect import (
    INTEGER_MATRIX,
    PACKED_DOTS,
    PACKED_MATRIX,
    SHADER_F16,
    SUBGROUP_MATRIX,
    SUBGROUPS,
    WIDE_MATRIX,
)

from ..code.text import ENTRY_POINT, bindings, launch_bytes, prelude, threads
from .driver import CUDA_DRIVER, Driver, Library, architectures, compile_text, nvrtc, version
from .graphs import Graphs, Recorded
from .pinned import PinnedMemory

LEAST_CAPABILITY: Final = 75
"""The least compute capability, times ten."""
HOPPER: Final = 90
"""The capability whose own instructions no later one has; code that uses them is compiled for it alone."""
_FEATURES: Final = {
    SUBGROUPS: range(75, 1000),
    SHADER_F16: range(75, 1000),
    PACKED_DOTS: range(75, 1000),
    SUBGROUP_MATRIX: range(80, 1000),
    INTEGER_MATRIX: range(80, 1000),
    PACKED_MATRIX: range(80, 1000),
    WIDE_MATRIX: range(HOPPER, HOPPER + 1),
}
"""Feature ↦ the compute capabilities that have it."""
MAX_BINDING_BYTES: Final = (1 << 31) - 4
"""Kernels number elements in 32 bits, and an element may be a byte."""
MAX_WORKGROUPS: Final = 65535
MAX_UNUSED_PIPELINES: Final = 128
"""How many pipelines are kept after their last use: trying kernels, or loading a model again, needs them."""
OPTIONS: Final = ("--std=c++17", "--device-as-default-execution-space", "--diag-suppress=177")
"""NVRTC's options for every text; 177 are names that a text binds and does not use."""
_MAX_THREADS: Final = 8
_OF_ATTRIBUTE: Final = {"major": 75, "minor": 76}
_RELEASE_THRESHOLD: Final = 4
"""The attribute of the driver's pool that says how much freed memory it keeps."""
_MOST_SHARED: Final = 8
"""The attribute of a kernel that says how much workgroup memory its launches may ask for."""


class DeviceMemory:
    """Memory of the device, by its address."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address: Final = address


class CudaKernel:
    """A loaded kernel."""

    __slots__ = ("__weakref__", "function", "shared", "threads", "written")

    def __init__(self, function: c_void_p, threads: int, shared: int, written: Sequence[bool]) -> None:
        self.function: Final = function
        self.written: Final = written
        """Which of its buffers it may write."""
        self.threads: Final = threads
        self.shared: Final = shared
        """Bytes of workgroup memory that a launch asks for."""


class _Port(ctypes.Structure):
    """A buffer as a kernel takes it: `Read`, `Written` and `Sizes` of the prelude."""

    _fields_ = (("data", c_uint64), ("bytes", c_uint64))


class Arguments:
    """A kernel's arguments, and the addresses by which the driver reads them."""

    __slots__ = ("addresses", "ports")

    def __init__(self, bindings: Sequence[Binding]) -> None:
        self.ports: Final = [_Port(b.buffer.address + b.offset, b.bytes) for b in bindings]
        self.addresses: Final = (c_void_p * len(self.ports))(*map(ctypes.addressof, self.ports))


class CudaGpu:
    """See the module's docstring, and memory.Gpu."""

    has_timestamps = True
    shares_buffers = True

    library: Library = CUDA_DRIVER
    compiler: Library | None = None
    name: str = "cuda"

    def __init__(self, number: int) -> None:
        self.driver: Final = Driver(self.library)
        count = self.driver.number("DeviceGetCount")
        if not 0 <= number < count:
            there = (
                f"there are {count}: {self.name}:0 to {self.name}:{count - 1}"
                if count > 1
                else f"there is {f'{self.name}:0 alone' if count else 'none'}"
            )
            raise DeviceError(f"no device {self.name}:{number}; {there}")
        device = self.driver.number("DeviceGet", number)
        self._device: Final = device
        self._number: Final = number
        self.features: frozenset[str] = frozenset()
        self._examine()
        self.lost = False
        self._context: Final = c_void_p()
        self.driver.call("DevicePrimaryCtxRetain", byref(self._context), device)
        self._current: Final = threading.local()
        self._enter()
        self._stream: Final = c_void_p()
        self.driver.call("StreamCreate", byref(self._stream), 1)
        self._memory_pool: Final = c_void_p()
        whole = c_uint64(2**64 - 1)
        self.driver.call("DeviceGetDefaultMemPool", byref(self._memory_pool), device)
        self.driver.call("MemPoolSetAttribute", self._memory_pool, _RELEASE_THRESHOLD, byref(whole))
        self.memory: Final = self.driver.number("DeviceTotalMem_v2", device, kind=c_size_t)
        self.limits: Final = Limits(self.memory, MAX_BINDING_BYTES, MAX_WORKGROUPS)
        self._graphs: Final = Graphs(self._call, self._one, self._stream)
        self._pinned: Final = PinnedMemory(self._register)
        self._pipelines: Final[WeakValueDictionary[str, CudaKernel]] = WeakValueDictionary()
        self._lately: Final[deque[CudaKernel]] = deque(maxlen=MAX_UNUSED_PIPELINES)

    def _examine(self) -> None:
        """Find what the card can do, and how kernels are compiled for it."""
        facts = {name: self.driver.number("DeviceGetAttribute", at, self._device) for name, at in _OF_ATTRIBUTE.items()}
        self.capability = 10 * facts["major"] + facts["minor"]
        if self.capability < LEAST_CAPABILITY:
            raise DeviceError(
                f"cuda:{self._number} has the compute capability {self.capability / 10}, expected {LEAST_CAPABILITY / 10} or more; use sg.WebGpu()"
            )
        self.features = frozenset(f for f, those in _FEATURES.items() if self.capability in those)
        self._architecture, self._binary = architecture_of(self.capability)
        self._version = version(nvrtc())

    def _enter(self) -> None:
        """Make the context this thread's."""
        if not hasattr(self._current, "entered"):
            self.driver.call("CtxSetCurrent", self._context)
            self._current.entered = True

    def _call(self, name: str, *arguments: Any) -> None:
        self._enter()
        try:
            self.driver.call(name, *arguments)
        except DeviceLost:
            self.lost = True
            raise

    # --- memory ---

    def allocate(self, size: int) -> DeviceMemory:
        found = c_uint64()
        self._call("MemAllocAsync", byref(found), c_size_t(size), self._stream)
        return DeviceMemory(found.value)

    def free(self, buffer: DeviceMemory) -> None:
        self._call("MemFreeAsync", c_uint64(buffer.address), self._stream)

    def trim(self) -> None:
        self.wait()
        self._call("MemPoolTrimTo", self._memory_pool, c_size_t(0))

    def write(self, buffer: DeviceMemory, offset: int, data: np.ndarray) -> None:
        data = np.ascontiguousarray(data)
        self._call(
            "MemcpyHtoDAsync_v2",
            c_uint64(buffer.address + offset),
            c_void_p(data.ctypes.data),
            c_size_t(data.nbytes),
            self._stream,
        )  # the driver has read the memory when it returns, unless it is pinned
        if self._pinned.holds(data.ctypes.data):
            self.wait()

    def read(self, buffer: DeviceMemory, count: int, offset: int = 0) -> np.ndarray:
        out = self._pinned.empty(count)
        self._call(
            "MemcpyDtoHAsync_v2",
            c_void_p(out.ctypes.data),
            c_uint64(buffer.address + offset),
            c_size_t(count),
            self._stream,
        )
        self.wait()
        return out

    def _register(self, address: int, count: int) -> None:
        self._call("MemHostRegister_v2", c_void_p(address), c_size_t(count), 0)

    def copy_from(self, buffer: DeviceMemory, offset: int, address: int, count: int) -> None:
        """Copy memory of the card to a buffer, from an address that may be another library's."""
        self._copy(buffer.address + offset, address, count, self._stream)

    def _copy(self, to: int, address: int, count: int, stream: c_void_p) -> None:
        if count:
            self._call("MemcpyDtoDAsync_v2", c_uint64(to), c_uint64(address), c_size_t(count), stream)

    # --- kernels ---

    def pipelines(self, codes: Sequence[str]) -> list[Handle]:
        made = {code: pipeline for code in codes if (pipeline := self._pipelines.get(code))}
        new = [code for code in dict.fromkeys(codes) if code not in made]
        with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as pool:
            binaries = list(pool.map(self._binary_of, new))
        made.update({code: self._load(code, binary) for code, binary in zip(new, binaries, strict=True)})
        self._pipelines.update(made)
        self._lately.extend(made.values())
        return [made[code] for code in codes]

    def _binary_of(self, code: str) -> bytes:
        text, options = self._source(code)
        key = entry_key(text, options, self._version)
        kept = recall_entry(self.name, key)
        if kept is not None:
            return bytes(kept)
        binary, _ = compile_text(text, "kernel.cu", options, self._binary, self.compiler)
        keep_entry(self.name, key, f"machine code, {bytes_text(len(text))} of {self.library.title}", [binary])
        return binary

    def _source(self, code: str) -> tuple[str, Sequence[str]]:
        """The whole text of a kernel, and the options with which it is compiled."""
        return prelude() + code, (f"--gpu-architecture={self._architecture}", *OPTIONS)

    def _load(self, code: str, binary: bytes) -> CudaKernel:
        module, function = c_void_p(), c_void_p()
        self._call("ModuleLoadData", byref(module), c_char_p(binary))
        self._call("ModuleGetFunction", byref(function), module, ENTRY_POINT.encode())
        written = [access == "storage, read_write" for access in bindings(code)]
        found = CudaKernel(function, threads(code), launch_bytes(code), written)
        if found.shared:
            self._call("FuncSetAttribute", function, _MOST_SHARED, found.shared)
        weakref.finalize(found, self._unload, module).atexit = False
        return found

    def _unload(self, module: c_void_p) -> None:
        with contextlib.suppress(DeviceError):
            self._call("ModuleUnload", module)

    def bind(self, pipeline: CudaKernel, bindings: Sequence[Binding]) -> Arguments:
        return Arguments(bindings)

    # --- work ---

    def record(self, commands: Sequence[Command]) -> Sequence[Command]:
        return Recorded(commands)

    def submit(self, commands: Sequence[Command]) -> None:
        if isinstance(commands, Recorded):
            self._graphs.submit(commands)
            return
        for command in commands:
            self._one(command, self._stream)

    def _one(self, command: Command, stream: c_void_p) -> None:
        if isinstance(command, Launch):
            self._call(
                "LaunchKernel", command.pipeline.function, *command.groups, command.pipeline.threads, 1, 1,
                command.pipeline.shared, stream, command.bindings.addresses, None,
            )  # fmt: skip
            return
        source, target = command.source, command.target
        self._copy(target.buffer.address + target.offset, source.buffer.address + source.offset, source.bytes, stream)

    def timed(self, commands: Sequence[Command]) -> Timed:
        events = [c_void_p() for _ in range(len(commands) + 1)]
        for event in events:
            self._call("EventCreate", byref(event), 0)
        try:
            start = time.perf_counter()
            self._call("EventRecord", events[0], self._stream)
            for command, event in zip(commands, events[1:], strict=True):
                self._one(command, self._stream)
                self._call("EventRecord", event, self._stream)
            self.wait()
            seconds = time.perf_counter() - start
            ends = [0.0, *(self._between(events[0], event) for event in events[1:])]
        finally:
            for event in events:
                self._call("EventDestroy_v2", event)
        spans = [(begin, max(0.0, end - begin), 0.0) for begin, end in pairwise(ends)]
        return Timed(seconds, spans, "the driver's events around each command")

    def _between(self, first: c_void_p, second: c_void_p) -> float:
        found = c_float()
        self._call("EventElapsedTime", byref(found), first, second)
        return found.value * 1e-3

    def wait(self) -> None:
        self._call("StreamSynchronize", self._stream)

    def wait_for_all(self) -> None:
        """For the streams of other libraries, too."""
        self._call("CtxSynchronize")

    # --- facts ---

    @property
    def label(self) -> str:
        """The card and its driver: the key under which measurements are kept."""
        return f"{self.card}, {self.library.title} {self.driver.number('DriverGetVersion')}"

    @property
    def card(self) -> str:
        name = ctypes.create_string_buffer(256)
        self.driver.call("DeviceGetName", name, len(name), self._device)
        return name.value.decode(errors="replace")

    def describe(self) -> Mapping[str, Any]:
        driver = self.driver.number("DriverGetVersion")
        return {
            "adapter": self.card,
            "capability": self.capability / 10,
            "software": False,
            "memory": self.memory,
            "driver": f"CUDA {driver // 1000}.{driver % 1000 // 10}",
            "compiler": f"NVRTC {self._version}",
            "features": sorted(self.features),
            "limits": {"buffer": self.limits.buffer, "binding": self.limits.binding, "workgroups": self.limits.groups},
        }

    def destroy(self) -> None:
        self._pipelines.clear()
        self._lately.clear()
        with contextlib.suppress(DeviceError):
            self.wait()
            self._call("StreamDestroy_v2", self._stream)
            self._call("DevicePrimaryCtxRelease_v2", self._device)


def architecture_of(capability: int) -> tuple[str, bool]:
    """NVRTC's name of what to compile for, and whether it makes a binary: PTX for cards newer than the compiler."""
    known = [a for a in architectures() if a <= capability]
    if not known:
        raise DeviceError(
            f"NVRTC {version(nvrtc())} makes code from compute capability {architectures()[0] / 10} on, this card has {capability / 10}; "
            "install an older nvidia-cuda-nvrtc"
        )
    if known[-1] < capability:
        return f"compute_{known[-1]}", False
    return f"sm_{capability}{'a' if capability == HOPPER else ''}", True
