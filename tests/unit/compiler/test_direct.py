"""The evaluator that random graphs are compared with, and a few random graphs in the quick tests."""

from __future__ import annotations

import numpy as np
import pytest
from devices import RUNNERS, few
from direct import evaluate
from networks.random_graphs.draw_flow import FLOW_STEPS, draw
from networks.random_graphs.drawn import check, kinds_on
from networks.random_graphs.draws import STEPS

from singe.dtypes import bool_, float16, float32, int64
from singe.graph import Builder, Graph, GraphState, all_nodes
from singe.ops import ROWS
from singe.shapes import size

N = size("N")


def test_rows_are_evaluated_by_their_references_and_rounded_once() -> None:
    b = Builder()
    x = b.input("x", (N,), float16)
    graph = Graph((x,), (b.softmax(b.mul(x, x), axis=0), b.shape_of(x)), ("y", "n"))
    given = np.array([1.5, 2.25, 0.1], np.float16)
    (y, n), _ = evaluate(graph, [given])
    squared = (given.astype(np.float64) ** 2).astype(np.float16).astype(np.float64)
    np.testing.assert_array_equal(y, (np.exp(squared) / np.exp(squared).sum()).astype(np.float16))
    np.testing.assert_array_equal(n, [3])


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_loops_run_branches_and_find_sizes(limit: int) -> None:
    """A list doubles its length where the turn is even, else its elements."""
    b = Builder()
    x, most = b.input("x", (2,), int64), b.input("most", (), int64)
    turn, held, end = b.input("turn", (), int64), b.input("held", (size("own"),), int64), b.input("end", (), int64)
    p, q = b.input("p", (size("own"),), int64), b.input("q", (size("own"),), int64)
    then, otherwise = Graph((p,), (b.concat(p, p, axis=0),), ("y",)), Graph((q,), (b.add(q, q),), ("y",))
    even = b.equal(b.bitwise_and(turn, b.const(1)), b.const(0))
    longer = b.apply(ROWS["if"], even, held, then=then, otherwise=otherwise)
    after = b.add(turn, b.const(1))
    body = Graph((turn, held, end), (b.less(after, end), after, longer), tuple("cth"), {"if.0": longer})
    first = b.less(b.const(0), most)
    _, made = b.apply(ROWS["loop"], first, b.const(0), x, most, body=body, carried=2, conditional=True)
    count = b.reduce_sum(b.expand(b.const(1), shape=made.shape), axes=(0,))
    (got, length), _ = evaluate(
        Graph((x, most), (made, count), ("y", "n"), b.size_nodes), [np.array([3, 5]), np.array(limit)]
    )
    want = np.array([3, 5])
    for k in range(limit):
        want = np.concatenate([want, want]) if k % 2 == 0 else want * 2
    np.testing.assert_array_equal(got, want)
    assert length.tolist() == [want.size]


def test_states_and_found_sizes_are_told() -> None:
    b = Builder()
    held, x = b.input("held", (2,), float32), b.input("x", (N,), bool_)
    places = b.nonzero(x)
    graph = Graph((x,), (b.expand(b.const(2.0), shape=(places.shape[1], N)),), ("y",), b.size_nodes,
                  (GraphState(held, "held", None, b.add(held, held)),))  # fmt: skip
    (y,), (after,) = evaluate(graph, [np.array([True, False, True])], [np.array([1, 2], np.float32)])
    assert y.shape == (2, 3)
    np.testing.assert_array_equal(after, [2, 4])


@pytest.mark.slow
def test_every_kind_of_step_is_drawn() -> None:
    """Within a hundred graphs each step adds a node, and each kind of region and size is met."""
    graphs = [draw(seed, kinds_on("numpy")).graph for seed in range(100)]
    ops = {n.op for g in graphs for n in all_nodes(g)}
    assert {"if", "loop", "top_k", "sort", "unique", "nonzero", "compress", "update_slice", "matmul", "conv"} <= ops
    assert any(g.states for g in graphs)
    assert any(g.own_size_nodes for g in graphs)
    nested = [
        n
        for g in graphs
        for n in g.nodes
        if n.op == "loop" and any(m.op in ("if", "loop") for m in n.attrs["body"].nodes)
    ]
    assert nested
    assert len(STEPS) > len(FLOW_STEPS) > 5


@RUNNERS
@few(2, "seed", range(1000, 1006))
def test_random_graphs_agree_on_devices(device_name: str, seed: int) -> None:
    check(device_name, draw(seed, kinds_on(device_name)))
