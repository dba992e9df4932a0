"""Products with packed weights on WebAssembly: for any number of rows, sizes that fill no tile, and both levels of SIMD."""

from __future__ import annotations

import numpy as np
import pytest
from devices import few, slow

from singe.compiler.compile import compile_graph, compile_with_uses
from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.ir.arrays.numpy import NUMPY_ARRAYS
from singe.ops.products.blocks import packed, unpacked
from singe.program.program import ProgramData

pytest.importorskip("wasmtime")
from networks.blocks_cases import CASES, N, made
from wasm_parts import at_level

from singe_wasm.kernels.products.blocks import MAX_ROWS_UNPACKED_PER_TILE
from singe_wasm.levels import LEVELS
from singe_wasm.native import WasmBackend
from singe_wasm.target import WasmTarget


def run(program: ProgramData, x: np.ndarray) -> np.ndarray:
    backend = WasmBackend()
    (out,) = backend.prepare(program).run([backend.upload(x)])
    return backend.download(out)


@few(5, ("rows", "depth", "columns", "bits", "block", "one"), CASES)
@pytest.mark.parametrize("opened", [True, *slow(False)], ids=["open", "fixed"])
def test_products_are_those_of_the_unpacked_matrix(
    rows: int, depth: int, columns: int, bits: int, block: int, one: bool, opened: bool
) -> None:
    graph, matrix = made(N if opened else rows, depth, columns, bits, block, one)
    x = np.random.default_rng(rows).normal(size=(rows, depth)).astype(np.float32)
    wanted = np.concatenate([x, np.ones((rows, 1), np.float32)], 1).astype(np.float64) @ matrix
    program, uses = compile_with_uses(graph, WasmTarget(tuple(LEVELS)))
    assert sum(use.packer is not None for use in uses) == (2 if one else 3), "printed as the plain nest"
    for level in LEVELS:
        error = np.abs(run(at_level(program, level), x) - wanted).max()
        assert error < 3e-6 * np.abs(wanted).max() * max(depth, 16) ** 0.5, level


def test_sums_of_a_few_rows_do_not_depend_on_the_height_of_a_tile() -> None:
    graph, _ = made(N, 100, 40, 4, 32, False)
    x = np.random.default_rng(5).normal(size=(MAX_ROWS_UNPACKED_PER_TILE, 100)).astype(np.float32)
    program = compile_graph(graph, WasmTarget())
    together = run(program, x)
    for rows in (2, 4, 8):
        np.testing.assert_array_equal(run(program, x[:rows]), together[:rows])


def test_a_kernel_around_the_product_stays_one() -> None:
    """A prologue is evaluated into a panel of floats, and the store has an epilogue."""
    rng = np.random.default_rng(2)
    words = packed(rng.integers(0, 16, (64, 24)), 4)
    scale, zero = rng.uniform(0.01, 0.1, (2, 24)).astype(np.float32), np.asarray(np.float32(8))
    b = Builder()
    x = b.input("x", (3, 64), float32)
    y = b.dot_blocks(
        b.transpose(b.reshape(x, shape=(64, 3)), perm=(1, 0)),
        b.const(words),
        b.const(scale),
        b.const(zero),
        bits=4,
        block=32,
    )
    program = compile_graph(Graph((x,), (b.relu(y),), ("y",)), WasmTarget())
    given = rng.normal(size=(3, 64)).astype(np.float32)
    wanted = np.maximum(
        given.reshape(64, 3).T.astype(np.float64) @ unpacked(NUMPY_ARRAYS, words, scale, zero, 4, 32), 0
    )
    np.testing.assert_allclose(run(program, given), wanted, rtol=1e-5, atol=1e-5)
    assert len(program.kernels) == 1
