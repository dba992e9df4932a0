"""A fold leaves out the turns of inner loops that conditions exclude; the result has the same bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from wasm_checks import check, g, r

from singe.dtypes import DType, bool_, float32, int32
from singe.ir import affine
from singe.ir import scalar as s
from singe.ir.kernel import Kernel, Port, Reduce, Store, identity
from singe.shapes import Dim, known, product, size
from singe_wasm.kernels.ranges import take_ranges

N = size("N")


@dataclass(frozen=True)
class Pool:
    """A fold over windows of the rows and columns of two planes.

    apart: the distance of windows. before: the padding. spread: the distance of elements in a window. flip: each window is
    walked from its end.
    """

    word: str
    shape: tuple[Dim, Dim]
    window: tuple[int, int] = (3, 3)
    apart: int = 1
    before: int = 1
    spread: int = 1
    flip: bool = False
    kind: DType = float32

    @property
    def results(self) -> tuple[Dim, Dim]:
        return (self.shape[0] - 1) // self.apart + 1, (self.shape[1] - 1) // self.apart + 1

    def kernel(self) -> Kernel:
        grid = (2, *self.results)
        plane, *places = (g(i, d) for i, d in enumerate(grid))
        at, inside = [], s.const(True, bool_)
        for axis, (place, many, length) in enumerate(zip(places, self.window, self.shape, strict=True)):
            tap = r(axis, many)
            q = place * self.apart + (many - 1 - tap if self.flip else tap) * self.spread - self.before
            limit = affine.from_linear({}, length)
            inside = s.and_(inside, s.and_(s.le(0, q), s.lt(q, limit)))
            at.append(s.clip(q, 0, limit - 1))
        loaded = s.load(0, affine.flatten((plane, *at), (2, *self.shape)), self.kind)
        fold = Reduce("a0", self.word, s.select(inside, loaded, identity(self.word, self.kind)))
        store = Store(1, affine.flatten((plane, *places), grid), fold.accumulator)
        return Kernel((Port(self.kind), Port(self.kind, True)), grid, self.window, (fold, store))


CASES: dict[str, tuple[Pool, int]] = {
    "max": (Pool("max", (9, 24)), 2),
    "sum, two apart": (Pool("add", (10, 32), apart=2), 2),
    "from the end": (Pool("add", (10, 32), apart=2, flip=True), 2),
    "wide window": (Pool("min", (5, 20), (7, 9), before=4), 2),
    "spread": (Pool("max", (12, 24), before=2, spread=2), 0),
    "integers": (Pool("max", (9, 24), (2, 3), kind=int32), 2),
    "open": (Pool("max", (N, N)), 2),
    "outside": (Pool("add", (3, 16), (2, 2), before=6), 2),
}
"""Pools, and how many of their inner loops get a range when no loop takes lanes."""


@pytest.mark.parametrize("name", CASES)
def test_ranges(name: str) -> None:
    pool, expected = CASES[name]
    kernel = pool.kernel()
    _, found = take_ranges(kernel, None)
    assert len(found["a0"]) == expected
    rng = np.random.default_rng(0)
    for sizes in ({"N": 1}, {"N": 6}) if name == "open" else ({},):
        count, results = (known(product((2, *d)), sizes) for d in (pool.shape, pool.results))
        x = rng.integers(-9, 9, count).astype(pool.kind.numpy)
        if pool.kind.is_float:
            x[rng.random(count) < 0.05] = np.nan
            x[x == 0] = -0.0
        check(kernel, [x, np.zeros(results, x.dtype)], sizes)


def test_a_condition_that_differs_between_lanes_stays() -> None:
    kernel = CASES["max"][0].kernel()
    _, found = take_ranges(kernel, kernel.grid_vars[-1])
    assert list(found["a0"]) == [kernel.inner_vars[0]]


def test_another_value_than_the_neutral_one_stays() -> None:
    row, tap = g(0, 12), r(0, 3)
    place = row + tap - 1
    inside = s.and_(s.le(0, place), s.lt(place, 12))
    total = Reduce("a0", "add", s.select(inside, s.load(0, s.clip(place, 0, 11), float32), 1.0))
    kernel = Kernel((Port(float32), Port(float32, True)), (12,), (3,), (total, Store(1, row, total.accumulator)))
    made, found = take_ranges(kernel, None)
    assert made == kernel
    assert not found["a0"]
    check(kernel, [np.arange(12, dtype=np.float32), np.zeros(12, np.float32)])


def test_a_fold_over_few_elements_that_uses_another_fold() -> None:
    """The differences from the mean of three neighbours, whose turns are written out."""
    row, column, tap = g(0, 4), g(1, 16), r(0, 3)
    loaded = s.load(0, (row * 3 + tap) * 16 + column, float32)
    total = Reduce("a0", "add", loaded)
    gap = loaded - total.accumulator * (1 / 3)
    spread = Reduce("a1", "add", gap * gap)
    stages = (total, spread, Store(1, row * 16 + column, spread.accumulator))
    kernel = Kernel((Port(float32), Port(float32, True)), (4, 16), (3,), stages)
    x = np.random.default_rng(0).standard_normal(192).astype(np.float32)
    check(kernel, [x, np.zeros(64, np.float32)])
