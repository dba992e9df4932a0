"""Every row over floats has a gradient or a reason why not; gradients of rows over whole arrays, and second gradients of
all rows, agree with differences in float64."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from devices import run_array, runners
from rows.differences import away_from_kinks, differences
from rows.row_samples import DEAR, SAMPLED, arrays_of, numbers, samples_of, shape_of

from singe.dtypes import FLOATS, dtype, float32, float64
from singe.errors import CompileError
from singe.graph import Builder, Graph, Node, gradient, postorder
from singe.model.model import Model
from singe.ops import ROWS, Composite, Elementwise, Region, Result, Row
from singe.shapes import product

RNG = np.random.default_rng(5)
X = RNG.permutation(24).reshape(4, 6) / 7.0 - 1.5
"""Distinct numbers of either sign, no two near each other."""
Z = np.array([[2.0, 0.0, 3.0, 0.0, 5.0], [0.5, 1.5, -2.0, 0.0, 4.0], [1.0, -2.0, 3.0, -4.0, 5.0]])
"""Rows with two zeros, one, and none."""
AT = np.array([[3, 0, -1, 3], [2, 2, 2, 0]])
PLACES = np.array([[3, 1], [0, -1], [3, 1], [2, 0]])
KEPT = np.array([True, False, True, True])

Case = tuple[str, Callable[..., Node], Sequence[np.ndarray]]


def elements(word: str) -> Callable[..., Node]:
    return lambda b, x, part, at: b.scatter_elements_reduce(x, part, at, axis=0, reduction=word)


def slices(word: str) -> Callable[..., Node]:
    return lambda b, x, part, at: b.scatter_nd_reduce(x, part, at, reduction=word)


CASES: list[Case] = [
    *((f"scatter_elements_reduce {w}", elements(w), (X, X[:2, :4] * 1.1 + 0.013, AT)) for w in ("add", "mul", "max", "min")),
    *((f"scatter_nd_reduce {w}", slices(w), (X, X[:, 0] * 1.1 + 0.013, PLACES)) for w in ("add", "mul", "max", "min")),
    ("scatter_elements_reduce mul of zeros", elements("mul"), (Z, Z[:2, :4] * 0.5, np.abs(AT) % 3)),
    ("sort", lambda b, x: b.sort(x, axis=1)[0], (X,)),
    ("sort descending", lambda b, x: b.sort(x, axis=0, descending=True)[0], (X,)),
    ("top_k", lambda b, x: b.top_k(x, axis=1, k=3, largest=True)[0], (X,)),
    ("compress", lambda b, x, kept: b.compress(x, kept, axis=0), (X, KEPT)),
    ("compress nothing", lambda b, x, kept: b.compress(x, kept, axis=0), (X, ~KEPT & False)),
    ("compress fewer", lambda b, x, kept: b.compress(x, kept, axis=1), (X, KEPT)),
    ("running_prod of zeros", lambda b, x: b.running_prod(x, axis=1), (Z,)),
    ("running_prod of zeros backwards", lambda b, x: b.running_prod(x, axis=1, reverse=True), (Z,)),
    ("pow of zeros", lambda b, x: b.pow(x, b.const(2.0, float64)), (Z,)),
    ("pow of a negative base", lambda b, x: b.pow(x, b.const(3.0, float64)), (X,)),
    ("gather one", lambda b, x, at: b.gather(x, at, axis=1), (X, np.array(-2))),
    ("gather by constants", lambda b, x: b.gather(x, b.const(AT), axis=0), (X,)),
    ("gather many", lambda b, x, at: b.gather(x, at, axis=1), (X, AT)),
    ("gather many at a constant", lambda b, x: b.gather(x, b.const(np.full(20, 2)), axis=1), (X,)),
    ("gather_elements", lambda b, x, at: b.gather_elements(x, at, axis=0), (X, AT)),
    ("gather_nd", lambda b, x, at: b.gather_nd(x, at, batch=0), (X, PLACES)),
]  # fmt: skip


def leaves(b: Builder, arrays: Sequence[np.ndarray]) -> list[Node]:
    return [b.input(f"x{k}", a.shape, dtype(a.dtype)) for k, a in enumerate(arrays)]


def loss_and_parts(make: Callable[..., Node], arrays: Sequence[np.ndarray]) -> tuple[Graph, Graph, list[int]]:
    """Graphs of a weighted sum of a function's results, and of its gradient by each array of floats."""
    b = Builder()
    inputs = leaves(b, arrays)
    y = make(b, *inputs)
    rows = b.reshape(b.cast(b.running_sum(b.expand(b.const(1), shape=y.shape), axis=0), to=float64), shape=y.shape)
    weights = b.sin(b.mul(rows, b.const(0.7, float64)))
    loss = b.reduce_sum(b.mul(y, weights), axes=tuple(range(len(y.shape))))
    floats = [k for k, x in enumerate(inputs) if x.dtype in FLOATS]
    one = b.expand(b.const(1.0, float64), shape=loss.shape)
    parts = gradient(Graph(tuple(inputs), (loss,), ("loss",), b.size_nodes), b, [one], [inputs[k] for k in floats])
    return (
        Graph(tuple(inputs), (loss,), ("loss",), b.size_nodes),
        Graph(tuple(inputs), tuple(parts), tuple(f"dx{k}" for k in floats), b.size_nodes),
        floats,
    )


@pytest.mark.parametrize("case", [pytest.param(c, id=c[0]) for c in CASES])
@runners("numpy")
def test_gradient_over_whole_arrays(case: Case, run_graph: Any) -> None:
    _, make, arrays = case
    loss, parts, floats = loss_and_parts(make, arrays)
    program = Model(loss, "numpy").program()
    for k, got in zip(floats, run_graph(parts, arrays), strict=True):
        want = differences(lambda given: float(program.run(list(given))[0].sum()), list(arrays), k)
        np.testing.assert_allclose(got, want, atol=1e-7 * max(1, np.abs(want).max()), err_msg=f"by input {k}")


def test_every_row_has_a_gradient_or_a_reason() -> None:
    """Rows that take floats and are neither expressions nor made of others give a gradient, or the reason why not."""
    made = (Elementwise, Composite, Region, Result)
    lacking = {
        row.name
        for row in ROWS.values()
        if row.vjp is None and not isinstance(row, made) and any(d in FLOATS for d in row.dtypes)
    }
    listed = {row.name for row in ROWS.values() if row.no_gradient}
    assert lacking == {name for name in listed if not isinstance(ROWS[name], made)}
    assert all(ROWS[name].vjp is None for name in listed)


def test_a_gradient_through_what_has_none_is_refused_and_around_it_is_not() -> None:
    b = Builder()
    x, other = b.input("x", (4,), float32), b.input("other", (4,), float32)
    values = b.unique(x)[0]
    y = b.reduce_sum(values, axes=(0,))
    ones = b.const(np.ones(1, np.float32))
    with pytest.raises(CompileError, match="unique has no gradient: elements that are equal become one"):
        gradient(Graph((x,), (y,), ("y",), b.size_nodes), b, [ones], [x])
    y = b.add(y, b.reduce_sum(other, axes=(0,)))
    (part,) = gradient(Graph((x, other), (y,), ("y",), b.size_nodes), b, [ones], [other])
    assert part.shape == (4,)


def test_random_numbers_and_places_are_constants() -> None:
    """What floats do not change has no gradient, and stops none."""
    b = Builder()
    x = b.input("x", (4,), float64)
    place = b.argmax(x, axis=0)
    mask = b.random_uniform(b.const(3), shape=(4,))
    y = b.mul(b.mul(x, b.cast(mask, to=float64)), b.cast(place, to=float64))
    (dx,) = gradient(Graph((x,), (y,), ("y",)), b, [b.expand(b.const(1.0, float64), shape=(4,))], [x])
    (got, want) = run_array(
        Graph((x,), (dx, b.expand(b.mul(b.cast(mask, to=float64), b.cast(place, to=float64)), shape=(4,))), ("a", "b")),
        [np.array([1.0, 5.0, 2.0, 3.0])],
    )
    np.testing.assert_allclose(got, want)


def test_ties_and_kinks_are_as_in_pytorch() -> None:
    b = Builder()
    x, other = b.input("x", (3,), float64), b.input("other", (3,), float64)
    ones = b.expand(b.const(1.0, float64), shape=(3,))
    given = [np.array([-1.0, 0.0, 2.0]), np.array([3.0, 0.0, 1.0])]
    wanted = {
        "relu": [[0, 0, 1]], "abs": [[-1, 0, 1]], "sign": [[0, 0, 0]], "floor": [[0, 0, 0]], "round": [[0, 0, 0]],
        "maximum": [[0, 0.5, 1], [1, 0.5, 0]], "minimum": [[1, 0.5, 0], [0, 0.5, 1]],
    }  # fmt: skip
    for name, want in wanted.items():
        inputs = [x, other][: len(want)]
        parts = gradient(Graph((x, other), (b.apply(ROWS[name], *inputs),), ("y",)), b, [ones], inputs)
        for got, value in zip(run_array(Graph((x, other), tuple(parts), ("",) * len(parts)), given), want, strict=True):
            np.testing.assert_array_equal(got, value, err_msg=name)


SECOND = [
    pytest.param(r, id=r.name, marks=[pytest.mark.slow] * (r.name in DEAR or isinstance(r, Composite)))
    for r in SAMPLED
    if float64 in r.dtypes and not r.no_gradient and r.name not in ("cast", "deform_conv", "roi_align")
]


@pytest.mark.parametrize("row", SECOND)
def test_second_gradient(row: Row) -> None:
    """The gradient of a sum of the gradient's elements, with weights, agrees with differences of that sum."""
    rng = np.random.default_rng(zlib.crc32(row.name.encode()))
    small = [s for s in samples_of(row) if all(np.prod(numbers(shape_of(x)), dtype=int) <= 40 for x in s.inputs)]
    for sample in small[:2]:
        arrays = arrays_of(sample, rng, float64, row, row.argument_types if isinstance(row, Elementwise) else ())
        arrays = [away_from_kinks(a) if a.dtype.kind == "f" else a for a in arrays]
        attrs = {k: numbers(v) for k, v in sample.attrs.items()}
        b = Builder()
        inputs = leaves(b, arrays)
        floats = [k for k, x in enumerate(inputs) if x.dtype in FLOATS]
        y = b.apply(row, *inputs, **attrs)
        if y.dtype not in FLOATS or not floats:
            continue
        seed = b.const(rng.uniform(0.5, 1.5, numbers(y.shape)), float64)
        by = [inputs[k] for k in floats]
        first = gradient(Graph(tuple(inputs), (y,), ("y",)), b, [seed], by)
        weights = [b.const(rng.uniform(0.5, 1.5, numbers(p.shape)), float64) for p in first]
        second = gradient(Graph(tuple(inputs), tuple(first), ("",) * len(first)), b, weights, by)
        dots = [
            b.reduce_sum(b.reshape(b.mul(p, w), shape=(product(p.shape),)), axes=(0,))
            for p, w in zip(first, weights, strict=True)
        ]
        total = Graph(tuple(inputs), tuple(dots), ("",) * len(dots))
        got = run_array(Graph(tuple(inputs), tuple(second), ("",) * len(second)), arrays)

        def loss(given: Sequence[np.ndarray], graph: Graph = total) -> float:
            return float(sum(d.sum() for d in run_array(graph, given)))

        for k, part in zip(floats, got, strict=True):
            want = differences(loss, arrays, k)
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(part, want, atol=3e-6 * scale, err_msg=f"{row.name} {sample}: by input {k}")


@pytest.mark.parametrize("op", ["softmax", "log_softmax", "falling_exp", "sigmoid"])
def test_the_gradient_needs_only_the_result(op: str) -> None:
    """A training step then keeps one array for the way back, not what the result was computed from too."""
    b = Builder()
    x, seed = b.input("x", (3, 5), float32), b.input("seed", (3, 5), float32)
    y = getattr(b, op)(x)
    (found,) = gradient(Graph((x, seed), (y,), ("y",)), b, [seed], [x])
    used = postorder([found], lambda n: () if n is y else n.inputs)
    assert y in used
    assert x not in used
