"""The threads that help with runs of the backend "wasm" outside of pages.

A thread has an instance of each module whose runs it helped with, all over the one memory, and waits for a job: the number of a run, with
which it calls the module's function `serve` (shared_runs.py), which returns when the run has ended. So it costs nothing while there is
no run. Threads begin with the first run that they can help with, end with their engine, and before the process forks.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from threading import Lock, Thread
from typing import Final, TypeAlias
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, finalize, ref

from .calls import STATE, STATE_BYTES
from .libwasmtime import LinearMemory, WasmEngine, WasmInstance, WasmModule, WasmtimeError

_MOST_RUNS: Final = 1 << 31
_END_SECONDS: Final = 1.0
"""How long a process that forks waits for threads to end."""
Job: TypeAlias = "tuple[ReferenceType[WasmModule], int] | None"
"""A module, and the number of a run of it; None: end."""


class Post:
    """Where one thread waits for the latest job of another one."""

    def __init__(self) -> None:
        self._job: Job = None
        self._is_empty: Final = Lock()
        self._is_empty.acquire()

    def put(self, job: Job) -> None:
        self._job = job
        with suppress(RuntimeError):  # an earlier job was not taken yet, and this one comes instead
            self._is_empty.release()

    def take(self) -> Job:
        self._is_empty.acquire()
        return self._job


class ThreadTeam:
    """Threads beside the one of a run. failures: why a run failed in one of them."""

    def __init__(self, engine: WasmEngine, memory: LinearMemory, others: int) -> None:
        self.memory: Final = memory
        self.others: Final = others
        self.failures: Final[list[str]] = []
        self._engine: Final = engine
        self._threads: list[tuple[Thread, Post]] = []
        self._run = 0
        _TEAMS.add(self)
        finalize(self, _end, self._threads)

    def begin(self, module: WasmModule, spaces: tuple[int, int]) -> None:
        """Have the threads help with a run of a module. spaces: the address of the first workspace of theirs, and the bytes between two."""
        if not self._threads:
            self._start()
        self.failures.clear()
        self._run = self._run % (_MOST_RUNS - 1) + 1
        # In this order: STATE, which threads that come before the first shared call look at, GROUP, and what begins at RUN.
        words = (ctypes.c_uint32 * 8)(0, self._run, 0, 0, self._run, *spaces, 0)
        ctypes.memmove(self.memory.data + STATE, words, ctypes.sizeof(words))
        for _, post in self._threads:
            post.put((ref(module), self._run))

    def _start(self) -> None:
        ctypes.memset(self.memory.data + STATE, 0, STATE_BYTES)
        for number in range(self.others):
            post = Post()
            given = (self._engine, self.memory, post, self.failures)
            thread = Thread(target=_help, args=given, name=f"singe wasm {number + 1}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no more threads: those that there are do the work
                break
            self._threads.append((thread, post))

    def end(self) -> None:
        """Let the threads end, and wait until they have."""
        threads = [*self._threads]
        _end(self._threads)
        for thread, _ in threads:
            thread.join(_END_SECONDS)


def _end(threads: list[tuple[Thread, Post]]) -> None:
    while threads:
        threads.pop()[1].put(None)


def _help(engine: WasmEngine, memory: LinearMemory, post: Post, failures: list[str]) -> None:
    """What a thread does."""
    instances: WeakKeyDictionary[WasmModule, WasmInstance] = WeakKeyDictionary()
    while (job := post.take()) is not None:
        module, number = job[0](), job[1]
        if module is None:
            continue
        instance = instances.get(module)
        try:
            if instance is None:
                instance = instances[module] = WasmInstance(engine, memory, module)
            serve, fail = instance.function("serve"), instance.function("fail")
        except WasmtimeError:  # no room for an instance: the others do the work
            continue
        assert serve is not None
        assert fail is not None
        try:
            serve(number)
        except WasmtimeError as e:
            failures.append(str(e))
            fail()
        del module, instance, serve, fail


_TEAMS: Final[WeakSet[ThreadTeam]] = WeakSet()


def _before_fork() -> None:
    for team in [*_TEAMS]:
        team.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
