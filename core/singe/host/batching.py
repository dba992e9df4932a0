"""A model that is served: a queue of requests, one thread in which its runs are made, and batches.

Requests whose shapes agree but for the first size are joined along it, run once, and split again, where the model allows it: the
first size of each input and output is one open size, which is in no other place, and rows do not depend on each other, which is
tried out on random numbers. If a joined run fails, each of its requests is run alone, so that a wrong one spoils no other.

A model that keeps states begins each request with their initial values.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import numpy as np

from ..awaitables import resolve
from ..dtypes import DType, narrowed, string, widened
from ..errors import InputError, ShapeError, SingeError
from ..late_dataclass import dataclass
from ..model.arguments import TensorSpec
from ..model.compiled import CompiledModel
from ..model.model import Model
from ..shapes import Size
from ..time_limits import OutOfTime, limited
from .metrics import ModelCounts
from .protocol import Refused, check_ports

RETRY_SECONDS: Final = 1
"""What a client that finds the queue full is told to wait."""
MAX_RUNS: Final = 16
TURN_SECONDS: Final = 0.01
"""How many runs of single requests are one turn of the thread, and how long it may take before the last of them begins: to hand each
over alone takes longer than a small run."""
PROBE_SIZES: Final = (8, 32, 224)
"""For open sizes beside that of rows, when it is tried out whether rows depend on each other: the first with which the model runs."""
PROBE_TOLERANCE: Final = 1e-3
"""Of the largest number; twenty times that for floats of 16 bits."""

Arrays: TypeAlias = Mapping[str, np.ndarray]


@dataclass(eq=False)
class _Waiting:
    """A request in the queue. rows: its first size, or 0 if it is not joined with others; others are joined that have an equal key.
    end: when it must be answered."""

    arrays: Arrays
    key: tuple[tuple[int, ...], ...]
    rows: int
    done: asyncio.Future[Arrays]
    since: float
    end: float


class ServedModel:
    """See the module's docstring. batch: the most rows that are run together; wait: for how many seconds a request waits for others;
    limit: how many may wait; seconds: how long a request may take, from when it is here to its outputs."""

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        batch: int = 1,
        wait: float = 0.002,
        limit: int = 256,
        seconds: float = math.inf,
    ) -> None:
        if model.source.objects:
            raise InputError(
                f"{name}: it takes lists, dicts or None, and models are served that take and return tensors; give another"
            )
        self.name: Final = name
        self.model: Final = model
        self.inputs: Final = model.inputs
        self.outputs: Final = model.outputs
        try:
            check_ports((*self.inputs, *self.outputs))
        except InputError as e:
            raise InputError(f"{name}: {e}") from None
        self._is_open: Final = isinstance(model, CompiledModel) or not model.needed
        if self._is_open and model.program().results:
            raise InputError(
                f"{name}: it returns lists, dicts or None, and models are served that take and return tensors; give another"
            )
        self.counts: Final = ModelCounts()
        self.counts.waiting = lambda: len(self._queue)
        self._seconds: Final = seconds
        self._states: Final = bool(model.states)
        self.alone: Final = self._why_alone() if batch > 1 else "requests run one by one"
        """Why requests are not joined, or ""."""
        self._most: Final = 1 if self.alone else min(batch, model.sizes.bounds.get(str(_row_size(self.inputs)), batch))
        self._wait: Final = wait
        self._limit: Final = limit
        self._queue: Final = deque[_Waiting]()
        self._thread: Final = ThreadPoolExecutor(1, f"singe host {name}")
        self._arrived: Final = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._stopped = ""
        self._refused = 0

    async def infer(self, arrays: Arrays) -> Arrays:
        """The outputs of a run; it waits for its turn."""
        if self._stopped:
            raise Refused(503, self._stopped)
        if len(self._queue) >= self._limit:
            retry = ((b"retry-after", str(RETRY_SECONDS).encode()),)
            raise Refused(
                503, f"{len(self._queue)} requests wait for this model, and no more may: try again later", retry
            )
        loop = asyncio.get_running_loop()
        rows, key = self._rows(arrays)
        now = time.monotonic()
        waiting = _Waiting(arrays, key, rows, loop.create_future(), now, now + self._seconds)
        self._queue.append(waiting)
        self._arrived.set()
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._empty())
        try:
            return await asyncio.wait_for(waiting.done, None if self._seconds == math.inf else self._seconds)
        except (TimeoutError, OutOfTime):
            raise Refused(
                504, f"the answer was not there after {self._seconds:g} s, and the server allows no more: ask for less"
            ) from None

    async def stop(self, reason: str) -> int:
        """Refuse what waits and what comes, and wait for the end of what runs; how many were refused."""
        self._stopped = reason
        self._refuse()
        self._arrived.set()
        if self._work is not None and not self._work.done():
            await asyncio.wait((self._work,))
        self._thread.shutdown(wait=False)
        return self._refused

    def _refuse(self) -> None:
        for waiting in self._queue:
            if not waiting.done.done():
                waiting.done.set_exception(Refused(503, self._stopped))
                self._refused += 1
        self._queue.clear()

    # --- the queue ---

    async def _empty(self) -> None:
        """Run what waits, until nothing does."""
        loop = asyncio.get_running_loop()
        while self._queue:
            await self._gather()
            batch = self._taken()
            if not batch:
                continue
            together = len(batch) > 1 and batch[0].rows > 0
            found = await loop.run_in_executor(self._thread, self._ran, batch, together)
            runs = [batch] if together else [[w] for w in batch[: len(found)]]
            for run in runs:
                self.counts.rows.add(sum(w.rows or 1 for w in run))
            for waiting, result in zip(batch, found, strict=False):
                if waiting.done.done():  # its client has left
                    continue
                if isinstance(result, Exception):
                    waiting.done.set_exception(result)
                else:
                    waiting.done.set_result(result)
            self._queue.extendleft(reversed(batch[len(found) :]))
            if self._stopped:
                self._refuse()

    async def _gather(self) -> None:
        """Wait until a batch is full, or its first request has waited long enough."""
        first = self._queue[0]
        if not first.rows:
            return
        end = first.since + self._wait
        while self._queue and sum(w.rows for w in self._queue if w.key == first.key) < self._most:
            left = end - time.monotonic()
            if left <= 0:
                return
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), left)
            except TimeoutError:
                return

    def _taken(self) -> list[_Waiting]:
        """What is run next, which leaves the queue: the first request, and those that are joined with it, or run after it in one turn."""
        found, left, rows = list[_Waiting](), list[_Waiting](), 0
        for waiting in self._queue:
            if waiting.done.done():
                continue
            first = found[0] if found else waiting
            if first.rows:
                fits = waiting.key == first.key and waiting.rows > 0 and rows + waiting.rows <= self._most
            else:
                fits = not waiting.rows and len(found) < MAX_RUNS
            rows += waiting.rows if fits else 0
            (found if fits else left).append(waiting)
        self._queue.clear()
        self._queue.extend(left)
        return found

    def _rows(self, arrays: Arrays) -> tuple[int, tuple[tuple[int, ...], ...]]:
        """How many rows a request has, 0 if it runs alone; and what must be equal in those that are joined with it."""
        if self._most == 1:
            return 0, ()
        shapes = [arrays[p.name].shape for p in self.inputs]
        counts = {shape[0] for shape in shapes}
        rows = counts.pop() if len(counts) == 1 else 0
        return (rows if rows <= self._most else 0), tuple(shape[1:] for shape in shapes)

    # --- runs, in the thread ---

    def _ran(self, batch: Sequence[_Waiting], together: bool) -> list[Arrays | Exception]:
        """The outputs of each request, or what went wrong: of all, if they are run together; otherwise of as many as a turn has time
        for."""
        if together:
            try:
                with limited(max(w.end for w in batch) - time.monotonic()):
                    return list(self._joined([w.arrays for w in batch]))
            except OutOfTime as e:
                return [e] * len(batch)
            except Exception:  # each is run alone, and tells its own error
                return [self._alone(waiting) for waiting in batch]
        found, end = list[Arrays | Exception](), time.monotonic() + TURN_SECONDS
        for waiting in batch:
            found.append(self._alone(waiting))
            if time.monotonic() > end:
                break
        return found

    def _alone(self, waiting: _Waiting) -> Arrays | Exception:
        try:
            with limited(waiting.end - time.monotonic()):
                return self._run(waiting.arrays)
        except Exception as e:  # it becomes a response
            return e

    def _joined(self, requests: Sequence[Arrays]) -> Sequence[Arrays]:
        counts = [next(iter(arrays.values())).shape[0] for arrays in requests]
        results = self._run({p.name: np.concatenate([a[p.name] for a in requests]) for p in self.inputs})
        if any(a.shape[:1] != (sum(counts),) for a in results.values()):
            raise ShapeError("the outputs do not have the rows of the inputs; run each request alone")
        ends = np.cumsum(counts)
        return [
            {name: a[end - count : end] for name, a in results.items()} for end, count in zip(ends, counts, strict=True)
        ]

    def _run(self, arrays: Arrays) -> Arrays:
        program = self.model.program({name: a.shape for name, a in arrays.items()}, arrays)
        session = self.model.session() if self._states else None
        found = resolve(program.start([arrays[p.name] for p in program.inputs], session), "")
        return {p.name: a for p, a in zip(program.outputs, found, strict=True)}

    # --- whether requests may be joined ---

    def _why_alone(self) -> str:
        ports = (*self.inputs, *self.outputs)
        first = {p.shape[0] if p.shape else None for p in ports}
        size = next(iter(first))
        if len(first) != 1 or not isinstance(size, Size):
            return "requests run one by one: the first size of each input and output must be one that is open"
        others = [d for p in ports for d in (p.shape or ())[1:] if isinstance(d, Size)]
        if any(size.names & d.names for d in others):
            return f"requests run one by one: {size} is in other places than the first"
        if self._states or not self._is_open:
            return "requests run one by one: the model keeps states, or is compiled for each size"
        return self._why_dependent(str(size), {name for d in others for name in d.names})

    def _why_dependent(self, rows: str, others: set[str]) -> str:
        """Whether rows depend on each other, by random numbers."""
        for n in PROBE_SIZES if others else PROBE_SIZES[:1]:
            rng = np.random.default_rng(0)
            sizes = {name: min(n, self.model.sizes.bounds.get(name, n)) for name in others}
            requests = [{p.name: _drawn(p, {**sizes, rows: count}, rng) for p in self.inputs} for count in (1, 2)]
            try:
                joined, single = self._joined(requests), [self._run(arrays) for arrays in requests]
            except (SingeError, MemoryError):
                continue
            equal = all(_close(a[k], b[k]) for a, b in zip(joined, single, strict=True) for k in a)
            return "" if equal else "requests run one by one: rows of a batch depend on each other"
        return "requests run one by one: the model runs with none of the sizes with which it was tried out"


def _row_size(inputs: Sequence[TensorSpec]) -> Any:
    """The first size of the first input."""
    return inputs[0].shape[0] if inputs and inputs[0].shape else None


def _drawn(spec: TensorSpec, sizes: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    """Random numbers for an input; of integers only 0 and 1, which most models take for any of theirs."""
    shape = tuple(d if isinstance(d, int) else sizes[str(d)] for d in spec.shape or ())
    return _as(rng.normal(size=shape) if spec.dtype.is_float else rng.integers(0, 2, shape), spec.dtype)


def _as(values: np.ndarray, kind: DType) -> np.ndarray:
    if kind is string:
        return narrowed(values.astype(str).astype(object), kind)
    return narrowed(values.astype(np.float32), kind) if kind.held else values.astype(kind.numpy)


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    x, y = widened(a), widened(b)
    if x.dtype.kind == "f":
        scale = float(np.abs(y[np.isfinite(y)]).max(initial=0))
        tolerance = PROBE_TOLERANCE * (1 if a.dtype.itemsize > 2 else 20)
        return bool(np.allclose(x, y, tolerance, tolerance * scale, equal_nan=True))
    return bool(np.array_equal(x, y))
