"""Vector stores of four neighbours in WGSL: when they are chosen, and that results equal NumPy's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from wgsl_checks import gpu_device

from singe.compiler.compile import compile_graph
from singe.dtypes import DType, bool_, float16, float32, int32, int64, uint8
from singe.graph import Builder, Graph, Node
from singe.model.model import Model
from singe.runtime.devices import device as open_device
from singe.runtime.eager import EagerDevice

pytest.importorskip("wgpu", reason="wgpu is not installed")
from singe_gpu.kernels.nest import POINTS_TO_FILL
from singe_webgpu.target import WgslTarget

Chain: TypeAlias = Callable[[Builder, Node, Node], Node]
LINES, LONG = 520, 256
"""A large kernel's shape: LINES · LONG is beyond POINTS_TO_FILL."""


@pytest.fixture(scope="module")
def gpu() -> EagerDevice:
    return gpu_device()


def text(graph: Graph) -> str:
    return "\n".join(map(str, compile_graph(graph, WgslTarget()).modules.values()))


def stores_fours(graph: Graph) -> bool:
    return re.search(r"read_write> b\d+: array<vec4<|= vec2<u32>\(pair_of", text(graph)) is not None


def clipped(b: Builder, x: Node) -> Node:
    return b.minimum(b.maximum(x, b.const(-1.0)), b.const(6.0))


def scaled(kind: DType, shape: tuple[int, int]) -> Graph:
    """x · x + line, with `line` broadcast over the lines of x; for bools, whether both are equal."""
    b = Builder()
    x, line = b.input("x", shape, kind), b.input("line", shape[-1:], kind)
    y = b.equal(x, line) if kind is bool_ else b.add(b.mul(x, x), line)
    return Graph((x, line), (y,), ("y",))


@pytest.mark.parametrize("kind", [bool_, uint8, int32, int64, float16, float32])
@pytest.mark.parametrize("long", [LONG, LONG + 1])
def test_large_elementwise_kernels(gpu: EagerDevice, kind: DType, long: int) -> None:
    assert LINES * LONG >= POINTS_TO_FILL
    rng = np.random.default_rng(0)
    x, line = (rng.integers(0, 2 if kind is bool_ else 12, s).astype(kind.numpy) for s in ((LINES, long), (long,)))
    graph = scaled(kind, (LINES, long))
    found = Model(graph, gpu)({"x": x, "line": line})
    np.testing.assert_array_equal(found, x == line if kind is bool_ else x * x + line)
    fours = long % 4 == 0 and kind is not int64
    assert stores_fours(graph) == fours


CHAINS: dict[str, tuple[DType, Chain, bool]] = {
    "clip of a shared sum": (float32, lambda b, x, y: b.mul(clipped(b, b.add(x, y)), b.add(x, y)), True),
    "rounded": (float32, lambda b, x, y: b.sub(b.floor(x), b.mul(b.round(y), b.ceil(b.neg(b.abs(x))))), True),
    "larger and smaller": (float32, lambda b, x, y: b.sub(b.maximum(x, y), b.minimum(y, x)), True),
    "a vector below a function of each": (float32, lambda b, x, y: b.mul(b.tanh(b.add(x, y)), b.add(x, y)), False),
    "a function of each below a vector": (float32, lambda b, x, y: b.relu(b.add(b.tanh(x), y)), False),
    "chosen by each": (float32, lambda b, x, y: b.where(b.less(x, y), b.add(x, y), y), False),
    "integers": (int32, lambda b, x, y: b.maximum(b.abs(b.sub(x, y)), b.mul(b.neg(x), y)), True),
    "shifted": (
        int32,
        lambda b, x, y: b.bitwise_right_shift(b.bitwise_and(x, y), b.const(np.array(2, np.int32))),
        True,
    ),
    "to floats and back": (int32, lambda b, x, y: b.cast(b.mul(b.cast(x, to=float32), b.const(0.3)), to=int32), True),
    "to narrow integers": (int32, lambda b, x, y: b.cast(b.mul(x, y), to=uint8), True),
    "to halves": (float32, lambda b, x, y: b.cast(b.add(x, y), to=float16), True),
}
"""What follows a load: a name ↦ the type of two inputs, the chain, and whether all of it can be computed as vectors."""


@pytest.mark.parametrize("name", CHAINS)
def test_chains_equal_numpy_in_vectors_and_for_each(gpu: EagerDevice, name: str) -> None:
    kind, chain, vectors = CHAINS[name]
    rng = np.random.default_rng(3)
    b = Builder()
    x, y = b.input("x", (LINES, LONG), kind), b.input("y", (LONG,), kind)
    graph = Graph((x, y), (chain(b, x, y),), ("z",))
    if kind is float32:
        given = {"x": rng.normal(0, 9, (LINES, LONG)), "y": rng.normal(0, 9, LONG)}
        for array in given.values():
            array.reshape(-1)[:5] = np.nan, np.inf, -np.inf, 0.5, -0.0
            array.reshape(-1)[7::11] = np.nan
    else:
        given = {"x": rng.integers(-(2**20), 2**20, (LINES, LONG)), "y": rng.integers(-99, 99, LONG)}
    arrays = {key: array.astype(kind.numpy) for key, array in given.items()}
    found, wanted = (Model(graph, device)(arrays) for device in (gpu, open_device("numpy")))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 if kind is float32 else 0)
    assert stores_fours(graph)
    body = text(graph).partition("@compute")[2]
    assert ("tanh_f32(v" in body or "lt_f32" in body) == (not vectors)


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


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("pads", [(1, 1), (2, 0), (0, 2)])
def test_four_depths_of_which_some_are_padding(gpu: EagerDevice, rows: int, pads: tuple[int, int]) -> None:
    """The neighbours of a quad that are known to lie outside are constants."""
    rng = np.random.default_rng(4)
    b = Builder()
    x, w = b.input("x", (rows, 4), float32), b.input("w", (2, 8), float32)
    wide = b.pad(w, b.const(0.0), before=(pads[0], 0), after=(pads[1], 0), mode="constant")
    graph = Graph((x, w), (b.matmul(x, b.mul(wide, b.const(2.0))),), ("y",))
    given = {"x": rng.normal(size=(rows, 4)).astype(np.float32), "w": rng.normal(size=(2, 8)).astype(np.float32)}
    wanted = given["x"] @ (np.pad(given["w"], (pads, (0, 0))) * 2)
    np.testing.assert_allclose(Model(graph, gpu)(given), wanted, rtol=1e-5, atol=1e-5)


def test_what_ends_within_four_is_read_singly(gpu: EagerDevice) -> None:
    """Six elements, padded to eight: a second vector would reach beyond the array."""
    rng = np.random.default_rng(5)
    b = Builder()
    x, w, v = b.input("x", (8, 16), float32), b.input("w", (16, 8), float32), b.input("v", (6,), float32)
    padded = b.pad(v, b.const(2.5), before=(0,), after=(2,), mode="constant")
    graph = Graph((x, w, v), (b.add(b.matmul(x, w), padded),), ("y",))
    given = {key: rng.normal(size=s).astype(np.float32) for key, s in (("x", (8, 16)), ("w", (16, 8)), ("v", (6,)))}
    wanted = given["x"] @ given["w"] + np.pad(given["v"], (0, 2), constant_values=2.5)
    np.testing.assert_allclose(Model(graph, gpu)(given), wanted, rtol=1e-5, atol=1e-5)
    assert re.search(r"var<storage, read> b\d+: array<f32>", text(graph))
