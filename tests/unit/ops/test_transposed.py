"""The transposed convolution: each input is added, times the window, to the outputs that it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from devices import ALL_BUT_SHADERS, Run, few

from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.ops.products.transposed import transposed_last

CASES = [
    # strides, window, dilations, input, before, sizes, groups
    ((2, 2), (3, 3), (1, 1), (4, 5), (1, 1), (7, 9), 1),
    ((2, 2), (3, 3), (1, 1), (4, 4), (1, 1), (8, 8), 2),
    ((2, 3), (1, 1), (1, 1), (3, 4), (0, 0), (6, 11), 1),
    ((3, 1), (4, 3), (1, 1), (3, 5), (2, 0), (9, 4), 1),
    ((2, 2), (3, 2), (2, 1), (3, 4), (1, 0), (8, 9), 1),
    ((3,), (5,), (1,), (4,), (3,), (11,), 2),
    ((2,), (3,), (1,), (5,), (0,), (13,), 1),
    ((2, 2), (4, 4), (1, 1), (4, 5), (1, 1), (8, 10), 1),  # one convolution: each remainder has as many places
]


def expected(x: np.ndarray, w: np.ndarray, case: Sequence[Any]) -> np.ndarray:
    strides, window, dilations, length, before, sizes, group = case
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(length, strides, window, dilations, strict=True)]
    ends = [max(r, lo + n) for r, lo, n in zip(reach, before, sizes, strict=True)]
    each, outputs = w.shape[-2] // group, w.shape[-1]
    y = np.zeros((x.shape[0], *ends, group * outputs))
    for i in np.ndindex(*length):
        for k in np.ndindex(*window):
            at = tuple(a * s + q * d for a, s, q, d in zip(i, strides, k, dilations, strict=True))
            for g in range(group):
                part = slice(g * each, (g + 1) * each)
                y[(slice(None), *at, slice(g * outputs, (g + 1) * outputs))] += (
                    x[(slice(None), *i, part)] @ w[(*k, part)]
                )
    return y[(slice(None), *(slice(lo, lo + n) for lo, n in zip(before, sizes, strict=True)))]


@ALL_BUT_SHADERS
@few(4, "case", CASES, ids=lambda case: f"{case[0]}{case[1]}{case[2]}")
def test_inputs_are_added_where_their_windows_reach(case: Sequence[Any], run_graph: Run) -> None:
    strides, window, dilations, length, before, sizes, group = case
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, *length, 2 * group)).astype(np.float32)
    w = rng.standard_normal((*window, 2 * group, 3)).astype(np.float32)
    b = Builder()
    a, v = b.input("x", x.shape, float32), b.input("w", w.shape, float32)
    y = transposed_last(b, a, v, strides, dilations, before, sizes, group)
    (found,) = run_graph(Graph((a, v), (y,), ("y",)), [x, w])
    want = expected(x, w, case)
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_no_products_with_zeros_where_remainders_differ() -> None:
    b = Builder()
    x, w = b.input("x", (1, 7, 7, 48), float32), b.input("w", (3, 3, 48, 32), float32)
    y = transposed_last(b, x, w, (2, 2), (1, 1), (1, 1), (14, 14), 1)
    todo, places = [y], 0
    seen = set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        todo += node.inputs
        if node.op in ("dot", "conv_last"):
            window = node.inputs[1].shape[:-2]
            places += int(np.prod(window)) * 49
    assert places == 9 * 49
