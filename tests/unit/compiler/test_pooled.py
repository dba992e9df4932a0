"""Pooling after convolution: fused into the convolution's store if the target can, with equal results everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from devices import COMPILED, Run, run_array, slow

from singe.compiler.compile import compile_graph
from singe.dtypes import DType, float16, float32
from singe.graph import Builder, Graph, Node
from singe.shapes import Dim, size
from singe_wasm.target import WasmTarget
from singe_webgpu.target import WgslTarget

N = size("N")
TARGETS = {"wasm": WasmTarget, "wgsl": WgslTarget}
IN_STEP = {(2, 2), (1, 2), (2, 1), (4, 1)}
"""Windows that both targets fuse into a convolution."""


def pooled(
    window: Sequence[int], shape: tuple[Dim, ...] = (N, 24, 14, 13), outputs: int = 32, op: str = "max_pool",
    step: Sequence[int] | None = None, pad: int = 0, seen: bool = False, after: bool = True, kind: DType = float32,
) -> Graph:  # fmt: skip
    """relu(conv 3×3 + bias), pooled, and scaled; seen: the convolution is an output too."""
    rng = np.random.default_rng(0)
    b = Builder()
    x = b.input("x", shape, kind)
    channels = shape[1]
    assert isinstance(channels, int)
    weight = b.const((rng.normal(size=(outputs, channels, 3, 3)) / 15).astype(kind.numpy))
    bias = b.const(rng.normal(size=outputs).astype(kind.numpy))
    facts: dict[str, Any] = {"strides": (1, 1), "dilations": (1, 1), "before": (1, 1), "after": (1, 1), "group": 1}
    y = b.relu(b.conv(x, weight, bias, **facts))
    pool = {
        "window": (1, 1, *window), "strides": (1, 1, *(step or window)), "dilations": (1,) * 4,
        "before": (0, 0, pad, pad), "after": (0, 0, pad, pad),
    }  # fmt: skip
    z: Node = getattr(b, op)(y, **pool)
    if after:
        z = b.sub(b.mul(z, b.const(0.25, kind)), b.const(1.0, kind))
    return Graph((x,), (z, y), ("z", "y")) if seen else Graph((x,), (z,), ("z",))


def poolings(graph: Graph, target: str) -> list[bool]:
    """For each kernel that pools: whether it also computes the convolution."""
    fused = compile_graph(graph, TARGETS[target]()).facts["fused"]
    return [any("conv" in op for op in ops) for ops in fused if any("pool" in op for op in ops)]


@COMPILED
@pytest.mark.parametrize("op", ["max_pool", "pool_sum"])
@pytest.mark.parametrize("window", [*IN_STEP, (1, 4), (3, 3), (2, 3)], ids=str)
def test_answers_are_those_of_both_apart(run_graph: Run, window: tuple[int, int], op: str) -> None:
    graph = pooled(window, op=op)
    x = np.random.default_rng(1).normal(size=(2, 24, 14, 13)).astype(np.float32)
    (wanted,) = run_array(graph, [x])
    (found,) = run_graph(graph, [x])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@COMPILED
@pytest.mark.parametrize("shape", [(1, 4, 28, 28), (3, 8, 7, 7), (1, 16, 2, 2), (1, 3, 9, 8), (1, 8, 1, 20)], ids=str)
@pytest.mark.parametrize("outputs", [7, 1, *slow(8)])
def test_every_shape(run_graph: Run, shape: tuple[int, ...], outputs: int) -> None:
    """Ends that no window has, channels in fours and not, a single output."""
    window = (2, 2) if shape[2] > 1 else (1, 2)
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    graph = pooled(window, shape, outputs, after=False)
    (wanted,) = run_array(graph, [x])
    (found,) = run_graph(graph, [x])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_nan_comes_through(run_graph: Run) -> None:
    x = np.random.default_rng(3).normal(size=(1, 24, 14, 13)).astype(np.float32)
    x[0, 3, 5, 6] = np.nan
    graph = pooled((2, 2))
    (wanted,) = run_array(graph, [x])
    (found,) = run_graph(graph, [x])
    assert np.isnan(wanted).any()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("window", [(2, 2), (1, 2), (2, 1), (4, 1), (3, 3)], ids=str)
def test_windows_side_by_side_are_folded(target: str, window: tuple[int, int]) -> None:
    assert poolings(pooled(window), target) == [window in IN_STEP]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "facts",
    [{"step": (1, 1)}, {"step": (3, 3)}, {"pad": 1}, {"seen": True}, {"outputs": 1}, {"kind": float16}],
    ids=str,
)
def test_others_stay_apart(target: str, facts: dict[str, Any]) -> None:
    """Windows that overlap, leave gaps or reach outside; a convolution that is read itself, has one output, or halves (these
    have no template on wasm, and on WebGPU one for subgroup matrices)."""
    assert poolings(pooled((2, 2), **facts), target) == [False]
