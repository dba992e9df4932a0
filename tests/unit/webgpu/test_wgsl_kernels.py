"""Loop nests in WGSL on this machine's adapter, compared with the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from wgsl_checks import Case, check, conv, elementwise, matmul, norm, reduction, softmax, this_gpu

from singe.dtypes import float32, int32, int64
from singe.ir import scalar as S
from singe.ir.affine import flatten, unflatten
from singe.ir.kernel import Kernel, Port, Store, loop_vars
from singe.ir.scalar import load
from singe.shapes import size

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_webgpu.device.native import WebGpuBackend


@pytest.fixture
def gpu() -> WebGpuBackend:
    return this_gpu()


def test_permuted_and_broadcast_indices(gpu: WebGpuBackend) -> None:
    x = np.random.default_rng(3).normal(size=(5, 6, 7)).astype(np.float32)
    i, j, k = loop_vars("g", (7, 5, 6))
    moved = Store(
        2, flatten([i, j, k], (7, 5, 6)), load(0, flatten([j, k, i], (5, 6, 7)), float32) + load(1, j, float32)
    )
    kernel = Kernel((Port(float32), Port(float32), Port(float32, True)), (7, 5, 6), (), (moved,), "permute")
    counts = [(1 << 17) + 5, (1 << 21) + 7]
    many = [
        (elementwise("many", [float32], float32, count, lambda v: v + 1.0), [np.arange(count, dtype=np.float32)])
        for count in counts
    ]
    flat = loop_vars("g", (5 * 6 * 7,))[0]
    a, b, c = unflatten(flat, (5, 6, 7))
    picked = Store(1, flat, load(0, flatten([S.const(4, int32) - a, b, c], (5, 6, 7)), float32))
    check(
        gpu,
        [
            (kernel, [x, x[:, 0, 0]]),
            (Kernel((Port(float32), Port(float32, True)), (210,), (), (picked,), "flip"), [x]),
            *many,
        ],
    )


def test_reductions(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(4)
    cases: list[Case] = []
    extents = (
        (3, (5,), 1),
        (4, (3, 7), 1),
        (3, (700,), 1),
        (2, (3, 100, 7), 1),
        (5, (100,), 300),
        (2, (1,), 3),
        (2, (90,), 3),
        (1, (1000,), 1),
    )
    for outer, inner, last in extents:
        count = outer * int(np.prod(inner)) * last
        words = ("add", "max", "min", "mul") if inner in ((5,), (700,)) else ("add",)
        for word in words:
            x = rng.normal(1, 0.02, count).astype(np.float32)
            cases.append((reduction(word, float32, outer, inner, last), [x]))
    for word in ("add", "max", "min", "mul"):
        cases.append((reduction(word, int64, 3, (300,)), [rng.integers(-(2**40), 2**40, 900)]))
        cases.append((reduction(word, int32, 3, (300,)), [rng.integers(-(2**30), 2**30, 900).astype(np.int32)]))
    spotted = np.zeros((2, 500), np.float32)
    spotted[1, 77] = np.nan
    cases += [(reduction("max", float32, 2, (500,)), [spotted]), (reduction("min", float32, 2, (500,)), [spotted])]
    cases += [
        (reduction("max", float32, 2, (0,)), [np.zeros(0, np.float32)]),
        (reduction("add", float32, 0, (5,)), [np.zeros(0, np.float32)]),
    ]
    check(gpu, cases, rtol=1e-4)


def test_kernels_of_several_stages(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(7)
    cases: list[Case] = []
    for rows, columns in ((3, 5), (4, 1000), (3, 65), (1, 300), (2, 1)):
        x = rng.normal(0, 3, (rows, columns)).astype(np.float32)
        cases += [(softmax(rows, columns, more=columns % 2 == 0), [x]), (norm(rows, columns), [x, x[0]])]
    check(gpu, cases, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 5, 130])
def test_symbolic_sizes(gpu: WebGpuBackend, n: int) -> None:
    rng = np.random.default_rng(8)
    rows = size("N")
    x = rng.normal(size=(n, 6)).astype(np.float32)
    double = elementwise("double", [float32], float32, rows * 6, lambda v: v * 2.0)
    wide = rng.normal(size=(3, n)).astype(np.float32)
    cases: list[Case] = [
        (double, [x]),
        (softmax(rows, 6), [x]),
        (matmul(rows, 9, 6), [x, rng.normal(size=(6, 9)).astype(np.float32)]),
    ]
    if n:
        cases += [
            (softmax(3, rows), [wide]),
            (norm(3, rows), [wide, wide[0]]),
            (matmul(5, rows, 3), [rng.normal(size=(5, 3)).astype(np.float32), wide]),
        ]
        image, weights = (
            rng.normal(size=(n, 5, 5, 3)).astype(np.float32),
            rng.normal(size=(3, 3, 3, 4)).astype(np.float32),
        )
        cases.append((conv((rows, 5, 5, 3), (3, 3, 3, 4)), [image, weights]))
    check(gpu, cases, {"N": n}, rtol=1e-4, atol=1e-5)
