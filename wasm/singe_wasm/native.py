"""The backend "wasm" outside of pages: Programs of WasmTarget run by wasmtime. The only file that imports wasmtime."""

from __future__ import annotations

import atexit
import ctypes
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from platform import machine
from typing import Any, Final
from weakref import WeakSet

import numpy as np
import wasmtime

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
    version_of,
)
from singe.extension import words as heads

from .calls import ALONE, NAME
from .executable import WasmExecutable
from .runtime import WasmRuntime

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


@dataclass(eq=False)
class Linked:
    """A module and its exports, valid as long as the engine has this store."""

    module: wasmtime.Module
    bytes: int
    store: wasmtime.Store | None = None
    exports: Any = None


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
        config = wasmtime.Config()
        config.wasm_relaxed_simd = True
        config.cranelift_opt_level = "speed"
        self._is_stoppable: Final = time_limit().is_finite
        config.epoch_interruption = self._is_stoppable
        self._engine: Final = wasmtime.Engine(config)
        self._store, self._linear = self._opened(1)
        self._held = 0  # bytes of the modules instantiated in the store
        self._linked: Final[WeakSet[Linked]] = WeakSet()
        self._heap: Final = Heap(self._grow)
        self.calls: list[tuple[int, int | None, float, float]] | None = None
        """If not None, `run` makes the calls one by one and records each: its first word, its number of arguments (None
        for a copy), its start and its end."""
        self._words = (0, 0)
        self._call_seconds: Final[dict[int, float]] = {}
        _engines.add(self)

    def _opened(self, pages: int) -> tuple[wasmtime.Store, wasmtime.Memory]:
        store = wasmtime.Store(self._engine)
        store.set_limits(instances=2**31 - 1)  # `link` bounds their bytes; wasmtime would stop at 10,000
        if self._is_stoppable:
            store.set_epoch_deadline(1)
        return store, wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(pages, _MOST_PAGES)))

    def _grow(self, count: int) -> None:
        size = self._linear.size(self._store)
        pages = -(-count // _PAGE) - size
        if pages <= 0:
            return
        most = _MOST_PAGES if self.limit is None else self.limit // _PAGE
        if size + pages > most and self.limit is not None:
            raise DeviceError(f"wasm: {limit_reached(self.limit, size * _PAGE)}")
        # Grow in large steps: each may move the memory.
        wanted = min(max(pages, size // 4), most - size)
        try:
            self._linear.grow(self._store, max(wanted, pages))
        except wasmtime.WasmtimeError as e:
            raise DeviceError(f"wasm: cannot grow the memory to {bytes_text(count)} (it ends at 4 GiB): {e}") from None

    @property
    def reserved(self) -> int:
        return self._linear.data_len(self._store)

    @property
    def untouched(self) -> int:
        return self._heap.untouched

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
        if not 0 <= address <= self._linear.data_len(self._store) - count:
            raise DeviceError(f"wasm: the program uses {count} bytes at {address}, beyond the memory's end")
        base = ctypes.cast(self._linear.data_ptr(self._store), ctypes.c_void_p).value
        assert base is not None
        return base + address

    def write(self, address: int, array: np.ndarray) -> None:
        ctypes.memmove(self._pointer(address, array.nbytes), array.ctypes.data, array.nbytes)

    def read(self, address: int, out: np.ndarray) -> None:
        ctypes.memmove(out.ctypes.data, self._pointer(address, out.nbytes), out.nbytes)

    def link(self, binary: bytes) -> Linked:
        used = sum(linked.bytes for linked in self._linked)
        try:
            if self._held > 2 * used + self._linear.data_len(self._store) + _SPARE:
                self._move(self.reserved)
            linked = Linked(self._compiled(binary), _MODULE + len(binary))
            self._exports(linked)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as e:
            raise DeviceError(f"wasm: the module does not load: {e}") from None
        self._linked.add(linked)
        return linked

    def _compiled(self, binary: bytes) -> wasmtime.Module:
        """The module as machine code: that of an earlier process, if wasmtime takes it, which checks that it was made by its own version,
        for this processor and for this configuration."""
        key = entry_key(version_of("wasmtime"), machine(), self._is_stoppable, binary)
        kept = recall_entry("wasm", key)
        if kept is not None:
            with suppress(wasmtime.WasmtimeError):
                return wasmtime.Module.deserialize(self._engine, bytes(kept))
        made = wasmtime.Module(self._engine, binary)
        code = (module.serialize() for module in [made])
        keep_entry("wasm", key, f"machine code, {bytes_text(len(binary))} of WebAssembly", code)
        return made

    def arguments(self, module: Linked, name: str) -> int | None:
        function = self._exports(module).get(name)
        if not isinstance(function, wasmtime.Func):
            return None
        params = function.type(self._store).params
        return len(params) if all(str(p) == "i32" for p in params) else None

    def _exports(self, linked: Linked) -> Any:
        if linked.store is not self._store:
            instance = self._stopped_in_time(wasmtime.Instance, linked.module, [self._linear])
            linked.store, linked.exports = self._store, instance.exports(self._store)
            self._held += linked.bytes
        return linked.exports

    def _move(self, count: int) -> None:
        """Open another store, with a copy of so many bytes of the memory; modules follow as they are run."""
        store, elements = self._store, self._pointer(0, count)
        self._store, self._linear = self._opened(-(-count // _PAGE))
        self._held = 0
        ctypes.memmove(self._pointer(0, count), elements, count)
        store.close()

    def run(self, module: Linked, words: np.ndarray, at: int) -> int:
        exports = self._exports(module)
        if self.calls is not None:
            return self._run_timed(exports, words, at, self.calls)
        if words.nbytes > self._words[1]:
            if self._words[1]:
                self.give(*self._words)
            self._words = self.take(words.nbytes), words.nbytes
        start = self._words[0]
        self.write(start, words)
        end = start + words.nbytes
        stopped = self._call(exports[NAME], signed(start + 4 * at), signed(end))
        if type(stopped) is not int:
            raise FormatError(f"wasm: the module's function {NAME} answers {stopped!r:.40}, expected an int32")
        stopped %= 1 << 32
        if stopped != end:
            self.read(start, words)  # the run has changed the counts of remaining turns in them
        return (stopped - start) // 4

    def _stopped_in_time(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A call in the store, which the thread's time limit ends."""
        limit = time_limit()
        if not (self._is_stoppable and limit.is_finite):
            return function(self._store, *arguments)
        self._store.set_epoch_deadline(1)
        try:
            with stopped_by(self._engine.increment_epoch, limit.end):
                return function(self._store, *arguments)
        except wasmtime.Trap:
            limit.check()
            raise
        finally:
            self._store.set_epoch_deadline(1)

    def _call(self, function: Any, *arguments: int) -> Any:
        try:
            return self._stopped_in_time(function, *arguments)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as e:
            why = str(e).rpartition("wasm trap: ")[2].strip()
            raise DeviceError(f"wasm: a kernel failed: {why}") from None

    def _run_timed(
        self, exports: Any, words: np.ndarray, at: int, calls: list[tuple[int, int | None, float, float]]
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
                self._call(exports[f"k{values[k]}"], *given, *ALONE)
                given += ALONE
            calls.append((k, None if values[k] == heads.COPY else len(given), begin, time.perf_counter()))
        return words.size

    def call_seconds(self, arguments: int | None) -> float:
        """The overhead of a call with this many arguments; 0 for a copy (None)."""
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
            self._call_seconds[arguments] = sorted(times)[_PROBES // 2]
        return self._call_seconds[arguments]

    def owners(self) -> Iterator[Any]:
        """The objects through which the engine owns memory of wasmtime."""
        yield self
        yield from self._linked

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": f"wasmtime {version_of('wasmtime')}",
            "features": sorted(self.features),
            "memory": self._linear.data_len(self._store),
            "used": self._heap.used,
        }


_engines: Final[WeakSet[WasmtimeEngine]] = WeakSet()


@atexit.register
def _leave_to_the_process() -> None:
    """Let what wasmtime owns live until the process ends. Objects that a module holds may outlive the functions that free
    them, and would complain; to free them here would be too early for threads, and for functions that still run at the end."""
    for engine in _engines:
        for owner in engine.owners():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))


def signed(word: int) -> int:
    """An address, which may have its highest bit set, as the int32 that modules take."""
    return word - (1 << 32) if word >= 1 << 31 else word
