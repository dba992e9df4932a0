"""Products and convolutions in 8-bit integers on WebAssembly: equal to the bit to NumPy's, at both levels of SIMD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from devices import few

from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.dtypes import DType, float32, int32, uint8, uint16, uint32
from singe.errors import InputError, ShapeError
from singe.graph import Builder, Graph, Node, evaluate_node, specialise
from singe.ops.products.quantised import DEEPEST, OFFSET, quantise_weights
from singe.program.program import Host, ProgramData
from singe.shapes import deferring, size

pytest.importorskip("wasmtime")
from wasm_parts import at_level, in_parts

from singe_wasm.levels import LEVELS
from singe_wasm.native import WasmBackend
from singe_wasm.target import WasmTarget

N = size("N")
DOTS = [
    *[
        ((m, k), n)
        for m, k, n in ((1, 16, 16), (1, 33, 35), (2, 17, 24), (3, 40, 19), (4, 21, 16), (5, 64, 40), (6, 4, 8))
    ],
    *[((m, k), n) for m, k, n in ((7, 1, 17), (13, 129, 47), (49, 96, 20), (25, 3, 33), (12, 18, 23))],
    ((2, 9, 30), 18),
    ((N, 31), 17),
    ((N, 6, 20), 24),
]
CONVS: list[tuple[tuple[Any, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 9, 8, 4), (3, 3, 4, 16), {}),
    ((2, 9, 8, 5), (3, 3, 5, 17), {"before": (1, 1), "after": (1, 1)}),
    ((1, 11, 10, 3), (5, 3, 3, 20), {"strides": (2, 2), "before": (2, 1), "after": (2, 1)}),
    ((N, 7, 7, 6), (3, 3, 6, 18), {"before": (1, 1), "after": (0, 2)}),
    ((1, 12, 12, 4), (3, 3, 4, 16), {"dilations": (2, 2), "before": (2, 2), "after": (2, 2)}),
    ((1, 8, 8, 7), (1, 1, 7, 21), {"strides": (2, 2)}),
    ((2, 30, 3), (7, 3, 19), {"before": (3,), "after": (3,)}),
    ((1, 4, 5, 4, 3), (2, 2, 2, 3, 16), {"before": (1, 0, 1), "after": (0, 1, 1)}),
]


def random_weights(rng: np.random.Generator, shape: Sequence[int]) -> list[np.ndarray]:
    found = quantise_weights(rng.normal(size=shape).astype(np.float32))
    assert found is not None
    return list(found)


def run(program: ProgramData, *given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The output for each list of inputs."""
    backend = WasmBackend()
    executable = backend.prepare(program)
    outputs = [executable.run([backend.upload(a) for a in inputs]) for inputs in given]
    return [backend.download(out) for (out,) in outputs]


def made(op: str, x_shape: Sequence[Any], weights: Sequence[np.ndarray], then: Any = None, **facts: Any) -> Graph:
    b = Builder()
    x = b.input("x", tuple(x_shape), float32)
    y = getattr(b, op)(x, *(b.const(w) for w in weights), **facts)
    return Graph((x,), (then(b, y) if then else y,), ("y",))


def fixed(shape: Sequence[Any], n: int) -> list[int]:
    return [n if d is N else d for d in shape]


def conv_facts(spaces: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "strides": (1,) * spaces,
        "dilations": (1,) * spaces,
        "before": (0,) * spaces,
        "after": (0,) * spaces,
        **facts,
    }


def check(graph: Graph, *given: np.ndarray) -> None:
    """One Program answers all that is given as NumPy does, at each level."""
    program = compile_graph(graph, WasmTarget(tuple(LEVELS)))
    taken = [k for k in program.kernels if k.label.startswith(("dot_int", "conv_int"))]
    assert all(k.workspace for k in taken), "printed as the plain nest"
    assert taken
    wanted = [run_numpy(graph, x) for x in given]
    for level in LEVELS:
        for found, want in zip(run(at_level(program, level), *([x] for x in given)), wanted, strict=True):
            np.testing.assert_array_equal(found, want, level)


def run_numpy(graph: Graph, x: np.ndarray) -> np.ndarray:
    n = graph.outputs[0]
    values: dict[Node, Any] = {graph.inputs[0]: x}
    for node in graph.nodes:
        if node not in values:
            assert node.row is not None or node.value is not None
            values[node] = node.value if node.row is None else evaluate_node(node, [values[i] for i in node.inputs])
    return values[n]


@few(6, ("x_shape", "outputs"), DOTS)
def test_products_are_those_of_numpy(x_shape: Sequence[Any], outputs: int) -> None:
    rng = np.random.default_rng(1)
    graph = made("dot_int8", x_shape, random_weights(rng, (x_shape[-1], outputs)))
    rows = (0, 1, 2, 3, 4, 5, 17) if N in x_shape else (1,)
    check(graph, *(rng.normal(size=fixed(x_shape, n)).astype(np.float32) for n in rows))


@few(4, ("x_shape", "w_shape", "facts"), CONVS)
def test_convolutions_are_those_of_numpy(x_shape: Sequence[Any], w_shape: Sequence[int], facts: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    graph = made("conv_int8", x_shape, random_weights(rng, w_shape), **conv_facts(len(w_shape) - 2, facts))
    batches = (0, 1, 3) if N in x_shape else (1,)
    check(graph, *(rng.normal(size=fixed(x_shape, n)).astype(np.float32) for n in batches))


@pytest.mark.parametrize("outputs", [16, 18, 19])
def test_what_follows_is_fused_and_stays_float32(outputs: int) -> None:
    rng = np.random.default_rng(3)
    bias = rng.normal(size=outputs).astype(np.float32)

    def after(b: Any, y: Any) -> Any:
        return b.maximum(b.add(y, b.const(bias)), b.const(0.0))

    graph = made("dot_int8", (11, 24), random_weights(rng, (24, outputs)), after)
    assert len(compile_graph(graph, WasmTarget()).steps) == 1
    check(graph, rng.normal(size=(11, 24)).astype(np.float32))


def whole_numbers(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    return (rng.integers(0, 256, shape) - rng.integers(0, 256)).astype(np.float32)


def eight_bits(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    return rng.integers(-128, 128, shape, np.int8)


@few(6, ("x_shape", "outputs"), DOTS)
def test_products_of_whole_numbers_are_exact(x_shape: Sequence[Any], outputs: int) -> None:
    rng = np.random.default_rng(11)
    weights = [eight_bits(rng, (x_shape[-1], outputs))]
    scaled = made("dot_integers", x_shape, weights, lambda b, y: b.mul(b.cast(y, to=float32), b.const(0.01)))
    for graph in (made("dot_integers", x_shape, weights), scaled):
        rows = (0, 1, 2, 3, 4, 5, 17) if N in x_shape else (1,)
        check(graph, *(whole_numbers(rng, fixed(x_shape, n)) for n in rows))


@few(4, ("x_shape", "w_shape", "facts"), CONVS)
def test_convolutions_of_whole_numbers_are_exact(
    x_shape: Sequence[Any], w_shape: Sequence[int], facts: dict[str, Any]
) -> None:
    rng = np.random.default_rng(12)
    spaces = len(w_shape) - 2
    graph = made("conv_integers", x_shape, [eight_bits(rng, w_shape)], **conv_facts(spaces, facts))
    batches = (0, 1, 3) if N in x_shape else (1,)
    check(graph, *(whole_numbers(rng, fixed(x_shape, n)) for n in batches))


def test_sums_of_whole_numbers_may_be_larger_than_float32_holds() -> None:
    graph = made("dot_integers", (3, 2000), [np.full((2000, 17), -128, np.int8)])
    check(graph, np.full((3, 2000), 255, np.float32))


def test_the_depth_is_a_number_where_that_of_the_weights_is() -> None:
    b, rng = Builder(), np.random.default_rng(10)
    with deferring():
        x = b.input("x", (N, size("K")), float32)
        w = (rng.normal(size=(40, 24)) / 8).astype(np.float32)
        graph = Graph((x,), (b.dot(x, b.const(w)),), ("y",))
    given = rng.normal(size=(7, 40)).astype(np.float32)
    for activations, close in (("float32", 1e-5), ("int8", 0.1)):
        program = compile_graph(graph, WasmTarget(), Options(activations))
        panels = {b.shape for b in program.buffers if b.place[0] == "weights" and len(b.shape) > 1}
        assert panels == {(3, 40, 8) if activations == "float32" else (3, 40 * 8 + 4 * 8)}
        np.testing.assert_allclose(run(program, [given])[0], given @ w, atol=close)
        with pytest.raises(ShapeError):
            run(program, [given[:, :39]])


def test_a_prologue_is_quantised_as_it_is_computed() -> None:
    b, rng = Builder(), np.random.default_rng(4)
    x = b.input("x", (9, 20), float32)
    given = b.maximum(x, b.const(0.25))
    y = b.dot_int8(given, *(b.const(w) for w in random_weights(rng, (20, 16))))
    graph = Graph((x,), (y,), ("y",))
    assert len(compile_graph(graph, WasmTarget()).steps) == 1
    check(graph, rng.normal(size=(9, 20)).astype(np.float32))


def test_columns_as_rows() -> None:
    """The operand is transposed: its elements are not contiguous."""
    b, rng = Builder(), np.random.default_rng(5)
    x = b.input("x", (20, 9), float32)
    y = b.dot_int8(b.transpose(x, perm=(1, 0)), *(b.const(w) for w in random_weights(rng, (20, 16))))
    check(Graph((x,), (y,), ("y",)), rng.normal(size=(20, 9)).astype(np.float32))


HOSTILE = {
    "NaN": [np.nan, 1.0], "negative NaN": [-np.nan, 1.0], "infinity": [np.inf, 1.0], "minus infinity": [-np.inf, 1.0],
    "both": [np.inf, -np.inf], "zeros": [0.0, -0.0], "tiny": [1e-40, -1e-39], "huge": [3e38, -3e38], "least step": [127 * 1.2e-38, 0.0],
    "ties": [127.0, 0.5, 1.5, 2.5, 126.5], "signed ties": [-63.5, 63.5, 0.5, -0.5, 1.5], "negative": [-5.0, -1.0],
}  # fmt: skip


@pytest.mark.parametrize("values", HOSTILE.values(), ids=HOSTILE)
def test_hostile_rows(values: Sequence[float]) -> None:
    rng = np.random.default_rng(6)
    x = np.zeros((8, 23), np.float32)
    x[:, : len(values)] = np.array(values, np.float32)
    x[5] = rng.normal(size=23)
    graph = made("dot_int8", x.shape, random_weights(rng, (23, 20)))
    check(graph, x)
    out = run_numpy(graph, x)
    assert np.isfinite(out[5]).all(), "a row spoils no other"
    assert np.isnan(out[0]).all() == (not np.isfinite(np.array(values, np.float32)).all())


@pytest.mark.slow
def test_parts_of_a_run_leave_the_same_bits() -> None:
    """However many parts do it, in whatever order; columns are shared where there is one row."""
    for rows, outputs in ((40, 20), (1, 400), (1, 23)):
        rng = np.random.default_rng(7)
        weights = random_weights(rng, (33, outputs))
        fixed, opened = (made("dot_int8", (m, 33), weights) for m in (rows, N))
        x = rng.normal(size=(rows, 33)).astype(np.float32)
        wanted = run_numpy(fixed, x)
        specialised = Options(specialised=[({"N": rows}, specialise(opened, {"N": rows}))])
        target = WasmTarget(tuple(LEVELS))
        programs = (compile_graph(fixed, target), *compile_graph(opened, target, specialised).programs)
        for program, level, parts in product(programs, LEVELS, (1, 2, 3, 7)):
            np.testing.assert_array_equal(in_parts(program, level, x, parts).reshape(wanted.shape), wanted)


# --- the rewrite -----------------------------------------------------------------------------------------------------


def ops_of(graph: Graph) -> set[str]:
    program = compile_graph(graph, ARRAYS, Options("int8"))
    return {s.op for s in program.stops if isinstance(s, Host)}


@pytest.mark.parametrize(
    ("w_shape", "group", "taken"),
    [((3, 3, 4, 24), 1, True), ((3, 3, 1, 64), 64, False), ((3, 3, 3, 32), 1, False), ((3, 3, 4, 16), 1, False)],
)
def test_what_becomes_integers(w_shape: tuple[int, ...], group: int, taken: bool) -> None:
    b, rng = Builder(), np.random.default_rng(8)
    x = b.input("x", (1, 8, 8, w_shape[-2] * group), float32)
    w = b.const(rng.normal(size=w_shape).astype(np.float32))
    y = b.conv_last(x, w, strides=(1, 1), dilations=(1, 1), before=(0, 0), after=(0, 0), group=group)
    assert ("conv_int8" in ops_of(Graph((x,), (y,), ("y",)))) == taken


def test_products_of_two_inputs_and_odd_weights_stay() -> None:
    b = Builder()
    x, y = b.input("x", (4, 32), float32), b.input("y", (32, 32), float32)
    assert ops_of(Graph((x, y), (b.dot(x, y),), ("z",))) == {"dot"}
    for bad in (np.nan, 1e-37):
        w = np.full((32, 32), bad, np.float32)
        assert ops_of(Graph((x,), (b.dot(x, b.const(w)),), ("z",))) == {"dot"}
    assert ops_of(Graph((x,), (b.dot(x, b.const(np.eye(32, dtype=np.float32))),), ("z",))) == {"dot_int8"}


def test_weights_are_stored_with_an_offset() -> None:
    found = quantise_weights(np.array([[127.0, 0.0], [-127.0, 0.0]], np.float32))
    assert found is not None
    np.testing.assert_array_equal(found[0], [[127 + OFFSET, OFFSET], [OFFSET - 127, OFFSET]])
    np.testing.assert_array_equal(found[1], [1, 0])


def test_refusals() -> None:
    b = Builder()
    x = b.input("x", (1, 4), float32)
    with pytest.raises(InputError, match="activations: got 'int4', expected one of float32, int16, packed_int8, int8"):
        Options("int4")
    w, scale = b.const(np.zeros((4, 3), np.uint8)), b.const(np.zeros(2, np.float32))
    with pytest.raises(ShapeError, match="expected one for each output"):
        b.dot_int8(x, w, scale)
    deep = b.input("deep", (1, DEEPEST + 1), float32)
    with pytest.raises(ShapeError, match="at most"):
        b.dot_int8(deep, b.const(np.zeros((DEEPEST + 1, 1), np.uint8)), b.const(np.zeros(1, np.float32)))


def scaled_product(depth: int, kind: DType, zero: int) -> Graph:
    """(x − zero) · scale, of bytes that are subtracted as another type, times weights of 8 bits and their scale."""
    b = Builder()
    x = b.input("x", (1, depth), uint8)
    value = b.cast(b.sub(b.cast(x, to=kind), b.const(zero, kind)), to=float32)
    w = b.cast(b.const(np.full((depth, 8), 127, np.int8)), to=float32)
    y = b.dot(b.mul(value, b.const(0.5, float32)), b.mul(w, b.const(0.25, float32)))
    return Graph((x,), (y,), ("y",))


@pytest.mark.parametrize(("depth", "kind"), [(16, uint16), (16, uint32), (16, int32), (70_000, int32)])
def test_integers_that_would_wrap_stay_floats(depth: int, kind: DType) -> None:
    graph = scaled_product(depth, kind, 5 if depth == 16 else 0)
    x = np.full((1, depth), 3 if depth == 16 else 255, np.uint8)
    program = compile_graph(graph, WasmTarget(), Options())
    np.testing.assert_allclose(run(program, [x])[0], run_numpy(graph, x), rtol=1e-3)
