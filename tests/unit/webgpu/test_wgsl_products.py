"""Products of matrices and convolutions in WGSL, in every cut, compared with the interpreter."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from networks.graphs import pooled_conv
from wgsl_checks import Case, check, conv, matmul, program_of, this_gpu

from singe.compiler.fuse import fuse
from singe.dtypes import int32, int64
from singe.ir import affine
from singe.ir import scalar as S
from singe.ir.interpreter import interpret
from singe.ir.kernel import Routine, Store
from singe.ir.scalar import Expr

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe.ir.contraction import contraction
from singe_gpu.code.variants import variants
from singe_gpu.kernels.products.gemm import print_contraction
from singe_gpu.rates import RATES, Tile
from singe_webgpu.code.dialect import WGSL
from singe_webgpu.device.native import WebGpuBackend


@pytest.fixture
def gpu() -> WebGpuBackend:
    return this_gpu()


def _bias_relu(y: Expr, bias: Expr) -> Expr:
    return S.maximum(y + bias, 0.0)


@pytest.mark.slow
def test_matmuls(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(9)

    def some(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    cases: list[Case] = [
        (matmul(m, n, k), [some(m, k), some(k, n)])
        for m, n, k in (
            (1, 1, 1),
            (1, 70, 33),
            (2, 33, 100),
            (3, 5, 7),
            (17, 33, 65),
            (64, 64, 64),
            (65, 1, 40),
            (1, 40, 500),
        )
    ]
    cases += [(matmul(9, 35, 18, turned=t), [some(9, 18), some(18, 35)]) for t in ("a", "b", "ab")]
    cases += [(matmul(1, 35, 118, turned="b"), [some(1, 118), some(118, 35)])]
    cases += [
        (matmul(7, 6, 5, (3,)), [some(3, 7, 5), some(3, 5, 6)]),
        (matmul(4, 6, 5, (2, 3)), [some(2, 3, 4, 5), some(2, 3, 5, 6)]),
    ]
    cases += [
        (matmul(7, 20, 5, (3,), shared=True), [some(3, 7, 5), some(5, 20)]),
        (matmul(1, 20, 5, (4,)), [some(4, 1, 5), some(4, 5, 20)]),
    ]
    cases += [(matmul(10, 40, 30, before=S.tanh, after=_bias_relu), [some(10, 30), some(30, 40), some(40)])]
    cases += [(matmul(1, 40, 30, before=S.tanh, after=_bias_relu), [some(1, 30), some(30, 40), some(40)])]
    cases += [(matmul(8, 8, 0), [some(0), some(0)]), (matmul(0, 8, 8), [some(0), some(8, 8)])]
    whole = rng.integers(-50, 50, (2, 20, 20))
    cases += [(matmul(20, 20, 20, d=d), [whole[0].astype(d.numpy), whole[1].astype(d.numpy)]) for d in (int32, int64)]
    check(gpu, cases, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["", "a", "b"])
@pytest.mark.parametrize("sizes", [(70, 90, 40), (68, 96, 72)], ids=["odd", "in fours"])
def test_every_cut(gpu: WebGpuBackend, sizes: tuple[int, int, int], turned: str) -> None:
    """The cuts themselves, whichever the sizes would choose: each way that the operands lie, singly and by vectors."""
    m, n, k = sizes
    rng = np.random.default_rng(10)
    a, b, bias = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    routine = matmul(m, n, k, turned=turned, after=_bias_relu)
    given = [a.T.copy() if turned == "a" else a, b.T.copy() if turned == "b" else b, bias]
    _check_cuts(gpu, routine, given, np.maximum(a @ b + bias, 0))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2, 3, 6])
def test_every_cut_of_few_rows(gpu: WebGpuBackend, rows: int) -> None:
    rng = np.random.default_rng(12)
    for n, k in ((10, 33), (24, 40), (20, 12)):
        a, b = rng.normal(size=(rows, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
        _check_cuts(gpu, matmul(rows, n, k), [a, b], a @ b)


@pytest.mark.slow
@pytest.mark.parametrize("pooled", [False, True], ids=["plain", "pooled"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("outputs", [7, 8])
def test_every_cut_of_a_convolution(gpu: WebGpuBackend, channels: int, outputs: int, pooled: bool) -> None:
    """Four neighbouring rows of its matrix lie in one row of pixels, in two, or in one window."""
    rng = np.random.default_rng(13)
    x, w = (2, 10, 6, channels), (3, 3, channels, outputs)
    if pooled:
        _, (group,) = fuse(pooled_conv(x, outputs), gpu.target.max_ports, lambda group: True)
        routine = group.kernel
        assert isinstance(routine, Routine)
    else:
        routine = conv(x, w, before=(1, 1), after=(1, 1), epilogue=lambda y: S.maximum(y, 0.0))
    given = [rng.normal(size=s).astype(np.float32) for s in (x, w)]
    wanted = np.zeros((2, 5, 3, outputs) if pooled else (2, 10, 6, outputs), np.float32)
    interpret(routine, arrays := [*(a.reshape(-1) for a in given), wanted.reshape(-1)])
    _check_cuts(gpu, routine, given, arrays[-1].reshape(wanted.shape))


def _check_cuts(gpu: WebGpuBackend, routine: Routine, given: list[np.ndarray], wanted: np.ndarray) -> None:
    """Compare a product's result in every cut that can compute it."""
    found = contraction(routine)
    assert found is not None
    every = (*filter(None, RATES), Tile(64, 64, 8, 8, 8), Tile(32, 64, 16, 4, 8))
    for cut in (cut for cut in every if cut.rows % found.window == 0):
        printed = variants(WGSL, routine.kernel.ports, partial(print_contraction, found, cut))
        _, ((variant,),) = gpu.target.link([printed])
        program = program_of(gpu, [routine], [[*given, wanted]])
        code = replace(program.kernels[0], variants=(variant,))
        program = replace(program, kernels=(code,), modules={"w0": printed.code[0]})
        (out,) = gpu.prepare(program).run([gpu.upload(x) for x in given])
        got = gpu.download(out).reshape(wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=str(cut))


def test_tiles_keep_to_what_webgpu_promises() -> None:
    for tile in filter(None, RATES):
        assert tile.shared_bytes <= 16384, tile
        assert tile.threads <= 256, tile


def test_the_places_of_shuffled_groups_are_simple() -> None:
    """Outputs that take turns, group by group, are divided among groups once, not at each store."""
    routine = conv((1, 6, 7, 12), (1, 1, 4, 24), group=3)
    o = routine.kernel.grid_vars[-1]
    turns = affine.flatten((affine.index_rem(o, 8), affine.index_div(o, 8)), (8, 3))
    *stages, store = routine.kernel.stages
    assert isinstance(store, Store)
    stages = (*stages, replace(store, index=affine.substitute(store.index, {o: turns})))
    found = contraction(replace(routine, kernel=replace(routine.kernel, stages=stages)))
    assert found is not None
    assert affine.linear(found.store.index) == ({found.m: 24, found.n: 3, found.batch_vars[0]: 1}, 0)


def test_convolutions(gpu: WebGpuBackend) -> None:
    rng = np.random.default_rng(11)
    shapes: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, object]]] = [
        ((2, 9, 3), (3, 3, 5), {}),
        ((1, 17, 4), (4, 2, 6), {"strides": (2,), "dilations": (3,), "before": (1,), "after": (4,), "group": 2}),
        ((1, 8, 9, 3), (3, 3, 3, 8), {"before": (1, 1), "after": (1, 1)}),
        ((2, 9, 8, 3), (3, 2, 3, 7), {"strides": (2, 1), "before": (0, 1), "after": (1, 0)}),
        ((1, 7, 7, 6), (3, 3, 2, 9), {"group": 3, "dilations": (2, 1), "before": (2, 1), "after": (2, 1)}),
        ((1, 6, 7, 8), (3, 3, 1, 8), {"group": 8, "before": (1, 1), "after": (1, 1)}),
        ((1, 6, 7, 8), (3, 3, 1, 16), {"group": 8, "strides": (2, 2), "before": (1, 0), "after": (0, 1)}),
        ((2, 5, 5, 4), (1, 1, 4, 6), {"strides": (2, 2)}),
        ((3, 5, 5, 4), (1, 1, 4, 6), {}),
        ((1, 5, 5, 40), (3, 3, 40, 1), {}),
        ((1, 4, 5, 6, 2), (2, 3, 2, 2, 4), {"before": (1, 0, 1), "after": (0, 1, 0), "strides": (1, 2, 1)}),
        ((1, 3, 3, 4), (3, 3, 4, 10), {}),
    ]
    cases: list[Case] = []
    for x, w, facts in shapes:
        routine = conv(x, w, **facts, epilogue=lambda y: S.maximum(y, 0.0))  # pyright: ignore[reportArgumentType]
        cases.append((routine, [rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)]))
    check(gpu, cases, rtol=1e-4, atol=1e-4)
