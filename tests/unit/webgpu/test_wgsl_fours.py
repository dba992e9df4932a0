"""Vector stores of four neighbours in WGSL: when they are chosen, and that results equal NumPy's."""

from __future__ import annotations

import re

import numpy as np
import pytest

from singe.compiler.build import compile_graph
from singe.dtypes import DType, bool_, float16, float32, int32, int64, uint8
from singe.errors import DeviceError
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.runtime.devices import EagerDevice
from singe.runtime.devices import device as open_device

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_webgpu.kernels.nest import CROWD
from singe_webgpu.target import WgslTarget

LINES, LONG = 520, 256
"""A large kernel's shape: LINES · LONG is beyond CROWD."""


@pytest.fixture(scope="module")
def gpu() -> EagerDevice:
    try:
        return open_device("webgpu")
    except DeviceError as e:
        pytest.skip(str(e))


def text(graph: Graph) -> str:
    return "\n".join(map(str, compile_graph(graph, WgslTarget()).modules.values()))


def stores_fours(graph: Graph) -> bool:
    return re.search(r"^ *b\d+\[.*\] = (vec4<|vec2<u32>\(pair_of)", text(graph), re.MULTILINE) is not None


def scaled(kind: DType, shape: tuple[int, int]) -> Graph:
    """x · x + line, with `line` broadcast over the lines of x; for bools, whether both are equal."""
    b = Builder()
    x, line = b.input("x", shape, kind), b.input("line", shape[-1:], kind)
    y = b.equal(x, line) if kind is bool_ else b.add(b.mul(x, x), line)
    return Graph((x, line), (y,), ("y",))


@pytest.mark.parametrize("kind", [bool_, uint8, int32, int64, float16, float32])
@pytest.mark.parametrize("long", [LONG, LONG + 1])
def test_large_elementwise_kernels(gpu: EagerDevice, kind: DType, long: int) -> None:
    assert LINES * LONG >= CROWD
    rng = np.random.default_rng(0)
    x, line = (rng.integers(0, 2 if kind is bool_ else 12, s).astype(kind.numpy) for s in ((LINES, long), (long,)))
    graph = scaled(kind, (LINES, long))
    found = Model(graph, gpu)({"x": x, "line": line})
    np.testing.assert_array_equal(found, x == line if kind is bool_ else x * x + line)
    fours = long % 4 == 0 and kind is not int64
    assert stores_fours(graph) == fours


def test_small_kernels_keep_a_point_for_each_invocation() -> None:
    assert "vec4" not in text(scaled(float32, (8, LONG)))


def test_a_turned_input_is_read_singly_and_stored_in_fours(gpu: EagerDevice) -> None:
    b = Builder()
    x, y = b.input("x", (LONG, LINES), float32), b.input("y", (LINES, LONG), float32)
    graph = Graph((x, y), (b.add(b.transpose(x, perm=(1, 0)), y),), ("z",))
    rng = np.random.default_rng(1)
    given = {"x": rng.random((LONG, LINES), np.float32), "y": rng.random((LINES, LONG), np.float32)}
    np.testing.assert_array_equal(Model(graph, gpu)(given), given["x"].T + given["y"])
    assert "array<f32>" in text(graph)
    assert stores_fours(graph)


@pytest.mark.parametrize("columns", [92, 90])
@pytest.mark.parametrize("kind", [float32, float16])
def test_products_store_what_follows_them_in_fours(gpu: EagerDevice, columns: int, kind: DType) -> None:
    """A bias that lies along the columns, and a residual that lies as the output does."""
    rng = np.random.default_rng(2)
    weight, bias = (rng.normal(size=s).astype(kind.numpy) for s in ((40, columns), (columns,)))
    b = Builder()
    x, rest = b.input("x", (70, 40), kind), b.input("rest", (70, columns), kind)
    out = b.add(b.relu(b.add(b.matmul(x, b.const(weight)), b.const(bias))), rest)
    graph = Graph((x, rest), (out,), ("y",))
    given = {
        "x": rng.normal(size=(70, 40)).astype(kind.numpy),
        "rest": rng.normal(size=(70, columns)).astype(kind.numpy),
    }
    wanted = np.maximum(given["x"].astype(np.float64) @ weight + bias, 0) + given["rest"]
    bound = 1e-5 if kind is float32 else 1e-2
    np.testing.assert_allclose(Model(graph, gpu)(given), wanted, rtol=bound, atol=bound * 10)
    assert stores_fours(graph) == (columns % 4 == 0)
