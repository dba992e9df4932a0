"""Products of 8-bit integers on WebGPU: exact, with the instructions on four bytes and without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from devices import few, slow
from rows.references import products as reference

import singe as sg
from singe.compiler.compile import compile_graph
from singe.graph import Builder, Graph
from singe.program.program import ProgramData
from singe.shapes import size

pytest.importorskip("wgpu")
from wgsl_checks import this_gpu

from singe_gpu.dialect import PACKED_DOTS
from singe_gpu.rates import Cut, Thin, Tile
from singe_webgpu.device.native import WebGpuBackend
from singe_webgpu.target import WgslTarget

M = size("M")


@pytest.fixture
def gpu() -> WebGpuBackend:
    return this_gpu()


CUTS = {Tile(16, 32, 16): True, Thin(1, 8, 128): False, None: False}
"""Cuts ↦ whether the instructions on four bytes are used."""


@pytest.mark.parametrize("cut", CUTS, ids=str)
@few(2, "least", [-255, -128, -3, 0], ids=str)
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "batch", "opened"),
    [(3, 4, 5, (), False), (32, 32, 32, (), False), (33, 70, 41, (), True), (1, 300, 40, (), False), (5, 9, 8, (2, 3), True)],
)  # fmt: skip
def test_both_variants_are_exact(
    gpu: WebGpuBackend, cut: Cut, least: int, rows: int, depth: int, columns: int, batch: tuple[int, ...], opened: bool
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
    program = compile_graph(Graph((given,), (y,), ("y",)), WgslTarget(lambda *_: [(0, cut)]))
    wanted = x.astype(int) @ w.astype(int) + 7
    assert_exact(gpu, program, x, wanted, CUTS[cut])


CONVOLUTIONS = [
    # the spatial shape, channels, outputs, the window, the attributes that are not 1 or 0
    ((9, 11), 8, 32, (3, 3), {"strides": (2, 2), "before": (1, 1), "after": (1, 1)}),
    ((8, 8), 20, 40, (1, 1), {}),
    ((6, 5), 3, 37, (3, 2), {"after": (1, 0)}),
    ((7, 7), 5, 1, (2, 2), {}),
]


@few(2, ("space", "channels", "outputs", "window", "facts"), CONVOLUTIONS)
@pytest.mark.parametrize("opened", [True, *slow(False)], ids=["open", "fixed"])
def test_convolutions_are_exact(
    gpu: WebGpuBackend, space: tuple[int, int], channels: int, outputs: int, window: tuple[int, int], facts: Any, opened: bool
) -> None:  # fmt: skip
    rng = np.random.default_rng(outputs)
    x = rng.integers(-100, 156, (3, *space, channels)).astype(np.float32)
    w = rng.integers(-128, 128, (*window, channels, outputs)).astype(np.int8)
    facts = {"strides": (1, 1), "dilations": (1, 1), "before": (0, 0), "after": (0, 0), **facts}
    b = Builder()
    target = WgslTarget(lambda *_: [(0, Tile(16, 32, 16))])
    given = b.input("x", (M if opened else 3, *space, channels), sg.float32)
    program = compile_graph(Graph((given,), (b.conv_integers(given, b.const(w), **facts),), ("y",)), target)
    wanted = reference.conv_last(x.astype(int), w.astype(int), **facts, group=1)
    assert_exact(gpu, program, x, wanted, outputs > 1)


def assert_exact(gpu: WebGpuBackend, program: ProgramData, x: np.ndarray, wanted: np.ndarray, dots: bool) -> None:
    """With the instructions on four bytes, and without. dots: whether they are expected."""
    assert not dots or any(PACKED_DOTS in v.requires for k in program.kernels for v in k.variants)
    for packed in (True, False):
        kernels: Any = tuple(
            replace(k, variants=tuple(v for v in k.variants if packed or not v.requires)) for k in program.kernels
        )
        (out,) = gpu.prepare(replace(program, kernels=kernels)).run([gpu.upload(x)])
        np.testing.assert_array_equal(gpu.download(out), wanted)


@pytest.mark.parametrize("dtype", [sg.int8, sg.uint8, sg.int16, sg.uint16], ids=str)
@pytest.mark.parametrize("count", [1, 5, 64])
def test_constant_integers_of_few_bits_are_packed(gpu: WebGpuBackend, dtype: sg.DType, count: int) -> None:
    """Read one by one and, where that is possible, as vectors; the extreme numbers too."""
    rng = np.random.default_rng(count)
    table = rng.integers(dtype.limits[0], dtype.limits[1], (7, count), endpoint=True).astype(dtype.numpy)
    table[0, 0], table[-1, -1] = dtype.limits
    b = Builder()
    index = b.input("index", (M,), sg.int32)
    rows = b.gather(b.const(table, dtype), index, axis=0)
    program = compile_graph(Graph((index,), (rows, b.cast(rows, to=sg.float32)), ("rows", "floats")), WgslTarget())
    assert program.weights.size <= -(-table.nbytes // 256) * 256
    taken = np.array([6, 0, 3], np.int32)
    for out in gpu.prepare(program).run([gpu.upload(taken)]):
        np.testing.assert_array_equal(gpu.download(out), table[taken])
