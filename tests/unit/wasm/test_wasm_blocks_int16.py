"""Products with packed weights and rows in integers of 16 bits, of which 16 or eight count: the same sums on WebAssembly at every level of SIMD as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from devices import few

from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph, compile_with_uses
from singe.compiler.options import ACTIVATIONS, Options
from singe.compiler.target import Target
from singe.dtypes import float32, int32
from singe.errors import ShapeError
from singe.graph import Builder, Graph
from singe.ops.products.blocks import packed
from singe.program.program import Host, ProgramData
from singe.runtime.numpy_backend import NumpyBackend
from singe.shapes import known

pytest.importorskip("wasmtime")
from networks.blocks_cases import CASES, N, made
from wasm_parts import at_level, in_parts

from singe_wasm.levels import LEVELS
from singe_wasm.native import WasmBackend
from singe_wasm.target import WasmTarget

ROW, SHORT = "dot_blocks_int16", "dot_blocks_int8"
OF_FOUR_BITS = [case for case in CASES if case[3] == 4][2::2]
"""Depths that are no multiple of a group, one row and several tiles."""


def run(program: ProgramData, x: np.ndarray) -> np.ndarray:
    backend = WasmBackend()
    (out,) = backend.prepare(program).run([backend.upload(x)])
    return backend.download(out)


def quantised(x: np.ndarray, row: str = ROW) -> tuple[np.ndarray, np.ndarray]:
    """The integers of rows, and their steps."""
    step = np.abs(x).max(1, keepdims=True) * np.float32(1 / 32639)
    whole = x * (np.float32(1) / step)
    if row == SHORT:
        padded = np.pad(whole, ((0, 0), (0, -x.shape[1] % 4))).reshape(len(x), -(-x.shape[1] // 4), 4)
        largest = np.abs(padded).max(2, keepdims=True)
        n = np.clip(np.ceil(largest * np.float32(1 / 127)), np.float32(1), np.float32(257))
        short = np.rint(padded * (1 / n))
        assert np.abs(short).max(initial=0) <= 127
        whole = (short * n).reshape(len(x), short.shape[1] * 4)[:, : x.shape[1]]
    return np.rint(whole).astype(np.float64), step.astype(np.float64)


@few(
    4,
    ("row", "rows", "depth", "columns", "bits", "block", "one"),
    [
        *((ROW, *case) for case in [*CASES, (5, 12, 9, 8, 4, True), (0, 32, 8, 4, 32, True)]),
        *((SHORT, *case) for case in [*OF_FOUR_BITS, (5, 12, 9, 4, 8, True), (0, 32, 8, 4, 32, True)]),
    ],
)
def test_products_are_those_of_quantised_rows(
    row: str, rows: int, depth: int, columns: int, bits: int, block: int, one: bool
) -> None:
    graph, matrix = made(N, depth, columns, bits, block, one, row)
    x = np.random.default_rng(rows).normal(size=(rows, depth)).astype(np.float32)
    x[:, ::7] *= np.float32(50)  # a few large elements
    whole, step = quantised(x, row)
    wanted = whole @ matrix[:-1] * step + matrix[-1]
    program, uses = compile_with_uses(graph, WasmTarget(tuple(LEVELS)))
    assert sum(use.packer is not None for use in uses) == (2 if one else 3), "printed as the plain nest"
    for level in LEVELS:
        error = np.abs(run(at_level(program, level), x) - wanted).max(initial=0)
        assert error < 1e-6 * np.abs(wanted).max(initial=1), level


def test_a_zero_that_is_not_the_middle() -> None:
    rng, b = np.random.default_rng(4), Builder()
    x = b.input("x", (3, 64), float32)
    stored = rng.integers(-(2**31), 2**31, (16, 24)).astype(np.int32), np.full((2, 24), 0.01, np.float32), np.float32(3)
    y = b.dot_blocks_int16(x, *(b.const(np.asarray(a)) for a in stored), bits=8, block=32)
    given = rng.normal(size=(3, 64)).astype(np.float32)
    whole, step = quantised(given)
    numbers = stored[0][:, None] >> np.arange(0, 32, 8)[:, None] & 255
    wanted = whole @ ((numbers.reshape(64, 24) - 3.0) * 0.01) * step
    found = run(compile_graph(Graph((x,), (y,), ("y",)), WasmTarget()), given)
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("row", [ROW, pytest.param(SHORT, marks=pytest.mark.slow)])
def test_odd_rows_spoil_no_others(row: str) -> None:
    """A row with NaN or an infinity gives NaN, one of zeros or of tiny numbers zeros; the largest numbers are exact."""
    graph, matrix = made(N, 40, 16, 4, 32, True, row)
    x = np.random.default_rng(1).normal(size=(7, 40)).astype(np.float32)
    x[0, 3], x[1, 39], x[2], x[3], x[5, 0] = np.nan, -np.inf, 0, 1e-38, 3e38
    for found in (run(compile_graph(graph, WasmTarget()), x), run_arrays(graph, x)):
        assert np.isnan(found[:2]).all()
        np.testing.assert_array_equal(found[2:4], np.tile(matrix[-1].astype(np.float32), (2, 1)))
        assert np.isfinite(found[4:]).all()


def run_arrays(graph: Graph, x: np.ndarray) -> np.ndarray:
    backend = NumpyBackend()
    (out,) = backend.prepare(compile_graph(graph, backend.target)).run([backend.upload(x)])
    return backend.download(out)


@pytest.mark.parametrize("row", [ROW, pytest.param(SHORT, marks=pytest.mark.slow)])
def test_heights_of_tiles_and_parts_of_a_run_leave_the_same_bits(row: str) -> None:
    x = np.random.default_rng(3).normal(size=(9, 100)).astype(np.float32)
    program = compile_graph(made(N, 100, 40, 4, 32, False, row)[0], WasmTarget(tuple(LEVELS)))
    for level in LEVELS:
        together = in_parts(program, level, x, 1).reshape(9, 40)
        for parts in (2, 3, 7):
            np.testing.assert_array_equal(in_parts(program, level, x, parts).reshape(9, 40), together)
        for rows in (1, 2, 3):
            np.testing.assert_array_equal(in_parts(program, level, x[:rows], 1).reshape(-1, 40), together[:rows])


@few(
    2,
    ("row", "rows", "depth", "columns", "bits", "block", "one"),
    [
        *((ROW, *case) for case in [*CASES, (7, 12, 9, 8, 4, False), (2, 36, 8, 8, 12, True)]),
        *((SHORT, *case) for case in OF_FOUR_BITS),
    ],
)
def test_bytes_give_the_same_integers_as_other_forms(
    row: str, rows: int, depth: int, columns: int, bits: int, block: int, one: bool
) -> None:
    """Where one instruction adds four products of bytes with a sign. All that is rounded comes after the integers."""
    program = compile_graph(made(N, depth, columns, bits, block, one, row)[0], WasmTarget(tuple(LEVELS)))
    x = np.random.default_rng(rows).normal(size=(rows, depth)).astype(np.float32)
    here, there = (in_parts(program, "relaxed", x, 1, signs) for signs in (False, True))
    np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-6 * np.abs(here).max())


@pytest.mark.parametrize("row", [ROW, SHORT, "dot_blocks", "dot_int8"])
def test_a_product_counts_its_sums_and_what_its_operands_are_made_of_once(row: str) -> None:
    rows, depth, columns = 64, 256, 128
    if row == "dot_int8":
        b = Builder()
        x = b.input("x", (N, depth), float32)
        scales = b.const(np.ones(columns, np.float32))
        graph = Graph((x,), (b.dot_int8(x, b.const(np.ones((depth, columns), np.uint8)), scales),), ("y",))
    else:
        graph, _ = made(N, depth, columns, 4, 64, True, row)
    (kernel,) = (k for k in compile_graph(graph, WasmTarget()).kernels if k.kind.startswith("matmul"))
    sums = 2 * depth * columns * rows
    operands = depth * (rows + columns)
    assert 0 < known(kernel.flops, {str(N): rows}) - sums < 40 * operands < sums
    assert known(kernel.flops, {str(N): 0}) < 40 * operands


def test_a_kernel_around_the_product_stays_one() -> None:
    """A prologue is evaluated once for each row; the rows of a transposed operand are not adjacent."""
    rng, b = np.random.default_rng(2), Builder()
    x = b.input("x", (64, 3), float32)
    graph, _ = made(3, 64, 24, 4, 32, False)
    weights = [b.const(n.value) for n in graph.nodes if n.value is not None and n.value.ndim == 2][:3]
    for rows in (b.transpose(x, perm=(1, 0)), b.relu(b.transpose(x, perm=(1, 0)))):
        y = b.relu(b.dot_blocks_int16(rows, *weights, bits=4, block=32))
        whole = Graph((x,), (y,), ("y",))
        program = compile_graph(whole, WasmTarget())
        given = rng.normal(size=(64, 3)).astype(np.float32)
        wanted = run_arrays(whole, given)
        np.testing.assert_allclose(run(program, given), wanted, atol=1e-6 * np.abs(wanted).max())
        assert len(program.kernels) == 1


# --- the rewrite -----------------------------------------------------------------------------------------------------


def ops_of(graph: Graph, activations: str, target: Target) -> set[str]:
    program = compile_graph(graph, target, Options(activations))
    return {s.op for s in program.stops if isinstance(s, Host)} | {k.label.split("+")[0] for k in program.kernels}


def test_rows_stay_float32_unless_the_caller_allows_integers() -> None:
    graph, _ = made(3, 100, 40, 4, 32, False)
    wasm, gpu = WasmTarget(), WasmTarget()
    gpu.integers = False
    for activations in ACTIVATIONS:
        row = {"float32": "dot_blocks", "packed_int8": SHORT}.get(activations, ROW)
        assert ops_of(graph, activations, wasm) == {row}
        assert (ROW in ops_of(graph, activations, ARRAYS)) == (activations == "int8"), "floats are faster over arrays"
    assert ops_of(graph, "int16", gpu) == {"dot_blocks"}, "a target whose integers are no faster"


def test_what_stays_float32() -> None:
    b = Builder()
    x, words = b.input("x", (2, 512), float32), b.input("w", (128, 8), int32)
    scale, zero = b.const(np.ones((1, 8), np.float32)), b.const(128.0)
    known = b.const(np.zeros((128, 8), np.int32))
    for weights, block in ((words, 256), (known, 512)):
        scales = scale if block == 512 else b.const(np.ones((2, 8), np.float32))
        y = b.dot_blocks(x, weights, scales, zero, bits=8, block=block)
        assert ops_of(Graph((x, words), (y,), ("y",)), "int16", WasmTarget()) == {"dot_blocks"}
    scales = b.const(np.ones((4, 8), np.float32))
    y = b.dot_blocks(x, known, scales, zero, bits=8, block=128)
    assert ops_of(Graph((x,), (y,), ("y",)), "packed_int8", WasmTarget()) == {ROW}
    with pytest.raises(ShapeError, match="dot_blocks_int8: got weights of 8 bits, expected 4"):
        b.dot_blocks_int8(x, known, scales, zero, bits=8, block=128)
    with pytest.raises(ShapeError, match="blocks of 512 weights of 8 bits, expected at most 256"):
        b.dot_blocks_int16(x, known, scale, zero, bits=8, block=512)


@pytest.mark.parametrize(("zero", "least", "row"), [(128.0, 1, "dot_int8"), (127.5, 1, ROW), (128.0, 0, ROW)])
def test_weights_of_eight_bits_that_share_a_scale_meet_rows_of_eight(zero: float, least: int, row: str) -> None:
    """Unless they are no whole numbers from −127 to 127."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(least, 256, (45, 40))
    numbers[0, 0] = least
    scales = rng.uniform(0.5, 2, (1, 40)).astype(np.float32)
    x = rng.normal(size=(13, 45)).astype(np.float32)
    b = Builder()
    leaf = b.input("x", x.shape, float32)
    weights = [b.const(a) for a in (packed(numbers, 8), scales, np.float32(zero))]
    graph = Graph((leaf,), (b.dot_blocks(leaf, *weights, bits=8, block=256),), ("y",))
    assert ops_of(graph, "int16", WasmTarget()) == {ROW}
    for activations in ("packed_int8", "int8"):
        assert ops_of(graph, activations, WasmTarget()) == {row}
    wanted = x @ ((numbers - zero) * scales)
    out = run(compile_graph(graph, WasmTarget(), Options("packed_int8")), x)
    np.testing.assert_allclose(out, wanted, atol=(2e-2 if row == "dot_int8" else 1e-4) * np.abs(wanted).max())
    assert row == ROW or np.abs(out - wanted).max() > 1e-4 * np.abs(wanted).max()
