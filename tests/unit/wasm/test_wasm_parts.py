"""The parts of a kernel on the target "wasm" share its work: each writes only its own range, all are of nearly equal
size, and part k of n is parts 2k and 2k + 1 of 2n.

Every test that uses test_wasm_kernels.execute checks that any number of parts gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wasmtime
from devices import few
from wasm_checks import ENGINE, SAME, TARGET, convolution, g, matrices, r

from singe.dtypes import float32
from singe.ir import scalar as s
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store
from singe.shapes import known, size
from singe_wasm.kernels.thread_shares import choose_loop
from singe_wasm.levels import LEVELS

N = size("N")
UNTOUCHED = 12345.0


def _map(*grid: int) -> Kernel:
    """exp of a tensor whose loops do not merge."""
    variables = [g(k, d) for k, d in enumerate(grid)]
    index: s.Expr = s.const(0, variables[0].dtype)
    for v, d in zip(variables, grid, strict=True):
        index = index * (d + 1) + v
    return Kernel((Port(float32), Port(float32, True)), grid, (), (Store(1, index, s.exp(s.load(0, index, float32))),))


def _row_sums(rows: int, columns: int) -> Kernel:
    fold = Reduce("a0", "add", s.load(0, g(0, rows) * columns + r(0, columns), float32))
    return Kernel(
        (Port(float32), Port(float32, True)), (rows,), (columns,), (fold, Store(1, g(0, rows), fold.accumulator))
    )


def _conv(*given: object, **options: object) -> Routine:
    return convolution(*given, **options)[0]  # pyright: ignore[reportArgumentType]


def _column_sums(rows: int, columns: int) -> Kernel:
    fold = Reduce("a0", "add", s.load(0, r(0, rows) * columns + g(0, columns), float32))
    return Kernel(
        (Port(float32), Port(float32, True)), (columns,), (rows,), (fold, Store(1, g(0, columns), fold.accumulator))
    )


KERNELS: dict[str, Callable[[], Kernel | Routine]] = {
    "a long map": lambda: _map(5000),
    "a map of rows": lambda: _map(40, 9),
    "a map whose outer loop is short": lambda: _map(2, 3000),
    "sums of rows": lambda: _row_sums(100, 33),
    "sums of columns": lambda: _column_sums(80, 600),
    "sums of few columns": lambda: _column_sums(80, 88),
    "a product of many rows": lambda: matrices(200, 24, 16)[0],
    "a product of many columns": lambda: matrices(1, 640, 16)[0],
    "a product of few rows": lambda: matrices(20, 640, 16)[0],
    "products": lambda: matrices(7, 9, 5, batch=(24,))[0],
    "a product of an open size": lambda: matrices(N * 50, 24, 16)[0],
    "a convolution": lambda: _conv(1, (24, 24), 8, 16, (5, 5), pads=(SAME, SAME)),
    "a convolution by tiles": lambda: _conv(1, (48, 48), 8, 8, (3, 3), pads=(SAME, SAME)),
    "a convolution by few tiles": lambda: _conv(1, (14, 14), 16, 64, (3, 3), pads=(SAME, SAME)),
    "a pointwise convolution": lambda: _conv(1, (24, 24), 8, 16, (1, 1)),
    "a convolution to one channel": lambda: _conv(1, (24, 24), 8, 1, (3, 3), pads=(SAME, SAME)),
    "a convolution of a line to one channel": lambda: _conv(1, (1500,), 1, 1, (9,), strides=(2,)),
    "a depthwise convolution": lambda: _conv(1, (24, 24), 8, 8, (3, 3), pads=(SAME, SAME), group=8),
    "a depthwise convolution of channels": lambda: _conv(1, (5, 5), 96, 96, (3, 3), pads=(SAME, SAME), group=96),
}


@few(1, "level", LEVELS)
@pytest.mark.parametrize("name", KERNELS)
def test_parts_write_ranges_of_their_own(name: str, level: str) -> None:
    kernel = KERNELS[name]()
    ports = kernel.ports
    sizes = {"N": 3}
    room = 1 << 17  # elements for each port: more than any of these has
    printed = TARGET.print(kernel, [1])
    assert printed is not None
    modules, variants = TARGET.link([printed])
    entry = next(v.entry for v in variants[0] if v.entry.startswith(level + ":")).split(":")[1]
    store = wasmtime.Store(ENGINE)
    count = len(ports) + (printed.scratch != 0)
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(4 * room * count // 65536 + 1, None)))
    run: Any = wasmtime.Instance(store, wasmtime.Module(ENGINE, modules[level]), [memory]).exports(store)[entry]
    addresses = [256 + 4 * room * k for k in range(count)]
    (written,) = (k for k, port in enumerate(ports) if port.written)
    arguments = [*addresses, *(known(d, sizes) for d in printed.sizes)]

    def touched(part: int, parts: int) -> np.ndarray:
        memory.write(store, np.full(room - 64, UNTOUCHED, np.float32).tobytes(), addresses[written])
        run(store, *arguments, part, parts)
        found = bytes(memory.read(store, addresses[written], addresses[written] + 4 * (room - 64)))
        return np.frombuffer(found, np.float32) != UNTOUCHED

    everything = touched(0, 1)
    for parts in (2, 3):
        own = [touched(part, parts) for part in range(parts)]
        assert np.array_equal(np.sum(own, axis=0), everything), "no element twice, none left out"
        shares = [mine.sum() / everything.sum() for mine in own]
        assert 0.6 / parts < min(shares) <= max(shares) < 1.5 / parts, shares
        halves = [touched(half, 2 * parts) for half in range(2 * parts)]
        for part, mine in enumerate(own):
            assert np.array_equal(np.sum(halves[2 * part : 2 * part + 2], axis=0), mine), "a part is its halves"


def test_of_equal_loops_the_one_that_divides_evenly_is_cut() -> None:
    assert choose_loop([33, 24], equal=2) == 1
    assert choose_loop([33, 24]) == 0, "the outer one, where an inner one costs more"
    assert choose_loop([131, 30], equal=2) == 0, "the outer one, where the difference is small"
    assert choose_loop([12, 33, 24], equal=2) == 0, "the batch before both"
    assert choose_loop([9, 24], equal=2) == 1
    assert choose_loop([33, 8], equal=2) == 0, "not a loop of few turns"
