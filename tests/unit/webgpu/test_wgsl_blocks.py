"""Products with packed weights on WebGPU: in every cut, for any number of rows, and reading each word of weights once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import few, slow

from singe.compiler.compile import compile_graph

pytest.importorskip("wgpu")
from networks.blocks_cases import CASES, N, made
from wgsl_checks import this_gpu

from singe_gpu.rates import Cut, Thin, Tile
from singe_webgpu.device.native import WebGpuBackend
from singe_webgpu.target import WgslTarget

CUTS = (None, Tile(16, 32, 16, slices=4), Tile(64, 64, 16, 8, unroll=16), Thin(1, 16, 64), Thin(4, 16, 32))


@pytest.fixture
def gpu() -> WebGpuBackend:
    return this_gpu()


def assert_product(gpu: WebGpuBackend, case: Any, target: WgslTarget, opened: bool) -> None:
    rows, depth, *rest = case
    graph, matrix = made(N if opened else rows, depth, *rest)
    x = np.random.default_rng(rows).normal(size=(rows, depth)).astype(np.float32)
    wanted = np.concatenate([x, np.ones((rows, 1), np.float32)], 1).astype(np.float64) @ matrix
    (out,) = gpu.prepare(compile_graph(graph, target)).run([gpu.upload(x)])
    error = np.abs(gpu.download(out) - wanted).max()
    assert error < 3e-6 * np.abs(wanted).max() * max(depth, 16) ** 0.5


@few(5, "case", CASES, ids=str)
@pytest.mark.parametrize("opened", [True, *slow(False)], ids=["open", "fixed"])
def test_products_are_those_of_the_unpacked_matrix(gpu: WebGpuBackend, case: Any, opened: bool) -> None:
    assert_product(gpu, case, WgslTarget(), opened)


@pytest.mark.slow
@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize(
    "case", [(5, 64, 64, 4, 32, True), (6, 96, 24, 4, 32, False), (40, 52, 36, 8, 16, False)], ids=str
)
def test_every_cut_unpacks_the_weights(gpu: WebGpuBackend, case: Any, cut: Cut) -> None:
    assert_product(gpu, case, WgslTarget(lambda *_: [(0, cut)]), False)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_row_reads_each_word_of_weights_once(bits: int) -> None:
    """Words of a block are loaded as vectors of four columns, with one load of scales; these are all that is stored. The text has the loads
    twice: of the first words, and of those that come after the ones that are multiplied."""
    depth, columns = 2048, 256
    graph, _ = made(1, depth, columns, bits, 32, True)
    program = compile_graph(graph, WgslTarget())
    (text,) = program.modules.values()
    assert isinstance(text, str)
    assert text.count("b0[") == 2 * {4: 2, 8: 4}[bits]
    assert text.count("b1[") == 2
    assert "b0: array<vec4<i32>>" in text
    words, scales, bias = depth * columns * bits // 8, 4 * depth // 32 * columns, 4 * columns
    assert program.weights.size == words + scales + bias
