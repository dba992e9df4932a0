"""Gradients through `if`, `loop` and the recurrent rows agree with differences in float64, and on devices with NumPy; so do
second gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from devices import few, runners, slow
from networks.recurrent_cases import CASES, built
from rows.differences import differences

from singe.dtypes import FLOATS, DType, float32, float64, int64
from singe.errors import CompileError
from singe.graph import Builder, Graph, Node, gradient
from singe.model.model import Model
from singe.ops import ROWS
from singe.ops.control import repeated
from singe.shapes import size

Make = Callable[[Builder, Sequence[Node]], Node]
RNG = np.random.default_rng(2)
X, W = RNG.uniform(-1, 1, (3, 2)), RNG.uniform(-1, 1, (2, 2))


def number(b: Builder, value: float, like: Node) -> Node:
    return b.const(value, like.dtype)


def branch(b: Builder, x: Node, w: Node, square: bool) -> Graph:
    own, weights = b.input("x", x.shape, x.dtype), b.input("w", w.shape, w.dtype)
    y = b.mul(own, own) if square else b.sin(b.matmul(own, weights))
    return b.graph((own, weights), (y,))


def chosen(b: Builder, given: Sequence[Node]) -> Node:
    """One of two functions of which only the second has the weights."""
    x, w, flag = given
    square, sine = branch(b, x, w, True), branch(b, x, w, False)
    return b.apply(ROWS["if"], b.greater(flag, b.const(0)), x, w, then=square, otherwise=sine)


def powers(b: Builder, given: Sequence[Node]) -> Node:
    """Five turns of x ← tanh(x · w) + x, with what the turns' numbers make of it."""
    x, w = given

    def turn(before: Sequence[Node], captured: Sequence[Node]) -> list[Node]:
        k, value = before
        grown = b.add(b.tanh(b.matmul(value, captured[0])), value)
        return [b.add(k, b.const(1)), b.mul(grown, b.cos(b.cast(k, to=value.dtype)))]

    return repeated(b, 5, [b.const(0), x], [w], turn)[1]


def until_large(b: Builder, given: Sequence[Node]) -> Node:
    """x doubles and turns until its sum of squares exceeds 50: only a run knows how often."""
    x, w = given
    before, inner = b.input("x", x.shape, x.dtype), b.input("w", w.shape, w.dtype)
    after = b.mul(b.add(before, b.sin(b.matmul(before, inner))), number(b, 1.5, x))
    total = b.reduce_sum(b.mul(after, after), axes=(0, 1))
    body = b.graph((before, inner), (b.less(total, number(b, 50, x)), after))
    return b.apply(ROWS["loop"], b.const(True), x, w, body=body, carried=1, conditional=True, count=100)


def no_turn(b: Builder, given: Sequence[Node]) -> Node:
    """A loop whose condition never holds is its initial value."""
    x, w, flag = given
    before, inner = b.input("x", x.shape, x.dtype), b.input("w", w.shape, w.dtype)
    body = b.graph((before, inner), (b.const(True), b.matmul(before, inner)))
    return b.apply(
        ROWS["loop"], b.greater(flag, b.const(9)), x, w, body=body, carried=1, conditional=True, count=4
    )  # fmt: skip


def rows_in_turn(b: Builder, given: Sequence[Node]) -> Node:
    """A running product of rows read at each turn and written to a buffer, of which later turns read."""
    x, w = given
    n, width = x.shape

    def turn(before: Sequence[Node], captured: Sequence[Node]) -> list[Node]:
        k, state, buffer = before
        row = b.gather(captured[0], k, axis=0)
        state = b.sub(b.mul(state, row), b.reshape(b.gather(buffer, b.const(0), axis=0), shape=(width,)))
        state = b.reshape(b.matmul(b.reshape(state, shape=(1, width)), captured[1]), shape=(width,))
        return [b.add(k, b.const(1)), state, b.update_slice(buffer, b.reshape(state, shape=(1, width)), k, b.const(0))]

    first = [b.const(0), b.expand(number(b, 1, x), shape=(width,)), b.expand(number(b, 0.5, x), shape=(n, width))]
    return repeated(b, n, first, [x, w], turn)[2]


def nested(b: Builder, given: Sequence[Node]) -> Node:
    """A loop of loops with an `if` within, all of which read the weights."""
    x, w = given

    def inner(before: Sequence[Node], captured: Sequence[Node]) -> list[Node]:
        (y,) = before
        flag = b.greater(b.reshape(b.reduce_sum(y, axes=(0, 1)), shape=()), number(b, 0, x))
        return [b.apply(ROWS["if"], flag, y, captured[0], then=branch(b, y, captured[0], True),
                        otherwise=branch(b, y, captured[0], False))]  # fmt: skip

    def outer(before: Sequence[Node], captured: Sequence[Node]) -> list[Node]:
        (y,) = repeated(b, 2, before, captured, inner)
        return [b.add(y, b.matmul(before[0], captured[0]))]

    return repeated(b, 3, [x], [w], outer)[0]


FUNCTIONS: dict[str, tuple[Make, Sequence[np.ndarray]]] = {
    "if taken": (chosen, (X, W, np.array(1))),
    "if not taken": (chosen, (X, W, np.array(-1))),
    "loop": (powers, (X, W)),
    "conditional loop": (until_large, (X, W)),
    "loop without turns": (no_turn, (X, W, np.array(1))),
    "reads and writes rows": (rows_in_turn, (X, W)),
    "nested": (nested, (X, W)),
}


def graphs(make: Make, arrays: Sequence[np.ndarray], kind: DType, orders: int) -> list[Graph]:
    """Graphs of a weighted sum, of its gradients, of the weighted sum of these, of its gradients, …"""
    b = Builder()
    inputs = tuple(
        b.input(f"x{k}", (size("N"), *a.shape[1:]) if k == 0 else a.shape, kind if a.dtype.kind == "f" else int64)
        for k, a in enumerate(arrays)
    )
    floats = [x for x in inputs if x.dtype in FLOATS]
    found, outputs = [], (make(b, inputs),)
    for _ in range(orders):
        loss = b.const(0.0, kind)
        for y in outputs:
            part = b.mul(b.sin(b.add(y, number(b, 0.3, y))), number(b, 1.7, y))
            loss = b.add(loss, b.reshape(b.reduce_sum(part, axes=tuple(range(len(y.shape)))), shape=()))
        outputs = tuple(gradient(Graph(inputs, (loss,), ("loss",), b.size_nodes), b, [b.const(1.0, kind)], floats))
        found += [
            Graph(inputs, (loss,), ("loss",), b.size_nodes),
            Graph(inputs, outputs, ("",) * len(floats), b.size_nodes),
        ]
    return found


def run(graph: Graph, arrays: Sequence[Any], device: str = "numpy") -> list[np.ndarray]:
    return [np.asarray(y) for y in Model(graph, device).program().run(list(arrays))]


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_regions(name: str) -> None:
    make, arrays = FUNCTIONS[name]
    made = graphs(make, arrays, float64, 2)
    for loss, parts in (made[:2], made[2:]):
        program = Model(loss, "numpy").program()
        for k, part in enumerate(run(parts, arrays)):
            want = differences(lambda a, p=program: float(p.run(list(a))[0]), list(arrays), k)
            np.testing.assert_allclose(part, want, atol=1e-6 * max(1, np.abs(want).max()), err_msg=f"by input {k}")


@few(4, "name", FUNCTIONS)
@runners("wasm", *slow("webgpu"))
def test_gradients_of_regions_on_devices(name: str, device_name: str) -> None:
    make, arrays = FUNCTIONS[name]
    given = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
    wanted = run(graphs(make, arrays, float64, 1)[1], arrays)
    for part, want in zip(run(graphs(make, arrays, float32, 1)[1], given, device_name), wanted, strict=True):
        np.testing.assert_allclose(part, want, atol=1e-5 * max(1, np.abs(want).max()))


RECURRENT = [
    pytest.param(c, id=f"{c[0]} {direction}", marks=[pytest.mark.slow] * (direction == "bidirectional"))
    for c in CASES
    for direction in [c[2].get("direction", "forward")]
]


@pytest.mark.slow
@pytest.mark.parametrize("case", RECURRENT)
@runners("wasm", *slow("webgpu"))
def test_gradients_of_recurrent_rows(case: Any, device_name: str) -> None:
    """By all inputs, with seeds for all results, of open length and batch."""
    op, given, attrs = case

    def prepared(kind: str) -> tuple[Graph, list[np.ndarray], list[np.ndarray]]:
        graph, arrays = built(op, given, attrs, kind)
        b = Builder()
        seeds = [b.input(f"seed{k}", y.shape, y.dtype) for k, y in enumerate(graph.outputs)]
        by = [x for x in graph.inputs if x.dtype in FLOATS]
        parts = gradient(graph, b, seeds, by)
        rng = np.random.default_rng(1)
        values = [rng.uniform(0.5, 1.5, y.shape).astype(kind) for y in run(graph, arrays)]
        return Graph((*graph.inputs, *seeds), tuple(parts), ("",) * len(parts), b.size_nodes), arrays, values

    graph, arrays, seeds = prepared("float64")
    wanted = run(graph, [*arrays, *seeds])
    if device_name == "wasm":
        program = Model(built(op, given, attrs, "float64")[0], "numpy").program()

        def loss(at: Sequence[np.ndarray]) -> float:
            return float(sum((s * np.asarray(y)).sum() for s, y in zip(seeds, program.run(list(at)), strict=True)))

        floats = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]
        for k, part in zip(floats, wanted, strict=True):
            want = differences(loss, arrays, k)
            np.testing.assert_allclose(part, want, atol=1e-7 * max(1, np.abs(want).max()), err_msg=f"by input {k}")
    narrow, arrays, seeds = prepared("float32")
    for part, want in zip(run(narrow, [*arrays, *seeds], device_name), wanted, strict=True):
        np.testing.assert_allclose(part, want, atol=2e-6 * max(1, np.abs(want).max()))


def test_a_loop_that_grows_what_it_carries_is_refused() -> None:
    b = Builder()
    x = b.input("x", (2, 3), float32)
    before = b.input("grown", (size("K"), 3), float32)
    body = b.graph((before,), (b.const(True), b.concat(before, before, axis=0)))
    y = b.apply(ROWS["loop"], x, body=body, carried=1, conditional=False, count=3)
    total = b.reshape(b.reduce_sum(y, axes=(0, 1)), shape=())
    with pytest.raises(CompileError, match="carried value 0 changes its shape"):
        gradient(Graph((x,), (total,), ("y",), b.size_nodes), b, [b.const(1.0)], [x])
