"""path_sums equals its reference, and its gradient differences, on every device that compiles; and sums over paths by hand."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, Run, run_model, runners
from rows.differences import differences
from rows.references import REFERENCES

from singe.dtypes import float32
from singe.errors import ShapeError
from singe.graph import Builder, Graph, gradient, inline
from singe.ops.folds.paths import IMPOSSIBLE
from singe.shapes import size

REFERENCE: Any = REFERENCES["path_sums"]
SHAPES = [((2, 3), 4, 1), ((2, 4), 3, 2), ((3, 5), 6, 3), ((2, 1), 2, 3), ((1, 3), 1, 2)]
"""(batch, states), steps, jumps."""


def graph_of(batch: Any, states: Any, count: Any, jumps: int) -> Graph:
    """The sums, and the gradients of Σ seed · sums by all inputs."""
    b = Builder()
    inputs = [b.input("first", (batch, states), float32)]
    inputs += [b.input(f"w{k}", (count, batch, states), float32) for k in range(jumps)]
    y = b.path_sums(*inputs)
    seed = b.input("seed", y.shape, float32)
    parts = gradient(Graph(tuple(inputs), (y,), ("y",)), b, [seed], inputs)
    return Graph((*inputs, seed), (y, *parts), ("y", *(f"d{k}" for k in range(len(parts)))))


def drawn(rng: np.random.Generator, batch: int, states: int, count: int, jumps: int) -> list[np.ndarray]:
    shapes = [(batch, states), *[(count, batch, states)] * (jumps + 1)]
    return [rng.uniform(-3, 3, shape).astype(np.float32) for shape in shapes]


@pytest.mark.slow
@runners("numpy", "wasm", "webgpu")
def test_values_and_gradients(run_graph: Run) -> None:
    rng = np.random.default_rng(5)
    for (batch, states), count, jumps in SHAPES:
        arrays = drawn(rng, batch, states, count, jumps)
        *inputs, seed = [a.astype(np.float64) for a in arrays]
        y, *parts = run_graph(graph_of(batch, states, count, jumps), arrays)
        np.testing.assert_allclose(y, REFERENCE(*inputs), rtol=1e-5, atol=1e-5)

        def loss(given: Any, seed: np.ndarray = seed) -> float:
            return float((seed * REFERENCE(*given)).sum())

        for k, part in enumerate(parts):
            np.testing.assert_allclose(part, differences(loss, inputs, k), rtol=1e-4, atol=1e-4)


@RUNNERS
def test_one_program_serves_every_number_of_steps_and_examples(run_graph: Run) -> None:
    rng = np.random.default_rng(6)
    graph = graph_of(size("N"), 4, size("T"), 2)
    for batch, count in ((1, 5), (3, 2)):
        arrays = drawn(rng, batch, 4, count, 2)
        y, *_ = run_graph(graph, arrays)
        np.testing.assert_allclose(y, REFERENCE(*arrays[:-1]), rtol=1e-5, atol=1e-5)


def test_it_is_the_sum_over_all_paths() -> None:
    rng = np.random.default_rng(7)
    first, *steps = (a.astype(np.float64) for a in drawn(rng, 1, 3, 3, 2)[:-1])
    total = 0.0
    for path in product(range(3), repeat=4):  # the states at first and after each step
        jumps = np.diff(path)
        if path[-1] == 2 and set(jumps) <= {0, 1}:
            total += np.exp(first[0, path[0]] + sum(steps[j][k, 0, path[k + 1]] for k, j in enumerate(jumps)))
    np.testing.assert_allclose(REFERENCE(first, *steps)[-1, 0, 2], np.log(total))


@RUNNERS
def test_states_without_a_path_have_no_gradient_and_no_nan(run_graph: Run) -> None:
    first = np.array([[0, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE]], np.float32)
    steps = [np.zeros((2, 1, 4), np.float32)] * 2
    seed = np.zeros((2, 1, 4), np.float32)
    seed[-1, 0, 2] = 1
    y, *parts = run_graph(graph_of(1, 4, 2, 2), [first, *steps, seed])
    np.testing.assert_allclose(y[:, 0], [[0, 0, IMPOSSIBLE, IMPOSSIBLE], [0, np.log(2), 0, IMPOSSIBLE]], atol=1e-6)
    np.testing.assert_allclose(parts[0], [[1, 0, 0, 0]])
    assert all(np.isfinite(p).all() for p in parts)


@pytest.mark.slow
def test_the_gradient_has_a_gradient() -> None:
    rng = np.random.default_rng(8)
    arrays = drawn(rng, 1, 3, 3, 2)
    graph = graph_of(1, 3, 3, 2)
    b = Builder()
    inputs = [b.input(x.name, x.shape, x.dtype) for x in graph.inputs]
    slope = inline(graph, b, inputs)[2]
    squares = b.mul(slope, slope)
    ones = b.expand(b.const(1.0), shape=slope.shape)
    (found,) = gradient(Graph(tuple(inputs), (squares,), ("y",)), b, [ones], [inputs[2]])
    (got,) = run_model("numpy", Graph(tuple(inputs), (found,), ("dd",)), arrays)

    def loss(given: Any) -> float:
        once = Graph(graph.inputs, (graph.outputs[2],), ("d",))
        return float((run_model("numpy", once, [np.float32(a) for a in given])[0].astype(float) ** 2).sum())

    want = differences(loss, [a.astype(np.float64) for a in arrays], 2, step=1e-2)
    np.testing.assert_allclose(got, want, atol=1e-3)


def test_shapes_that_do_not_fit_are_refused() -> None:
    b = Builder()
    first, step = b.input("first", (2, 3), float32), b.input("step", (4, 2, 5), float32)
    with pytest.raises(ShapeError, match=r"\(2, 3\) at first and steps of \(4, 2, 5\)"):
        b.path_sums(first, step)
