"""Weights too small for a normal float32 become zeros in sums of products and in softmax, and in nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from devices import run_model

from singe.compiler.rewrite import rewrite
from singe.dtypes import DType, float16, float32
from singe.errors import DeviceError
from singe.graph import Builder, Graph, Node
from singe.runtime.devices import device as open_device
from singe.shapes import size

SMALL = np.float32(1e-40)
"""Subnormal."""
FACTS = {"strides": (1,), "dilations": (1,), "before": (0,), "after": (0,), "group": 1}


def weights(*shape: int) -> np.ndarray:
    """Weights of which every third is subnormal, of either sign;
    NaN, infinity and the least normal number are among the others."""
    w = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    w.ravel()[::6], w.ravel()[3::6] = SMALL, -SMALL
    w.ravel()[1] = np.finfo(np.float32).smallest_normal
    return w


def zeroed(w: np.ndarray) -> np.ndarray:
    return np.where(np.abs(w) == SMALL, np.float32(0), w)


def constants(graph: Graph) -> list[np.ndarray]:
    return [n.value for n in graph.nodes if n.value is not None]


def subnormals(graph: Graph) -> int:
    tiny = np.finfo(np.float32).smallest_normal
    return sum(int(((np.abs(v) < tiny) & (v != 0)).sum()) for v in constants(graph) if v.dtype == np.float32)


def one(b: Builder, x: Node, out: Node) -> Graph:
    return rewrite(Graph((x,), (out,), ("y",)))


def product(w: np.ndarray, kind: DType = float32) -> Graph:
    b = Builder()
    x = b.input("x", (size("N"), w.shape[0]), kind)
    return one(b, x, b.dot(x, b.const(w, kind)))


def convolution(w: np.ndarray) -> Graph:
    b = Builder()
    x = b.input("x", (size("N"), 20, w.shape[1]), float32)
    return one(b, x, b.conv_last(x, b.const(w), **FACTS))


@pytest.mark.parametrize("make", [lambda: product(weights(7, 12)), lambda: convolution(weights(3, 5, 8))])
def test_only_what_is_subnormal_changes(make: Callable[[], Graph]) -> None:
    graph = make()
    assert subnormals(graph) == 0
    (found,) = constants(graph)
    np.testing.assert_array_equal(found.ravel(), zeroed(weights(*found.shape)).ravel())


def test_what_is_not_finite_stays() -> None:
    w = weights(4, 6)
    w[0, 2], w[1, 2], w[1, 4] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(constants(product(w))[0], zeroed(w))


def test_what_is_added_to_a_sum_of_products() -> None:
    b = Builder()
    x = b.input("x", (size("N"), 7), float32)
    graph = one(b, x, b.add(b.dot(x, b.const(np.ones((7, 12), np.float32))), b.const(weights(12))))
    assert subnormals(graph) == 0


def test_constants_move_into_the_weights_before() -> None:
    """A weight that scaling makes subnormal becomes zero; one that scaling makes normal stays."""
    for factor, left in ((1e-39, 0.0), (1e20, 1e-20)):
        b = Builder()
        x = b.input("x", (size("N"), 7), float32)
        w = np.full((7, 12), 1e-40 if left else 1.0, np.float32)
        graph = one(b, x, b.mul(b.dot(x, b.const(w)), b.const(np.full(12, factor, np.float32))))
        (found,) = constants(graph)
        np.testing.assert_allclose(found, left, rtol=1e-4)


def test_elsewhere_they_stay() -> None:
    """A divisor, or the constant that keeps the argument of a logarithm above zero, may be subnormal."""
    b = Builder()
    x = b.input("x", (size("N"), 6), float32)
    tiny = b.const(weights(6))
    for out in (b.add(x, tiny), b.mul(x, tiny), b.div(tiny, x), b.log(b.add(b.abs(x), tiny))):
        assert subnormals(one(b, x, out)) == 2


def test_a_float16_that_is_as_small_is_normal_in_float32() -> None:
    w = np.full((4, 4), 1e-7, np.float16)
    np.testing.assert_array_equal(constants(product(w, float16))[0], w)


@pytest.mark.parametrize("name", ["numpy", "wasm", "webgpu"])
def test_the_answer_is_that_of_zeros(name: str) -> None:
    try:
        open_device(name)
    except DeviceError as e:
        pytest.skip(str(e))
    w = weights(30, 24)
    x = np.random.default_rng(1).standard_normal((5, 30)).astype(np.float32)
    (found,), (expected,) = (run_model(name, product(given), [x]) for given in (w, zeroed(w)))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, x.astype(np.float64) @ w.astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_softmax_gives_zeros_in_place_of_subnormal_numbers(device: str) -> None:
    """An element that is masked with −100, as in windows that are shifted, has a weight of zero."""
    b = Builder()
    x = b.input("x", (2, 40), float32)
    scores = np.random.default_rng(0).standard_normal((2, 40)).astype(np.float32)
    scores[:, ::2] -= 100
    (found,) = run_model(device, Graph((x,), (b.softmax(x, axis=1),), ("y",)), [scores])
    assert np.all(found[:, ::2] == 0)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
