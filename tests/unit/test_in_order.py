"""Sums that lead to a logarithm are added in order and rounded once a step: the same bits on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import run_interpreted, run_model
from numpy.lib.stride_tricks import sliding_window_view

from singe._dtypes import float32
from singe._errors import DeviceError
from singe._shape import size
from singe.device import device as open_device
from singe.graph import Builder, Graph, Node
from singe.rewrite import rewrite

DEVICES = ("numpy", "wasm", "wasm without relaxed SIMD", "webgpu")


@pytest.fixture(params=DEVICES)
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[np.ndarray]]:
    name, _, without = request.param.partition(" without ")
    try:
        opened = open_device(name)
    except DeviceError as e:
        pytest.skip(str(e))
    if without:
        monkeypatch.setattr(type(opened.backend.engine), "features", frozenset())  # pyright: ignore[reportAttributeAccessIssue]
    return lambda graph, arrays: run_model(name, graph, arrays)


def steps(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left @ right: a product of two float32 is exact in float64, so each step is rounded once."""
    total = np.zeros((*left.shape[:-1], right.shape[-1]), np.float32)
    for k in range(left.shape[-1]):
        product = left[..., k, None].astype(np.float64) * right[..., k, None, :].astype(np.float64)
        total = (product + total).astype(np.float32)
    return total


def logarithm(b: Builder, x: Node) -> Node:
    return b.log(b.maximum(b.abs(x), b.const(1e-20, float32)))


def product(*shapes: tuple[Any, ...]) -> Graph:
    b = Builder()
    x, y = (b.input(name, shape, float32) for name, shape in zip("xy", shapes, strict=True))
    out = b.dot(x, y)
    return Graph((x, y), (out, logarithm(b, out)), ("sum", "log"))


def filtered(w: np.ndarray, stride: int, group: int = 1) -> Graph:
    """A convolution along a line, (n, length, channels), with constant weights (taps, channels per group, outputs)."""
    b = Builder()
    x = b.input("x", (size("N"), 300, w.shape[1] * group), float32)
    facts = {"strides": (stride,), "dilations": (1,), "before": (0,), "after": (0,), "group": group}
    out = b.conv_last(x, b.const(w), **facts)
    return Graph((x,), (out, logarithm(b, out)), ("sum", "log"))


def random(*shape: int) -> np.ndarray:
    """Numbers whose products have bits to lose, and whose sums cancel."""
    rng = np.random.default_rng(len(shape) + shape[-1])
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "shapes",
    [((5, 33), (33, 7)), ((1, 600), (600, 40)), ((70, 130), (130, 68)), ((3, 9, 20), (3, 20, 5)), ((4, 50), (50, 1))],
)
def test_products(run: Callable[..., list[np.ndarray]], shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (random(*shape) for shape in shapes)
    graph = product(*shapes)
    found, logarithms = run(graph, [x, y])
    expected = steps(x, y)
    assert np.array_equal(found, expected)
    assert not np.array_equal(found, np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(np.float32))
    np.testing.assert_allclose(logarithms, np.log(np.abs(expected)), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("shape", "stride", "group"),
    [((256, 1, 1), 2, 1), ((65, 1, 36), 3, 1), ((9, 6, 3), 1, 1), ((5, 8, 16), 1, 1), ((3, 1, 8), 1, 8), ((7, 4, 8), 2, 2)],
)  # fmt: skip
def test_convolutions(run: Callable[..., list[np.ndarray]], shape: tuple[int, ...], stride: int, group: int) -> None:
    taps, per_group, outputs = shape
    w, x = random(*shape), random(2, 300, per_group * group)
    (found, _) = run(filtered(w, stride, group), [x])
    windows = sliding_window_view(x, taps, axis=1)[:, ::stride].swapaxes(2, 3)  # (n, place, tap, channel)
    parts = []
    for number in range(group):
        mine = windows[..., number * per_group : (number + 1) * per_group]
        columns = w[..., number * (outputs // group) : (number + 1) * (outputs // group)]
        parts.append(steps(mine.reshape(*mine.shape[:2], -1), columns.reshape(taps * per_group, -1)))
    assert np.array_equal(found, np.concatenate(parts, axis=-1))


def test_the_interpreter_says_what_in_order_means() -> None:
    x, y = random(5, 33), random(33, 7)
    marked = rewrite(product(x.shape, y.shape))
    assert np.array_equal(run_interpreted(marked, [x, y])[0], steps(x, y))


@pytest.mark.parametrize("largest", [3.4e38, np.inf, np.nan])
def test_sums_that_leave_the_numbers(run: Callable[..., list[np.ndarray]], largest: float) -> None:
    x = np.full((5, 8), largest, np.float32)
    found, _ = run(product((5, 8), (8, 6)), [x, np.full((8, 6), 2.0, np.float32)])
    assert np.array_equal(found, np.full((5, 6), np.nan if np.isnan(largest) else np.inf, np.float32), equal_nan=True)


def _squares(b: Builder, x: Node) -> Node:
    facts = {"window": (1, 3), "strides": (1, 1), "dilations": (1, 1), "before": (0, 1), "after": (0, 1)}
    return b.mul(b.pool_sum(b.mul(b.relu(x), b.relu(x)), **facts), b.const(0.1, float32))


LEADS: dict[str, tuple[bool, Callable[[Builder, Node], Node]]] = {
    "a logarithm": (True, lambda b, x: b.log(x)),
    "one of its size": (True, lambda b, x: b.log(b.sqrt(b.mul(x, x)))),
    "one after moves and sums": (True, lambda b, x: b.log(b.reduce_sum(b.transpose(x, perm=(1, 0)), axes=(0,)))),
    "one of a clipped value": (True, lambda b, x: b.log(b.relu(x))),
    "nothing": (False, lambda b, x: x),
    "a root": (False, lambda b, x: b.sqrt(b.abs(x))),
    "a logarithm of exponentials": (False, lambda b, x: b.log_softmax(x)),
    "softplus": (False, lambda b, x: b.softplus(x)),
    "one of squares and a number": (False, lambda b, x: b.log(b.add(b.mul(x, x), b.const(1.0, float32)))),
    "one of squares and a small number": (True, lambda b, x: b.log(b.add(b.mul(x, x), b.const(1e-6, float32)))),
    "one of any sum with a number": (True, lambda b, x: b.log(b.add(x, b.const(1.0, float32)))),
    "a local response": (False, lambda b, x: b.log(b.add(_squares(b, x), b.const(2.0, float32)))),
}


@pytest.mark.parametrize("what", LEADS)
def test_where_order_matters(what: str) -> None:
    wanted, end = LEADS[what]
    b = Builder()
    x, y = b.input("x", (size("N"), 4), float32), b.input("y", (4, 4), float32)
    graph = rewrite(Graph((x, y), (end(b, b.dot(b.dot(x, y), y)),), ("out",)))
    marks = [n.attrs.get("in_order", False) for n in graph.nodes if n.op == "dot"]
    assert marks == [wanted, wanted]
