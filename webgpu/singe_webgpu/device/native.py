"""The backend "webgpu" over wgpu-py: the only file that imports wgpu."""

from __future__ import annotations

import logging
import os
import re
import statistics
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import wgpu
from wgpu.backends.wgpu_native import ffi, lib
from wgpu.backends.wgpu_native._api import error_handler, from_c_string_view

from singe.extension import DeviceError, DeviceLost
from singe_gpu.device.memory import (
    MIN_BUFFER_BYTES,
    Binding,
    Command,
    Handle,
    Launch,
    Limits,
    Timed,
    Transfer,
)
from singe_gpu.device.pool import size_class
from singe_gpu.device.runtime import GpuRuntime
from singe_gpu.device.tune import Tuner, wanted
from singe_gpu.dialect import ENTRY, PACKED_DOTS, SUBGROUPS

from ..code.dialect import WGSL
from ..code.text import bindings
from ..target import WgslTarget

logging.getLogger("wgpu").setLevel(logging.CRITICAL)  # failures are raised as DeviceError

_STORAGE: Final = (
    wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
)
_STAGING: Final = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
_LIB: Final[Any] = lib
_C: Final[Any] = ffi
"""wgpu's C functions and types. wgpu-py's methods catch errors once per call, which costs more than most calls, and wait
through another thread. A run uses the C functions directly and catches the errors of all its calls at once."""
_NONE: Final = _C.NULL
_TIMESTAMPS: Final = "timestamp-query"
_NAMES: Final = {"subgroup": SUBGROUPS}
"""wgpu's names for features ↦ WebGPU's names, where they differ."""
_NOT_YET: Final = "enable subgroups;\n\n"
"""WGSL requires this line; wgpu rejects it, but accepts the operations that it enables."""
_MAX_QUERIES: Final = 4096
"""The largest number of queries in a set."""
_COMMANDS_PER_SUBMIT: Final = 16
"""Commands per submit: the GPU works on them while the next ones are encoded. The 214 of a token took 1.6 times as long in one (H200)."""
_MAX_KEPT_STAGING_BYTES: Final = 1 << 22
"""The largest buffer through which elements are read that is kept for the next reading."""
_MAX_UNUSED_PIPELINES: Final = 128
"""How many pipelines are kept after their last use: trying kernels, or loading a model again, needs them."""
_SUBMITS_TO_TIME: Final = 15
"""Empty submits whose median time is the cost of a submit and a wait."""
_RAISED: Final = ("max-buffer-size", "max-storage-buffer-binding-size")
_OPENGL: Final = "OpenGL"
LOW_POWER: Final = "low-power"
Power: TypeAlias = Literal["low-power", "high-performance"]
LOST: Final = (
    "the device is lost, with all that it held; sg.device('webgpu') opens another one, on which training goes on from a state "
    "that was kept"
)
_KINDS: Final = {"storage, read_write": "storage", "storage, read": "read-only-storage", "uniform": "uniform"}


class WebGpuBackend(GpuRuntime):
    """The backend over an adapter: the fastest, or the one that `choice` names (see `_chosen`). `software=True` asks for one that
    runs on the CPU."""

    survives_fork = False

    def __init__(self, choice: str = "", software: bool = False) -> None:
        at, adapter = _chosen(choice) if choice else (0, _adapter(software=software))
        gpu = NativeGpu(adapter)
        self.tuner = Tuner(gpu, WGSL, gpu.label) if wanted(gpu.describe()["software"]) else None
        target = WgslTarget(self.tuner.choose, gpu.label) if self.tuner else WgslTarget()
        super().__init__(f"webgpu:{at}" if at else "webgpu", gpu, target)

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "autotune": str(self.tuner.path or "in memory") if self.tuner else "off"}


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """wgpu's errors as ours."""
    try:
        yield
    except (wgpu.GPUError, RuntimeError) as e:
        if isinstance(e, DeviceError):
            raise
        text = str(e).strip()
        if "lost" in text.lower():
            raise DeviceLost(f"{doing}: {LOST}: {text}") from e
        raise DeviceError(f"{doing}: {text}") from e


class _Encoded:
    """A command buffer, for one submit."""

    def __init__(self, buffer: Any) -> None:
        self.buffer: Final = buffer
        weakref.finalize(self, _LIB.wgpuCommandBufferRelease, buffer).atexit = False


class _Recorded(list[Command]):
    """Commands that are submitted again and again."""

    submitted = False
    ahead: _Encoded | None = None
    """The next run, once they were submitted twice."""


@contextmanager
def _caught() -> Iterator[None]:
    """Raise the last error that the C calls reported."""
    error_handler.capture("singe")
    try:
        yield
    finally:
        found = error_handler.release("singe")
    if found is not None:
        raise wgpu.GPUError(found[1])


@_C.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)")
def _mapped(status: int, message: Any, answer: Any, _: Any) -> None:
    """Callback of mapping a buffer: puts the result into the list."""
    _C.from_handle(answer).append((status, from_c_string_view(message)))


def _adapter(power: Power = "high-performance", software: bool = False) -> Any:
    with _translated("no WebGPU adapter"), _quiet():
        found = wgpu.gpu.request_adapter_sync(power_preference=power, force_fallback_adapter=software)
    if found is None:
        raise DeviceError(
            "no WebGPU adapter: install a Vulkan, Metal or DX12 driver (Mesa's llvmpipe, mesa-vulkan-drivers, runs without a GPU)"
        )
    return found


def adapters() -> list[Any]:
    """The adapters, first the one that is opened without a choice. wgpu lists a GPU once for each interface that reaches it: it is
    taken through one of them, and through OpenGL, which computes with half as much, only where there is no other."""
    first = _key(_adapter())
    with _translated("listing WebGPU adapters"), _quiet():
        listed = sorted(wgpu.gpu.enumerate_adapters_sync(), key=lambda adapter: _key(adapter) != first)
    apis: dict[str, str] = {}
    for adapter in listed:
        apis.setdefault(adapter.info["device"], adapter.info["backend_type"])
    found = [a for a in listed if a.info["backend_type"] == apis[a.info["device"]]]
    return [a for a in found if a.info["backend_type"] != _OPENGL] or found


def _key(adapter: Any) -> tuple[Any, ...]:
    """What adapters of one GPU through one interface have in common; two GPUs of one model have it, too."""
    return tuple(adapter.info[name] for name in ("device", "vendor_id", "device_id", "backend_type"))


def _chosen(choice: str) -> tuple[int, Any]:
    """The adapter, and its number, that a choice names: a number, a part of a name, or "low-power". Of one or two digits
    it is a number only: "1" does not mean "NVIDIA H100"."""
    there = adapters()
    if choice == LOW_POWER:
        wanted = _key(_adapter(LOW_POWER))
        matching = [k for k, adapter in enumerate(there) if _key(adapter) == wanted]
    elif choice.isdecimal() and len(choice) < 3:
        matching = [k for k in range(len(there)) if k == int(choice)]
    else:
        matching = [k for k, adapter in enumerate(there) if choice.lower() in adapter.info["device"].lower()]
    if not matching:
        names = ", ".join(f'"webgpu:{k}" ({adapter.info["device"]})' for k, adapter in enumerate(there))
        raise DeviceError(f"no WebGPU adapter {choice!r}; there are {names}")
    return matching[0], there[matching[0]]


@contextmanager
def _quiet() -> Iterator[None]:
    """Drivers complain on standard error if XDG_RUNTIME_DIR is not set; it is not needed here."""
    missing = "XDG_RUNTIME_DIR" not in os.environ
    if missing:
        os.environ["XDG_RUNTIME_DIR"] = "/tmp"
    try:
        yield
    finally:
        if missing:
            del os.environ["XDG_RUNTIME_DIR"]


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Pipeline:
    """wgpu's pipeline, and the layout of its bindings."""

    compute: Any
    layout: Any


class NativeGpu:
    """A wgpu-py device as a Gpu; see memory.Gpu."""

    shares_buffers = False

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self.lost = False
        names = {_NAMES.get(name, name) for name in adapter.features}
        # wgpu lists no features of the language, but has this one.
        self.features: frozenset[str] = frozenset(WGSL.features).intersection(names) | {PACKED_DOTS}
        with _translated("opening the device"):
            self.device = adapter.request_device_sync(
                label="singe",
                required_features=[
                    name for name in adapter.features if _NAMES.get(name, name) in self.features | {_TIMESTAMPS}
                ],
                required_limits={name: adapter.limits[name] for name in _RAISED},
            )
        self.has_timestamps = _TIMESTAMPS in self.device.features
        limits = self.device.limits
        self.limits = Limits(
            limits["max-buffer-size"],
            limits["max-storage-buffer-binding-size"],
            limits["max-compute-workgroups-per-dimension"],
        )
        self._queue = self.device.queue
        self._pipelines: WeakValueDictionary[str, Pipeline] = WeakValueDictionary()
        self._lately: deque[Pipeline] = deque(maxlen=_MAX_UNUSED_PIPELINES)
        self._layouts: dict[tuple[str, ...], tuple[Any, Any]] = {}
        self._fence = self.allocate(MIN_BUFFER_BYTES)
        self._staging: dict[int, list[Any]] = defaultdict(list)

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """wgpu's errors as ours; a loss of the device is noted."""
        try:
            with _translated(what):
                yield
        except DeviceLost:
            self.lost = True
            raise

    def allocate(self, size: int) -> Handle:
        with self._doing(f"allocating {size} bytes"):
            return self.device.create_buffer(size=size, usage=_STORAGE)

    def free(self, buffer: Handle) -> None:
        buffer.destroy()

    def trim(self) -> None:
        for kept in self._staging.values():
            while kept:
                kept.pop().destroy()

    def write(self, buffer: Handle, offset: int, data: np.ndarray) -> None:
        with self._doing("writing a buffer"):
            self._queue.write_buffer(buffer, offset, data)

    def read(self, buffer: Handle, count: int, offset: int = 0) -> np.ndarray:
        whole = -(-count // 4) * 4
        size = size_class(whole)
        with self._doing("reading a buffer"):
            staging = (
                self._staging[size].pop()
                if self._staging[size]
                else self.device.create_buffer(size=size, usage=_STAGING)
            )
            self._submit([Transfer(Binding(buffer, offset, whole), Binding(staging, 0, whole))])
            out = self._copied(staging._internal, whole)[:count]
        if size <= _MAX_KEPT_STAGING_BYTES:
            self._staging[size].append(staging)
        else:
            staging.destroy()
        return out

    def _copied(self, staging: Any, count: int) -> np.ndarray:
        """The first bytes of a staging buffer, once the GPU has filled it."""
        answer: list[tuple[int, str]] = []
        about = _C.new_handle(answer)
        asked = {"mode": _LIB.WGPUCallbackMode_AllowProcessEvents, "callback": _mapped, "userdata1": about}
        with _caught():
            _LIB.wgpuBufferMapAsync(
                staging, wgpu.MapMode.READ, 0, count, _C.new("WGPUBufferMapCallbackInfo *", asked)[0]
            )
            _LIB.wgpuDevicePoll(self.device._internal, True, _NONE)
        status, text = answer[0] if answer else (0, "no answer")
        if status != _LIB.WGPUMapAsyncStatus_Success:
            raise RuntimeError(f"status {status}: {text}")
        mapped = _C.buffer(_LIB.wgpuBufferGetConstMappedRange(staging, 0, count), count)
        out = np.frombuffer(mapped, np.uint8).copy()
        _LIB.wgpuBufferUnmap(staging)
        return out

    def pipelines(self, codes: Sequence[str]) -> list[Handle]:
        made = {code: pipeline for code in codes if (pipeline := self._pipelines.get(code))}
        new = [code for code in dict.fromkeys(codes) if code not in made]
        for code in new:
            self._layout(code)
        # wgpu-py 0.32 cannot create pipelines asynchronously, but it releases the interpreter's lock meanwhile.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            made.update(zip(new, pool.map(self._pipeline, new), strict=True))
        self._pipelines.update(made)
        self._lately.extend(made.values())
        return [made[code] for code in codes]

    def _pipeline(self, code: str) -> Pipeline:
        try:
            module = self.device.create_shader_module(code=code.replace(_NOT_YET, "", 1))
            bind_layout, layout = self._layout(code)
            compute = {"module": module, "entry_point": ENTRY}
            return Pipeline(self.device.create_compute_pipeline(layout=layout, compute=compute), bind_layout)
        except wgpu.GPUError as e:
            if "lost" in str(e).lower():
                self.lost = True
                raise DeviceLost(f"compiling WGSL: {LOST}") from e
            raise DeviceError(f"WGSL does not compile: {e}\n{_blamed(code, str(e))}") from e

    def _layout(self, code: str) -> tuple[Any, Any]:
        """The layout of the bindings that the text declares, whether or not it uses them all."""
        kinds = tuple(_KINDS[kind] for kind in bindings(code))
        if kinds not in self._layouts:
            entries = [
                {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for i, kind in enumerate(kinds)
            ]
            bind_layout = self.device.create_bind_group_layout(entries=entries)
            self._layouts[kinds] = bind_layout, self.device.create_pipeline_layout(bind_group_layouts=[bind_layout])
        return self._layouts[kinds]

    def bind(self, pipeline: Handle, bindings: Sequence[Binding]) -> Handle:
        entries = [
            {"binding": i, "resource": {"buffer": b.buffer, "offset": b.offset, "size": b.bytes}}
            for i, b in enumerate(bindings)
        ]
        with self._doing("binding buffers"):
            return self.device.create_bind_group(layout=pipeline.layout, entries=entries)

    def record(self, commands: Sequence[Command]) -> Sequence[Command]:
        return _Recorded(commands)

    def submit(self, commands: Sequence[Command]) -> None:
        with self._doing("running a program"):
            ahead = None
            if isinstance(commands, _Recorded):
                ahead, commands.ahead = commands.ahead, None  # it can be sent once
            if ahead is not None:
                self._send(ahead)
            else:
                for first in range(0, max(1, len(commands)), _COMMANDS_PER_SUBMIT):
                    self._submit(commands[first : first + _COMMANDS_PER_SUBMIT])
            if isinstance(commands, _Recorded):
                commands.ahead = self._encode(commands) if commands.submitted else None  # while the GPU works
                commands.submitted = True

    def _submit(self, commands: Sequence[Command]) -> None:
        self._send(self._encode(commands))

    def _send(self, encoded: _Encoded) -> None:
        with _caught():
            _LIB.wgpuQueueSubmit(self._queue._internal, 1, _C.new("WGPUCommandBuffer[]", [encoded.buffer]))

    def _encode(self, commands: Sequence[Command]) -> _Encoded:
        with _caught():
            return _Encoded(self._command_buffer(commands))

    def _command_buffer(self, commands: Sequence[Command]) -> Any:
        """A command buffer, owned by the caller."""
        encoder = _LIB.wgpuDeviceCreateCommandEncoder(self.device._internal, _NONE)
        walk = current = None
        for command in (*commands, None):
            if isinstance(command, Launch):
                if walk is None:
                    walk, current = _LIB.wgpuCommandEncoderBeginComputePass(encoder, _NONE), None
                if current is not command.pipeline:
                    current = command.pipeline
                    _LIB.wgpuComputePassEncoderSetPipeline(walk, current.compute._internal)
                _LIB.wgpuComputePassEncoderSetBindGroup(walk, 0, command.bindings._internal, 0, _NONE)
                _LIB.wgpuComputePassEncoderDispatchWorkgroups(walk, *command.groups)
                continue
            if walk is not None:
                _LIB.wgpuComputePassEncoderEnd(walk)
                _LIB.wgpuComputePassEncoderRelease(walk)
                walk = None
            if command is not None:
                source, target = command.source, command.target
                places = source.buffer._internal, source.offset, target.buffer._internal, target.offset
                _LIB.wgpuCommandEncoderCopyBufferToBuffer(encoder, *places, source.bytes)
        encoded = _LIB.wgpuCommandEncoderFinish(encoder, _NONE)
        _LIB.wgpuCommandEncoderRelease(encoder)
        return encoded

    def timed(self, commands: Sequence[Command]) -> Timed:
        return self._by_timestamps(commands) if self.has_timestamps else self._one_by_one(commands)

    def _by_timestamps(self, commands: Sequence[Command]) -> Timed:
        """Each command with a timestamp before and one after it, a dispatch in a pass of its own."""
        with self._doing("timing a program"):
            # Every query must be written: NVIDIA's driver waits for each query that is resolved.
            sets = [
                self.device.create_query_set(type="timestamp", count=min(_MAX_QUERIES, 2 * len(commands) - first))
                for first in range(0, 2 * len(commands), _MAX_QUERIES)
            ]
            start = time.perf_counter()
            encoder = self.device.create_command_encoder()
            for number, command in enumerate(commands):
                queries, at = sets[2 * number // _MAX_QUERIES], 2 * number % _MAX_QUERIES
                before = {"query_set": queries, "beginning_of_pass_write_index": at}
                after = {"query_set": queries, "end_of_pass_write_index": at + 1}
                if isinstance(command, Launch):
                    walk = encoder.begin_compute_pass(timestamp_writes={**before, **after})
                    walk.set_pipeline(command.pipeline.compute)
                    walk.set_bind_group(0, command.bindings)
                    walk.dispatch_workgroups(*command.groups)
                    walk.end()
                    continue
                # A copy is outside of passes: empty passes before and after it write the timestamps.
                encoder.begin_compute_pass(timestamp_writes=before).end()
                source, target = command.source, command.target
                encoder.copy_buffer_to_buffer(source.buffer, source.offset, target.buffer, target.offset, source.bytes)
                encoder.begin_compute_pass(timestamp_writes=after).end()
            self._queue.submit([encoder.finish()])
            self.wait()
            seconds = time.perf_counter() - start
            ticks = np.concatenate([np.zeros((0, 2), np.uint64), *map(self._resolved, sets)])
        # wgpu-py has no method for this.
        period = _LIB.wgpuQueueGetTimestampPeriod(self._queue._internal) * 1e-9
        times = (ticks - ticks[:1, :1]).view(np.int64) * period
        spans = [(max(0.0, begin), max(0.0, end - begin), 0.0) for begin, end in times.tolist()]
        return Timed(seconds, spans, "the GPU's timestamps, from the first dispatch on")

    def _resolved(self, queries: Any) -> np.ndarray:
        """The ticks of a query set, in pairs."""
        count = 8 * queries.count
        room = self.device.create_buffer(size=count, usage=wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC)
        encoder = self.device.create_command_encoder()
        encoder.resolve_query_set(queries, 0, queries.count, room, 0)
        self._queue.submit([encoder.finish()])
        ticks = self.read(room, count).view(np.uint64).reshape(-1, 2)
        room.destroy()
        return ticks

    def _one_by_one(self, commands: Sequence[Command]) -> Timed:
        """Submit each command alone and wait for it."""
        self.wait()
        probes = []
        for _ in range(_SUBMITS_TO_TIME):
            start = time.perf_counter()
            self.submit([])
            self.wait()
            probes.append(time.perf_counter() - start)
        cost = statistics.median(probes)
        start = time.perf_counter()
        spans = []
        for command in commands:
            begin = time.perf_counter()
            self.submit([command])
            self.wait()
            taken = time.perf_counter() - begin
            spans.append((begin - start, taken - min(cost, taken), min(cost, taken)))
        return Timed(
            time.perf_counter() - start, spans, "wall clock around each dispatch, less that of an empty submit"
        )

    def wait(self) -> None:
        # The queue runs in order, so reading is waiting (wgpu-py 0.32's on_submitted_work_done raises a TypeError).
        self.read(self._fence, 4)

    @property
    def label(self) -> str:
        """The adapter and its driver: the key under which measurements are kept."""
        info = self._adapter.info
        return ", ".join(str(info[k]) for k in ("device", "description", "backend_type") if info[k])

    def describe(self) -> Mapping[str, Any]:
        info = self._adapter.info
        return {
            "adapter": info["device"],
            "vendor": info["vendor"],
            "type": info["adapter_type"],
            "software": info["adapter_type"] == "CPU",
            "api": info["backend_type"],
            "features": sorted(self.features),
            "limits": {"buffer": self.limits.buffer, "binding": self.limits.binding, "workgroups": self.limits.groups},
        }

    def destroy(self) -> None:
        self._pipelines.clear()
        self.device.destroy()


def _blamed(code: str, message: str) -> str:
    """The line of the text that a compiler's message points at."""
    found = re.search(r"(?:wgsl|shader)[^\n]*?:(\d+):\d+", message)
    lines = code.splitlines()
    return f"line {found[1]}: {lines[int(found[1]) - 1]}" if found and int(found[1]) <= len(lines) else ""
