"""The backend "wasm" without its engine: arrays in one memory, executables, and the plan of a run at given sizes.

A plan is one array of numbers, the calls of a run in order, each with its arguments; a run puts the addresses of its
inputs and outputs into it and hands it to the engine. An array gives its bytes back when nothing refers to it any more.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from singe.extension import Copy, DeviceError, Dispatch, DType, ProgramData, Recent, choose_variant, dtype, shapes

from .driver import COPY, function_number
from .target import WasmTarget

PLANS: Final = 64
"""How many sets of input shapes an executable remembers."""

Shapes: TypeAlias = Sequence[tuple[int, ...]]


class Engine(Protocol):
    """One memory, and what runs modules in it. Addresses count its bytes; failures are DeviceErrors."""

    features: frozenset[str]

    def take(self, count: int) -> int:
        """The address, a multiple of 256, of so many bytes."""
        ...

    def hold(self, block: np.ndarray) -> int:
        """The address of a block of constant bytes: their own, or that of a copy."""
        ...

    def give(self, address: int, count: int) -> None:
        """Free what `take`, or `hold` of so many bytes, answered."""
        ...

    def write(self, address: int, array: np.ndarray) -> None: ...

    def read(self, address: int, out: np.ndarray) -> None:
        """Bytes of the memory into a contiguous array."""
        ...

    def link(self, binary: bytes) -> Any:
        """A module, as `run` wants it."""
        ...

    def run(self, module: Any, words: np.ndarray) -> None:
        """Carry out calls, int32 words as driver.py says."""
        ...

    def describe(self) -> Mapping[str, Any]: ...


class WasmArray:
    """Elements in a backend's memory."""

    def __init__(self, backend: WasmRuntime, shape: tuple[int, ...], kind: DType) -> None:
        self.backend: Final = backend
        self.shape: Final = shape
        self.dtype: Final = kind
        self.bytes: Final = int(np.prod(shape, dtype=np.int64)) * kind.size
        self.address: Final = backend.engine.take(self.bytes)
        weakref.finalize(self, backend.release, self.address, self.bytes).atexit = False


class WasmRuntime:
    """A backend over any Engine; see runtime/backend.Backend."""

    name = "wasm"

    def __init__(self, engine: Engine) -> None:
        self.engine: Final = engine
        self.target: Final = WasmTarget()
        self.lock: Final = threading.RLock()
        self._alive = True

    def release(self, address: int, count: int) -> None:
        """Free memory; called by the collector for arrays, maybe from another thread."""
        with self.lock:
            if self._alive:
                self.engine.give(address, count)

    def upload(self, array: np.ndarray) -> WasmArray:
        with self.lock:
            self._check_alive()
            made = WasmArray(self, array.shape, dtype(array.dtype))
            self.engine.write(made.address, np.ascontiguousarray(array))
            return made

    def download(self, array: Any) -> np.ndarray:
        own = self.own(array, "the array")
        out = np.empty(own.shape, own.dtype.numpy)
        with self.lock:
            self.engine.read(own.address, out)
        return out

    def own(self, array: Any, what: str) -> WasmArray:
        self._check_alive()
        if not isinstance(array, WasmArray) or array.backend is not self:
            raise DeviceError(
                f"wasm: {what} is a {type(array).__name__}, expected an array of this device; upload it first"
            )
        return array

    def prepare(self, program: ProgramData) -> WasmExecutable:
        with self.lock:
            self._check_alive()
            return WasmExecutable(self, program)

    def synchronize(self) -> None:
        """Calls return when they are done."""

    def describe(self) -> Mapping[str, Any]:
        return self.engine.describe()

    def dispose(self) -> None:
        self._alive = False

    def _check_alive(self) -> None:
        if not self._alive:
            raise DeviceError("wasm: this device was disposed of")


@dataclass
class Plan:
    """What the shapes of a run decide. `given` and `made`: where in `words` each input's and output's address goes."""

    words: np.ndarray
    given: list[list[int]]
    made: list[list[int]]
    outputs: list[tuple[tuple[int, ...], DType]]


class WasmExecutable:
    """A Program with its modules linked and its weights in memory; see runtime/backend.Executable."""

    def __init__(self, backend: WasmRuntime, program: ProgramData) -> None:
        if program.target != "wasm":
            raise DeviceError(f"wasm: the program was compiled for {program.target!r}; compile it for 'wasm'")
        self.program: Final = program
        self.backend: Final = backend
        engine = backend.engine
        entries = [choose_variant(code, engine.features).entry for code in program.kernels]
        name, *others = {entry.split(":")[0] for entry in entries} or {list(program.modules)[-1]}
        binary = program.modules.get(name)
        if others or not isinstance(binary, bytes):
            raise DeviceError(
                f"wasm: the program's kernels are in {[name, *others]}, expected one module; compile it anew"
            )
        self._module: Final = engine.link(binary)
        self._numbers: Final = [function_number(entry) for entry in entries]
        self._weights: Final = engine.hold(program.weights)
        # What is held: the finalizer reads it when it runs.
        self._held: Final = {"weights": (self._weights, program.weights.size)}
        self._plans: Final[Recent[Plan]] = Recent(PLANS)
        self._finalizer = weakref.finalize(self, _release_all, backend, self._held)
        self._finalizer.atexit = False

    def run(self, inputs: Sequence[Any]) -> list[WasmArray]:
        backend = self.backend
        with backend.lock:
            given = [backend.own(x, f"input {k}") for k, x in enumerate(inputs)]
            plan = self.plan([x.shape for x in given], [x.dtype for x in given])
            outputs = [WasmArray(backend, shape, kind) for shape, kind in plan.outputs]
            self.execute(plan, [x.address for x in given], [x.address for x in outputs])
            return outputs

    def execute(self, plan: Plan, given: Sequence[int], made: Sequence[int]) -> None:
        """Run a plan over inputs and outputs at these addresses."""
        for places, addresses in ((plan.given, given), (plan.made, made)):
            for where, address in zip(places, addresses, strict=True):
                plan.words[where] = signed(address)
        self.backend.engine.run(self._module, plan.words)

    def plan(self, shapes: Shapes, kinds: Sequence[DType]) -> Plan:
        """The plan for inputs of these shapes and dtypes; those that do not fit are errors."""
        if not self._held:
            raise DeviceError("wasm: this program was disposed of")
        return self._plans.at((tuple(shapes), tuple(kinds)), lambda: self._made_plan(self.program.bound(shapes, kinds)))

    def _made_plan(self, sizes: Mapping[str, int]) -> Plan:
        program = self.program
        self._reserve(program.peak(sizes))
        starts = np.cumsum([self._held.get("scratch", (0, 0))[0], *program.slot_bytes(sizes)]).tolist()
        words: list[int] = []
        open_places: dict[tuple[str, int], list[int]] = {}

        def add(function: int, arguments: Sequence[tuple[str, int]], numbers: Sequence[int]) -> None:
            words.extend((function, len(arguments) + len(numbers)))
            for kind, number in arguments:
                if kind in ("input", "output"):
                    open_places.setdefault((kind, number), []).append(len(words))
                words.append(self._weights + number if kind == "weights" else starts[number] if kind == "slot" else 0)
            words.extend(numbers)

        def place(i: int) -> tuple[str, int]:
            return program.buffers[i].place

        def size(i: int) -> int:
            return shapes.known(program.buffers[i].bytes, sizes)

        for step in program.steps:
            if isinstance(step, Dispatch):
                numbers = [shapes.known(d, sizes) for d in program.kernels[step.kernel].sizes]
                add(self._numbers[step.kernel], [place(i) for i in step.buffers], numbers)
            elif isinstance(step, Copy):
                add(COPY, [place(step.target), place(step.source)], [size(step.source)])
            else:
                raise DeviceError(f"wasm: steps of kind {type(step).__name__.lower()} cannot be run here yet")
        for number, i in enumerate(program.outputs):
            if place(i) != ("output", number):
                add(COPY, [("output", number), place(i)], [size(i)])
        outputs = [
            (tuple(shapes.known(d, sizes) for d in b.shape), b.dtype)
            for b in map(program.buffers.__getitem__, program.outputs)
        ]
        given = [open_places.get(("input", k), []) for k in range(len(program.inputs))]
        made = [open_places.get(("output", k), []) for k in range(len(program.outputs))]
        return Plan(np.array([signed(w) for w in words], np.int32), given, made, outputs)

    def _reserve(self, count: int) -> None:
        """Scratch of at least that many bytes; plans that point into a smaller one are forgotten."""
        if count <= self._held.get("scratch", (0, 0))[1]:
            return
        self._plans.clear()
        if "scratch" in self._held:
            self.backend.release(*self._held.pop("scratch"))
        self._held["scratch"] = (self.backend.engine.take(count), count)

    def memory(self) -> Mapping[str, int]:
        return {what: self._held.get(what, (0, 0))[1] for what in ("weights", "scratch")}

    def dispose(self) -> None:
        with self.backend.lock:
            self._finalizer()
            self._plans.clear()


def signed(word: int) -> int:
    """An address, which may have its highest bit set, as the int32 that modules take."""
    return word - (1 << 32) if word >= 1 << 31 else word


def _release_all(backend: WasmRuntime, held: dict[str, tuple[int, int]]) -> None:
    while held:
        backend.release(*held.popitem()[1])
