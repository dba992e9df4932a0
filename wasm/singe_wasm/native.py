"""The backend "wasm" outside of browsers: Programs of WasmTarget run by wasmtime. The only file that imports wasmtime.

A WasmBackend is one engine and one linear memory, shared by the modules of all its Programs. Weights, scratch, inputs
and outputs lie in that memory; an array gives its bytes back when nothing refers to it any more.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import wasmtime

from singe import _shape
from singe._dtypes import DType, dtype
from singe._errors import DeviceError, InputError
from singe.program import Copy, Dispatch, Program, Variant

from .heap import Heap
from .target import WasmTarget

_PAGE: Final = 1 << 16
_MOST_PAGES: Final = 1 << 16
FEATURES: Final = frozenset({"relaxed-simd"})
"""What this engine can do, in the words of Variant.requires."""


class WasmArray:
    """Elements in a backend's memory."""

    def __init__(self, backend: WasmBackend, shape: tuple[int, ...], kind: DType) -> None:
        self.backend: Final = backend
        self.shape: Final = shape
        self.dtype: Final = kind
        self.bytes: Final = int(np.prod(shape, dtype=np.int64)) * kind.size
        self.address: Final = backend.heap.take(self.bytes)
        weakref.finalize(self, backend.release, self.address, self.bytes).atexit = False


class WasmBackend:
    """See the module's docstring."""

    name = "wasm"

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.wasm_relaxed_simd = True
        config.cranelift_opt_level = "speed"
        self.target: Final = WasmTarget()
        self.engine: Final = wasmtime.Engine(config)
        self.store: Final = wasmtime.Store(self.engine)
        self.linear: Final = wasmtime.Memory(self.store, wasmtime.MemoryType(wasmtime.Limits(1, _MOST_PAGES)))
        self.heap: Final = Heap(self._grow)
        self.lock: Final = threading.RLock()
        self._alive = True

    def _grow(self, count: int) -> None:
        pages = -(-count // _PAGE) - self.linear.size(self.store)
        if pages <= 0:
            return
        # Growing in larger steps: each may move the memory.
        wanted = min(max(pages, self.linear.size(self.store) // 4), _MOST_PAGES - self.linear.size(self.store))
        try:
            self.linear.grow(self.store, max(wanted, pages))
        except wasmtime.WasmtimeError as e:
            raise DeviceError(
                f"wasm: cannot grow the memory to {_shape.bytes_text(count)} (it ends at 4 GiB): {e}"
            ) from None

    def release(self, address: int, count: int) -> None:
        """Free memory; called by the collector for arrays, maybe from another thread."""
        with self.lock:
            if self._alive:
                self.heap.give(address, count)

    def pointer(self, address: int) -> int:
        """A native pointer into the memory, valid until it grows."""
        base = ctypes.cast(self.linear.data_ptr(self.store), ctypes.c_void_p).value
        assert base is not None
        return base + address

    def write(self, address: int, array: np.ndarray) -> None:
        array = np.ascontiguousarray(array)
        ctypes.memmove(self.pointer(address), array.ctypes.data, array.nbytes)

    def upload(self, array: np.ndarray) -> WasmArray:
        with self.lock:
            self._check_alive()
            made = WasmArray(self, array.shape, dtype(array.dtype))
            self.write(made.address, array)
            return made

    def download(self, array: Any) -> np.ndarray:
        own = self.own(array, "the array")
        out = np.empty(own.shape, own.dtype.numpy)
        with self.lock:
            ctypes.memmove(out.ctypes.data, self.pointer(own.address), own.bytes)
        return out

    def own(self, array: Any, what: str) -> WasmArray:
        self._check_alive()
        if not isinstance(array, WasmArray) or array.backend is not self:
            raise DeviceError(
                f"wasm: {what} is a {type(array).__name__}, expected an array of this device; upload it first"
            )
        return array

    def prepare(self, program: Program) -> WasmExecutable:
        with self.lock:
            self._check_alive()
            return WasmExecutable(self, program)

    def synchronize(self) -> None:
        """Calls return when they are done."""

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": f"wasmtime {version('wasmtime')}",
            "features": sorted(FEATURES),
            "memory": self.linear.data_len(self.store),
            "used": self.heap.used,
        }

    def dispose(self) -> None:
        self._alive = False

    def _check_alive(self) -> None:
        if not self._alive:
            raise DeviceError("wasm: this device was disposed of")


@dataclass(frozen=True, slots=True)
class _Call:
    function: Any
    buffers: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Move:
    source: int
    target: int
    bytes: int


@dataclass
class _Plan:
    """What the sizes of a run decide."""

    addresses: list[int]  # of every buffer; 0 for inputs and outputs
    steps: list[_Call | _Move]
    outputs: list[tuple[int, ...]]


class WasmExecutable:
    """A Program with its modules instantiated and its weights in memory."""

    def __init__(self, backend: WasmBackend, program: Program) -> None:
        if program.target != "wasm":
            raise DeviceError(f"wasm: the program was compiled for {program.target!r}; compile it for 'wasm'")
        self.program: Final = program
        self.backend: Final = backend
        self._functions: Final = self._instantiate()
        self._weights: Final = backend.heap.take(program.weights.size)
        backend.write(self._weights, program.weights)
        # What is held: the finalizer reads it when it runs.
        self._held: Final = {"weights": (self._weights, program.weights.size)}
        self._plans: dict[tuple[tuple[str, int], ...], _Plan] = {}
        self._finalizer = weakref.finalize(self, _release_all, backend, self._held)
        self._finalizer.atexit = False

    def _instantiate(self) -> list[Any]:
        store, engine = self.backend.store, self.backend.engine
        loaded: dict[str, Any] = {}
        functions = []
        for code in self.program.kernels:
            module, entry = _best(code.label, code.variants).entry.split(":")
            if module not in loaded:
                binary = self.program.modules[module]
                assert isinstance(binary, bytes)
                try:
                    instance = wasmtime.Instance(store, wasmtime.Module(engine, binary), [self.backend.linear])
                except wasmtime.WasmtimeError as e:
                    raise DeviceError(f"wasm: the module {module!r} does not load: {e}") from None
                loaded[module] = instance.exports(store)
            functions.append(loaded[module][entry])
        return functions

    def run(self, inputs: Sequence[Any]) -> list[WasmArray]:
        backend, program = self.backend, self.program
        with backend.lock:
            if not self._held:
                raise DeviceError("wasm: this program was disposed of")
            if len(inputs) != len(program.inputs):
                raise InputError(f"got {len(inputs)} inputs, this program takes {len(program.inputs)}")
            names = [program.buffers[i].name for i in program.inputs]
            given = [backend.own(x, f"input {n!r}") for x, n in zip(inputs, names, strict=True)]
            sizes = program.sizes({n: x.shape for n, x in zip(names, given, strict=True)})
            plan = self._plan(sizes)
            outputs = [
                WasmArray(backend, shape, program.buffers[i].dtype)
                for shape, i in zip(plan.outputs, program.outputs, strict=True)
            ]
            at = list(plan.addresses)
            for i, b in enumerate(program.buffers):
                kind, number = b.place
                if kind == "input":
                    at[i] = given[number].address
                elif kind == "output":
                    at[i] = outputs[number].address
            store = backend.store
            for step in plan.steps:
                if isinstance(step, _Call):
                    step.function(store, *[at[b] for b in step.buffers], *step.sizes)
                else:
                    ctypes.memmove(backend.pointer(at[step.target]), backend.pointer(at[step.source]), step.bytes)
            for made, i in zip(outputs, program.outputs, strict=True):
                if at[i] != made.address:
                    ctypes.memmove(backend.pointer(made.address), backend.pointer(at[i]), made.bytes)
            return outputs

    def _plan(self, sizes: Mapping[str, int]) -> _Plan:
        key = tuple(sorted(sizes.items()))
        if key not in self._plans:
            self._reserve(self.program.peak(sizes))
            self._plans[key] = self._made_plan(sizes)
        return self._plans[key]

    def _made_plan(self, sizes: Mapping[str, int]) -> _Plan:
        program = self.program
        starts = np.cumsum([self._held.get("scratch", (0, 0))[0], *program.slot_bytes(sizes)]).tolist()
        bases = {"weights": lambda n: self._weights + n, "slot": lambda n: starts[n]}
        addresses = [bases[kind](number) if kind in bases else 0 for kind, number in (b.place for b in program.buffers)]
        steps: list[_Call | _Move] = []
        for step in program.steps:
            if isinstance(step, Dispatch):
                values = tuple(_shape.known(d, sizes) for d in program.kernels[step.kernel].sizes)
                steps.append(_Call(self._functions[step.kernel], step.buffers, values))
            elif isinstance(step, Copy):
                steps.append(_Move(step.source, step.target, _shape.known(program.buffers[step.source].bytes, sizes)))
            else:
                raise DeviceError(f"wasm: steps of kind {type(step).__name__.lower()} cannot be run here yet")
        outputs = [tuple(_shape.known(d, sizes) for d in program.buffers[i].shape) for i in program.outputs]
        return _Plan(addresses, steps, outputs)

    def _reserve(self, count: int) -> None:
        """Scratch of at least that many bytes; plans that point into a smaller one are forgotten."""
        if count <= self._held.get("scratch", (0, 0))[1]:
            return
        self._plans.clear()
        if "scratch" in self._held:
            self.backend.release(*self._held.pop("scratch"))
        self._held["scratch"] = (self.backend.heap.take(count), count)

    def memory(self) -> Mapping[str, int]:
        return {what: self._held.get(what, (0, 0))[1] for what in ("weights", "scratch")}

    def dispose(self) -> None:
        with self.backend.lock:
            self._finalizer()
            self._plans.clear()


def _release_all(backend: WasmBackend, held: dict[str, tuple[int, int]]) -> None:
    while held:
        backend.release(*held.popitem()[1])


def _best(label: str, variants: Sequence[Variant]) -> Variant:
    for v in variants:
        if FEATURES.issuperset(v.requires):
            return v
    raise DeviceError(
        f"wasm: no variant of {label!r} runs here; they require {[v.requires for v in variants]}, this engine has {sorted(FEATURES)}"
    )
