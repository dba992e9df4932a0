"""Groups that differ in nothing but their nodes have one Kernel, which is made once, and is what each would have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from singe.compiler.compile import compile_graph
from singe.compiler.fuse._alike import AlikeGroups
from singe.compiler.fuse._assemble import Group, Maker
from singe.compiler.fuse._growth import Growth
from singe.dtypes import float32
from singe.graph import Builder, Graph, Node
from singe_wasm.target import WasmTarget
from singe_webgpu.target import WgslTarget

Layer = Callable[[Builder, Node, int], Node]
TARGETS = pytest.mark.parametrize("target", [WasmTarget(), WgslTarget()], ids=["wasm", "webgpu"])


def normed(b: Builder, x: Node, k: int) -> Node:
    mean = b.mul(b.reduce_sum(b.mul(x, x), axes=(1,)), b.const(0.125))
    return b.div(x, b.add(b.expand(b.reshape(mean, shape=(4, 1)), shape=(4, 8)), b.const(1e-3)))


def turned(b: Builder, x: Node, k: int) -> Node:
    halves = [b.slice(x, starts=(0, at), steps=(1, 1), sizes=(4, 4)) for at in (4, 0)]
    return b.mul(b.concat(*halves, axis=1), b.reshape(b.reduce_max(x, axes=(1,)), shape=(4, 1)))


def over(number: Callable[[int], float]) -> Layer:
    return lambda b, x, k: b.div(b.const(number(k)), x)


def network(layer: Layer, count: int) -> Graph:
    b = Builder()
    x = y = b.input("x", (4, 8), float32)
    for k in range(count):
        weights = np.random.default_rng(k).standard_normal((8, 8)).astype(np.float32)
        y = b.add(y, b.dot(layer(b, y, k), b.const(weights)))
    return Graph((x,), (y,), ("y",))


def compiled(target: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch, apart: bool = False) -> tuple[Any, int]:
    """What is compiled, and how many Kernels were made. apart: each group has its own."""
    count = 0

    class Counted(Maker):
        def group(self) -> Group:
            nonlocal count
            count += 1
            return super().group()

    def of(self: AlikeGroups, growth: Growth) -> Group:
        return Counted(self._kept, growth).group()

    with monkeypatch.context() as patched:
        patched.setattr("singe.compiler.fuse._alike.Maker", Counted)
        if apart:
            patched.setattr(AlikeGroups, "of", of)
        data = compile_graph(graph, target)
    return (dict(data.modules), data.kernels, data.buffers, data.weights.tobytes()), count


@TARGETS
@pytest.mark.parametrize(
    "layer",
    [normed, turned, over(lambda k: k % 2 + 1.0), over(lambda k: 0.0 if k == 1 else -0.0)],
    ids=["normed", "turned", "two numbers", "two zeros"],
)
def test_a_kernel_is_the_same_whether_made_once_or_for_each_group(
    target: Any, layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = network(layer, 4)
    together, few = compiled(target, graph, monkeypatch)
    apart, many = compiled(target, graph, monkeypatch, apart=True)
    assert together == apart
    assert few < many


@TARGETS
def test_more_layers_need_no_more_kernels(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [compiled(target, network(normed, count), monkeypatch)[1] for count in (4, 8)]
    assert made[0] == made[1]
