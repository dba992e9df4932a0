"""Graphs with several results, regions, states and sizes found in mid-run, on every device, against plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from networks.control_graphs import IF, LOOP, counted, nested

from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.compiler.target import execution_of
from singe.dtypes import bool_, float32, int64
from singe.errors import CompileError, DeviceError, ShapeError
from singe.graph import Builder, Graph, GraphState, all_nodes, gradient, specialise
from singe.program import words
from singe.program.format import from_bytes, to_bytes
from singe.program.program import Host, ProgramData
from singe.runtime.devices import device as open_device
from singe.shapes import deferring, size
from singe.weights.records import model_record, read_graph

N = size("N")


class Runner:
    """Runs graphs on a device; graphs and Programs are written to files and read again before."""

    def __init__(self, name: str) -> None:
        self.backend: Any = open_device(name).backend

    def prepare(self, graph: Graph) -> Any:
        record = model_record(graph)
        graph = read_graph(record)
        assert model_record(graph) == record
        return self.backend.prepare(from_bytes(to_bytes(compile_graph(graph, self.backend.target))))

    def run(self, program: Any, *arrays: Any, states: Sequence[Any] = ()) -> list[np.ndarray]:
        given = [self.backend.upload(np.asarray(a)) for a in arrays]
        return [self.backend.download(y) for y in program.run(given, states)]

    def __call__(self, graph: Graph, *arrays: Any) -> list[np.ndarray]:
        return self.run(self.prepare(graph), *arrays)


@pytest.fixture(params=["numpy", "wasm", "webgpu"])
def on(request: pytest.FixtureRequest) -> Runner:
    try:
        return Runner(request.param)
    except DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


# --- several results --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("largest", [True, False])
def test_top_k_gives_values_and_places(on: Runner, largest: bool) -> None:
    b, x = Builder(), floats(5, 7)
    node = b.input("x", (N, 7), float32)
    values, places = b.top_k(node, axis=1, k=3, largest=largest)
    got = on(Graph((node,), (b.mul(values, b.const(2.0)), places), ("v", "i")), x)
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(got[1], order)
    np.testing.assert_array_equal(got[0], 2 * np.take_along_axis(x, order, 1))


@pytest.mark.slow
def test_a_reduction_stores_its_statistics_beside_what_it_normalises(on: Runner) -> None:
    b, x = Builder(), floats(4, 33)
    node = b.input("x", (N, 33), float32)
    mean = b.reduce_mean(node, axes=(1,))
    off = b.sub(node, mean)
    variance = b.reduce_mean(b.mul(off, off), axes=(1,))
    y = b.div(off, b.sqrt(b.add(variance, b.const(1e-5))))
    graph = Graph((node,), (mean, variance, y), ("m", "v", "y"))
    program = on.prepare(graph)
    if execution_of(on.backend.target).fuses:
        dispatched = {g.reads for g in program.program.groups if g.head >= 0}
        assert len(dispatched) == 1  # one kernel, or one for some sizes each
    got = on.run(program, x)
    want = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    for a, e in zip(got, (*want, (x - want[0]) / np.sqrt(want[1] + 1e-5)), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def test_a_loss_and_its_gradients_are_one_program(on: Runner) -> None:
    b, x, w = Builder(), floats(6, 4), floats(4, 3)
    nx, nw = b.input("x", (N, 4), float32), b.input("w", (4, 3), float32)
    y = b.tanh(b.matmul(nx, nw))
    loss = b.reshape(b.reduce_sum(b.mul(y, y), axes=(0, 1)), shape=())
    dx, dw = gradient(Graph((nx, nw), (loss,), ("l",)), b, [b.const(1.0)], [nx, nw])
    got = on(Graph((nx, nw), (loss, dx, dw), ("l", "dx", "dw")), x, w)
    t = np.tanh(x @ w)
    g = 2 * t * (1 - t * t)
    for a, e in zip(got, ((t * t).sum(), g @ w.T, x.T @ g), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-4)


def test_gradients_go_through_results() -> None:
    b, x = Builder(), floats(3, 5)
    node = b.input("x", (3, 5), float32)
    values, _ = b.top_k(node, axis=1, k=2, largest=True)
    (dx,) = gradient(Graph((node,), (values,), ("v",)), b, [b.const(np.full((3, 2), 3, np.float32))], [node])
    (got,) = Runner("numpy")(Graph((node,), (dx,), ("d",)), x)
    want = np.zeros_like(x)
    np.put_along_axis(want, np.argsort(-x, 1)[:, :2], 3, 1)
    np.testing.assert_array_equal(got, want)


# --- if ---------------------------------------------------------------------------------------------------------------


def branches(b: Builder) -> tuple[Graph, Graph]:
    x = b.input("x", (N,), float32)
    then = Graph((x,), (b.add(x, b.const(1.0)), x), ("a", "b"))
    return then, Graph((x,), (b.mul(x, b.const(2.0)), b.neg(x)), ("a", "b"))


@pytest.mark.parametrize("taken", [True, False])
def test_an_if_runs_one_branch(on: Runner, taken: bool) -> None:
    b, x = Builder(), floats(5)
    c, node = b.input("c", (), bool_), b.input("x", (N,), float32)
    then, otherwise = branches(b)
    first, second = b.apply(IF, c, node, then=then, otherwise=otherwise)
    got = on(Graph((c, node), (b.exp(first), second), ("a", "b")), np.array(taken), x)
    want = (x + 1, x) if taken else (x * 2, -x)
    np.testing.assert_allclose(got[0], np.exp(want[0]), rtol=1e-5)
    np.testing.assert_array_equal(got[1], want[1])


def test_a_condition_that_is_known_leaves_no_if() -> None:
    b = Builder()
    node = b.input("x", (N,), float32)
    then, otherwise = branches(b)
    made = b.apply(IF, b.const(False), node, then=then, otherwise=otherwise)
    program = compile_graph(Graph((node,), made, ("a", "b")), ARRAYS)
    assert not any(g.head == words.UNLESS for g in program.groups)


@pytest.mark.parametrize("taken", [True, False])
def test_branches_may_differ_in_a_dimension(on: Runner, taken: bool) -> None:
    b, x = Builder(), floats(4)
    c, node, inner = b.input("c", (), bool_), b.input("x", (N,), float32), b.input("i", (N,), float32)
    then = Graph((inner,), (b.concat(inner, inner, axis=0),), ("y",))
    otherwise = Graph((inner,), (b.neg(inner),), ("y",))
    y = b.apply(IF, c, node, then=then, otherwise=otherwise)
    got = on(Graph((c, node), (b.mul(y, b.const(3.0)),), ("y",), b.size_nodes), np.array(taken), x)
    np.testing.assert_allclose(got[0], 3 * (np.concatenate([x, x]) if taken else -x), rtol=1e-6)


# --- loops ------------------------------------------------------------------------------------------------------------


def turns_of(program: ProgramData) -> list[list[words.WordGroup]]:
    """The groups of a turn of each loop with a count."""
    loops = [g for g in program.groups if g.head == words.LOOP]
    return [[g for g in program.groups if loop.at < g.at < (loop.jump or 0)] for loop in loops]


@pytest.mark.parametrize("turns", [0, 1, 2, 7])
def test_carried_values_may_swap(on: Runner, turns: int) -> None:
    b = Builder()
    x, y, long = b.input("x", (2,), float32), b.input("y", (2,), float32), b.input("n", (N,), float32)
    p, q = b.input("p", (2,), float32), b.input("q", (2,), float32)
    swap = Graph((p, q), (b.const(True), q, p), ("c", "a", "b"))
    add = Graph((p, q), (b.const(True), q, b.add(p, q)), ("c", "a", "b"))
    made = (*counted(b, swap, N, x, y), *counted(b, add, N, x, y))
    given = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    got = on(Graph((x, y, long), made, tuple("abcd")), *given, np.zeros(turns, np.float32))
    s, f = given, given
    for _ in range(turns):
        s, f = (s[1], s[0]), (f[1], f[0] + f[1])
    for a, e in zip(got, (*s, *f), strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("limit", [-3.0, 1.0, 30.0])
def test_a_loop_ends_when_its_condition_fails(on: Runner, limit: float) -> None:
    """The value doubles until it exceeds the limit: a condition that is computed, early exit and no turn at all."""
    b = Builder()
    start, most = b.input("start", (), float32), b.input("most", (), float32)
    v, turn, m = b.input("v", (), float32), b.input("t", (), int64), b.input("m", (), float32)
    twice = b.add(v, v)
    body = Graph((v, turn, m), (b.less(twice, m), twice, b.add(turn, b.const(1))), ("c", "v", "t"))
    made = b.apply(LOOP, b.less(start, most), start, b.const(0), most, body=body, carried=2, conditional=True)
    got = on(Graph((start, most), made, ("v", "t")), np.float32(0.5), np.float32(limit))
    value, turns = 0.5, 0
    while value < limit:
        value, turns = value * 2, turns + 1
    assert (got[0].item(), got[1].item()) == (value, turns)


@pytest.mark.parametrize("turns", [1, 4])
def test_a_carried_value_may_grow(on: Runner, turns: int) -> None:
    b = Builder()
    x, limit = b.input("x", (2,), float32), b.input("limit", (), int64)
    t, s = b.input("t", (), int64), b.input("s", (size("own"),), float32)
    m, part = b.input("m", (), int64), b.input("part", (2,), float32)
    after = b.add(t, b.const(1))
    body = Graph((t, s, m, part), (b.less(after, m), after, b.concat(s, part, axis=0)), ("c", "t", "s"))
    _, grown = b.apply(LOOP, b.const(True), b.const(0), x, limit, x, body=body, carried=2, conditional=True)
    got = on(
        Graph((x, limit), (b.mul(grown, b.const(3.0)),), ("y",), b.size_nodes),
        np.array([1, 2], np.float32),
        np.array(turns),
    )
    np.testing.assert_array_equal(got[0], 3 * np.tile(np.array([1, 2], np.float32), turns + 1))


def test_loops_and_ifs_nest(on: Runner) -> None:
    b = Builder()
    x, long = b.input("x", (), int64), b.input("n", (N,), float32)
    got = on(Graph((x, long), nested(b, x, N), ("v", "t")), np.array(10), np.zeros(8, np.float32))
    assert (got[0].item(), got[1].item()) == (10 + 3 * (0 + 3 + 6), 8)


def test_a_row_is_written_in_place_in_each_turn(on: Runner) -> None:
    """A scan output: the buffer and the turn's number, which is read after the next one is known, are carried, and no turn copies them."""
    b, x = Builder(), floats(5, 3)
    node, out = b.input("x", (N, 3), float32), b.input("o", (N, 3), float32)
    t, xs = b.input("t", (), int64), b.input("xs", (N, 3), float32)
    row = b.gather(xs, b.reshape(t, shape=(1,)), axis=0)
    updated = b.update_slice(out, b.exp(row), t, b.const(0))
    body = Graph((t, out, xs), (b.const(True), b.add(t, b.const(1)), updated), tuple("cto"))
    zeros = b.expand(b.const(0.0), shape=(N, 3))
    _, scanned = counted(b, body, N, b.const(0), zeros, captures=[node])
    program = on.prepare(Graph((node,), (scanned,), ("y",)))
    (turn,) = turns_of(program.program)
    assert turn
    assert not any(g.head == words.COPY for g in turn)
    np.testing.assert_allclose(on.run(program, x)[0], np.exp(x), rtol=1e-5)


def test_a_loop_of_one_turn_is_its_body() -> None:
    b = Builder()
    x, v, t = b.input("x", (N,), float32), b.input("v", (N,), float32), b.input("t", (), int64)
    body = Graph((v, t), (b.const(True), b.mul(v, b.cast(t, to=float32)), b.add(t, b.const(1))), ("c", "v", "t"))
    program = compile_graph(Graph((x,), counted(b, body, 1, x, b.const(2)), ("v", "t")), ARRAYS)
    assert all(g.jump is None for g in program.groups)


def test_what_a_loop_carries_for_nothing_is_dropped(on: Runner) -> None:
    """Of four carried values one is read, and one more is needed for it."""
    b, x = Builder(), floats(3)
    node, long = b.input("x", (3,), float32), b.input("n", (N,), float32)
    p, q, r, t = (b.input(k, (3,), float32) for k in "pqrt")
    body = Graph((p, q, r, t), (b.const(True), b.add(p, q), b.neg(q), b.exp(r), b.mul(t, p)), tuple("cpqrt"))
    read, *_ = counted(b, body, N, node, node, node, node)
    program = on.prepare(Graph((node, long), (read,), ("y",)))
    if not execution_of(on.backend.target).fuses:
        (turn,) = turns_of(program.program)
        assert {g.stop.op for g in turn if isinstance(g.stop, Host)} == {"add", "neg"}
    np.testing.assert_allclose(on.run(program, x, np.zeros(3, np.float32))[0], 2 * x, rtol=1e-6)


# --- sizes found in mid-run -------------------------------------------------------------------------------------------


def test_a_size_that_data_decide_shapes_what_follows(on: Runner) -> None:
    b, x = Builder(), np.array([1, 0, -2, 3, -1], np.float32)
    node = b.input("x", (N,), float32)
    places = b.nonzero(node)
    negative = b.size_of(b.reduce_sum(b.cast(b.less(node, b.const(0.0)), to=int64), axes=(0,)))
    outputs = (
        b.mul(places, b.const(2)),
        b.expand(b.const(5.0), shape=(places.shape[1],)),
        b.expand(b.const(7.0), shape=(negative,)),
        b.gather(node, b.reshape(places, shape=(places.shape[1],)), axis=0),
    )
    program = on.prepare(Graph((node,), outputs, tuple("abcd"), b.size_nodes))
    for values in (x, np.zeros(3, np.float32), np.arange(4, dtype=np.float32)):
        got = on.run(program, values)
        kept = np.flatnonzero(values)
        for a, e in zip(
            got, ([2 * kept], np.full(len(kept), 5.0), np.full((values < 0).sum(), 7.0), values[kept]), strict=True
        ):
            np.testing.assert_array_equal(a, e)


def test_what_runs_on_the_host_is_reported_and_can_be_refused() -> None:
    b = Builder()
    node = b.input("x", (N,), float32)
    graph = Graph((node,), (b.nonzero(node),), ("y",), b.size_nodes)
    target = open_device("wasm").target
    assert compile_graph(graph, target).facts["host"] == {"nonzero": {"the shape of its result depends on data": 1}}
    with pytest.raises(CompileError, match="nonzero"):
        compile_graph(graph, target, Options(fail_on_host=True))


# --- states -----------------------------------------------------------------------------------------------------------


def test_states_live_from_run_to_run_and_apart(on: Runner) -> None:
    """A counter and a ring of the latest rows, which is written in place; two sessions do not meet."""
    b = Builder()
    count, ring = b.input("count", (), int64), b.input("ring", (4, 2), float32)
    x = b.input("x", (2,), float32)
    place = b.sub(count, b.mul(b.div(count, b.const(4)), b.const(4)))
    written = b.update_slice(ring, b.reshape(x, shape=(1, 2)), place, b.const(0))
    after = b.add(count, b.const(1))
    first = np.ones((4, 2), np.float32)
    states = (GraphState(count, "count", None, after), GraphState(ring, "ring", first, written))
    program = on.prepare(Graph((x,), (after, b.reduce_sum(written, axes=(0,))), ("n", "sum"), b.size_nodes, states))
    kept = [s.buffer for s in program.program.states]
    assert not any(g.head == words.COPY and kept[1] in (*g.reads, *g.writes) for g in program.program.groups)
    sessions = [program.new_states(), program.new_states()]
    wanted = [first.copy(), first.copy()]
    for turn in range(6):
        for k in range(2):
            row = np.array([turn, 10 * k], np.float32)
            wanted[k][turn % 4] = row
            got = on.run(program, row, states=sessions[k])
            assert got[0].item() == turn + 1
            np.testing.assert_allclose(got[1], wanted[k].sum(0, keepdims=True))


def test_states_may_swap(on: Runner) -> None:
    b = Builder()
    p, q = b.input("p", (3,), float32), b.input("q", (3,), float32)
    values = floats(3), -floats(3)
    states = (GraphState(p, "p", values[0], q), GraphState(q, "q", values[1], p))
    program = on.prepare(Graph((), (b.neg(p),), ("y",), {}, states))
    held = program.new_states()
    for turn in range(3):
        np.testing.assert_array_equal(on.run(program, states=held)[0], -values[turn % 2])


# --- rewriting --------------------------------------------------------------------------------------------------------


def test_regions_are_rewritten_and_constants_move_into_them() -> None:
    from singe.compiler.rewrite import rewrite  # noqa: PLC0415

    b = Builder()
    c, x, k = b.input("c", (), bool_), b.input("x", (2,), float32), b.input("k", (), float32)
    region = Graph((x, k), (b.add(b.mul(x, k), b.const(0.0)),), ("y",))
    given = b.input("given", (2,), float32)
    y = b.apply(IF, c, given, b.const(1.0), then=region, otherwise=region)
    found = rewrite(Graph((c, given), (y,), ("y",)))
    assert {n.op for n in all_nodes(found)} == {"input", "if"}
    assert len(found.outputs[0].inputs) == 2


# --- checks -----------------------------------------------------------------------------------------------------------


def squeezed_or_summed() -> Graph:
    """(N, T) → (N,): squeezed where the condition holds, so that T must be 1 there and nowhere else."""
    b = Builder()
    p, x = b.input("p", (), bool_), b.input("x", (N, size("T")), float32)
    inner = b.input("x", x.shape, float32)
    with deferring():
        then = b.graph([inner], [b.exp(b.reshape(inner, shape=(N,)))])
    otherwise = b.graph([inner], [b.reshape(b.reduce_sum(inner, axes=(1,)), shape=(N,))])
    (y,) = b.results_of(b.node(IF, p, x, then=then, otherwise=otherwise))
    return Graph((p, x), (b.neg(y),), ("y",))


def test_a_branch_checks_sizes_only_where_it_runs(on: Runner) -> None:
    program = on.prepare(squeezed_or_summed())
    one, three = floats(4, 1), floats(2, 3)
    np.testing.assert_allclose(on.run(program, True, one)[0], -np.exp(one[:, 0]), rtol=1e-5)
    np.testing.assert_allclose(on.run(program, False, three)[0], -three.sum(1), rtol=1e-5)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"reshape: N\*T must be N \(got N = 2, T = 3\)"):
            on.run(program, True, three)
    np.testing.assert_allclose(on.run(program, False, one)[0], -one[:, 0], rtol=1e-5)


@pytest.mark.parametrize("turns", [0, 2])
def test_a_loop_checks_sizes_only_where_it_takes_a_turn(on: Runner, turns: int) -> None:
    b = Builder()
    n, x = b.input("n", (), int64), b.input("x", (N, size("T")), float32)
    carried, inner = b.input("carried", (N,), float32), b.input("x", x.shape, float32)
    with deferring():
        after = b.add(carried, b.reshape(inner, shape=(N,)))
    body = b.graph((carried, inner), (b.const(np.array(True)), after))
    first = b.expand(b.const(0.0), shape=(N,))
    made = b.node(LOOP, first, x, body=body, carried=1, conditional=False, count=b.size_of(n))
    program = on.prepare(Graph((n, x), (made,), ("y",), b.size_nodes))
    one, three = floats(4, 1), floats(2, 3)
    np.testing.assert_allclose(on.run(program, np.int64(turns), one)[0], turns * one[:, 0], rtol=1e-5)
    if turns:
        with pytest.raises(ShapeError, match=r"N\*T must be N \(got N = 2, T = 3\)"):
            on.run(program, np.int64(turns), three)
    else:
        np.testing.assert_array_equal(on.run(program, np.int64(0), three)[0], np.zeros(2))


def test_a_graph_says_what_sizes_must_fulfil(on: Runner) -> None:
    """The checks of a Graph and of a region, which no node implies; they are in records too."""
    b, t = Builder(), size("T")
    p, x = b.input("p", (), bool_), b.input("x", (N, t), float32)
    inner = b.input("x", x.shape, float32)
    then = b.graph([inner], [b.exp(inner)], {3 - t: "T must be at most 3"})
    otherwise = b.graph([inner], [b.neg(inner)])
    (y,) = b.results_of(b.node(IF, p, x, then=then, otherwise=otherwise))
    graph = Graph((p, x), (y,), ("y",), checks={N - 2: "N must be at least 2"})
    program = on.prepare(graph)
    assert program.program.checks == ((N - 2, "N must be at least 2"),)
    np.testing.assert_allclose(on.run(program, True, floats(2, 3))[0], np.exp(floats(2, 3)), rtol=1e-5)
    np.testing.assert_array_equal(on.run(program, False, floats(2, 4))[0], -floats(2, 4))
    with pytest.raises(ShapeError, match=r"T must be at most 3 \(got T = 4\)"):
        on.run(program, True, floats(2, 4))
    with pytest.raises(ShapeError, match=r"N must be at least 2 \(got N = 1, T = 3\)"):
        on.run(program, True, floats(1, 3))
    with pytest.raises(ShapeError, match="N must be at least 2"):
        specialise(graph, {"N": 1})


def test_a_size_that_only_a_check_needs_is_found(on: Runner) -> None:
    b = Builder()
    n, x = b.input("n", (), int64), b.input("x", (N,), float32)
    found = b.size_of(n)
    program = on.prepare(Graph((n, x), (b.neg(x),), ("y",), b.size_nodes, checks={found - 2: "n must be at least 2"}))
    np.testing.assert_array_equal(on.run(program, np.int64(2), floats(3))[0], -floats(3))
    with pytest.raises(ShapeError, match=r"n must be at least 2 \(got size\.0 = 1\)"):
        on.run(program, np.int64(1), floats(3))
