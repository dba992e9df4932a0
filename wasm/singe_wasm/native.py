"""The backend "wasm" outside of pages: Programs of WasmTarget run by wasmtime. The only file that imports wasmtime."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import wasmtime

from singe import _shape
from singe._errors import DeviceError
from singe.backend import Span, Timeline
from singe.program import Program

from .heap import Heap
from .runtime import ALONE, COPY, WasmExecutable, WasmRuntime, signed

_PAGE: Final = 1 << 16
_MOST_PAGES: Final = 1 << 16
_PROBES: Final = 101
"""Calls of an empty function by whose median the cost of a call is known."""


class WasmBackend(WasmRuntime):
    """The backend over an engine of its own."""

    def __init__(self) -> None:
        super().__init__(WasmtimeEngine())

    def prepare(self, program: Program) -> NativeExecutable:
        with self.lock:
            self._check_alive()
            return NativeExecutable(self, program)


class NativeExecutable(WasmExecutable):
    """A WasmExecutable whose steps can be timed; see backend.TimedExecutable."""

    def profile(self, inputs: Sequence[Any]) -> Timeline:
        engine = self.backend.engine
        assert isinstance(engine, WasmtimeEngine)
        with self.backend.lock:
            engine.calls = []
            try:
                start = time.perf_counter()
                outputs = self.run(inputs)
                seconds = time.perf_counter() - start
                calls = engine.calls
            finally:
                engine.calls = None
        # A plan holds a call for each step, in order, and then the copies into outputs.
        steps = [*range(len(self.program.steps)), *[None] * (len(calls) - len(self.program.steps))]
        spans = []
        for step, (arguments, begin, end) in zip(steps, calls, strict=True):
            cost = min(end - begin, engine.call_seconds(arguments))
            spans.append(Span(step, begin - start, end - begin - cost, cost))
        return Timeline(outputs, seconds, tuple(spans), "wall clock around each call, less that of an empty call")


class _Linked:
    """A program's functions, and the one that calls them all; a call from Python costs as much as a small kernel."""

    def __init__(self, engine: WasmtimeEngine, each: Sequence[Any]) -> None:
        self.each: Final = each
        self.run: Final = engine.driver(each)


def _driver_text(counts: Sequence[int]) -> str:
    """A module in WebAssembly's text form; counts: how many arguments each function takes besides ALONE."""
    imports = [f'(import "" "" (func {"(param i32) " * (count + len(ALONE))}))' for count in counts]
    alone = " ".join(f"(i32.const {value})" for value in ALONE)

    def argument(number: int) -> str:
        return f"(i32.load offset={8 + 4 * number} (local.get $at))"

    calls = [f"(call {k} {' '.join(map(argument, range(count)))} {alone})" for k, count in enumerate(counts)]
    # Numbers that are no function's, COPY alone, come to the last case.
    cases = [*calls, f"(memory.copy {' '.join(map(argument, range(3)))})"]
    labels = [f"$case{k}" for k in range(len(cases))]
    body = f"{' '.join(f'(block {label}' for label in reversed(labels))} (br_table {' '.join(labels)} (i32.load (local.get $at))))"
    body += ") ".join(f"{case} (br $called)" for case in cases)
    return f"""(module (import "" "" (memory 0)) {" ".join(imports)}
      (func (export "run") (param $at i32) (param $end i32)
        (loop $next
          (if (i32.lt_u (local.get $at) (local.get $end))
            (then
              (block $called {body})
              (local.set $at (i32.add (i32.add (local.get $at) (i32.const 8))
                (i32.shl {argument(-1)} (i32.const 2))))
              (br $next))))))"""


class WasmtimeEngine:
    """A wasmtime engine and one linear memory, shared by all modules; see runtime.Engine."""

    features: frozenset[str] = frozenset({"relaxed-simd"})

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.wasm_relaxed_simd = True
        config.cranelift_opt_level = "speed"
        self._engine: Final = wasmtime.Engine(config)
        self._store: Final = wasmtime.Store(self._engine)
        self._linear: Final = wasmtime.Memory(self._store, wasmtime.MemoryType(wasmtime.Limits(1, _MOST_PAGES)))
        self._heap: Final = Heap(self._grow)
        self.calls: list[tuple[int | None, float, float]] | None = None
        """Where not None, `run` makes the calls one by one and adds each: how many arguments (None: a copy), when it
        began and ended."""
        self._words = (0, 0)
        self._call_seconds: Final[dict[int, float]] = {}

    def _grow(self, count: int) -> None:
        size = self._linear.size(self._store)
        pages = -(-count // _PAGE) - size
        if pages <= 0:
            return
        # Growing in larger steps: each may move the memory.
        wanted = min(max(pages, size // 4), _MOST_PAGES - size)
        try:
            self._linear.grow(self._store, max(wanted, pages))
        except wasmtime.WasmtimeError as e:
            raise DeviceError(
                f"wasm: cannot grow the memory to {_shape.bytes_text(count)} (it ends at 4 GiB): {e}"
            ) from None

    def take(self, count: int) -> int:
        return self._heap.take(count)

    def hold(self, block: np.ndarray) -> int:
        address = self.take(block.size)
        self.write(address, block)
        return address

    def give(self, address: int, count: int) -> None:
        self._heap.give(address, count)

    def _pointer(self, address: int) -> int:
        """A native pointer into the memory, valid until it grows."""
        base = ctypes.cast(self._linear.data_ptr(self._store), ctypes.c_void_p).value
        assert base is not None
        return base + address

    def write(self, address: int, array: np.ndarray) -> None:
        ctypes.memmove(self._pointer(address), array.ctypes.data, array.nbytes)

    def read(self, address: int, out: np.ndarray) -> None:
        ctypes.memmove(out.ctypes.data, self._pointer(address), out.nbytes)

    def link(self, modules: Mapping[str, bytes], entries: Sequence[str]) -> _Linked:
        exports: dict[str, Any] = {}
        for name, binary in modules.items():
            try:
                instance = wasmtime.Instance(self._store, wasmtime.Module(self._engine, binary), [self._linear])
            except wasmtime.WasmtimeError as e:
                raise DeviceError(f"wasm: the module {name!r} does not load: {e}") from None
            exports[name] = instance.exports(self._store)
        return _Linked(self, [exports[module][name] for module, name in (entry.split(":") for entry in entries)])

    def driver(self, functions: Sequence[Any]) -> Any:
        """A function that carries out the calls that lie in the memory from one address to another."""
        counts = [len(f.type(self._store).params) - len(ALONE) for f in functions]
        module = wasmtime.Module(self._engine, _driver_text(counts))
        return wasmtime.Instance(self._store, module, [self._linear, *functions]).exports(self._store)["run"]

    def run(self, functions: _Linked, words: np.ndarray) -> None:
        if self.calls is not None:
            self._run_timed(functions.each, words, self.calls)
            return
        if words.nbytes > self._words[1]:
            self.give(*self._words)
            self._words = self.take(words.nbytes), words.nbytes
        start = self._words[0]
        self.write(start, words)
        functions.run(self._store, signed(start), signed(start + words.nbytes))

    def _run_timed(
        self, functions: Sequence[Any], words: np.ndarray, calls: list[tuple[int | None, float, float]]
    ) -> None:
        values = words.tolist()
        at = 0
        while at < len(values):
            number, end = values[at], at + 2 + values[at + 1]
            given = values[at + 2 : end]
            begin = time.perf_counter()
            if number == COPY:
                target, source, count = (value % (1 << 32) for value in given)
                ctypes.memmove(self._pointer(target), self._pointer(source), count)
            else:
                given += ALONE
                functions[number](self._store, *given)
            calls.append((None if number == COPY else len(given), begin, time.perf_counter()))
            at = end

    def call_seconds(self, arguments: int | None) -> float:
        """What a call with so many arguments costs by itself; a copy (None) is no call."""
        if arguments is None:
            return 0.0
        if arguments not in self._call_seconds:
            text = f'(module (func (export "f") (param {"i32 " * arguments})))'
            empty: Any = wasmtime.Instance(self._store, wasmtime.Module(self._engine, text), []).exports(self._store)[
                "f"
            ]
            given = [0] * arguments
            times = []
            for _ in range(_PROBES):
                start = time.perf_counter()
                empty(self._store, *given)
                times.append(time.perf_counter() - start)
            self._call_seconds[arguments] = statistics.median(times)
        return self._call_seconds[arguments]

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": f"wasmtime {version('wasmtime')}",
            "features": sorted(self.features),
            "memory": self._linear.data_len(self._store),
            "used": self._heap.used,
        }
