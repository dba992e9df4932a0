"""The backend "webgpu" under Pyodide: Programs of WgslTarget run by Singe's JavaScript runner (static/python).

Nothing blocks: uploads, runs and pipeline creation are queued in order, and Python continues. Arrays stay on the GPU
between Programs. Only reading an array waits; an error in any step that led to it is raised there.
"""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from pyodide.ffi import create_proxy, to_js  # pyright: ignore[reportMissingImports]

from singe.extension import (
    DeviceError,
    DType,
    InputError,
    Memory,
    MemoryUse,
    ProgramData,
    Recent,
    alone,
    beyond_scripts,
    check_donated,
    device_error,
    dtype,
    header,
    js_errors,
    known,
    resolve_async,
    scripts,
    string,
    symbols,
)
from singe_gpu.device.memory import from_device, to_device

from ..target import WgslTarget

MAX_SHAPE_SETS: Final = 64
"""How many sets of input shapes an executable remembers."""
_JS_ERRORS: Final = js_errors()


LOW_POWER: Final = "low-power"


async def open_backend(choice: str = "") -> BrowserBackend:
    """The backend on the page's high-performance adapter, or the one of low power: a page has no list of its adapters."""
    if choice not in ("", LOW_POWER):
        raise DeviceError(f'no WebGPU adapter {choice!r}: a page has "webgpu" and "webgpu:{LOW_POWER}"')
    found = await resolve_async(scripts())
    try:
        return BrowserBackend(await (found.openGpu(choice) if choice else found.openGpu()), choice)
    except _JS_ERRORS as e:
        raise device_error(e, "no WebGPU in this page") from None


class BrowserArray:
    """A tensor's elements in a GPU buffer, which may still be under construction; freed with the last reference."""

    def __init__(self, backend: BrowserBackend, held: Any, shape: tuple[int, ...], kind: DType, size: int) -> None:
        self.backend: Final = backend
        self.held: Final = held
        self.shape: Final = shape
        self.dtype: Final = kind
        self.element_size: Final = size
        self.bytes: Final = math.prod(shape) * size
        backend.arrays.add(self)
        weakref.finalize(self, backend.gpu.free, held).atexit = False


class BrowserBackend:
    """See the module's docstring, and runtime/backend.py."""

    def __init__(self, gpu: Any, choice: str = "") -> None:
        self.name: Final = f"webgpu:{choice}" if choice else "webgpu"
        self.gpu: Final = gpu
        self.target: Final = WgslTarget()
        self.arrays: Final[weakref.WeakSet[BrowserArray]] = weakref.WeakSet()
        self.executables: Final[weakref.WeakSet[BrowserExecutable]] = weakref.WeakSet()

    @property
    def lost(self) -> bool:
        return bool(self.gpu.lost)

    def upload(self, array: np.ndarray) -> BrowserArray:
        kind = dtype(array.dtype)
        if kind is string:
            raise DeviceError("webgpu: singe.js, which runs a page's GPU, has no strings: use the device wasm or numpy")
        return self._upload(np.asarray(array), kind, self.target.element_size(kind))

    def _upload(self, array: np.ndarray, kind: DType, size: int) -> BrowserArray:
        try:
            held = self.gpu.upload(to_js(to_device(array, size)))
        except _JS_ERRORS as e:
            raise device_error(e, f"webgpu: an array of shape {array.shape} cannot be held") from None
        return BrowserArray(self, held, array.shape, kind, size)

    async def download(self, array: Any) -> np.ndarray:
        own = self.own(array, "the array")
        raw = np.empty(own.bytes, np.uint8)
        if own.bytes:
            try:
                (await self.gpu.read(own.held, own.bytes)).assign_to(raw)
            except _JS_ERRORS as e:
                raise device_error(e, "webgpu: elements cannot be read") from None
        return from_device(raw, own.shape, own.dtype, own.element_size)

    def own(self, array: Any, what: str) -> BrowserArray:
        if not isinstance(array, BrowserArray) or array.backend is not self:
            raise DeviceError(
                f"webgpu: {what} is a {type(array).__name__}, expected an array of this device; upload it first"
            )
        return array

    def prepare(self, program: ProgramData) -> BrowserExecutable:
        if program.target != self.target.name:
            raise DeviceError(f"webgpu: the program was compiled for {program.target!r}; compile it for 'wgsl'")
        beyond = beyond_scripts(program)
        if beyond:
            raise DeviceError(f"webgpu: {beyond}: use the device wasm or numpy")
        return BrowserExecutable(self, program)

    async def synchronize(self) -> None:
        try:
            await self.gpu.wait()
        except _JS_ERRORS as e:
            raise device_error(e, "webgpu: waiting for the device") from None

    def describe(self) -> Mapping[str, Any]:
        return {"backend": self.name, **json.loads(self.gpu.describe())}

    def memory(self) -> MemoryUse:
        """What Python holds. How much the scripts take for it, they do not say."""
        programs = [e.memory() for e in self.executables if e.dispose.alive]
        arrays = sum(x.bytes for x in self.arrays)
        return MemoryUse(in_use=arrays + sum(held["weights"] + held["scratch"] for held in programs))

    def configure(self, memory: Memory) -> None:
        raise DeviceError(
            f"{self.name}: singe.js, which runs a page's GPU, takes memory in its own way; leave memory= out"
        )

    def dispose(self) -> None:
        self.gpu.dispose()


class BrowserExecutable:
    """A Program prepared by the JavaScript runner; see runtime/backend.DirectExecutable."""

    def __init__(self, backend: BrowserBackend, program: ProgramData) -> None:
        program = alone(program)  # the page's runner takes one block of weights
        self.program: Final = program
        self.backend: Final = backend
        self._buffers: Final = [program.buffers[i] for i in program.inputs]
        self._sizes: Final[Recent[tuple[str, list[tuple[int, ...] | None]]]] = Recent(MAX_SHAPE_SETS)
        self._states: Final[weakref.WeakSet[BrowserArray]] = weakref.WeakSet()
        weights = create_proxy(program.weights)
        texts = json.dumps({name: code for name, code in program.modules.items() if isinstance(code, str)})
        self._runner: Final = backend.gpu.prepare(json.dumps(header(program)), texts, weights, program.weights.size)
        self.dispose = weakref.finalize(self, self._runner.dispose)
        self.dispose.atexit = False
        backend.executables.add(self)

    def run(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> list[BrowserArray]:
        given = [self.backend.own(x, f"input {k}") for k, x in enumerate(inputs)]
        sizes, shapes = self._sized([x.shape for x in given], [x.dtype for x in given])
        stored = zip(given, self._buffers, strict=True)
        faults = [b.name for x, b in stored if x.element_size != b.size]
        if faults:
            raise InputError(
                f"input {faults[0]!r} is stored in another form than this program expects; compile it for this device"
            )
        buffers = [self.program.buffers[i] for i in self.program.outputs]
        known_shapes = [shape for shape in shapes if shape is not None]
        if len(known_shapes) < len(shapes):
            raise DeviceError(
                f"webgpu: the shape of the output {buffers[shapes.index(None)].name!r} is known only after a run, which a page "
                "cannot wait for; use run_async with NumPy arrays"
            )
        check_donated(self.program, given)
        made = self._runner.run(to_js([x.held for x in given]), sizes, self._held(states))
        donated = self.program.donated
        return [
            given[donated[k]] if k in donated else BrowserArray(self.backend, held, shape, b.dtype, b.size)
            for k, (held, shape, b) in enumerate(zip(made, known_shapes, buffers, strict=True))
        ]

    def new_states(self) -> list[BrowserArray]:
        """The arrays of a new session, with their initial values."""
        self._check_held()
        made = []
        for state in self.program.states:
            b = self.program.buffers[state.buffer]
            raw = np.zeros(-(-known(b.bytes, {}) // 4) * 4, np.uint8)
            if state.initial is not None:
                first = self.program.view(self.program.buffers[state.initial])
                raw[: first.size] = first
            shape = tuple(known(d, {}) for d in b.shape)
            made.append(BrowserArray(self.backend, self.backend.gpu.upload(to_js(raw)), shape, b.dtype, b.size))
        self._states.update(made)
        return made

    def _check_held(self) -> None:
        if not self.dispose.alive:
            raise DeviceError("webgpu: this program was disposed of; compile or load it again")

    def _held(self, states: Sequence[Any]) -> Any:
        """The buffers of a session, for the runner."""
        self._check_held()
        if len(states) != len(self.program.states):
            raise InputError(f"the program has {len(self.program.states)} states, got {len(states)}; see new_states()")
        return to_js([self.backend.own(x, f"state {k}").held for k, x in enumerate(states)])

    async def call(self, inputs: Sequence[np.ndarray], states: Sequence[Any] = ()) -> list[np.ndarray]:
        sizes, shapes = self._sized([x.shape for x in inputs], [dtype(x.dtype) for x in inputs])
        given = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in inputs]
        try:
            made = await self._runner.call(to_js(given), sizes, self._held(states))
        except _JS_ERRORS as e:
            raise device_error(e, "webgpu: the run failed") from None
        outputs = []
        for raw, shape, i in zip(made, shapes, self.program.outputs, strict=True):
            found = tuple(json.loads(raw.shape)) if shape is None else shape
            out = np.empty(found, self.program.buffers[i].dtype.numpy)
            if out.nbytes:
                raw.assign_to(out.reshape(-1).view(np.uint8))
            outputs.append(out)
        return outputs

    def _sized(
        self, shapes: Sequence[tuple[int, ...]], kinds: Sequence[DType]
    ) -> tuple[str, list[tuple[int, ...] | None]]:
        """The sizes implied by the inputs' shapes, as JSON, and the shapes of the outputs: None where a run finds them."""

        def found() -> tuple[str, list[tuple[int, ...] | None]]:
            sizes = self.program.bound(shapes, kinds)
            outputs = [self.program.buffers[i].shape for i in self.program.outputs]
            return json.dumps(sizes), [
                tuple(known(d, sizes) for d in shape) if symbols(shape) <= sizes.keys() else None for shape in outputs
            ]

        return self._sizes.at((tuple(shapes), tuple(kinds)), found)

    def memory(self) -> Mapping[str, int]:
        return {
            "weights": self.program.weights.size,
            "shared": 0,
            "scratch": max(0, self._runner.bytes - self.program.weights.size),
            "states": sum(x.bytes for x in self._states),
        }
