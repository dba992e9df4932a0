"""The gradient graph of every differentiable row agrees with central differences of its reference in float64."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from devices import runners, slow
from rows.differences import away_from_kinks, differences
from rows.references import REFERENCES
from rows.row_samples import DEAR, SAMPLED, arrays_of, numbers, samples_of, shape_of
from rows.samples import BATCH, Sample, index, positive
from rows.samples import S as sample_of
from rows.samples.folds import pool

from singe.dtypes import dtype, float16, float32
from singe.errors import CompileError, DTypeError
from singe.graph import Builder, Graph, Node, gradient
from singe.ops import ROWS, Elementwise, Row, find_row
from singe.shapes import size

TOLERANCE = 2e-4
"""The allowed error relative to the largest gradient: rounding in float32, over sums of a few dozen terms."""

ZEROS_AND_NEGATIVES = [sample_of((3, 4), axes=(1,)), sample_of((2, 3, 2), axes=(0, -1))]
MORE: dict[str, list[Sample]] = {"reduce_prod": ZEROS_AND_NEGATIVES}


def differentiable() -> list[Any]:
    """Differences call the reference for each element of each input."""
    rows = [r for r in SAMPLED if float32 in r.dtypes and not r.no_gradient and r.name not in ("cast", "stop_gradient")]
    return [pytest.param(r, id=r.name, marks=[pytest.mark.slow] * (r.name in DEAR)) for r in rows]


@dataclass(frozen=True)
class Case:
    """A sample with values, a gradient of the output, and the expected gradient of each float input."""

    sample: Sample
    arrays: list[np.ndarray]
    seed: np.ndarray
    wanted: dict[int, np.ndarray]

    def inputs(self, b: Builder) -> list[Node]:
        return [
            b.input(f"x{k}", shape_of(s), dtype(a.dtype))
            for k, (s, a) in enumerate(zip(self.sample.inputs, self.arrays, strict=True))
        ]


def weighted(
    reference: Callable[..., Any], attrs: dict[str, Any], seed: np.ndarray, given: Sequence[np.ndarray]
) -> float:
    return float((seed * reference(*given, **attrs)).sum())


@cache
def cases(name: str) -> list[Case]:
    """The cases of a row, made once for all devices."""
    row, rng = ROWS[name], np.random.default_rng(zlib.crc32(name.encode()))
    small = [s for s in samples_of(row) if all(np.prod(numbers(shape_of(x)), dtype=int) <= 200 for x in s.inputs)]
    reference = REFERENCES[name]
    assert small
    out = []
    for sample in [*small, *MORE.get(name, [])]:
        arrays = arrays_of(sample, rng, float32, row, row.argument_types if isinstance(row, Elementwise) else ())
        arrays = [away_from_kinks(a) if a.dtype.kind == "f" else a for a in arrays]
        wide = [np.asarray(a, np.float64) if a.dtype.kind == "f" else a for a in arrays]
        attrs = {k: numbers(v) for k, v in sample.attrs.items()}
        seed = np.asarray(rng.uniform(0.5, 1.5, np.shape(reference(*wide, **attrs))), np.float32)

        loss = partial(weighted, reference, attrs, seed.astype(np.float64))
        out.append(
            Case(
                sample, arrays, seed, {k: differences(loss, wide, k) for k, a in enumerate(wide) if a.dtype.kind == "f"}
            )
        )
    return out


@runners("array", *slow("wasm", "interpret", "numpy", "webgpu"))
@pytest.mark.parametrize("row", differentiable())
def test_gradient(row: Row, run_graph: Any) -> None:
    for case in cases(row.name):
        b = Builder()
        inputs = case.inputs(b)
        y = b.apply(row, *inputs, **case.sample.attrs)
        seed = b.input("seed", y.shape, float32)
        parts = gradient(Graph(tuple(inputs), (y,), ("y",)), b, [seed], [inputs[k] for k in case.wanted])
        got = run_graph(
            Graph((*inputs, seed), tuple(parts), tuple(f"dx{k}" for k in case.wanted)), [*case.arrays, case.seed]
        )
        for (k, want), part in zip(case.wanted.items(), got, strict=True):
            what = f"{row.name} {case.sample}: by input {k}"
            assert part.shape == want.shape, what
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(part, want, atol=TOLERANCE * scale, rtol=TOLERANCE, err_msg=what)


@pytest.mark.parametrize("name", ["exp", "tanh", "mul", "div", "sigmoid", "elu"])
def test_gradient_of_a_gradient(name: str, run_graph: Any) -> None:
    """The derivative of an elementwise row is a row, and so has a derivative, and a name that finds it."""
    row = ROWS[name]
    b = Builder()
    x, other = b.input("x", (5,), float32), b.input("other", (5,), float32)
    arity = row.arity if isinstance(row, Elementwise) else 1
    inputs = (x, other)[:arity]
    ones = b.expand(b.const(1.0), shape=(5,))
    (first,) = gradient(Graph(inputs, (b.apply(row, *inputs),), ("y",)), b, [ones], [x])
    (second,) = gradient(Graph(inputs, (first,), ("dx",)), b, [ones], [x])
    values = [np.array([-1.5, -0.7, 0.3, 0.8, 2.1], np.float32), np.array([0.7, -2.0, 1.1, 3.0, -0.4], np.float32)][
        :arity
    ]
    (got,) = run_graph(Graph(inputs, (second,), ("ddx",)), values)
    wide, h = [v.astype(np.float64) for v in values], 1e-4
    reference = REFERENCES[row.name]
    want = (reference(wide[0] + h, *wide[1:]) - 2 * reference(*wide) + reference(wide[0] - h, *wide[1:])) / h**2
    np.testing.assert_allclose(got, want, atol=2e-3)
    assert find_row(f"{name}_d0_d0").name == f"{name}_d0_d0"


def test_gradients_stay_finite_where_exp_overflows(run_graph: Any) -> None:
    x = np.array([-200.0, -95.0, -20.0, 0.0, 20.0, 95.0, 200.0], np.float32)
    sigmoid = 1 / (1 + np.exp(-x.astype(np.float64)))
    exact = {
        "sigmoid": sigmoid * (1 - sigmoid),
        "softplus": sigmoid,
        "silu": sigmoid * (1 + x * (1 - sigmoid)),
        "tanh": 1 / np.cosh(x.astype(np.float64)) ** 2,
    }
    for name, want in exact.items():
        b = Builder()
        node = b.input("x", x.shape, float32)
        (dx,) = gradient(
            Graph((node,), (b.apply(ROWS[name], node),), ("y",)), b, [b.expand(b.const(1.0), shape=x.shape)], [node]
        )
        (got,) = run_graph(Graph((node,), (dx,), ("dx",)), [x])
        np.testing.assert_allclose(got, want, atol=1e-6, err_msg=name)


def test_product_with_zeros(run_graph: Any) -> None:
    b = Builder()
    x = b.input("x", (3, 3), float32)
    (dx,) = gradient(
        Graph((x,), (b.reduce_prod(x, axes=(1,)),), ("y",)), b, [b.expand(b.const(1.0), shape=(3, 1))], [x]
    )
    (got,) = run_graph(Graph((x,), (dx,), ("dx",)), [np.array([[1, 2, 3], [0, 2, 3], [0, 0, 3]], np.float32)])
    np.testing.assert_array_equal(got, [[6, 3, 2], [6, 0, 0], [0, 0, 0]])


def test_gradients_pass_through_casts_shared_nodes_and_symbolic_sizes(run_graph: Any) -> None:
    b = Builder()
    x = b.input("x", (size("N"), 4), float32)
    half = b.cast(b.exp(x), to=float16)
    y = b.reduce_mean(b.mul(b.cast(half, to=float32), b.cast(half, to=float32)), axes=(0, 1))
    (dx,) = gradient(Graph((x,), (y,), ("y",)), b, [b.const(np.ones((1, 1), np.float32))], [x])
    value = np.linspace(-1, 1, 4 * BATCH, dtype=np.float32).reshape(BATCH, 4)
    (got,) = run_graph(Graph((x,), (dx,), ("dx",)), [value])
    np.testing.assert_allclose(got, 2 * np.exp(2 * value) / value.size, rtol=3e-3)


def test_the_gradient_of_a_sum_is_no_op_of_its_own() -> None:
    b = Builder()
    x, y = b.input("x", (2, 3), float32), b.input("y", (2, 3), float32)
    total = b.exp(b.sub(b.add(x, y), b.const(1.0)))
    found = gradient(Graph((x, y), (total,), ("z",)), b, [b.const(np.ones((2, 3), np.float32))], [x, y])
    assert found[0] is found[1]
    graph = Graph((x, y), (found[0],), ("dx",))
    assert not {n.op for n in graph.nodes} & {"add_d0", "add_d1", "sub_d0"}


def test_what_does_not_depend_has_zeros_and_what_cannot_says_so() -> None:
    b = Builder()
    x, other = b.input("x", (2, 3), float32), b.input("other", (4,), float32)
    (zeros,) = gradient(Graph((x, other), (b.exp(x),), ("y",)), b, [x], [other])
    assert zeros.shape == (4,)
    with pytest.raises(DTypeError, match="an output is bool"):
        gradient(Graph((x,), (b.less(x, x),), ("y",)), b, [x], [x])
    index_row = ROWS["max_pool_index"]
    picked = b.apply(index_row, x, **pool((1, 2)))
    with pytest.raises(CompileError, match="max_pool_index has no gradient"):
        b.gradients(picked, picked)


def test_samples_cover_batch_norms_variance_and_negative_indices() -> None:
    """The tables feed inputs that gradients need: positive variances, indices from the end."""
    rng = np.random.default_rng(0)
    (variance,) = arrays_of(sample_of(positive(5)), rng, float32, ROWS["exp"])
    assert (variance >= 0.5).all()
    (at,) = arrays_of(sample_of(index((50,), -5, 5)), rng, float32, ROWS["exp"])
    assert at.min() == -5
