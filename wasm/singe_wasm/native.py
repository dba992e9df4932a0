"""The backend "wasm" outside of pages: Programs of WasmTarget run by wasmtime."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from platform import machine
from typing import Any, Final, TypeVar
from weakref import WeakSet

import numpy as np

from singe.extension import (
    DeviceError,
    FormatError,
    Heap,
    ProgramData,
    Span,
    Timeline,
    bytes_text,
    entry_key,
    in_parts,
    keep_entry,
    limit_reached,
    recall_entry,
    stopped_by,
    time_limit,
)
from singe.extension import words as heads

from .calls import ALONE, NAME
from .executable import WasmExecutable
from .libwasmtime import WasmEngine, WasmFunction, WasmInstance, WasmModule, WasmStore, WasmtimeError, wasmtime_version
from .runtime import WasmRuntime

Answer = TypeVar("Answer")
_PAGE: Final = 1 << 16
_MOST_PAGES: Final = 1 << 16
_SPARE: Final = 1 << 22
"""The bytes of unused modules that a store may hold, whatever the size of the memory."""
_MODULE: Final = 20_000
"""The bytes that wasmtime keeps for a module, beside those of its code."""
_PROBES: Final = 101
"""Calls of an empty function, whose median time is the overhead of a call."""


class WasmBackend(WasmRuntime):
    """The backend over an engine of its own."""

    def __init__(self) -> None:
        super().__init__(WasmtimeEngine())

    def prepare(self, program: ProgramData) -> NativeExecutable:
        with self.lock:
            self._check_alive()
            return NativeExecutable(self, program)


class NativeExecutable(WasmExecutable):
    """A WasmExecutable whose steps can be timed; see runtime/backend.TimedExecutable."""

    def profile(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> Timeline:
        engine = self.backend.engine
        assert isinstance(engine, WasmtimeEngine)
        with self.backend.lock:
            plan = self.placed([x.shape for x in inputs], [x.dtype for x in inputs]).plan
            engine.calls = []
            try:
                start = time.perf_counter()
                outputs = self.run(inputs, states)
                seconds = time.perf_counter() - start
                calls = engine.calls
            finally:
                engine.calls = None
        spans = []
        for at, arguments, begin, end in calls:
            cost = min(end - begin, engine.call_seconds(arguments))
            spans.append(Span(at, begin - start, end - begin - cost, cost))
        clock = "wall clock around each call, less that of an empty call"
        return Timeline(outputs, seconds, tuple(spans), clock, dict(plan.sizes))

    def _stop(self, run: Any, at: int) -> None:
        begin = time.perf_counter()
        super()._stop(run, at)
        engine = self.backend.engine
        assert isinstance(engine, WasmtimeEngine)
        if engine.calls is not None:
            engine.calls.append((at, None, begin, time.perf_counter()))


class Linked:
    """A module, and what it is in the engine's store, if it is there."""

    def __init__(self, module: WasmModule, size: int) -> None:
        self.module: Final = module
        self.bytes: Final = size
        self.instance: WasmInstance | None = None


class WasmtimeEngine:
    """A wasmtime engine and one linear memory, shared by all modules; see runtime.Engine.

    A store keeps every module that was instantiated in it. So when most of them are unused, the memory and the modules
    still in use move to another store.

    One that is opened under a time limit can be stopped anywhere, by an epoch, for which its code looks in each loop: that takes some
    per cent of the time of plain ones.
    """

    features: frozenset[str] = frozenset({"relaxed-simd", "wasmtime"})
    strategy = "pages"
    limit: int | None = None

    def __init__(self) -> None:
        self._is_stoppable: Final = time_limit().is_finite
        self._engine: Final = WasmEngine(self._is_stoppable)
        self._store = self._opened(1)
        self._held = 0  # bytes of the modules instantiated in the store
        self._linked: Final[WeakSet[Linked]] = WeakSet()
        self._heap: Final = Heap(self._grow)
        self.calls: list[tuple[int, int | None, float, float]] | None = None
        """If not None, `run` makes the calls one by one and records each: its first word, its number of arguments (None
        for a copy), its start and its end."""
        self._words = (0, 0)
        self._call_seconds: Final[dict[int, float]] = {}

    def _opened(self, pages: int) -> WasmStore:
        store = WasmStore(self._engine, pages, _MOST_PAGES)
        if self._is_stoppable:
            store.set_epoch_deadline(1)
        return store

    def _grow(self, count: int) -> None:
        size = self.reserved // _PAGE
        pages = -(-count // _PAGE) - size
        if pages <= 0:
            return
        most = _MOST_PAGES if self.limit is None else self.limit // _PAGE
        if size + pages > most and self.limit is not None:
            raise DeviceError(f"wasm: {limit_reached(self.limit, size * _PAGE)}")
        # Grow in large steps: each may move the memory.
        wanted = min(max(pages, size // 4), most - size)
        try:
            self._store.grow(max(wanted, pages))
        except WasmtimeError as e:
            raise DeviceError(f"wasm: cannot grow the memory to {bytes_text(count)} (it ends at 4 GiB): {e}") from None

    @property
    def reserved(self) -> int:
        return self._store.size

    @property
    def untouched(self) -> int:
        return self._heap.untouched

    def leave_untouched(self, address: int, count: int) -> None:
        self._store.in_small_pages(address, count)

    def trim(self) -> None:
        if self._heap.end <= self.reserved - _PAGE:
            self._move(self._heap.end)

    def take(self, count: int) -> int:
        return self._heap.take(count)

    def hold(self, block: np.ndarray) -> int:
        address = self.take(block.size)
        for at, part in in_parts(block):
            self.write(address + at, part)
        return address

    def give(self, address: int, count: int) -> None:
        self._heap.give(address, count)

    def _pointer(self, address: int, count: int) -> int:
        """A native pointer to so many bytes of the memory, valid until it grows."""
        if not 0 <= address <= self.reserved - count:
            raise DeviceError(f"wasm: the program uses {count} bytes at {address}, beyond the memory's end")
        return self._store.data + address

    def write(self, address: int, array: np.ndarray) -> None:
        ctypes.memmove(self._pointer(address, array.nbytes), array.ctypes.data, array.nbytes)

    def read(self, address: int, out: np.ndarray) -> None:
        ctypes.memmove(out.ctypes.data, self._pointer(address, out.nbytes), out.nbytes)

    def link(self, binary: bytes) -> Linked:
        used = sum(linked.bytes for linked in self._linked)
        try:
            if self._held > 2 * used + self.reserved + _SPARE:
                self._move(self.reserved)
            linked = Linked(self._compiled(binary), _MODULE + len(binary))
            self._instance(linked)
        except WasmtimeError as e:
            raise DeviceError(f"wasm: the module does not load: {e}") from None
        self._linked.add(linked)
        return linked

    def _compiled(self, binary: bytes) -> WasmModule:
        """The module as machine code: that of an earlier process, if wasmtime takes it."""
        key = entry_key(wasmtime_version(), machine(), self._is_stoppable, binary)
        kept = recall_entry("wasm", key)
        if kept is not None:
            with suppress(WasmtimeError):
                return WasmModule.deserialized(self._engine, bytes(kept))
        made = WasmModule.compiled(self._engine, binary)
        code = (module.serialize() for module in [made])
        keep_entry("wasm", key, f"machine code, {bytes_text(len(binary))} of WebAssembly", code)
        return made

    def arguments(self, module: Linked, name: str) -> int | None:
        function = self._instance(module).function(name)
        return None if function is None else function.count

    def _instance(self, linked: Linked) -> WasmInstance:
        found = linked.instance
        if found is None or found.store is not self._store:
            found = linked.instance = self._stopped_in_time(WasmInstance, self._store, linked.module)
            self._held += linked.bytes
        return found

    def _move(self, count: int) -> None:
        """Open another store, with a copy of so many bytes of the memory; modules follow as they are run."""
        store = self._store
        self._store = self._opened(-(-count // _PAGE))
        self._held = 0
        ctypes.memmove(self._pointer(0, count), store.data, count)
        for linked in self._linked:  # the store goes once nothing is in it
            linked.instance = None

    def run(self, module: Linked, words: np.ndarray, at: int) -> int:
        instance = self._instance(module)
        if self.calls is not None:
            return self._run_timed(instance, words, at, self.calls)
        if words.nbytes > self._words[1]:
            if self._words[1]:
                self.give(*self._words)
            self._words = self.take(words.nbytes), words.nbytes
        start = self._words[0]
        self.write(start, words)
        end = start + words.nbytes
        stopped = self._call(self._function(instance, NAME), signed(start + 4 * at), signed(end))
        if stopped is None:
            raise FormatError(f"wasm: the module's function {NAME} answers None, expected an int32")
        stopped %= 1 << 32
        if stopped != end:
            self.read(start, words)  # the run has changed the counts of remaining turns in them
        return (stopped - start) // 4

    def _stopped_in_time(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """A call in the store, which the thread's time limit ends."""
        limit = time_limit()
        if not (self._is_stoppable and limit.is_finite):
            return function(*arguments)
        self._store.set_epoch_deadline(1)
        try:
            with stopped_by(self._engine.increment_epoch, limit.end):
                return function(*arguments)
        except WasmtimeError:
            limit.check()
            raise
        finally:
            self._store.set_epoch_deadline(1)

    @staticmethod
    def _function(instance: WasmInstance, name: str) -> WasmFunction:
        found = instance.function(name)
        if found is None:
            raise FormatError(f"wasm: the module has no function {name} of int32")
        return found

    def _call(self, function: WasmFunction, *arguments: int) -> int | None:
        try:
            return self._stopped_in_time(function, *arguments)
        except WasmtimeError as e:
            why = str(e).rpartition("wasm trap: ")[2].strip()
            raise DeviceError(f"wasm: a kernel failed: {why}") from None

    def _run_timed(
        self, instance: WasmInstance, words: np.ndarray, at: int, calls: list[tuple[int, int | None, float, float]]
    ) -> int:
        values = words.view(np.int32).tolist()
        holds = np.zeros(1, np.bool_)

        def true(address: int) -> bool:
            self.read(address % (1 << 32), holds)
            return bool(holds[0])

        for k in heads.execution_order(values, true, at):
            if values[k] == heads.STOP:
                words.view(np.int32)[:] = values
                return k
            given = values[k + 2 : k + 2 + values[k + 1]]
            begin = time.perf_counter()
            if values[k] == heads.COPY:
                target, source, count = (value % (1 << 32) for value in given)
                ctypes.memmove(self._pointer(target, count), self._pointer(source, count), count)
            else:
                self._call(self._function(instance, f"k{values[k]}"), *given, *ALONE)
                given += ALONE
            calls.append((k, None if values[k] == heads.COPY else len(given), begin, time.perf_counter()))
        return words.size

    def call_seconds(self, arguments: int | None) -> float:
        """The overhead of a call with this many arguments; 0 for a copy (None)."""
        if arguments is None:
            return 0.0
        if arguments not in self._call_seconds:
            from .code.encode import Body, integers, module  # noqa: PLC0415 (who runs Programs pays nothing for what writes code)

            code = module({"f": Body(integers(arguments)).finish()}, {}, relaxed=False)
            empty = self._function(WasmInstance(self._store, WasmModule.compiled(self._engine, code)), "f")
            given = [0] * arguments
            times = []
            for _ in range(_PROBES):
                start = time.perf_counter()
                empty(*given)
                times.append(time.perf_counter() - start)
            self._call_seconds[arguments] = sorted(times)[_PROBES // 2]
        return self._call_seconds[arguments]

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": f"wasmtime {wasmtime_version()}",
            "features": sorted(self.features),
            "memory": self.reserved,
            "used": self._heap.used,
        }


def signed(word: int) -> int:
    """An address, which may have its highest bit set, as the int32 that modules take."""
    return word - (1 << 32) if word >= 1 << 31 else word
