"""Products of 8-bit integers on WebGPU: exact, with the instructions on four bytes and without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.compiler.build import compile_graph
from singe.graph import Builder, Graph
from singe.shapes import size

pytest.importorskip("wgpu")
from singe_webgpu.native import WebGpuBackend
from singe_webgpu.shader import PACKED_DOTS
from singe_webgpu.target import WgslTarget

M = size("M")


@pytest.fixture(scope="module")
def gpu() -> WebGpuBackend:
    try:
        return WebGpuBackend()
    except sg.DeviceError as e:
        pytest.skip(f"no WebGPU here: {e}")


@pytest.mark.parametrize("least", [-255, -128, -3, 0], ids=str)
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "batch", "opened"),
    [(3, 4, 5, (), False), (32, 32, 32, (), False), (33, 70, 41, (), True), (1, 300, 40, (), False), (5, 9, 8, (2, 3), True)],
)  # fmt: skip
def test_both_variants_are_exact(
    gpu: WebGpuBackend, least: int, rows: int, depth: int, columns: int, batch: tuple[int, ...], opened: bool
) -> None:
    """With an epilogue, and with the extreme numbers on both sides."""
    rng = np.random.default_rng(depth)
    x = rng.integers(least, least + 256, (*batch, rows, depth)).astype(np.float32)
    w = rng.integers(-128, 128, (depth, columns)).astype(np.int8)
    x[..., 0, :], w[:, 0] = least, -128
    x[..., -1, :], w[:, -1] = least + 255, 127
    b = Builder()
    given = b.input("x", (*batch, M if opened else rows, depth), sg.float32)
    y = b.add(b.dot_integers(given, b.const(w)), b.const(7, sg.int32))
    program = compile_graph(Graph((given,), (y,), ("y",)), WgslTarget())
    wanted = x.astype(int) @ w.astype(int) + 7
    assert any(PACKED_DOTS in v.requires for k in program.kernels for v in k.variants)
    for packed in (True, False):
        kernels: Any = tuple(
            replace(k, variants=tuple(v for v in k.variants if packed or not v.requires)) for k in program.kernels
        )
        (out,) = gpu.prepare(replace(program, kernels=kernels)).run([gpu.upload(x)])
        np.testing.assert_array_equal(gpu.download(out), wanted)
