"""The strategies by which a GPU's memory is taken: no two live pieces overlap, nothing is lost, limits hold. No GPU is needed."""

from __future__ import annotations

import gc
import random
from itertools import pairwise
from typing import Any

import pytest
from fake_gpu import FakeGpu

from singe.dtypes import float32
from singe.errors import DeviceError, OutOfMemory
from singe.runtime.memory.settings import Memory
from singe.runtime.memory.usage import KINDS
from singe_gpu.device.pool import KEPT_BYTES, STRATEGIES, ExactBuffers, GpuArray, Piece, Pool

WAYS = pytest.mark.parametrize("strategy", STRATEGIES)
ALLOCATIONS = 10_000


def overlaps(pieces: list[Piece]) -> list[tuple[Piece, Piece]]:
    placed = sorted(pieces, key=lambda p: (id(p.buffer), p.offset))
    return [(a, b) for a, b in pairwise(placed) if a.buffer is b.buffer and a.offset + a.size > b.offset]


@WAYS
@pytest.mark.parametrize("shares_buffers", [True, False])
def test_ten_thousand_random_pieces_overlap_nowhere_and_all_come_back(strategy: Any, shares_buffers: bool) -> None:
    gpu, rng = FakeGpu(shares_buffers), random.Random(0)
    pool = Pool(gpu, Memory(strategy))
    live: list[Piece] = []
    for k in range(ALLOCATIONS):
        if live and rng.random() < 0.5:
            pool.give(live.pop(rng.randrange(len(live))))
        else:
            count = int(2 ** rng.uniform(0, 24))
            apart = [p.buffer for p in rng.sample(live, min(len(live), 3))]
            piece = pool.take(count, "a piece", rng.choice(KINDS), apart)
            assert piece.count == count <= piece.size
            assert piece.offset % 256 == 0
            assert piece.offset + piece.size <= piece.buffer.size
            assert not any(piece.buffer is buffer for buffer in apart)
            live.append(piece)
        if k % 500 == 0:
            assert not overlaps(live)
    assert not overlaps(live)
    use = pool.use()
    assert (use.in_use, use.count) == (sum(p.count for p in live), len(live))
    assert use.padding == sum(p.size - p.count for p in live)
    assert use.reserved == pool.reserved == gpu.taken
    assert (use.peak or 0) >= (use.in_use or 0)
    for shares in (use.by_kind, use.by_pool):
        assert sum(s.in_use for s in shares.values()) == use.in_use
        assert sum(s.count for s in shares.values()) == use.count
    for piece in live:
        pool.give(piece)
    use = pool.use()
    assert (use.in_use, use.padding, use.count) == (0, 0, 0)
    assert gpu.taken <= KEPT_BYTES
    pool.clean()
    assert gpu.taken == pool.reserved == 0


@WAYS
def test_weights_and_states_have_buffers_of_just_their_size(strategy: Any) -> None:
    gpu = FakeGpu()
    pool = Pool(gpu, Memory(strategy))
    for kind in ("weights", "states"):
        piece = pool.take(100_004, "it", kind)
        assert (piece.offset, piece.size, piece.buffer.size) == (0, 100_004, 100_004)
        assert pool.use().by_kind[kind].padding == 0
        pool.give(piece)
        assert gpu.taken == 0


def test_strategies_differ_in_what_they_ask_of_the_device() -> None:
    asked, padding, idle = {}, {}, {}
    ways: Any = STRATEGIES
    for strategy in ways:
        gpu = FakeGpu()
        pool = Pool(gpu, Memory(strategy))
        for _ in range(10):
            pieces = [pool.take(5000, "it") for _ in range(100)]
            padding[strategy] = pool.use().padding
            for piece in pieces:
                pool.give(piece)
        asked[strategy], idle[strategy] = gpu.allocations, pool.reserved
    assert asked == {"exclusive": 100, "pages": 1, "exact": 1000}
    assert padding == {"exclusive": 12_000, "pages": 12_000, "exact": 0}
    assert idle["exact"] == 0


@WAYS
def test_a_limit_frees_what_is_idle_and_then_lists_what_holds_the_memory(strategy: Any) -> None:
    gpu = FakeGpu()
    pool = Pool(gpu, Memory(strategy, limit="16 MiB"))
    for count in (1 << 20, 1 << 21, 3 << 20, 1 << 22):  # each leaves idle memory where the strategy keeps it
        pieces = [pool.take(count, "it") for _ in range(3)]
        assert gpu.taken <= 16 << 20
        for piece in pieces:
            pool.give(piece)
    weights = pool.take(12 << 20, "the weights", "weights")
    with pytest.raises(OutOfMemory, match=r"an array takes 8388608 bytes .*limits this device to 16777216 bytes") as e:
        pool.take(8 << 20, "an array")
    assert "weights  12.6 MB      0 B      1" in str(e.value)
    assert "dispose()" in str(e.value)
    pool.give(weights)
    assert pool.take(8 << 20, "an array").count == 8 << 20


def test_memory_that_the_device_lacks_is_freed_elsewhere_first() -> None:
    gpu = FakeGpu(memory=10 << 20)
    pool = Pool(gpu)
    pool.give(pool.take(6 << 20, "it"))
    assert gpu.taken > 0
    kept = pool.take(8 << 20, "it")  # the idle buffer has gone
    with pytest.raises(OutOfMemory, match="no more memory"):
        pool.take(8 << 20, "it")
    assert pool.use().in_use == kept.count


def test_arrays_in_cycles_are_collected_before_memory_is_refused() -> None:
    pool = Pool(FakeGpu(), Memory("exact", limit="1 MiB"))
    gc.disable()
    try:
        array = GpuArray(pool, (200_000,), float32, 4)
        array.cycle = array  # pyright: ignore[reportAttributeAccessIssue]
        del array
        assert GpuArray(pool, (200_000,), float32, 4).bytes == 800_000
    finally:
        gc.enable()


def test_a_limit_of_the_device_is_no_lack_of_memory() -> None:
    with pytest.raises(DeviceError, match="a buffer of this device holds at most 1024") as e:
        Pool(FakeGpu(buffer=1024)).take(2000, "it")
    assert not isinstance(e.value, OutOfMemory)


@WAYS
def test_another_strategy_leaves_arrays_where_they_are(strategy: Any) -> None:
    gpu = FakeGpu()
    pool = Pool(gpu, Memory("pages"))
    old = [pool.take(1000, "it") for _ in range(3)]
    pool.configure(Memory(strategy))
    new = [pool.take(1000, "it") for _ in range(3)]
    assert not overlaps([*old, *new])
    assert pool.use().in_use == 6000
    assert not pool.must_part
    parting = Pool(FakeGpu(shares_buffers=False), Memory("pages"))
    piece = parting.take(1000, "it")
    parting.configure(Memory(strategy))
    assert parting.must_part  # since there are slices yet
    parting.give(piece)
    parting.configure(Memory("exact"))
    assert not parting.must_part
    for piece in (*old, *new):
        pool.give(piece)
    pool.clean()
    assert gpu.taken == 0


def test_an_array_that_a_run_changes_parts_from_those_that_it_reads() -> None:
    pool = Pool(FakeGpu(shares_buffers=False), Memory("pages"))
    assert pool.must_part
    first, second = (GpuArray(pool, (10,), float32, 4) for _ in range(2))
    assert first.piece.buffer is second.piece.buffer
    first.part_from([first, second])
    assert first.piece.buffer is not second.piece.buffer
    pool.reclaim()
    assert pool.use().count == 2
    del first, second
    gc.collect()
    assert pool.use().count == 0
    scratch = pool.take(10, "a slot", "scratch")
    assert scratch.source.name == "exclusive"


def test_the_peak_begins_anew() -> None:
    pool = Pool(FakeGpu(), Memory("exact"))
    pool.give(pool.take(4000, "it"))
    kept = pool.take(1000, "it")
    assert pool.use().peak == 4000
    pool.reset_peak()
    assert pool.use().peak == kept.count


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != ExactBuffers.name])
def test_runs_that_take_the_same_get_the_same_pieces(strategy: Any) -> None:
    """So the commands of a run, which name them, serve the next ones."""
    rng = random.Random(1)
    pool = Pool(FakeGpu(), Memory(strategy))
    found = set[tuple[tuple[int, int], ...]]()
    for _ in range(20):
        pieces = [pool.take(4 * k, "a piece") for k in (1, 1, 9, 64, 1, 64)]
        found.add(tuple((id(p.buffer), p.offset) for p in pieces))
        rng.shuffle(pieces)
        for piece in pieces:
            pool.give(piece)
    assert len(found) == 1
