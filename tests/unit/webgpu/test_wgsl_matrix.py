"""float16 products on subgroup matrices: the results of the text, and when it is chosen.

wgpu-py has no subgroup matrices. So their functions are replaced by plain WGSL with the same meaning, in which a matrix
is an offset and each invocation sums half a row; the template's loads, bounds, tiles and epilogue run unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from devices import slow

from singe.compiler.compile import compile_graph
from singe.dtypes import DType, float16, float32
from singe.graph import Builder, Graph
from singe.program.program import ProgramData
from singe.shapes import size
from singe.tools.measuring.bench import gemm
from singe_gpu.dialect import SHADER_F16, SUBGROUP_MATRIX
from singe_gpu.rates import MatrixCut, Rate, Tile
from singe_gpu.target import GpuTarget
from singe_webgpu.target import WgslTarget

pytest.importorskip("wgpu")
from wgsl_checks import this_gpu

from singe_webgpu.code.dialect import WGSL
from singe_webgpu.device.native import WebGpuBackend

WORDS: Final = """
var<private> me: u32; // an invocation's place in its subgroup: it holds half a row of a sum

struct Place { at: u32, stride: u32, by_rows: bool }

struct Sum { low: vec4<f32>, high: vec4<f32> }

fn line(p: Place, row: u32, column: u32) -> vec2<u32> { return select(vec2<u32>(column, row), vec2<u32>(row, column), p.by_rows); }

fn half_at(words: vec4<u32>, minor: u32) -> f32 { return unpack2x16float(words[minor % 8u / 2u] >> (minor % 2u * 16u)).x; }

fn of_a(p: Place, row: u32, column: u32) -> f32 {
  let i = line(p, row, column);
  return half_at(tile_a[p.at + i.x * p.stride + i.y / 8u], i.y);
}

fn of_b(p: Place, row: u32, column: u32) -> f32 {
  let i = line(p, row, column);
  return half_at(tile_b[p.at + i.x * p.stride + i.y / 8u], i.y);
}

fn product(a: Place, b: Place, sum: Sum) -> Sum {
  var total = sum;
  let first = me % 2u * 8u;
  for (var k = 0u; k < 16u; k++) {
    let x = of_a(a, me / 2u, k);
    for (var i = 0u; i < 4u; i++) {
      total.low[i] += x * of_b(b, k, first + i);
      total.high[i] += x * of_b(b, k, first + 4u + i);
    }
  }
  return total;
}

fn store_sums(first: u32, sum: Sum) {
  tile_b[first + me * 2u] = bitcast<vec4<u32>>(sum.low);
  tile_b[first + me * 2u + 1u] = bitcast<vec4<u32>>(sum.high);
}
"""
TILE: Final = Tile(16, 32, 32)
"""A cut for the last variants, so that there are other variants before them at any size."""
AROUND: Final = {"strides": (1, 1), "dilations": (1, 1), "before": (1, 1), "after": (1, 1), "group": 1}
CUTS: Final = [MatrixCut(32, 32, 32, 16, 16), MatrixCut(32, 64, 32, 16, 32), MatrixCut(64, 64, 16, 32, 32, 4)]


@pytest.fixture
def gpu() -> WebGpuBackend:
    found = this_gpu()
    if SHADER_F16 not in found.gpu.features:
        pytest.skip("this device has no shader-f16")
    return found


def plain(text: str) -> str:
    """The text with the words of subgroup matrices replaced; matrices of 16 by 16, subgroups of 32."""
    loads = (
        r"subgroupMatrixLoad<subgroup_matrix_(?:left|right)<f16, 16, 16>, (row|col)_major>\(&(tile_\w), (.*), (\d+u)\);"
    )
    text = re.sub(loads, lambda m: f"Place({m[3]}, {m[4]}, {str(m[1] == 'row').lower()});", text)
    text = re.sub(
        r"subgroupMatrixStore<row_major>\(&tile_b, first \+ 0u, sum0, 4u\);", "store_sums(first, sum0);", text
    )
    text = text.replace("subgroupMatrixMultiplyAccumulate(", "product(")
    text = text.replace("subgroup_matrix_result<f32, 16, 16>", "Sum")
    builtins = r",\n *@builtin\(subgroup_invocation_id\) member: u32.*,\n *@builtin\(subgroup_id\) subgroup: u32\) {"
    text, found = re.subn(
        builtins, ") {\n  let subgroup = lane / 32u;\n  let member = lane % 32u;\n  me = member;", text
    )
    assert found == 1
    text = re.sub(r"enable (subgroups|chromium_experimental_subgroup_matrix);\n", "", text)
    assert "subgroup_matrix" not in text
    assert "subgroupMatrix" not in text
    return text + WORDS


def on_matrices(graph: Graph, cut: MatrixCut) -> ProgramData:
    """The graph's Program, in which each product uses this cut, as plain WGSL."""
    dialect = replace(WGSL, matrices=replace(WGSL.matrices, rates={float16: {cut: Rate(1, 1, 1)}}))
    program = compile_graph(graph, GpuTarget(dialect, lambda _routine, _c: [(0, TILE)]))
    modules, kernels = dict(program.modules), []
    for code in program.kernels:
        first = code.variants[0]
        if SUBGROUP_MATRIX in first.requires:
            modules[first.entry] = plain(str(program.modules[first.entry]))
            code = replace(code, variants=(replace(first, requires=(SHADER_F16,)),))
        kernels.append(code)
    assert any(c is not d for c, d in zip(kernels, program.kernels, strict=True))
    return replace(program, kernels=tuple(kernels), modules=modules)


def run(gpu: WebGpuBackend, program: ProgramData, *arrays: np.ndarray) -> np.ndarray:
    executable = gpu.prepare(program)
    (out,) = executable.run([gpu.upload(a) for a in arrays])
    return gpu.download(out)


def product(
    shape_a: Any, shape_b: Any, out: DType = float16, more: Callable[[Builder, Any], Any] = lambda _b, y: y
) -> Graph:
    """a · b with an epilogue."""
    b = Builder()
    x, w = b.input("x", shape_a, float16), b.input("w", shape_b, float16)
    y = more(b, b.matmul(x, w))
    return Graph((x, w), (y if out is float16 else b.cast(y, to=out),), ("y",))


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Numbers whose products and sums are exact."""
    rng = np.random.default_rng(1)
    return [(rng.integers(-15, 16, shape) / 16).astype(np.float16) for shape in shapes]


def tile(cut: MatrixCut) -> str:
    return f"{cut.rows}x{cut.columns}x{cut.depth}"


def close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want.astype(got.dtype), rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("cut", [*CUTS[:2], *slow(CUTS[2])], ids=tile)
@pytest.mark.parametrize("sizes", [(33, 47, 129), *slow((64, 64, 64), (70, 40, 68), (3, 8, 8), (40, 33, 72))], ids=str)
def test_products(gpu: WebGpuBackend, cut: MatrixCut, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    x, w = arrays((m, k), (k, n))
    got = run(gpu, on_matrices(product((m, k), (k, n)), cut), x, w)
    close(got, x.astype(np.float32) @ w.astype(np.float32))


@pytest.mark.parametrize("cut", [CUTS[0], *slow(*CUTS[1:])], ids=tile)
@pytest.mark.parametrize("of", ["a", "b", "both"])
def test_operands_that_lie_the_other_way(gpu: WebGpuBackend, of: str, cut: MatrixCut) -> None:
    m, k, n = 48, 40, 56
    b = Builder()
    x = b.input("x", (k, m) if of != "b" else (m, k), float16)
    w = b.input("w", (n, k) if of != "a" else (k, n), float16)
    left = b.transpose(x, perm=(1, 0)) if of != "b" else x
    right = b.transpose(w, perm=(1, 0)) if of != "a" else w
    graph = Graph((x, w), (b.matmul(left, right),), ("y",))
    a, c = arrays(x.shape, w.shape)  # pyright: ignore[reportArgumentType]
    want = (a.T if of != "b" else a).astype(np.float32) @ (c.T if of != "a" else c).astype(np.float32)
    close(run(gpu, on_matrices(graph, cut), a, c), want)


def test_batches_epilogues_and_other_outputs(gpu: WebGpuBackend) -> None:
    x, w = arrays((3, 2, 24, 32), (3, 2, 32, 40))
    graph = product(x.shape, w.shape, float32, lambda b, y: b.relu(b.add(y, y)))
    want = np.maximum(2 * np.matmul(x.astype(np.float32), w.astype(np.float32)), 0)
    close(run(gpu, on_matrices(graph, CUTS[0]), x, w), want)


def test_open_sizes(gpu: WebGpuBackend) -> None:
    """All variants get the same sizes, and each declares the ones that it needs."""
    rows, depth = size("N"), size("K")
    b = Builder()
    x, w = b.input("x", (rows, depth), float16), b.input("w", (depth, 24), float16)
    graph = Graph((x, w), (b.matmul(x, w),), ("y",))
    program = on_matrices(graph, CUTS[0])
    for m, k in ((5, 70), (64, 32), (100, 9)):
        a, c = arrays((m, k), (k, 24))
        want = a.astype(np.float32) @ c.astype(np.float32)
        close(run(gpu, program, a, c), want)
        close(run(gpu, compile_graph(graph, WgslTarget()), a, c), want)


def test_a_padded_convolution(gpu: WebGpuBackend) -> None:
    x, w = arrays((1, 16, 9, 11), (24, 16, 3, 3))
    b = Builder()
    given = b.input("x", x.shape, float16)
    graph = Graph((given,), (b.conv(given, b.const(w), **AROUND),), ("y",))
    wide = np.pad(x.astype(np.float32), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    want = np.einsum("ncyxij,ocij->noyx", windows, w.astype(np.float32))
    close(run(gpu, on_matrices(graph, CUTS[0]), x), want)


# --- where it is chosen ----------------------------------------------------------------------------------------------


def test_devices_without_them_run_the_same_program(gpu: WebGpuBackend) -> None:
    program = compile_graph(gemm(64, 48, 40, float16), WgslTarget())
    first, *rest = program.kernels[0].variants
    assert SUBGROUP_MATRIX in first.requires
    assert rest[-1].requires == ()
    executable = gpu.prepare(program)
    assert executable.kernels.variants[0] in rest
    (x,) = arrays((64, 48))
    w = np.random.default_rng(0).random((48, 40), np.float32).astype(np.float16)
    (out,) = executable.run([gpu.upload(x)])
    close(gpu.download(out), x.astype(np.float32) @ w.astype(np.float32))


@pytest.mark.parametrize(
    "graph",
    [
        gemm(64, 64, 64, float32),
        gemm(1, 64, 64, float16),
        gemm(64, 64, 1, float16),
        product((64, 64), (64, 64), float16, lambda b, y: b.matmul(b.cast(y, to=float32), b.const(np.eye(64, dtype=np.float32)))),
    ],
    ids=["float32", "a row", "a column", "one side of float32"],
)  # fmt: skip
def test_other_products_have_no_such_text(graph: Graph) -> None:
    last = compile_graph(graph, WgslTarget()).kernels[-1]
    assert all(SUBGROUP_MATRIX not in v.requires for v in last.variants)


@pytest.mark.parametrize(("perm", "lines"), [((0, 1), 16), ((1, 0), 128)], ids=["across", "along the depth"])
def test_a_cut_fits(perm: tuple[int, int], lines: int) -> None:
    """An operand along the depth takes more memory and more lines: the next cut is taken where the first does not fit."""
    b = Builder()
    x, w = b.input("x", (4096, 4096), float16), b.input("w", (4096, 4096), float16)
    graph = Graph((x, w), (b.matmul(x, b.transpose(w, perm=perm)),), ("y",))
    program = compile_graph(graph, WgslTarget())
    text = str(program.modules[program.kernels[0].variants[0].entry])
    sizes = [int(n) for n in re.findall(r"var<workgroup> \w+: array<vec4<u32>, (\d+)>", text)]
    assert len(sizes) == 2
    assert 16 * sum(sizes) <= WGSL.matrices.workgroup_bytes
    turns, units = len(re.findall("let b_line", text)), int(re.findall(r"let b_unit0 = i32\(lane\) % (\d+)i;", text)[0])
    threads = int(re.findall(r"@workgroup_size\((\d+)\)", text)[0])
    assert turns * threads // units == lines
