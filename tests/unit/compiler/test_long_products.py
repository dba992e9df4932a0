"""Products of a long depth and few tiles: in parts of the depth on targets that have room for them, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from direct import evaluate

from singe.compiler.rewrite.long_products import in_parts
from singe.dtypes import float32
from singe.graph import Builder, Graph, gradient, postorder


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "parts"),
    [
        (64, 1024, 64, 2),
        (64, 4096, 128, 8),
        (64, 512, 64, 1),
        (63, 4096, 64, 1),
        (64, 1023, 64, 1),
        (4096, 1024, 4096, 1),
    ],
)
def test_a_long_product_of_few_tiles_is_computed_in_parts(rows: int, depth: int, columns: int, parts: int) -> None:
    b = Builder()
    x, y = b.input("x", (rows, depth), float32), b.input("y", (depth, columns), float32)
    graph = Graph((x, y), (b.dot(x, y),), ("z",))
    split = in_parts(graph, filled_by=2048)
    (product,) = [n for n in split.nodes if n.op == "dot"]
    assert product.shape == ((parts, rows, columns) if parts > 1 else (rows, columns))
    assert in_parts(graph, filled_by=1) is graph
    if parts > 1:
        given = [np.random.default_rng(k).standard_normal(n.shape, np.float32) for k, n in enumerate((x, y))]
        (found,), _ = evaluate(split, given)
        np.testing.assert_allclose(found, given[0] @ given[1], rtol=1e-4, atol=1e-4)


def test_weights_that_are_constants_stay_in_one_part() -> None:
    b = Builder()
    x = b.input("x", (64, 4096), float32)
    graph = Graph((x,), (b.dot(x, b.const(np.ones((4096, 64), np.float32), float32)),), ("z",))
    assert in_parts(graph, filled_by=2048) is graph


def test_the_gradient_of_a_weight_is_one_product_of_all_rows() -> None:
    b = Builder()
    x, w = b.input("x", (4, 8, 16), float32), b.input("w", (16, 32), float32)
    graph = Graph((x, w), (b.dot(x, w),), ("y",))
    (slope,) = gradient(graph, b, [b.expand(b.const(1.0, float32), shape=(4, 8, 32))], [w])
    assert [n.shape for n in postorder([slope]) if n.op == "dot"] == [(16, 32)]
