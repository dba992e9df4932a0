"""Small graphs, most with sizes that a run finds, each of which once gave a wrong answer: they agree with the evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from devices import RUNNERS
from networks.random_graphs.drawn import compare

import singe as sg
from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.compiler.rewrite import rewrite
from singe.dtypes import bfloat16, bool_, float8_e5m2, float32, int4, int64, uint64
from singe.errors import OutOfRange, ShapeError
from singe.graph import Builder, Graph, GraphState, Node, all_nodes
from singe.ir.arrays import convert
from singe.ops import ROWS
from singe.runtime.devices import device as open_device
from singe.shapes import size

IF, LOOP = ROWS["if"], ROWS["loop"]
N = size("N")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(np.float32)


def growing(b: Builder, x: Node, count: int) -> Node:
    """A loop that appends x to a carried value in every turn."""
    own, part = b.input("own", (size("own"), *x.shape[1:]), x.dtype), b.input("part", x.shape, x.dtype)
    body = Graph((own, part), (b.const(True), b.concat(part, own, axis=0)), ("c", "y"))
    return b.apply(LOOP, x, x, body=body, carried=1, conditional=False, count=count)


@RUNNERS
def test_a_value_that_grows_in_a_loop_may_be_an_output(device_name: str) -> None:
    b = Builder()
    x, held = b.input("x", (N, 2), float32), b.input("held", (2,), float32)
    outputs = growing(b, x, 2), growing(b, held, 1)
    graph = Graph((x,), outputs, ("y", "z"), b.size_nodes, (GraphState(held, "held", np.ones(2, np.float32), held),))
    compare(device_name, graph, [[numbers(n, 2)] for n in (3, 1, 0, 5)])


@RUNNERS
def test_a_result_of_an_op_on_the_host_may_be_an_output_of_another_shape(device_name: str) -> None:
    b = Builder()
    x = b.input("x", (N, 4), float32)
    _, places = b.top_k(x, axis=1, k=4, largest=True)
    found = b.nonzero(b.reshape(x, shape=(4 * N,)))
    outputs = b.reshape(places, shape=(2 * N, 2)), b.transpose(found, perm=(1, 0))
    compare(device_name, Graph((x,), outputs, ("i", "p"), b.size_nodes), [[numbers(n, 4)] for n in (3, 0, 1)])


@RUNNERS
def test_an_output_stays_when_another_step_on_the_host_has_its_size(device_name: str) -> None:
    b = Builder()
    x = b.input("x", (N, 6), bool_)
    found = b.nonzero(x)
    _, places = b.sort(found, axis=1)
    graph = Graph((x,), (found, places), ("y", "z"), b.size_nodes)
    compare(device_name, graph, [[numbers(n, 6) > 0] for n in (4, 1, 5, 5)])


@RUNNERS
def test_a_kernel_of_two_found_sizes_sees_the_first_change_when_the_second_does_not(device_name: str) -> None:
    b = Builder()
    x, y = b.input("x", (8,), float32), b.input("y", (), int64)
    found = b.nonzero(x)
    d = b.size_of(
        b.add(y, b.reduce_max(b.pad(found, b.const(0), before=(0, 1), after=(0, 0), mode="constant"), axes=(0, 1)))
    )
    graph = Graph((x, y), (b.expand(found, shape=(d, *found.shape)),), ("y",), b.size_nodes)
    few, many = (np.array([0, *[k % n == 0 for k in range(6)], 1], np.float32) for n in (3, 1))
    compare(device_name, graph, [[given, np.array(-4)] for given in (few, many, few)])


@RUNNERS
def test_an_op_on_the_host_reads_an_input_under_another_shape(device_name: str) -> None:
    b = Builder()
    x = b.input("x", (N, 4, 3), int64)
    found = b.unique(b.reshape(x, shape=(N, 12)))
    graph = Graph((x,), (found[1], found[3]), ("y", "z"), b.size_nodes)
    compare(device_name, graph, [[numbers(n, 4, 3).astype(np.int64)] for n in (2, 1)])


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("taken", [True, False])
@RUNNERS
def test_sizes_that_are_known_before_the_run_go_by_other_names(device_name: str, taken: bool, turns: int) -> None:
    """What a known branch or a loop of no turns leaves has the dimensions of its inputs, in regions too."""
    b = Builder()
    x, c = b.input("x", (N, 2), float32), b.input("c", (), bool_)
    p, q, r, s = (b.input(name, (N, 2), float32) for name in "pqrs")
    then, otherwise = (
        Graph((p,), (b.concat(p, p, axis=0),), ("y",)),
        Graph((q,), (growing(b, q, turns),), ("y",), b.size_nodes),
    )
    chosen = b.apply(IF, b.const(taken), x, then=then, otherwise=otherwise)
    grown = growing(b, chosen, turns)
    d = grown.shape[0]
    flat = b.add(b.reshape(grown, shape=(2 * d,)), b.cast(b.const(d), to=float32))
    r, s = b.input("r", (2 * d,), float32), b.input("s", (2 * d,), float32)
    last = b.apply(
        IF, c, flat, then=Graph((r,), (b.reshape(r, shape=(d, 2)),), ("y",)),
        otherwise=Graph((s,), (b.reshape(b.neg(s), shape=(d, 2)),), ("y",)),
    )  # fmt: skip
    graph = Graph((x, c), (last, flat), ("y", "z"), b.size_nodes)
    compare(device_name, graph, [[numbers(n, 2), np.array(n > 1)] for n in (3, 1, 0)])
    if turns == 0:
        assert "loop" not in {n.op for n in all_nodes(rewrite(graph))}
        assert not rewrite(graph).own_size_nodes


def test_a_value_that_hangs_on_a_size_is_known_only_as_a_dimension() -> None:
    b = Builder()
    numbered = b.arange(b.const(0), b.const(1), count=N)
    assert b.value_of(b.reduce_sum(numbered, axes=(0,))) is None
    (total,) = b.value_of(b.reduce_sum(b.const(np.array([N, 2], object)), axes=(0,))).tolist()  # pyright: ignore
    assert total == N + 2
    (last,) = b.value_of(b.reshape(b.add(b.const(N), b.const(1)), shape=(1,))).tolist()  # pyright: ignore
    assert last == N + 1


@pytest.mark.parametrize("kind", [bfloat16, float8_e5m2], ids=str)
@RUNNERS
def test_a_scalar_of_a_type_that_numpy_lacks(device_name: str, kind: object) -> None:
    b = Builder()
    x = b.input("x", (), kind)  # pyright: ignore[reportArgumentType]
    y = b.minimum(x, x) if kind is bfloat16 else b.where(b.equal(x, x), x, x)
    compare(device_name, Graph((x,), (y,), ("y",)), [[np.zeros((), kind.numpy)]])  # pyright: ignore


@RUNNERS
def test_the_condition_of_a_loop_may_be_carried_too(device_name: str) -> None:
    """Under two shapes: it is still there when it is copied a second time."""
    b = Builder()
    x, held = b.input("x", (1,), float32), b.input("held", (1,), bool_)
    more = b.less(x, b.const(2.0))
    body = Graph((held,), (b.const(False), b.logical_not(held)), ("c", "y"))
    y = b.apply(LOOP, more, more, body=body, carried=1, conditional=True, count=3)
    compare(device_name, Graph((x,), (y,), ("y",)), [[np.array([v], np.float32)] for v in (1, 2)])


@RUNNERS
def test_a_size_as_an_element_of_a_type_that_numpy_lacks(device_name: str) -> None:
    b = Builder()
    x = b.input("x", (N,), float32)
    d = b.nonzero(x).shape[1]
    graph = Graph((x,), (b.cast(b.minimum(b.const(d), b.const(2)), to=int4),), ("y",), b.size_nodes)
    compare(device_name, graph, [[numbers(n)] for n in (3, 0)])


@RUNNERS
def test_places_in_the_order_of_sizes(device_name: str) -> None:
    """The places are counted, and read the constant of sizes under two shapes."""
    b = Builder()
    x = b.input("x", (N, 3), float32)
    _, places = b.sort(b.const(np.array([N, 1, 3], object), int64), axis=0)
    compare(device_name, Graph((x,), (places,), ("y",)), [[numbers(n, 3)] for n in (5, 2, 0)])


@RUNNERS
def test_a_product_with_no_weights(device_name: str) -> None:
    b = Builder()
    x = b.input("x", (0, 3, 6), float32)
    y = b.matmul(x, b.const(np.zeros((0, 6, 4), np.float32)))
    compare(device_name, Graph((x,), (y,), ("y",)), [[numbers(0, 3, 6)]])


@RUNNERS
def test_indices_may_be_uint64(device_name: str) -> None:
    b = Builder()
    x, index = b.input("x", (4,), float32), b.input("i", (N,), uint64)
    graph = Graph((x, index), (b.gather(x, index, axis=0),), ("y",))
    compare(device_name, graph, [[numbers(4), np.array([3, 0, 1], np.uint64)]])


@pytest.mark.parametrize("device_name", ["numpy", "wasm"])
@pytest.mark.parametrize("what", ["pool", "conv"])
def test_a_run_refuses_a_window_that_does_not_fit_its_open_axis(device_name: str, what: str) -> None:
    def function(x: sg.Tensor) -> sg.Tensor:
        return x.max_pool2d(3) if what == "pool" else x.conv2d(sg.tensor(numbers(2, 1, 3, 3)))

    model = sg.Model.of(function, {"x": (1, 1, "N", 4)}, device_name)
    assert model(numbers(1, 1, 3, 4)).shape[2] == 1
    with pytest.raises(ShapeError, match=rf"^{what}: the window [^:]* the padded input [^:]* \(got N = 2\)$"):
        model(numbers(1, 1, 2, 4))


@RUNNERS
def test_a_factor_goes_into_weights_of_bfloat16(device_name: str) -> None:
    b = Builder()
    x = b.input("x", (N, 4), bfloat16)
    w = b.cast(b.const(numbers(4, 3)), to=bfloat16)
    graph = Graph((x,), (b.div(b.dot(x, w), b.const(2.0, bfloat16)),), ("y",))
    compare(device_name, graph, [[convert(numbers(n, 4), bfloat16.numpy)] for n in (2, 0)])


@RUNNERS
def test_a_constant_index_beyond_an_open_axis_reads_the_nearest_element(device_name: str) -> None:
    backend = open_device(device_name).backend  # pyright: ignore[reportAttributeAccessIssue]
    x = numbers(3, 4)
    b = Builder()
    given = b.input("x", (N, 4), float32)
    outputs = tuple(b.neg(b.gather(given, b.const(k), axis=0)) for k in (5, -9, -1, 0, 1))
    program = backend.prepare(compile_graph(Graph((given,), outputs, tuple("abcde")), backend.target))
    found = [backend.download(y) for y in program.run([backend.upload(x)])]
    np.testing.assert_array_equal(found, -x[[2, 0, 2, 0, 1]])
    program.dispose()


def test_a_constant_index_beyond_a_known_length_is_refused() -> None:
    b = Builder()
    given = b.input("x", (3, 4), float32)
    with pytest.raises(OutOfRange, match=r"index: axis 0 of \(3, 4\): got 5, expected from -3 to 2"):
        compile_graph(Graph((given,), (b.gather(given, b.const(5), axis=0),), ("y",)), ARRAYS)
