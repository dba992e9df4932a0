"""Compiling takes time in proportion to the nodes of a graph."""

from __future__ import annotations

import time

import numpy as np
import pytest

from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.shapes import floordiv, size
from singe_wasm.kernels.products.contraction import Template

NODES = 400
MOST = 1.6
"""The allowed factor over four times the time, for four times the nodes."""


def chain(nodes: int) -> Graph:
    """Convolutions with separate weights, biases and residuals, and branches that are joined again."""
    rng = np.random.default_rng(0)
    b = Builder()
    space = {"strides": (1, 1), "dilations": (1, 1), "before": (0, 0), "after": (0, 0), "group": 1}
    x = y = b.input("x", (size("N"), 8, size("H"), 7), float32)
    for _ in range(nodes // 8):
        weight, bias = (b.const(rng.normal(size=shape).astype(np.float32)) for shape in ((8, 8, 1, 1), (8,)))
        z = b.add(b.relu(b.conv(y, weight, bias, **space)), y)
        y = b.add(b.mul(b.tanh(z), b.sigmoid(z)), z)
    return Graph((x,), (y,), ("y",))


def seconds(nodes: int, target: str) -> float:
    """CPU time, so that other processes count little; the least of three."""
    graph = chain(nodes)
    taken = []
    for _ in range(3):
        start = time.process_time()
        compile_graph(graph, find_target(target))
        taken.append(time.process_time() - start)
    return min(taken)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["wasm", "wgsl"])
def test_four_times_the_nodes_take_four_times_as_long(target: str) -> None:
    """In one of three attempts: what else runs on the machine takes caches away from either side."""
    assert any(seconds(4 * NODES, target) < MOST * 4 * seconds(NODES, target) for _ in range(3))


def test_dimensions_are_computed_once() -> None:
    n, m = floordiv(size("N") + 3, 4), floordiv(size("M") + 1, 2)
    for compute in (lambda: n * m, lambda: n + m, lambda: n - 1, lambda: n * 6, lambda: floordiv(n * m + 5, 8)):
        assert compute() is compute()


def test_the_code_of_a_product_is_drafted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its addresses need sizes that it does not know beforehand; they are found all at once."""
    written: list[bool] = []
    write = Template.write

    def counted(self: Template) -> None:
        written.append(self.level.relaxed)
        write(self)

    monkeypatch.setattr(Template, "write", counted)
    b = Builder()
    n, h, w = map(size, "NHW")
    shapes = ((n, 4, floordiv(h, 2), 16), (n, 4, 16, floordiv(w, 3)), (n, 4, floordiv(h, 2), floordiv(w, 3)), (h, w))
    inputs = tuple(b.input(name, shape, float32) for name, shape in zip("xyzs", shapes, strict=True))
    x, y, z, _ = inputs
    program = compile_graph(Graph(inputs, (b.mul(b.matmul(x, y), z),), ("out",)), find_target("wasm"))
    assert written == [True, True]
    assert program.modules["simd"]
    assert written == [True, True, False]
