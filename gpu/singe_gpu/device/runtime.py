"""A backend over any Gpu: arrays, and executables, which keep a Recording (recording.py) for each of the last
few sets of input shapes."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from singe.extension import (
    DeviceError,
    HostArray,
    InputError,
    Memory,
    MemoryUse,
    ProgramData,
    Recent,
    Span,
    Timeline,
    check_donated,
    choose_variant,
    known,
    string,
)
from singe.extension import dtype as dtype_of

from ..target import GpuTarget
from .memory import Binding, Command, Gpu, Transfer, from_device, to_device
from .pool import GpuArray, Pool, SlotBuffers
from .recording import Extents, Kernels, Recording, Send, UploadedWeights, Uploads

MAX_RECORDINGS: Final = 32
"""How many sets of commands an executable remembers, and of input shapes: a conversation has one for each part of its context."""
NO_CLOCK: Final = "nothing ran on the device"


class GpuRuntime:
    """A backend over any Gpu; see runtime/backend.Backend."""

    def __init__(self, name: str, gpu: Gpu, target: GpuTarget) -> None:
        self.name = name
        self.gpu = gpu
        self.target = target
        self.pool = Pool(gpu)
        self.uploads = Uploads(self.pool)
        self.executables: WeakSet[GpuExecutable] = WeakSet()
        self.runs = 0
        """The runs that have begun and not ended: a step on the host may call anything."""

    @property
    def lost(self) -> bool:
        return self.gpu.lost

    def upload(self, array: np.ndarray) -> GpuArray | HostArray:
        array = np.asarray(array)
        dtype = dtype_of(array.dtype)
        if dtype is string:
            return HostArray(array.copy(), dtype)
        out = GpuArray(self.pool, array.shape, dtype, self.target.element_size(dtype))
        if array.size:
            self.gpu.write(out.piece.buffer, out.piece.offset, to_device(array, out.element_size))
        return out

    def download(self, array: GpuArray | HostArray) -> np.ndarray:
        if isinstance(array, HostArray):
            return array.data.copy()
        piece = array.piece
        raw = self.gpu.read(piece.buffer, array.bytes, piece.offset) if array.bytes else np.zeros(0, np.uint8)
        return from_device(raw, array.shape, array.dtype, array.element_size)

    def prepare(self, program: ProgramData) -> GpuExecutable:
        if program.target != self.target.name:
            raise DeviceError(
                f"the {self.name} backend runs programs of the target {self.target.name!r}, this one is for {program.target!r}; "
                "compile it again"
            )
        self.pool.reclaim()
        return GpuExecutable(self, program)

    def synchronize(self) -> None:
        self.gpu.wait()

    def describe(self) -> Mapping[str, Any]:
        self.pool.reclaim()
        return {"backend": self.name, **self.gpu.describe(), "pool_bytes": self.pool.reserved}

    def configure(self, memory: Memory) -> None:
        self.pool.configure(memory)

    def memory(self) -> MemoryUse:
        return self.pool.use()

    def clean(self) -> None:
        for executable in self.executables if not self.runs else ():
            executable.rest()
        self.pool.clean()

    def reset_peak(self) -> None:
        self.pool.reset_peak()

    def dispose(self) -> None:
        self.pool.close()
        self.gpu.destroy()


class GpuExecutable:
    """A Program on a device: pipelines built, weights uploaded; see runtime/backend.Executable."""

    def __init__(self, backend: GpuRuntime, program: ProgramData) -> None:
        self.program = program
        self.backend = backend
        gpu = backend.gpu
        variants = [choose_variant(code, gpu.features) for code in program.kernels]
        codes = [str(program.modules[v.entry]) for v in variants]
        self.kernels = Kernels(
            variants, gpu.pipelines(codes), [backend.target.dialect.bindings(code) for code in codes]
        )
        self.weights = UploadedWeights(backend.pool, backend.uploads, program)
        self._slots = SlotBuffers(backend.pool)
        self._sizes: Recent[Mapping[str, int]] = Recent(MAX_RECORDINGS)
        self._extents: dict[int, Extents] = {}  # the identity of a part of the Program ↦ its extents
        self._recordings: Recent[Recording] = Recent(MAX_RECORDINGS, Recording.close)
        self._states: WeakSet[GpuArray] = WeakSet()
        self._finalizer = weakref.finalize(self, _close, self._recordings, self._slots, self.weights)
        self._finalizer.atexit = False
        backend.executables.add(self)

    def run(
        self, inputs: Sequence[GpuArray | HostArray], states: Sequence[GpuArray] = ()
    ) -> list[GpuArray | HostArray]:
        gpu = self.backend.gpu
        check_donated(self.program, inputs)
        return self._run(self._recording(inputs, states), inputs, states, lambda commands, _: gpu.submit(commands))

    def _run(
        self, recording: Recording, inputs: Sequence[GpuArray | HostArray], states: Sequence[GpuArray], send: Send
    ) -> list[GpuArray | HostArray]:
        self.backend.runs += 1
        try:
            return recording.run(inputs, states, send)
        finally:
            self.backend.runs -= 1

    def profile(self, inputs: Sequence[GpuArray | HostArray], states: Sequence[GpuArray] = ()) -> Timeline:
        start = time.perf_counter()
        recording = self._recording(inputs, states)
        spans: list[Span] = []
        clocks: list[str] = []
        end = start

        def send(commands: Sequence[Command], groups: Sequence[int]) -> None:
            nonlocal end
            begun = time.perf_counter()
            timed = self.backend.gpu.timed(commands)
            clocks.append(timed.clock)
            spans.extend(
                Span(at, begun - start + begin, seconds, overhead)
                for at, (begin, seconds, overhead) in zip(groups, timed.commands, strict=True)
            )
            end = begun + timed.seconds

        outputs = self._run(recording, inputs, states, send)
        seconds = end - start if recording.plan.is_straight else time.perf_counter() - start
        return Timeline(outputs, seconds, tuple(spans), clocks[0] if clocks else NO_CLOCK, dict(recording.plan.sizes))

    def new_states(self) -> list[GpuArray]:
        """The arrays of a new session, with their initial values."""
        self._check_held()
        program, gpu = self.program, self.backend.gpu
        made = []
        for state in program.states:
            b = program.buffers[state.buffer]
            array = GpuArray(self.backend.pool, tuple(known(d, {}) for d in b.shape), b.dtype, b.size, "states")
            piece = array.piece
            count = -(-array.bytes // 4) * 4
            if not count:
                pass
            elif state.initial is None:
                gpu.write(piece.buffer, piece.offset, np.zeros(count, np.uint8))
            else:
                source = self.weights.binding(program.buffers[state.initial].place[1], count)
                gpu.submit([Transfer(source, Binding(piece.buffer, piece.offset, count))])
            made.append(array)
        self._states.update(made)
        return made

    def memory(self) -> Mapping[str, int]:
        """`scratch` counts slots, `states` the arrays of all sessions."""
        return {
            "weights": self.weights.bytes,
            "shared": self.weights.shared,
            "scratch": self._slots.bytes,
            "states": sum(x.bytes for x in self._states),
        }

    def _check_held(self) -> None:
        if not self._finalizer.alive:
            raise DeviceError(f"{self.backend.name}: this program was disposed of; compile or load it again")

    def rest(self) -> None:
        """Let go of scratch memory, which the next run takes again."""
        self._recordings.clear()
        self._slots.close()

    def dispose(self) -> None:
        self._finalizer()
        self.backend.pool.reclaim()

    def _recording(self, inputs: Sequence[GpuArray | HostArray], states: Sequence[GpuArray]) -> Recording:
        self._check_held()
        shapes, kinds = tuple(a.shape for a in inputs), tuple(a.dtype for a in inputs)
        if len(states) != len(self.program.states):
            raise InputError(f"the program has {len(self.program.states)} states, got {len(states)}: see new_states()")

        sizes = self._sizes.at((shapes, kinds), lambda: self.program.bound(shapes, kinds))
        program = self.program.at(sizes)
        extents = self._extents.get(id(program))
        if extents is None:
            extents = self._extents[id(program)] = Extents(program, self.kernels.variants)

        def made() -> Recording:
            counts = program.slot_bytes(sizes)
            if not self._slots.fit(counts):
                self._recordings.clear()  # their commands name the slots that are replaced
                for number, count in enumerate(counts):
                    self._slots.grow(number, count)
            return Recording(self.backend.pool, self._slots, self.kernels, self.weights, program, sizes)

        found = self._recordings.at((id(program), kinds, extents.at(sizes)), made)
        found.resize(sizes)
        return found


def _close(recordings: Recent[Recording], slots: SlotBuffers, weights: UploadedWeights) -> None:
    recordings.clear()
    slots.close()
    weights.close()
