"""Folds of many elements into few results: in two steps on targets that have room for them, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from direct import evaluate

from singe.compiler.rewrite.long_folds import folded_in_parts
from singe.dtypes import DType, float16, float32
from singe.graph import Builder, Graph
from singe.shapes import size


def folded(shape: tuple[int, ...], axes: tuple[int, ...], op: str = "reduce_sum", kind: DType = float32) -> Graph:
    b = Builder()
    x = b.input("x", shape, kind)
    return Graph((x,), (getattr(b, op)(x, axes=axes),), ("y",))


@pytest.mark.parametrize(
    ("shape", "axes", "first"),
    [
        ((256, 256), (0, 1), (64,)),  # 1,024 elements for each workgroup
        ((3, 1 << 15), (1,), (3, 32)),
        ((32, 128, 512), (0, 1), (128, 512)),  # results beside each other: an invocation for each
        ((64, 16, 32, 32), (0, 2, 3), (64, 16)),
        ((256, 16), (0,), None),  # few elements
        ((4096, 512), (1,), None),  # many results
        ((8, 1 << 20), (0,), None),
        ((1, 4099, 8), (1,), None),  # no equal parts
    ],
)
def test_a_long_fold_of_few_results_is_computed_in_two_steps(
    shape: tuple[int, ...], axes: tuple[int, ...], first: tuple[int, ...] | None
) -> None:
    graph = folded(shape, axes)
    assert folded_in_parts(graph, filled_by=1) is graph
    split = folded_in_parts(graph, filled_by=2048)
    if first is None:
        assert split is graph
        return
    steps = [n for n in split.nodes if n.op == "reduce_sum"]
    assert len(steps) == 2
    assert first in [tuple(d for d in n.shape if d != 1) for n in steps]
    given = np.random.default_rng(0).standard_normal(shape, np.float32)
    (found,), _ = evaluate(split, [given])
    np.testing.assert_allclose(found, given.astype(np.float64).sum(axes, keepdims=True), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("op", ["reduce_min", "reduce_max"])
def test_the_least_and_the_largest_are_the_same_in_two_steps(op: str) -> None:
    given = np.random.default_rng(0).standard_normal((1, 1 << 15), np.float32)
    (found,), _ = evaluate(folded_in_parts(folded(given.shape, (1,), op), filled_by=2048), [given])
    (whole,), _ = evaluate(folded(given.shape, (1,), op), [given])
    np.testing.assert_array_equal(found, whole)


def test_partial_sums_of_float16_are_not_rounded() -> None:
    given = np.ones((1, 1 << 15), np.float16)
    given[0, : 1 << 14] = -1
    given[0, -1] = 100.0
    (found,), _ = evaluate(folded_in_parts(folded(given.shape, (1,), kind=float16), filled_by=2048), [given])
    assert found.dtype == np.float16
    assert found.item() == 99.0


def test_open_sizes_stay_whole() -> None:
    b = Builder()
    x = b.input("x", (size("N"), 1 << 15), float32)
    graph = Graph((x,), (b.reduce_sum(x, axes=(1,)),), ("y",))
    assert folded_in_parts(graph, filled_by=2048) is graph
