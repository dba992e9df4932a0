"""The backend "webgpu" over any Gpu: arrays, executables, and the commands of a run at given sizes.

An Executable keeps a Plan for each of the last few sets of input shapes: slots with their buffers, sizes in one uniform
buffer, and the commands of a run. Bind groups with inputs or outputs are kept per set of buffers. Since the pool reuses
buffers, a Program that runs in a loop creates no new bind groups.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from singe.extension import (
    Buffer,
    Code,
    Copy,
    DeviceError,
    Dispatch,
    DType,
    ProgramData,
    Recent,
    Span,
    Timeline,
    align,
    bytes_text,
    choose_variant,
    known,
)
from singe.extension import dtype as dtype_of

from .memory import LEAST, Binding, Command, Gpu, GpuArray, Handle, Launch, Pool, Transfer, from_device, to_device
from .module import bindings, element_size
from .target import WgslTarget

PLANS: Final = 4
"""How many sets of input shapes an executable remembers."""
BOUND: Final = 8
"""For how many sets of input and output buffers a plan remembers its bind groups."""

Place: TypeAlias = tuple[str, int]


class WebGpuRuntime:
    """A backend over any Gpu; see runtime/backend.Backend."""

    name: str = "webgpu"

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.pool = Pool(gpu)
        self.target = WgslTarget()

    def upload(self, array: np.ndarray) -> GpuArray:
        array = np.asarray(array)
        dtype = dtype_of(array.dtype)
        out = GpuArray(self.pool, array.shape, dtype, element_size(dtype))
        if array.size:
            self.gpu.write(out.buffer, 0, to_device(array, dtype, out.element_size))
        return out

    def download(self, array: GpuArray) -> np.ndarray:
        raw = self.gpu.read(array.buffer, array.bytes) if array.bytes else np.zeros(0, np.uint8)
        return from_device(raw, array.shape, array.dtype, array.element_size)

    def prepare(self, program: ProgramData) -> GpuExecutable:
        if program.target != self.target.name:
            raise DeviceError(
                f"the webgpu backend runs programs of the target 'wgsl', this one is for {program.target!r}; compile it again"
            )
        return GpuExecutable(self, program)

    def synchronize(self) -> None:
        self.gpu.wait()

    def describe(self) -> Mapping[str, Any]:
        return {"backend": self.name, **self.gpu.describe(), "pool_bytes": self.pool.bytes}

    def dispose(self) -> None:
        self.pool.close()
        self.gpu.destroy()


class GpuExecutable:
    """A Program on a device: pipelines built, weights uploaded; see runtime/backend.Executable."""

    def __init__(self, backend: WebGpuRuntime, program: ProgramData) -> None:
        self.program = program
        self.backend = backend
        gpu = backend.gpu
        self.variants = [choose_variant(code, gpu.features) for code in program.kernels]
        codes = [str(program.modules[v.entry]) for v in self.variants]
        self.pipelines = gpu.pipelines(codes)
        self.access = [bindings(code) for code in codes]
        self.weights = _Weights(gpu, program)
        self._plans: Recent[_Plan] = Recent(PLANS, _Plan.close)
        self.dispose = weakref.finalize(self, _close, self._plans, self.weights)
        self.dispose.atexit = False

    def run(self, inputs: Sequence[GpuArray]) -> list[GpuArray]:
        _, commands, outputs = self._ready(inputs)
        self.backend.gpu.submit(commands)
        return outputs

    def profile(self, inputs: Sequence[GpuArray]) -> Timeline:
        start = time.perf_counter()
        plan, commands, outputs = self._ready(inputs)
        ready = time.perf_counter() - start
        timed = self.backend.gpu.timed(commands)
        spans = tuple(
            Span(step, ready + begin, seconds, overhead)
            for step, (begin, seconds, overhead) in zip(plan.step_numbers, timed.commands, strict=True)
        )
        return Timeline(outputs, ready + timed.seconds, spans, timed.clock)

    def _ready(self, inputs: Sequence[GpuArray]) -> tuple[_Plan, Sequence[Command], list[GpuArray]]:
        """The plan of a run over checked inputs, its commands, and the outputs that they write."""
        program = self.program
        buffers = program.buffers
        plan = self._plan(tuple(a.shape for a in inputs), tuple(a.dtype for a in inputs))
        outputs = [
            GpuArray(self.backend.pool, shape, buffers[number].dtype, buffers[number].size)
            for number, shape in zip(program.outputs, plan.output_shapes, strict=True)
        ]
        return plan, plan.commands([a.buffer for a in inputs], [a.buffer for a in outputs]), outputs

    def memory(self) -> Mapping[str, int]:
        return {"weights": self.weights.bytes, "scratch": sum(p.scratch for p in self._plans)}

    def _plan(self, shapes: tuple[tuple[int, ...], ...], kinds: tuple[DType, ...]) -> _Plan:
        def made() -> _Plan:
            sizes = self.program.bound(shapes, kinds)
            self._plans.make_room()  # so that the new plan can use its scratch memory
            return _Plan(self, sizes)

        return self._plans.at((shapes, kinds), made)


def _close(plans: Recent[_Plan], weights: _Weights) -> None:
    plans.clear()
    weights.close()


class _Weights:
    """The weights of a program: one buffer, or several if the device's limit requires it; a weight is never split."""

    def __init__(self, gpu: Gpu, program: ProgramData) -> None:
        self._gpu = gpu
        self._starts: list[int] = []
        self._parts: list[Handle] = []
        self._place: dict[int, tuple[int, int]] = {}
        self.bytes = 0
        placed = {(b.place[1], align(known(b.bytes, {}))): b for b in program.buffers if b.place[0] == "weights"}
        spans: list[list[int]] = []
        for offset, count in sorted(placed):
            if count > gpu.limits.buffer:
                b = placed[offset, count]
                raise DeviceError(
                    f"the weight {b.name!r} takes {count} bytes, a buffer of this device holds at most {gpu.limits.buffer}"
                )
            if not spans or offset + count - spans[-1][0] > gpu.limits.buffer:
                spans.append([offset, offset])
            spans[-1][1] = max(spans[-1][1], offset + count)
            self._place[offset] = (len(spans) - 1, offset - spans[-1][0])
        for start, end in spans:
            size = max(end - start, LEAST)
            part = gpu.allocate(size)
            self._parts.append(part)
            self.bytes += size
            data = program.weights[start:end]
            whole = data[: data.size // 4 * 4]
            if whole.size:
                gpu.write(part, 0, whole)
            if whole.size < data.size:
                gpu.write(part, whole.size, np.concatenate([data[whole.size :], np.zeros(4 - data.size % 4, np.uint8)]))

    def binding(self, offset: int, count: int) -> Binding:
        part, start = self._place[offset]
        return Binding(self._parts[part], start, count)

    def close(self) -> None:
        for part in self._parts:
            self._gpu.free(part)
        self._parts = []
        self.bytes = 0


@dataclass(frozen=True)
class _Range:
    """A buffer of the program at known sizes: its place, and how many bytes of it are used."""

    place: Place
    bytes: int

    @property
    def moves(self) -> bool:
        """Whether it may be another GPU buffer in each run."""
        return self.place[0] in ("input", "output")


@dataclass(frozen=True)
class _Dispatch:
    pipeline: Handle
    ranges: tuple[_Range, ...]
    sizes: Binding | None
    groups: tuple[int, int, int]
    step: int


@dataclass(frozen=True)
class _Move:
    source: _Range
    target: _Range
    step: int | None  # None: not a step of the program, but a copy to an output from its place


class _Plan:
    """The commands of a program at known sizes."""

    def __init__(self, executable: GpuExecutable, sizes: Mapping[str, int]) -> None:
        program = executable.program
        self._gpu = executable.backend.gpu
        self._pool = executable.backend.pool
        self._weights = executable.weights
        self._slot_bytes = program.slot_bytes(sizes)
        self._slots = [
            self._pool.take(count, f"slot {i} of the scratch memory") for i, count in enumerate(self._slot_bytes)
        ]
        self._bound: Recent[tuple[list[Command], list[Handle]]] = Recent(BOUND)
        self._static: dict[int, Handle] = {}
        self.scratch = sum(self._slot_bytes)
        self.output_shapes = [tuple(known(d, sizes) for d in program.buffers[i].shape) for i in program.outputs]
        self._ranges = [_Range(b.place, known(b.bytes, sizes)) for b in program.buffers]
        self._uniforms, at = self._write_sizes(executable, sizes)
        self._steps = self._resolve(executable, sizes, at)
        self.step_numbers = [step.step for step in self._steps]

    def _write_sizes(
        self, executable: GpuExecutable, sizes: Mapping[str, int]
    ) -> tuple[Handle | None, dict[int, Binding]]:
        """One uniform buffer with the sizes of all kernels that use any, and each kernel's part of it."""
        program = executable.program
        rows: dict[tuple[int, ...], int] = {}
        where: dict[int, int] = {}
        offset = 0
        for number, code in enumerate(program.kernels):
            if code.sizes and "uniform" in executable.access[number]:
                row = tuple(known(d, sizes) for d in code.sizes)
                if row not in rows:
                    rows[row] = offset
                    offset += align(16 * -(-len(row) // 4))
                where[number] = rows[row]
        if not rows:
            return None, {}
        data = np.zeros(offset // 4, np.int32)
        for row, start in rows.items():
            data[start // 4 : start // 4 + len(row)] = row
        buffer = self._gpu.allocate(max(offset, LEAST))
        self._gpu.write(buffer, 0, data.view(np.uint8))
        counts = {n: 16 * -(-len(program.kernels[n].sizes) // 4) for n in where}
        return buffer, {n: Binding(buffer, start, counts[n]) for n, start in where.items()}

    def _resolve(
        self, executable: GpuExecutable, sizes: Mapping[str, int], at: Mapping[int, Binding]
    ) -> list[_Dispatch | _Move]:
        program = executable.program
        steps: list[_Dispatch | _Move] = []
        for count, step in enumerate(program.steps):
            if isinstance(step, Dispatch):
                code = program.kernels[step.kernel]
                groups = spread(
                    [known(d, sizes) for d in executable.variants[step.kernel].groups],
                    self._gpu.limits.groups,
                    code.label,
                )
                if 0 in groups:
                    continue
                ranges = tuple(self._bindable(program.buffers[i], self._ranges[i], code) for i in step.buffers)
                _no_aliases(ranges, executable.access[step.kernel], code)
                steps.append(_Dispatch(executable.pipelines[step.kernel], ranges, at.get(step.kernel), groups, count))
            elif isinstance(step, Copy):
                if self._ranges[step.source].bytes:
                    steps.append(_Move(self._ranges[step.source], self._ranges[step.target], count))
            else:
                raise DeviceError(
                    f"the webgpu backend does not yet run {type(step).__name__.lower()} steps; run this model on numpy"
                )
        for number, i in enumerate(program.outputs):
            if self._ranges[i].place != ("output", number) and self._ranges[i].bytes:
                steps.append(_Move(self._ranges[i], _Range(("output", number), self._ranges[i].bytes), None))
        return steps

    def _bindable(self, buffer: Buffer, found: _Range, code: Code) -> _Range:
        if found.bytes > self._gpu.limits.binding:
            limit = self._gpu.limits.binding
            raise DeviceError(
                f"kernel {code.label!r} binds {buffer.name!r} with {found.bytes} bytes ({bytes_text(found.bytes)}), "
                f"this device binds at most {limit} ({bytes_text(limit)})"
            )
        return found

    def commands(self, inputs: Sequence[Handle], outputs: Sequence[Handle]) -> Sequence[Command]:
        """The commands of a run over these buffers."""
        buffers = [*inputs, *outputs]
        # The buffers are kept with the commands, so that their ids are not reused.
        return self._bound.at(tuple(map(id, buffers)), lambda: (self._bind(inputs, outputs), buffers))[0]

    def _bind(self, inputs: Sequence[Handle], outputs: Sequence[Handle]) -> list[Command]:
        def binding(r: _Range) -> Binding:
            kind, at = r.place
            count = max(16, -(-r.bytes // 4) * 4)
            if kind == "weights":
                return self._weights.binding(at, count)
            owner = self._slots if kind == "slot" else inputs if kind == "input" else outputs
            return Binding(owner[at], 0, count)

        commands: list[Command] = []
        for number, step in enumerate(self._steps):
            if isinstance(step, _Move):
                source, target = binding(step.source), binding(step.target)
                commands.append(Transfer(source, target))
                continue
            group = self._static.get(number)
            if group is None:
                extra = [] if step.sizes is None else [step.sizes]
                group = self._gpu.bind(step.pipeline, [*map(binding, step.ranges), *extra])
                if not any(r.moves for r in step.ranges):
                    self._static[number] = group
            commands.append(Launch(step.pipeline, group, step.groups))
        return commands

    def close(self) -> None:
        for slot, count in zip(self._slots, self._slot_bytes, strict=True):
            self._pool.give(slot, count)
        if self._uniforms is not None:
            self._gpu.free(self._uniforms)
        self._bound.clear()
        self._static.clear()


def _no_aliases(ranges: Sequence[_Range], access: Sequence[str], code: Code) -> None:
    """WebGPU rejects a dispatch that reads and writes one buffer through two bindings."""
    written = [r.place for r, kind in zip(ranges, access, strict=False) if kind == "storage, read_write"]
    places = [r.place for r in ranges if r.place[0] != "weights"]
    twice = [place for place in written if places.count(place) > 1]
    if twice:
        place = " ".join(map(str, twice[0]))
        raise DeviceError(
            f"kernel {code.label!r} is given {place} to read and to write; WebGPU needs two buffers: plan without in-place steps"
        )


def spread(groups: Sequence[int], limit: int, label: str) -> tuple[int, int, int]:
    """The workgroups of a dispatch; x is spread over x and y if it exceeds the device's limit."""
    x, y, z = groups
    if x > limit and y == 1:
        y = -(-x // limit)
        x = -(-x // y)
    if max(x, y, z) > limit:
        raise DeviceError(
            f"kernel {label!r} needs {groups[0]} × {groups[1]} × {groups[2]} workgroups, this device runs at most {limit} in each direction"
        )
    return x, y, z
