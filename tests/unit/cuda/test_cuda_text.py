"""The text of kernels in CUDA C++: golden files, and that NVRTC compiles it without a warning, for which no GPU is needed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from gpu_kernels import KERNELS, casts, graph_of, matmul_bias_relu, templates

import singe as sg
from singe.compiler.compile import compile_graph
from singe.dtypes import bfloat16, float16, float32, float64, int8, int32, int64
from singe.graph import Builder, Graph
from singe.model.files import load
from singe.ops.kinds import ROWS
from singe.shapes import Dim, size
from singe_cuda.code.dialect import CUDA
from singe_cuda.code.rates import HALF_RATES, INTEGER_RATES, PACKED_RATES, SINGLE_RATES
from singe_cuda.code.text import ENTRY_POINT, bindings, launch_bytes, prelude, threads
from singe_cuda.device.driver import architectures, compile_text
from singe_cuda.device.gpu import HOPPER, OPTIONS, architecture_of
from singe_cuda.target import CudaTarget
from singe_gpu.rates import Rate
from singe_gpu.target import GpuTarget

GOLDEN: Final = Path(__file__).parents[2] / "golden"
MODELS: Final = Path(__file__).parents[3].parent / "shared" / "models"
ARCHITECTURES: Final = (80, 90)
SHOWN: Final = ("relu", "softmax", "matmul_bias_relu")
"""The kernels of which the whole text is a golden file: it shows how each kind of declaration is spelled."""


@pytest.fixture(scope="module")
def nvrtc() -> None:
    try:
        architectures()
    except sg.DeviceError as e:
        pytest.skip(f"no NVRTC here: {e}")


def refused(texts: Iterable[str], architecture: int) -> str:
    """What NVRTC says of the texts for an architecture, warnings too. They are compiled together, since most of the time goes to the
    prelude."""
    spaces = [
        f"namespace text{k} {{\n{text.replace(f'{ENTRY_POINT}(', f'{ENTRY_POINT}{k}(')}\n}}"
        for k, text in enumerate(texts)
        if architecture == HOPPER or "multiplyWide" not in text
    ]
    source, options = (
        "\n".join((prelude(), *spaces)),
        (f"--gpu-architecture={architecture_of(architecture)[0]}", *OPTIONS),
    )
    try:
        return compile_text(source, "kernels.cu", options, True)[1]
    except sg.DeviceError as e:
        return str(e)


def texts_of(graphs: Iterable[Graph], target: GpuTarget | None = None) -> list[str]:
    return sorted(
        {str(text) for graph in graphs for text in compile_graph(graph, target or CudaTarget()).modules.values()}
    )


def printed(name: str) -> list[str]:
    """The texts of a kernel, each variant once."""
    constants = [k for k, port in enumerate(KERNELS[name].ports) if port.dtype is int8]
    first = CudaTarget().print(KERNELS[name], constants)
    assert first is not None
    return [str(code) for one in (first, *first.others) for code in one.code]


@pytest.mark.parametrize("name", SHOWN)
def test_cuda_text_is_golden(name: str) -> None:
    path, code = GOLDEN / f"{name}.cu", printed(name)[-1]
    if os.environ.get("SINGE_UPDATE_GOLDEN"):
        path.write_text(code)
    assert code == path.read_text()


@pytest.mark.parametrize(("name", "rows"), [("matmul_matrices", size("N")), ("matmul_wide", 1 << 14)])
def test_products_of_halves_on_tensor_cores_are_golden(name: str, rows: Dim) -> None:
    found = CudaTarget().print(matmul_bias_relu(rows, kind=float16), ())
    assert found is not None
    path = GOLDEN / f"{name}.cu"
    if os.environ.get("SINGE_UPDATE_GOLDEN"):
        path.write_text(found.code[0])
    assert found.code[0] == path.read_text()


def test_a_text_says_what_it_binds_and_how_many_threads_it_has() -> None:
    text = printed("softmax")[-1]
    assert bindings(text) == ("storage, read", "storage, read_write", "uniform")
    assert threads(text) in (64, 256)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_nvrtc_compiles_every_golden_kernel(nvrtc: None, name: str, architecture: int) -> None:
    assert refused(printed(name), architecture) == ""


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc_compiles_every_template(nvrtc: None, architecture: int) -> None:
    assert refused(texts_of(templates()), architecture) == ""


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc_compiles_every_cast(nvrtc: None, architecture: int) -> None:
    assert refused(texts_of(casts()), architecture) == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [float64, int64])
def test_nvrtc_compiles_words_of_64_bits(nvrtc: None, kind: Any) -> None:
    words = ("add", "mul", "div", "minimum", "maximum", "neg", "abs") + (
        ("exp", "tanh", "sin") if kind is float64 else ()
    )
    arity = {"add": 2, "mul": 2, "div": 2, "minimum": 2, "maximum": 2}
    graphs = [graph_of(word, *[((size("N"), 3), kind)] * arity.get(word, 1)) for word in words]
    assert refused(texts_of(graphs), 90) == ""


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "model", ["mnist_cnn", "magika", "ppocr_cls", "silero_vad", "efficientnet_lite0", "minilm_l6_v2_int8"]
)
def test_nvrtc_compiles_the_kernels_of_real_models(nvrtc: None, model: str, architecture: int) -> None:
    path = MODELS / f"{model}.onnx"
    if not path.exists():
        pytest.skip(f"no {path} here")
    assert refused(texts_of([load(path, "numpy").graph()]), architecture) == ""


def test_what_does_not_compile_is_told_with_the_compilers_words(nvrtc: None) -> None:
    with pytest.raises(sg.DeviceError, match=r"CUDA C\+\+ does not compile: .*identifier \"nothing\" is undefined"):
        compile_text("int x = nothing;", "kernel.cu", OPTIONS, False)


def test_without_a_driver_the_device_says_what_to_do() -> None:
    try:
        found = sg.Cuda(99)
    except sg.DeviceError as e:
        assert "no NVIDIA driver is here" in str(e) or "no device cuda:99; there" in str(e)  # noqa: PT017
    else:
        pytest.fail(f"{found} opened")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [float16, bfloat16])
@pytest.mark.parametrize("cut", HALF_RATES, ids=str)
def test_products_of_small_floats_are_copied_ahead_to_tensor_cores(nvrtc: None, cut: Any, kind: Any) -> None:
    """With operands along and across the depth, and where no whole vectors can be copied. Wide tiles begin at whole blocks."""
    texts = []
    rates = {cut: Rate(1e-9, 1e-9, 0), **{other: Rate(1, 1, 0) for other in HALF_RATES if cut.wide and not other.wide}}
    alone = GpuTarget(replace(CUDA, matrices=replace(CUDA.matrices, rates={kind: rates})))
    for (m, k, n), turned in product(((512, 256, 512), (33, 17, 5)), (False, True)):
        b = Builder()
        x, w = b.input("x", (m, k), kind), b.input("w", (n, k) if turned else (k, n), kind)
        y = b.matmul(x, b.transpose(w, perm=(1, 0)) if turned else w)
        texts += texts_of([Graph((x, w), (y,), ("y",))], alone)
    assert any("copyAhead" in text for text in texts)
    if cut.wide:
        texts = [text for text in texts if "multiplyWide" in text]
        assert len(texts) == 4
        assert all(map(launch_bytes, texts))
    assert max(map(launch_bytes, texts)) <= (CUDA.matrices.wide_bytes if cut.wide else CUDA.matrices.workgroup_bytes)
    assert refused(texts, HOPPER if cut.wide else 80) == ""


@pytest.mark.slow
@pytest.mark.parametrize("cut", SINGLE_RATES, ids=str)
def test_large_products_of_float32_are_computed_on_tensor_cores_and_again_where_not_finite(
    nvrtc: None, cut: Any
) -> None:
    """With operands along and across the depth; products that are small, or whose elements must be gathered, are not."""
    alone = GpuTarget(replace(CUDA, matrices=replace(CUDA.matrices, rates={float32: {cut: Rate(1e-9, 1e-9, 0)}})))
    texts = []
    for across, turned in product((False, True), repeat=2):
        b = Builder()
        x = b.input("x", (520, 1056) if across else (1056, 520), float32)
        w = b.input("w", (260, 520) if turned else (520, 260), float32)
        left, right = (b.transpose(v, perm=(1, 0)) if is_turned else v for v, is_turned in ((x, across), (w, turned)))
        texts += texts_of([Graph((x, w), (b.matmul(left, right),), ("y",))], alone)
    with_matrices = [text for text in texts if "subgroup_matrix_left<f32" in text]
    assert len(with_matrices) == 4
    assert all("copyAhead" in text and "exact(" in text for text in with_matrices)
    assert max(map(launch_bytes, texts)) <= CUDA.matrices.workgroup_bytes
    assert refused(with_matrices, 80) == ""
    small = texts_of([graph_of("matmul", ((64, 64), float32), ((64, 64), float32))], alone)
    odd = texts_of([graph_of("matmul", ((1024, 1023), float32), ((1023, 1025), float32))], alone)
    assert not any("subgroup_matrix" in text for text in (*small, *odd))


@pytest.mark.slow
def test_operands_of_products_are_rounded_to_tf32_only_where_that_is_asked_for(nvrtc: None) -> None:
    graph = graph_of("matmul", ((1024, 1024), float32), ((1024, 1024), float32))
    exact, rounded = (texts_of([graph], CudaTarget(tf32=asked)) for asked in (False, True))
    assert rounded == [text.replace("_left<f32", "_left<tf32").replace("_right<f32", "_right<tf32") for text in exact]
    assert any("<tf32" in text for text in rounded)
    assert refused(rounded, 80) == ""


@pytest.mark.slow
def test_a_product_whose_depth_lies_in_pieces_is_computed_on_tensor_cores() -> None:
    """As the projection of what attention's heads give, which are reordered while it is read."""
    b = Builder()
    x, w = b.input("x", (8, 12, 128, 32), float32), b.input("w", (384, 384), float32)
    heads = b.reshape(b.transpose(x, perm=(0, 2, 1, 3)), shape=(8, 128, 384))
    (text,) = (text for text in texts_of([Graph((x, w), (b.dot(heads, w),), ("y",))]) if "copyAhead" in text)
    assert "subgroup_matrix_left<f32" in text


def packed_product(bits: int, rows: tuple[Dim, ...], k: int, n: int, zero: float | None) -> Graph:
    """A product of rows by packed weights; zero: that of all weights, or None where each block has one. With several axes of rows
    the columns are heads, which come before the last of them."""
    b = Builder()
    x, w = b.input("x", (*rows, k), float32), b.input("w", (k * bits // 32, n), int32)
    scale = b.input("scale", (k // 32, n), float32)
    zeros = b.input("zero", scale.shape, float32) if zero is None else b.const(zero, float32)
    y = b.apply(ROWS["dot_blocks"], x, w, scale, zeros, bits=bits, block=32)
    if len(rows) > 1:
        y = b.transpose(b.reshape(y, shape=(*rows, n // 64, 64)), perm=(0, 2, 1, 3))
    return Graph((x, w, scale, *([zeros] if zero is None else [])), (y,), ("y",))


def test_a_product_with_packed_weights_on_tensor_cores_is_golden() -> None:
    (text,) = (t for t in texts_of([packed_product(4, (128,), 1024, 2048, 8.0)]) if "packedRight" in t)
    path = GOLDEN / "matmul_packed.cu"
    if os.environ.get("SINGE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("cut", PACKED_RATES, ids=str)
def test_products_with_packed_weights_are_computed_on_tensor_cores(nvrtc: None, cut: Any) -> None:
    only = replace(CUDA, matrices=replace(CUDA.matrices, packed={cut: Rate(1, 1, 0)}))
    kinds = ((4, (128,), 1024, 8.0), (8, (size("N"),), 1028, None), (8, (8, 40), 384, 128.0))
    graphs = [packed_product(bits, rows, 2 * cut.depth, n, zero) for bits, rows, n, zero in kinds]
    texts = [text for text in texts_of(graphs, GpuTarget(only)) if "packedRight" in text]
    assert len(texts) >= len(kinds)
    for architecture in ARCHITECTURES:
        assert not refused(texts, architecture)


@pytest.mark.slow
@pytest.mark.parametrize("cut", INTEGER_RATES, ids=str)
def test_products_of_integers_are_computed_on_tensor_cores(nvrtc: None, cut: Any) -> None:
    """With weights along and across the depth, and where a row is no whole vectors; the variant after it has products of bytes."""
    only = replace(CUDA, matrices=replace(CUDA.matrices, integers={cut: Rate(1, 1, 0)}))
    texts = []
    for (m, k, n), turned in (((1024, 512, 1024), False), ((1030, 259, 1027), True)):
        b = Builder()
        x, w = b.input("x", (m, k), float32), b.input("w", (n, k) if turned else (k, n), int8)
        row = ROWS["dot_integers"]
        y = b.apply(row, x, b.transpose(w, perm=(1, 0)) if turned else w)
        found = compile_graph(Graph((x, w), (y,), ("y",)), GpuTarget(only))
        texts += [str(text) for text in found.modules.values() if "subgroup_matrix_left<i8" in str(text)]
        assert any("dot4I8Packed" in str(text) for text in found.modules.values())
    assert len(texts) == 2
    assert not any(map(launch_bytes, texts))
    assert refused(texts, 80) == ""
