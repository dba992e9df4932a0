"""Kernels compute what their loops say, and rewriting their loops or their memory never changes the results."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from singe.dtypes import float16, float32, int32, uint8
from singe.ir import affine, scalar
from singe.ir.interpreter import interpret
from singe.ir.kernel import IDENTITY, Kernel, Port, Reduce, Store, collapse, identity, loop_vars, matmul_operands
from singe.ir.scalar import Expr
from singe.shapes import Dim, Shape, known, product, size

N = size("N")
SIZES = {"N": 3}
F32 = Port(float32)


def run(kernel: Kernel, arrays: Sequence[np.ndarray], out: np.ndarray) -> np.ndarray:
    """The kernel's last port after a run; `out` is its content before."""
    out = out.copy()
    interpret(kernel, [*(a.reshape(-1) for a in arrays), out.reshape(-1)], SIZES)
    return out


def random_kernel(rng: random.Random) -> tuple[Kernel, list[tuple[int, ...]]]:
    """Inputs read row-major, transposed, broadcast, reversed or shifted over a random grid; sometimes folded."""
    grid: list[Dim] = [rng.choice([1, 2, 3, 4, N]) for _ in range(rng.randint(1, 4))]
    inner: Shape = (rng.choice([1, 2, 5]),) if rng.random() < 0.4 else ()
    g, r = loop_vars("g", tuple(grid)), loop_vars("r", inner)
    ports, shapes, value = [], [], scalar.const(0.5, float32)
    for number in range(rng.randint(1, 3)):
        axes = list(range(len(grid)))
        way = rng.choice(["plain", "plain", "transposed", "broadcast", "reversed"])
        if way == "transposed":
            rng.shuffle(axes)
        if way == "broadcast":
            axes = [a for a in axes if rng.random() < 0.6]
        coords: list[Expr] = [g[a] for a in axes]
        dims: list[Dim] = [grid[a] for a in axes]
        if way == "reversed" and axes:
            last = axes[-1]
            coords[-1] = scalar.size(grid[last] - 1) - g[last]
        if inner and rng.random() < 0.7:
            coords, dims = [*coords, r[0]], [*dims, inner[0]]
        element = scalar.load(number, affine.flatten(coords, tuple(dims)), float32)
        value = value + element * rng.choice([1.0, -2.0, 0.25])
        if rng.random() < 0.3:  # a value that depends on the place itself
            value = scalar.select(scalar.lt(rng.choice(g), 2), value, scalar.neg(value))
        ports.append(F32)
        shapes.append(tuple(known(d, SIZES) for d in dims))
    out = affine.flatten(g, tuple(grid))
    stages: list[Reduce | Store] = [Store(len(ports), out, value)]
    if inner:
        fold = Reduce("a0", rng.choice(["add", "max", "min"]), value)
        stages = [fold, Store(len(ports), out, fold.accumulator * 2.0)]
    return Kernel((*ports, Port(float32, written=True)), tuple(grid), inner, tuple(stages)), shapes


@pytest.mark.slow
def test_collapse_keeps_the_meaning() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        kernel, shapes = random_kernel(rng)
        noise = np.random.default_rng(seed)
        arrays = [noise.standard_normal(s, np.float32) for s in shapes]
        blank = np.full(known(product(kernel.grid), SIZES), np.nan, np.float32)
        keep = rng.choice([0, 0, 1])
        merged = collapse(kernel, keep=keep)
        assert len(merged.grid) <= len(kernel.grid)
        assert merged.points == kernel.points
        if keep:
            assert merged.grid[-1:] == kernel.grid[-1:]
        np.testing.assert_array_equal(
            run(merged, arrays, blank), run(kernel, arrays, blank), f"{kernel}\nbecame\n{merged}"
        )


def test_collapse_merges_what_is_walked_as_one() -> None:
    g = loop_vars("g", (2, N, 4))
    flat = affine.flatten(g, (2, N, 4))
    plain = Kernel((F32, Port(float32, True)), (2, N, 4), (), (Store(1, flat, scalar.load(0, flat, float32)),))
    assert collapse(plain).grid == (N * 8,)
    assert collapse(plain, keep=1).grid == (N * 2, 4)
    bias = scalar.load(0, g[2], float32)
    assert collapse(Kernel(plain.ports, plain.grid, (), (Store(1, flat, bias),))).grid == (N * 2, 4)
    turned = scalar.load(0, affine.flatten((g[2], g[1]), (4, N)), float32)
    assert collapse(Kernel(plain.ports, plain.grid, (), (Store(1, flat, turned),))).grid == (2, N, 4)


def test_in_place_renumbers_every_load() -> None:
    """An input whose memory the output takes, beside loads within the indices of other loads."""
    (i,) = loop_vars("g", (6,))
    pick = scalar.load(1, i, int32)
    value = scalar.load(0, i, float32) + scalar.load(2, pick, float32) * scalar.load(3, i, float32)
    kernel = Kernel((F32, Port(int32), F32, F32, Port(float32, True)), (6,), (), (Store(4, i, value),))
    assert kernel.replaceable == {4: (0, 3)}
    noise = np.random.default_rng(0)
    x, table, factor = (noise.standard_normal(6, np.float32) for _ in range(3))
    index = np.array([5, 0, 3, 3, 1, 2], np.int32)
    want = x + table[index] * factor
    np.testing.assert_array_equal(run(kernel, [x, index, table, factor], np.zeros(6, np.float32)), want)
    np.testing.assert_array_equal(run(kernel.in_place(0, 4), [index, table, factor], x), want)
    np.testing.assert_array_equal(run(kernel.in_place(3, 4), [x, index, table], factor), want)


def test_memory_is_not_replaced_where_it_is_read_again() -> None:
    (i,) = loop_vars("g", (6,))
    store = lambda value: Kernel((F32, Port(float32, True)), (6,), (), (Store(1, i, value),))
    here = scalar.load(0, i, float32)
    assert store(here * 2.0).replaceable == {1: (0,)}
    assert store(here + scalar.load(0, scalar.const(0, int32), float32)).replaceable == {1: ()}
    assert store(scalar.load(0, 5 - i, float32)).replaceable == {1: ()}
    narrow = Kernel((Port(float16), Port(float32, True)), (6,), (), (Store(1, i, scalar.load(0, i, float16)),))
    assert narrow.replaceable == {1: ()}


def test_stores_that_follow_each_other_write_when_all_is_read() -> None:
    """Each of two stores overwrites the input that the other one reads: both must read the old values."""
    (i,) = loop_vars("g", (6,))
    a, b = scalar.load(0, i, float32), scalar.load(1, i, float32)
    ports = (F32, F32, Port(float32, True), Port(float32, True))
    kernel = Kernel(ports, (6,), (), (Store(2, i, b + 1.0), Store(3, i, a * b)))
    assert kernel.replaceable == {2: (0, 1), 3: (0, 1)}
    both = kernel.in_place(0, 2).in_place(0, 2)
    assert both.ports == (Port(float32, True), Port(float32, True))
    noise = np.random.default_rng(0)
    x, y = (noise.standard_normal(6, np.float32) for _ in range(2))
    wanted = y + 1, x * y
    interpret(both, [x, y])
    np.testing.assert_array_equal([x, y], wanted)


def test_stores_narrow_and_loads_widen() -> None:
    (i,) = loop_vars("g", (4,))
    grown = Kernel((Port(uint8), Port(uint8, True)), (4,), (), (Store(1, i, scalar.load(0, i, uint8) + 250),))
    assert run(grown, [np.array([0, 5, 6, 255], np.uint8)], np.zeros(4, np.uint8)).tolist() == [250, 255, 0, 249]
    third = Kernel((Port(float16), Port(float16, True)), (4,), (), (Store(1, i, scalar.load(0, i, float16) / 3.0),))
    x = np.array([1, 2, 65504, np.inf], np.float16)
    np.testing.assert_array_equal(
        run(third, [x], np.zeros(4, np.float16)), (x.astype(np.float32) / np.float32(3)).astype(np.float16)
    )


def test_stages_follow_each_other_and_inner_stores_see_the_folds() -> None:
    """Softmax as one kernel: two folds, then a store for each point of the inner loop."""
    (g,), (r,) = loop_vars("g", (N,)), loop_vars("r", (4,))
    x = scalar.load(0, g * 4 + r, float32)
    top = Reduce("a0", "max", x)
    total = Reduce("a1", "add", scalar.exp(x - top.accumulator))
    value = scalar.exp(x - top.accumulator) / total.accumulator
    kernel = Kernel((F32, Port(float32, True)), (N,), (4,), (top, total, Store(1, g * 4 + r, value, inner=True)))
    given = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    got = run(kernel, [given], np.zeros((3, 4), np.float32))
    np.testing.assert_allclose(got.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(got, np.exp(given) / np.exp(given).sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("word", IDENTITY)
def test_a_fold_over_nothing_is_its_identity_and_what_follows_still_reads(word: str) -> None:
    (g,), (r,) = loop_vars("g", (3,)), loop_vars("r", (0,))
    fold = Reduce("a0", word, scalar.load(0, g * 0 + r, float32))
    bias = scalar.load(1, g, float32)
    kernel = Kernel(
        (F32, F32, Port(float32, True)),
        (3,),
        (0,),
        (
            fold,
            Store(2, g, scalar.select(scalar.isnan(fold.accumulator), bias, bias + 1.0)),
        ),
    )
    got = run(kernel, [np.zeros(0, np.float32), np.array([1, 2, 3], np.float32)], np.zeros(3, np.float32))
    assert got.tolist() == [2, 3, 4]
    assert identity(word, float32).value == IDENTITY[word](float32)


def test_matmul_operands_are_told_apart_by_what_they_depend_on() -> None:
    m, n = loop_vars("g", (4, 5))
    (k,) = loop_vars("r", (3,))
    a, b = scalar.load(0, m * 3 + k, float32), scalar.load(1, k * 5 + n, float32)
    for first in (a * b, b * a):
        kernel = Kernel((F32, F32, Port(float32, True)), (4, 5), (3,), (Reduce("a0", "add", first),))
        assert matmul_operands(kernel) == (a, b)
    mixed = Kernel((F32, F32, Port(float32, True)), (4, 5), (3,), (Reduce("a0", "add", scalar.exp(a * b)),))
    assert matmul_operands(mixed) is None
