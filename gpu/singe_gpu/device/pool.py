"""Memory of a GPU: the strategies by which pieces of buffers are taken, and the pool that counts them.

A piece may be given back while submitted work still reads it: the queue runs in order.
"""

from __future__ import annotations

import gc
import itertools
import math
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, ClassVar, Final

from singe.extension import (
    DeviceError,
    DeviceLost,
    DType,
    Heap,
    Memory,
    MemoryKind,
    MemoryLedger,
    MemoryUse,
    align,
    bytes_text,
    limit_reached,
)

from .memory import MIN_BUFFER_BYTES, Binding, Gpu, Handle, Transfer

KEPT_BYTES: Final = 1 << 28
"""The idle memory that is kept where sg.Memory does not say."""
PAGE_BYTES: Final = 1 << 24
"""The bytes of a page."""
SLICES_PER_PAGE: Final = 4
"""What is larger than this part of a page has a page of its own."""
PAGES_IN_LIMIT: Final = 8
"""A limit has room for at least so many pages."""
MAX_BUFFERS_APART: Final = 8
"""A piece that must not be in more buffers than these has a buffer of its own."""


def exact_size(count: int) -> int:
    """The size of the smallest buffer for so many bytes."""
    return max(MIN_BUFFER_BYTES, -(-count // 4) * 4)


def size_class(count: int) -> int:
    """The size of the buffer that serves a request: four classes for each power of two."""
    step = max(MIN_BUFFER_BYTES, 1 << max(0, count - 1).bit_length() >> 3)
    return max(MIN_BUFFER_BYTES, -(-count // step) * step)


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """`size` bytes of a buffer, taken for `count` bytes that were asked for."""

    buffer: Handle
    offset: int
    size: int
    count: int
    kind: MemoryKind
    source: BufferSource


class BufferSource:
    """A strategy: it takes buffers from the device, and gives out pieces of them. `keep`: the most idle bytes that it keeps."""

    name: ClassVar[str]

    def __init__(self, pool: Pool, keep: int) -> None:
        self.pool: Final = pool
        self.keep = keep
        self.reserved = 0
        """Bytes of the buffers that it has."""

    def take(self, count: int, apart: Sequence[Handle]) -> tuple[Handle, int, int]:
        """A buffer that is none of `apart`, an offset in it, and the size of the piece."""
        raise NotImplementedError

    def give(self, piece: Piece) -> None:
        raise NotImplementedError

    def clean(self) -> None:
        """Free what is idle."""

    def _allocate(self, size: int) -> Handle:
        buffer = self.pool.allocate(size)
        self.reserved += size
        return buffer

    def _free(self, buffer: Handle, size: int) -> None:
        self.pool.gpu.free(buffer)
        self.reserved -= size


class ExactBuffers(BufferSource):
    """Each piece is a buffer of just its size, which is freed when it is given back."""

    name = "exact"

    def take(self, count: int, apart: Sequence[Handle]) -> tuple[Handle, int, int]:
        size = exact_size(count)
        return self._allocate(size), 0, size

    def give(self, piece: Piece) -> None:
        self._free(piece.buffer, piece.size)


class PersistentBuffers(ExactBuffers):
    """Those of weights and states, under every strategy."""

    name = "persistent"


class ExclusiveBuffers(BufferSource):
    """Each piece is a buffer of its size class. Of those that were given back, the oldest serves the next of its class: so a run that
    takes what the one before took gets the same buffers in the same places, and its commands are those of before."""

    name = "exclusive"

    def __init__(self, pool: Pool, keep: int) -> None:
        super().__init__(pool, keep)
        self._idle: Final[dict[int, list[tuple[int, Handle]]]] = defaultdict(
            list
        )  # a size ↦ a heap of ages and buffers
        self._idle_bytes = 0
        self._ages: Final[dict[int, int]] = {}  # the identity of a buffer ↦ how many there were before it
        self._numbers: Final = itertools.count()

    def take(self, count: int, apart: Sequence[Handle]) -> tuple[Handle, int, int]:
        size = size_class(count)
        size = size if size <= self.pool.gpu.limits.buffer else exact_size(count)
        idle = self._idle[size]
        if idle:
            self._idle_bytes -= size
            return heappop(idle)[1], 0, size
        buffer = self._allocate(size)
        self._ages[id(buffer)] = next(self._numbers)
        return buffer, 0, size

    def give(self, piece: Piece) -> None:
        if self._idle_bytes + piece.size > self.keep:
            self._drop(piece.buffer, piece.size)
            return
        heappush(self._idle[piece.size], (self._ages[id(piece.buffer)], piece.buffer))
        self._idle_bytes += piece.size

    def clean(self) -> None:
        for size, buffers in self._idle.items():
            while buffers:
                self._idle_bytes -= size
                self._drop(buffers.pop()[1], size)

    def _drop(self, buffer: Handle, size: int) -> None:
        del self._ages[id(buffer)]
        self._free(buffer, size)


class _PageFull(Exception):
    """A page has no room for a slice."""


class _Page:
    """A buffer that is cut into slices, or has a `single` one."""

    def __init__(self, buffer: Handle, size: int, single: bool) -> None:
        self.buffer: Final = buffer
        self.size: Final = size
        self.single: Final = single
        self.heap: Final = Heap(self._grow, start=0)

    def _grow(self, end: int) -> None:
        if end > self.size:
            raise _PageFull


class SlicedPages(BufferSource):
    """Pieces are slices of pages, the first that has room; large ones have a page of their own."""

    name = "pages"

    def __init__(self, pool: Pool, keep: int) -> None:
        super().__init__(pool, keep)
        self._pages: Final[dict[int, _Page]] = {}  # the identity of a buffer ↦ its page
        self._idle_bytes = 0

    def take(self, count: int, apart: Sequence[Handle]) -> tuple[Handle, int, int]:
        size, limit = align(max(count, 1)), self.pool.memory.limit
        whole = min(PAGE_BYTES, self.pool.gpu.limits.buffer, PAGE_BYTES if limit is None else limit // PAGES_IN_LIMIT)
        single = size > whole // SLICES_PER_PAGE
        for page in self._pages.values():
            fits = page.size == size and not page.heap.used if single else page.size - page.heap.used >= size
            if page.single == single and fits and not any(buffer is page.buffer for buffer in apart):
                try:
                    return page.buffer, self._slice(page, size), size
                except _PageFull:
                    continue
        whole = size if single else whole // MIN_BUFFER_BYTES * MIN_BUFFER_BYTES
        page = _Page(self._allocate(whole), whole, single)
        self._pages[id(page.buffer)] = page
        self._idle_bytes += whole
        return page.buffer, self._slice(page, size), size

    def _slice(self, page: _Page, size: int) -> int:
        was_idle = not page.heap.used
        offset = page.heap.take(size)
        self._idle_bytes -= page.size if was_idle else 0
        return offset

    def give(self, piece: Piece) -> None:
        page = self._pages[id(piece.buffer)]
        page.heap.give(piece.offset, piece.size)
        if page.heap.used:
            return
        self._idle_bytes += page.size
        if self._idle_bytes > self.keep:
            self._drop(page)

    def clean(self) -> None:
        for page in [page for page in self._pages.values() if not page.heap.used]:
            self._drop(page)

    def _drop(self, page: _Page) -> None:
        del self._pages[id(page.buffer)]
        self._idle_bytes -= page.size
        self._free(page.buffer, page.size)


STRATEGIES: Final[Mapping[str, type[BufferSource]]] = {
    source.name: source for source in (ExclusiveBuffers, SlicedPages, ExactBuffers)
}
"""The first is that of devices where sg.Memory does not say."""


class Pool:
    """All memory that a device's arrays and Programs have.

    Finalizers run in any thread and in the middle of anything, so they only note with `release` what is to be freed.
    """

    def __init__(self, gpu: Gpu, memory: Memory | None = None) -> None:
        self.gpu = gpu
        self._released: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._ledger: Final = MemoryLedger()
        self._persistent: Final = PersistentBuffers(self, 0)
        self._sources: list[BufferSource] = [self._persistent]
        self.open = True
        self.memory = memory or Memory()
        self._begin()

    def configure(self, memory: Memory) -> None:
        """Take memory in this way from now on; what was taken before stays where it is until it is given back."""
        if memory != self.memory:
            self.memory = memory
            self._begin()

    def _begin(self) -> None:
        for old in self._sources:
            old.keep = 0
            old.clean()
        name = self.memory.strategy or next(iter(STRATEGIES))
        keep = KEPT_BYTES if self.memory.keep is None else self.memory.keep
        # Where a buffer of which something is read cannot be written, scratch memory shares none with arrays.
        split = name == SlicedPages.name and not self.gpu.shares_buffers
        keep = keep // 2 if split else keep  # of each of the two
        self._arrays = STRATEGIES[name](self, keep)
        self._scratch = ExclusiveBuffers(self, keep) if split else self._arrays
        held = [old for old in self._sources if old.reserved and old is not self._persistent]
        self._sources = list(dict.fromkeys((self._persistent, *held, self._arrays, self._scratch)))

    @property
    def must_part(self) -> bool:
        """Whether a run has to keep arrays that it writes apart from those that it reads."""
        if self.gpu.shares_buffers:
            return False
        return any(isinstance(x, SlicedPages) and (x is self._arrays or x.reserved) for x in self._sources)

    @property
    def reserved(self) -> int:
        """Bytes taken from the device."""
        return sum(source.reserved for source in self._sources)

    def release(self, free: Callable[..., object], *what: Any) -> None:
        """Have `free(*what)` called when memory is next taken."""
        self._released.append((free, what))

    def reclaim(self) -> None:
        """Free what was released."""
        while self._released:
            free, what = self._released.popleft()
            free(*what)

    def take(self, count: int, what: str, kind: MemoryKind = "tensors", apart: Sequence[Handle] = ()) -> Piece:
        """Memory for `count` bytes, in none of the buffers `apart`."""
        self.reclaim()
        limit = self.gpu.limits.buffer
        if exact_size(count) > limit:
            raise DeviceError(
                f"{what} takes {count} bytes ({bytes_text(count)}), a buffer of this device holds at most {limit} ({bytes_text(limit)})"
            )
        if kind in ("weights", "states"):
            source = self._persistent
        else:
            source = self._scratch if kind == "scratch" or len(apart) > MAX_BUFFERS_APART else self._arrays
        try:
            found = source.take(count, apart)
        except DeviceLost:
            raise
        except DeviceError:
            gc.collect()  # cycles may hold arrays
            self.reclaim()
            try:
                found = source.take(count, apart)
            except DeviceLost:
                raise
            except DeviceError as e:
                raise self._ledger.refusal(what, count, str(e)) from e
        piece = Piece(*found, count, kind, source)
        self._ledger.add(kind, source.name, count, piece.size)
        return piece

    def give(self, piece: Piece) -> None:
        if self.open:
            self._ledger.remove(piece.kind, piece.source.name, piece.count, piece.size)
            piece.source.give(piece)

    def allocate(self, size: int) -> Handle:
        """A buffer of the device, for a strategy; idle ones are freed where there is no room for it."""
        limit = self.memory.limit
        if limit is not None and self.reserved + size > limit:
            self._clean_sources()
            if self.reserved + size > limit:
                raise DeviceError(limit_reached(limit, self.reserved))
        try:
            return self.gpu.allocate(size)
        except DeviceLost:
            raise
        except DeviceError:
            before = self.reserved
            self._clean_sources()
            if self.reserved == before:
                raise
            return self.gpu.allocate(size)

    def clean(self) -> None:
        """Free what was released, and all that is idle."""
        self.reclaim()
        self._clean_sources()
        self.gpu.trim()

    def _clean_sources(self) -> None:
        for source in self._sources:
            source.clean()

    def use(self) -> MemoryUse:
        """What is held now."""
        self.reclaim()
        reserved: dict[str, int] = {}
        for source in self._sources:
            reserved[source.name] = reserved.get(source.name, 0) + source.reserved
        return self._ledger.use(reserved, self.memory.limit)

    def reset_peak(self) -> None:
        self.reclaim()
        self._ledger.reset_peak()

    def close(self) -> None:
        self.open = False


class SlotBuffers:
    """The slots of an executable. All of its runs share them, since a device executes commands in order."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._held: list[Piece] = []

    @property
    def bytes(self) -> int:
        return sum(piece.count for piece in self._held)

    def __getitem__(self, number: int) -> Piece:
        return self._held[number]

    def fit(self, counts: Sequence[int]) -> bool:
        """Whether the slots have at least these numbers of bytes."""
        return len(self._held) >= len(counts) and all(n <= p.count for n, p in zip(counts, self._held, strict=False))

    def grow(self, number: int, count: int) -> None:
        """Make room for `count` bytes in a slot; if it was smaller, its contents are lost."""
        what = f"slot {number} of the scratch memory"
        while number >= len(self._held):
            self._held.append(self._pool.take(0, what, "scratch"))
        old = self._held[number]
        if count > old.count:
            self._held[number] = empty = self._pool.take(
                0, what, "scratch"
            )  # and so it stays if there is no memory for more
            self._pool.give(old)
            self._held[number] = self._pool.take(count, what, "scratch")
            self._pool.give(empty)

    def close(self) -> None:
        for piece in self._held:
            self._pool.release(self._pool.give, piece)
        self._held.clear()


class GpuArray:
    """A tensor's elements in a piece of the pool, given back with the last reference."""

    def __init__(
        self, pool: Pool, shape: tuple[int, ...], dtype: DType, element_size: int, kind: MemoryKind = "tensors",
        apart: Sequence[Handle] = (),
    ) -> None:  # fmt: skip
        self.shape = shape
        self.dtype = dtype
        self.element_size = element_size
        self.bytes = math.prod(shape) * element_size
        self._pool = pool
        self._hold(pool.take(self.bytes, f"an array of shape {shape} and type {dtype}", kind, apart))

    def _hold(self, piece: Piece) -> None:
        self.piece = piece
        self._finalizer = weakref.finalize(self, self._pool.release, self._pool.give, piece)
        self._finalizer.atexit = False

    def part_from(self, others: Sequence[GpuArray]) -> None:
        """Move it, if it shares its buffer with others."""
        buffers = [x.piece.buffer for x in others if x is not self]
        if any(buffer is self.piece.buffer for buffer in buffers):
            old, new = self.piece, self._pool.take(self.bytes, "an array that a run changes", self.piece.kind, buffers)
            source, target = (Binding(piece.buffer, piece.offset, piece.size) for piece in (old, new))
            self._pool.gpu.submit([Transfer(source, target)])
            self._finalizer()
            self._hold(new)
