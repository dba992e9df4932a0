"""Indices in WGSL: what counts only inside the bounds is not clamped, all else is, and the results are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from wgsl_checks import gpu_device

from singe.compiler.compile import compile_graph
from singe.dtypes import float32, int32, uint32
from singe.graph import Builder, Graph
from singe.ir import affine, scalar
from singe.model.model import Model
from singe.runtime.devices import device as open_device
from singe.shapes import Dim, size

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_gpu.code.bounds import drop_unneeded_clamps
from singe_webgpu.target import WgslTarget

V, W = scalar.var("v", int32), scalar.var("w", int32)


def read(port: int, index: scalar.Expr) -> scalar.Expr:
    return scalar.load(port, index, float32)


@pytest.mark.parametrize("n", [7, size("N")])
def test_inside_both_bounds_there_is_one_comparison_and_no_clamp(n: Dim) -> None:
    end = scalar.size(n)
    clamped = affine.clamp(V, n) * 4 + affine.clamp(W, n) * 40
    everywhere = (V >= 0) & (end > V) & (W >= 0) & (end > W)
    (found,) = drop_unneeded_clamps([scalar.select(everywhere, read(0, clamped), read(1, clamped))])
    below = scalar.cast(end, uint32)
    assert found.args[0] is (scalar.cast(V, uint32) < below) & (scalar.cast(W, uint32) < below)
    assert found.args[1] is read(0, V * 4 + W * 40)
    assert found.args[2] is read(1, clamped), "what counts outside of the bounds is clamped"


def test_an_index_that_steps_keeps_its_clamp() -> None:
    """Or four elements of which some lie outside would be read as a vector, beyond the array's last whole one."""
    clamped = affine.clamp(V, 7) * 12 + affine.clamp(W, 6)
    inside = (V >= 0) & (V < 7) & (W >= 0) & (W < 6)
    (found,) = drop_unneeded_clamps([scalar.select(inside, read(0, clamped), 0.0)])
    assert found.args[1] is read(0, V * 12 + affine.clamp(W, 6))


TESTS = {
    "from below": V >= 0,
    "from above": V < 7,
    "to another end": (V >= 0) & (V < 8),
    "to a negative end": (V >= 0) & (V < -3),
    "of another index": (W >= 0) & (W < 7),
    "either": (V >= 0) | (V < 7),
}
"""What is tested of an index of seven elements."""


@pytest.mark.parametrize("name", TESTS)
def test_an_index_that_is_tested_otherwise_is_clamped(name: str) -> None:
    clamped = read(0, affine.clamp(V, 7) * 3)
    (found,) = drop_unneeded_clamps([scalar.select(TESTS[name], clamped, 0.0)])
    assert found.args[1] is clamped


PADS = {
    "both axes": ((1, 2), (2, 1)),
    "before": ((3, 0), (0, 0)),
    "after": ((0, 0), (0, 3)),
    "one axis": ((0, 2), (0, 2)),
}
"""The padding of two axes, before and after each."""


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", PADS)
def test_padded_arrays_equal_numpys(pads: str, mode: str) -> None:
    gpu = gpu_device()
    before, after = PADS[pads]
    b = Builder()
    x = b.input("x", (5, size("N")), float32)
    graph = Graph((x,), (b.pad(b.exp(x), b.const(2.5), before=before, after=after, mode=mode),), ("y",))
    given = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    wanted = Model(graph, open_device("numpy"))({"x": given})
    np.testing.assert_allclose(Model(graph, gpu)({"x": given}), wanted, rtol=1e-6)


def test_a_padded_convolution_clamps_no_index() -> None:
    b = Builder()
    x, w = b.input("x", (1, 8, 9, 9), float32), b.const(np.ones((4, 8, 3, 3), np.float32))
    y = b.conv(
        x, w, b.const(np.ones(4, np.float32)), strides=(1, 1), dilations=(1, 1), before=(1, 1), after=(1, 1), group=1
    )
    text = "".join(map(str, compile_graph(Graph((x,), (y,), ("y",)), WgslTarget()).modules.values()))
    assert text.count("bitcast<u32>") >= 2
    assert "0i <=" not in text
    assert "clamp(" not in text
    assert "min(" not in text
