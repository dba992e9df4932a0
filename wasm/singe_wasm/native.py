"""The backend "wasm" outside of pages: Programs of WasmTarget run by wasmtime."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from platform import machine
from typing import TYPE_CHECKING, Any, Final, TypeVar

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

from .calls import ALONE, FUNCTION, NAME
from .executable import WasmExecutable
from .libwasmtime import (
    LinearMemory,
    WasmEngine,
    WasmFunction,
    WasmInstance,
    WasmModule,
    WasmtimeError,
    for_shared_memory,
    wasmtime_version,
)
from .runtime import WasmRuntime

if TYPE_CHECKING:
    from .thread_team import ThreadTeam

Answer = TypeVar("Answer")
_PAGE: Final = 1 << 16
_MOST_PAGES: Final = 1 << 16
MOST_THREADS: Final = 8
"""The most threads of a device."""
_SHARING: Final = {"serve": 1, "close": 0, "fail": 0}
"""The functions of a module whose runs threads can share, and how many arguments each takes."""
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
    """A module, and what it is over the engine's memory."""

    def __init__(self, module: WasmModule, instance: WasmInstance) -> None:
        self.module: Final = module
        self.instance = instance


class WasmtimeEngine:
    """A wasmtime engine and one linear memory, shared by all modules and threads; see runtime.Engine.

    One that is opened under a time limit can be stopped anywhere, by an epoch, for which its code looks in each loop: that takes some
    per cent of the time of plain ones. Its runs are on one thread.
    """

    features: frozenset[str] = frozenset({"relaxed-simd", "wasmtime"})
    strategy = "pages"
    limit: int | None = None

    def __init__(self) -> None:
        self._is_stoppable: Final = time_limit().is_finite
        self._engine: Final = WasmEngine(self._is_stoppable)
        self._memory = LinearMemory(self._engine, 1, _MOST_PAGES)
        self.threads = 1 if self._is_stoppable else min(cores(), MOST_THREADS)
        self._team: ThreadTeam | None = None
        self._heap: Final = Heap(self._grow)
        self.calls: list[tuple[int, int | None, float, float]] | None = None
        """If not None, `run` makes the calls one by one and records each: its first word, its number of arguments (None
        for a copy), its start and its end."""
        self._words = (0, 0)
        self._call_seconds: Final[dict[int, float]] = {}

    def _grow(self, count: int) -> None:
        size = self.reserved // _PAGE
        pages = -(-count // _PAGE) - size
        if pages <= 0:
            return
        most = _MOST_PAGES if self.limit is None else self.limit // _PAGE
        if size + pages > most and self.limit is not None:
            raise DeviceError(f"wasm: {limit_reached(self.limit, size * _PAGE)}")
        # Grow in large steps: each asks the system.
        wanted = min(max(pages, size // 4), most - size)
        try:
            self._memory.grow(max(wanted, pages))
        except WasmtimeError as e:
            raise DeviceError(f"wasm: cannot grow the memory to {bytes_text(count)} (it ends at 4 GiB): {e}") from None

    @property
    def reserved(self) -> int:
        return self._memory.size

    @property
    def untouched(self) -> int:
        return self._heap.untouched

    def leave_untouched(self, address: int, count: int) -> None:
        self._memory.in_small_pages(address, count)

    def trim(self) -> None:
        if self._heap.end > self.reserved - _PAGE:
            return
        memory, count = self._memory, self._heap.end
        self._memory = LinearMemory(self._engine, -(-count // _PAGE), _MOST_PAGES)
        ctypes.memmove(self._pointer(0, count), memory.data, count)
        self._leave_team()  # modules follow as they are run

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
        return self._memory.data + address

    def write(self, address: int, array: np.ndarray) -> None:
        ctypes.memmove(self._pointer(address, array.nbytes), array.ctypes.data, array.nbytes)

    def read(self, address: int, out: np.ndarray) -> None:
        ctypes.memmove(out.ctypes.data, self._pointer(address, out.nbytes), out.nbytes)

    def link(self, binary: bytes) -> Linked:
        try:
            module = self._compiled(for_shared_memory(binary))
            return Linked(module, self._instantiated(module))
        except WasmtimeError as e:
            raise DeviceError(f"wasm: the module does not load: {e}") from None

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

    def use_threads(self, count: int) -> None:
        if self._is_stoppable and count > 1:
            raise DeviceError(f"wasm: got {count} threads, and a device under a time limit has one; leave threads= out")
        self.threads = count
        self._leave_team()

    def _leave_team(self) -> None:
        """Let the other threads end; the next run that is shared starts its own."""
        if self._team is not None:
            self._team.end()
            self._team = None

    def can_share(self, module: Linked) -> bool:
        find = self._instance(module).function
        return all((found := find(name)) and found.count == count for name, count in _SHARING.items())

    def _instance(self, linked: Linked) -> WasmInstance:
        if linked.instance.memory is not self._memory:
            linked.instance = self._instantiated(linked.module)
        return linked.instance

    def _instantiated(self, module: WasmModule) -> WasmInstance:
        return self._stopped_in_time(
            WasmInstance, self._engine, self._memory, module, 1 if self._is_stoppable else None
        )

    def run(self, module: Linked, words: np.ndarray, at: int, spaces: tuple[int, int] | None) -> int:
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
        given = signed(start + 4 * at), signed(end)
        if spaces is None:
            stopped = self._call(self._function(instance, NAME), *given)
        else:
            stopped = self._call_together(module, instance, spaces, *given)
        if stopped is None:
            raise FormatError(f"wasm: the module's function {NAME} answers None, expected an int32")
        stopped %= 1 << 32
        if stopped != end:
            self.read(start, words)  # the run has changed the counts of remaining turns in them
        return (stopped - start) // 4

    def _stopped_in_time(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """A call, which the thread's time limit ends."""
        limit = time_limit()
        if not (self._is_stoppable and limit.is_finite):
            return function(*arguments)
        try:
            with stopped_by(self._engine.increment_epoch, limit.end):
                return function(*arguments)
        except WasmtimeError:
            limit.check()
            raise

    @staticmethod
    def _function(instance: WasmInstance, name: str) -> WasmFunction:
        found = instance.function(name)
        if found is None:
            raise FormatError(f"wasm: the module has no function {name} of int32")
        return found

    def _call(self, function: WasmFunction, *arguments: int) -> int | None:
        if self._is_stoppable:
            function.store.set_epoch_deadline(1)
        try:
            return self._stopped_in_time(function, *arguments)
        except WasmtimeError as e:
            raise _failed(str(e)) from None

    def _call_together(
        self, module: Linked, instance: WasmInstance, spaces: tuple[int, int], *arguments: int
    ) -> int | None:
        """A run with the help of other threads."""
        if self._team is None:
            from .thread_team import ThreadTeam  # noqa: PLC0415 (short runs need none)

            self._team = ThreadTeam(self._engine, self._memory, self.threads - 1)
        team, close = self._team, self._function(instance, "close")
        try:
            team.begin(module.module, spaces)
            return self._call(self._function(instance, NAME), *arguments)
        except DeviceError:
            if team.failures:  # which is why the run of this thread ends in a trap
                raise _failed(team.failures[0]) from None
            raise
        finally:
            close()

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
                self._call(self._function(instance, f"k{values[k] & FUNCTION}"), *given, *ALONE)
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
            empty = self._function(self._instantiated(WasmModule.compiled(self._engine, for_shared_memory(code))), "f")
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
            "threads": self.threads,
            "memory": self.reserved,
            "used": self._heap.used,
        }


def cores() -> int:
    """The processor's cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _failed(trap: str) -> DeviceError:
    return DeviceError(f"wasm: a kernel failed: {trap.rpartition('wasm trap: ')[2].strip()}")


def signed(word: int) -> int:
    """An address, which may have its highest bit set, as the int32 that modules take."""
    return word - (1 << 32) if word >= 1 << 31 else word
