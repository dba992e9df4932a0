"""Groups of every kind on every runner that reads a Plan's words, in Programs that are assembled by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from devices import slow
from networks.steps import Assembler

from singe.dtypes import bool_, float32, int32
from singe.errors import DeviceError, InputError, ShapeError
from singe.ir import scalar
from singe.ir.kernel import Kernel, Port, Store, loop_vars
from singe.program.plan import Plan
from singe.program.program import ProgramData
from singe.program.words import COPY, LOOP, execution_order
from singe.runtime.devices import device as open_device
from singe.shapes import size
from singe.tools.inspection import describe_program

TARGETS = {"wasm": "wasm", "webgpu": "wgsl"}


class Runner:
    """A backend, Programs for it, and runs of them over NumPy arrays."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.backend: Any = open_device(name).backend

    def assembler(self) -> Assembler:
        return Assembler(TARGETS[self.name])

    def prepare(self, p: Assembler) -> Callable[..., list[np.ndarray]]:
        executable = self.backend.prepare(p.program())

        def run(*arrays: Any, states: Sequence[Any] = ()) -> list[np.ndarray]:
            outputs = executable.run([self.backend.upload(np.asarray(a)) for a in arrays], states)
            return [self.backend.download(y) for y in outputs]

        run.executable = executable  # pyright: ignore[reportFunctionMemberAccess]
        return run


@pytest.fixture(params=TARGETS)
def on(request: pytest.FixtureRequest) -> Runner:
    try:
        return Runner(request.param)
    except DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")


def one(value: float) -> np.ndarray:
    return np.array([value], np.float32)


def is_true(value: bool) -> np.ndarray:
    return np.array([value])


# --- conditions and loops ---------------------------------------------------------------------------------------------


def test_each_branch_and_branches_in_branches(on: Runner) -> None:
    p = on.assembler()
    x, a, b = p.input("x", (1,)), p.input("a", (1,), bool_), p.input("b", (1,), bool_)
    y = p.output("y", (1,))
    with p.when(a):
        with p.when(b):
            p.op("neg", [x], y)
        with p.otherwise():
            p.op("mul", [x, x], y)
    with p.otherwise():
        p.copy(x, y)
        with p.when(b):
            p.op("add", [x, p.const(one(1))], y)
    run = on.prepare(p)
    for a_, b_, expected in ((True, True, -3), (True, False, 9), (False, True, 4), (False, False, 3)):
        assert run(one(3), is_true(a_), is_true(b_))[0] == expected, (a_, b_)


@pytest.mark.parametrize("turns", [0, 1, 2, 7])
def test_a_counted_loop_whose_count_is_a_size(on: Runner, turns: int) -> None:
    p = on.assembler()
    x, _, y, next_y = p.input("x", (1,)), p.input("n", (size("N"),)), p.output("y", (1,)), p.slot((1,))
    p.copy(x, y)
    with p.loop(count=size("N")):
        p.op("add", [y, p.const(one(2))], next_y)
        p.copy(next_y, y)
    assert on.prepare(p)(one(1), np.zeros(turns, np.float32))[0] == 1 + 2 * turns


def test_loops_in_loops_start_again(on: Runner) -> None:
    """An inner loop starts with its full count of turns each time, also after it was left early."""
    p = on.assembler()
    limit, y = p.input("limit", (1,)), p.output("y", (1,))
    inner, going, turn, spare = p.slot((1,)), p.slot((1,), bool_), p.const(one(1)), p.slot((1,))
    zero = p.const(one(0))
    p.copy(zero, y)
    with p.loop(count=3):
        p.copy(zero, inner)
        p.op("less", [inner, limit], going)
        with p.loop(count=4, condition=going):
            p.op("add", [inner, turn], spare)
            p.copy(spare, inner)
            p.op("less", [inner, limit], going)
            with p.loop(count=2):
                p.op("add", [y, turn], spare)
                p.copy(spare, y)
    run = on.prepare(p)
    for most, turns in ((2, 2), (10, 4), (0, 0), (4, 4)):
        assert run(one(most))[0] == 3 * 2 * turns, most


def test_a_loop_by_condition_alone(on: Runner) -> None:
    p = on.assembler()
    x, y, double, going = p.input("x", (1,)), p.output("y", (1,)), p.slot((1,)), p.slot((1,), bool_)
    limit = p.const(one(100))
    p.copy(x, y)
    p.op("less", [y, limit], going)
    with p.loop(condition=going):
        p.op("add", [y, y], double)
        p.copy(double, y)
        p.op("less", [y, limit], going)
    run = on.prepare(p)
    assert run(one(3))[0] == 192
    assert run(one(300))[0] == 300


def test_carried_values_are_swapped(on: Runner) -> None:
    p = on.assembler()
    a, b, _ = p.input("a", (3,)), p.input("b", (3,)), p.input("n", (size("N"),))
    x, y, spare = p.output("x", (3,)), p.output("y", (3,)), p.slot((3,))
    p.copy(a, x)
    p.copy(b, y)
    with p.loop(count=size("N")):
        p.copy(x, spare)
        p.copy(y, x)
        p.copy(spare, y)
    run = on.prepare(p)
    first, second = np.arange(3, dtype=np.float32), np.arange(3, 6, dtype=np.float32)
    for n in (0, 1, 2, 5):
        expected = (second, first) if n % 2 else (first, second)
        np.testing.assert_array_equal(run(first, second, np.zeros(n, np.float32)), expected)


def test_a_long_loop_is_handed_over_in_batches(on: Runner) -> None:
    p = on.assembler()
    x, y, spare = p.input("x", (2,)), p.output("y", (2,)), p.slot((2,))
    p.copy(x, y)
    with p.loop(count=1500):
        p.op("add", [y, x], spare)
        p.copy(spare, y)
    np.testing.assert_array_equal(on.prepare(p)(np.ones(2, np.float32))[0], [1501, 1501])


def test_a_condition_may_be_a_weight(on: Runner) -> None:
    p = on.assembler()
    x, y = p.input("x", (1,)), p.output("y", (1,))
    p.copy(x, y)
    for value in (True, False):
        with p.when(p.const(is_true(value))):
            p.op("add", [x, p.const(one(1 if value else 100))], y)
    assert on.prepare(p)(one(3))[0] == 4


def test_a_loop_that_cannot_end_is_refused(on: Runner) -> None:
    p = on.assembler()
    x = p.input("x", (1,))
    y = p.output("y", (1,))
    with p.loop():
        p.copy(x, y)
    with pytest.raises(DeviceError, match="never end"):
        on.prepare(p)(one(1))


# --- sizes found in mid-run, and steps of the host ----------------------------------------------------------------------


def test_a_size_is_read_from_a_buffer(on: Runner) -> None:
    """Kernels, slots and outputs get their sizes then, another one in the next run."""
    p = on.assembler()
    count, x = p.input("count", (1,), int32), p.input("x", (1,))
    n = size("found")
    y, half = p.output("y", (n, 2)), p.slot((n, 2))
    p.bind("found", buffer=count)
    p.op("expand", [x], half, shape=(n, 2))
    p.op("add", [half, half], y)
    run = on.prepare(p)
    for n_ in (3, 0, 1000, 3):
        np.testing.assert_array_equal(run(np.array([n_], np.int32), one(2))[0], np.full((n_, 2), 4, np.float32))
    with pytest.raises(ShapeError, match="found was found to be -1"):
        run(np.array([-1], np.int32), one(2))


def test_a_size_grows_in_a_loop(on: Runner) -> None:
    p = on.assembler()
    x, _ = p.input("x", (2,)), p.input("n", (size("N"),))
    old, new = size("old"), size("new")
    carried, longer, y = p.slot((old,)), p.slot((new,)), p.output("y", (old,))
    p.bind("old", dim=2)
    p.copy(x, carried)
    with p.loop(count=size("N")):
        p.bind("new", dim=old + 2)
        p.host("concat", [carried, x], [longer], axis=0)
        p.bind("old", dim=new)
        p.copy(longer, carried)
    p.op("neg", [carried], y)
    run = on.prepare(p)
    for n in (0, 3, 40, 1):
        expected = -np.tile(np.arange(1, 3, dtype=np.float32), n + 1)
        np.testing.assert_array_equal(run(np.arange(1, 3, dtype=np.float32), np.zeros(n, np.float32))[0], expected)


def test_a_host_step_gives_a_size(on: Runner) -> None:
    """Results of the host are used on the device, in a branch and in each turn of a loop, which keeps counting."""
    p = on.assembler()
    x, yes = p.input("x", (size("N"),)), p.input("yes", (1,), bool_)
    m = size("m")
    twice, y = p.slot((m,)), p.output("y", (m,))
    with p.loop(count=2), p.when(yes):
        p.host("concat", [x, x], [twice], axis=0)
    with p.when(yes):
        pass
    with p.otherwise():
        p.host("neg", [x], [twice])
    p.op("add", [twice, twice], y)
    run = on.prepare(p)
    given = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(given, is_true(True))[0], np.tile(given, 2) * 2)
    np.testing.assert_array_equal(run(given, is_true(False))[0], -given * 2)
    np.testing.assert_array_equal(run(given[:0], is_true(True))[0], given[:0])


# --- states -------------------------------------------------------------------------------------------------------------


def counter(p: Assembler, initial: int | None = None) -> None:
    """state += x, in place: the kernel reads and writes one port. The new state is the output."""
    x, state, y = p.input("x", (3,)), p.state("count", (3,), initial=initial), p.output("y", (3,))
    p.kernel(in_place(3, lambda old, x: old + x), [x, state])
    p.copy(state, y)


def in_place(count: int, update: Callable[[Any, Any], Any]) -> Kernel:
    """A kernel with a port x that it only reads, and a port that it updates."""
    (g,) = loop_vars("g", (count,))
    value = update(scalar.load(1, g, float32), scalar.load(0, g, float32))
    return Kernel((Port(float32), Port(float32, written=True)), (count,), (), (Store(1, g, value),), name="update")


def test_sessions_are_independent_and_start_as_told(on: Runner) -> None:
    p = on.assembler()
    counter(p, p.const(np.array([1, 2, 3], np.float32)))
    run: Any = on.prepare(p)
    first, second = run.executable.new_states(), run.executable.new_states()
    ones = np.ones(3, np.float32)
    for k in range(1, 4):
        np.testing.assert_array_equal(run(ones, states=first)[0], [1 + k, 2 + k, 3 + k])
    np.testing.assert_array_equal(run(10 * ones, states=second)[0], [11, 12, 13])
    np.testing.assert_array_equal(on.backend.download(first[0]), [4, 5, 6])
    assert run.executable.memory()["states"] == 2 * 12
    del second
    assert run.executable.memory()["states"] == 12
    with pytest.raises(InputError, match="has 1 states, got 0"):
        run(ones)


@pytest.mark.parametrize("on", ["wasm", *slow("webgpu")], indirect=True)
def test_a_thousand_runs_keep_one_state(on: Runner) -> None:
    """No memory is taken, and no step copies the state but into the output."""
    p = on.assembler()
    counter(p)
    run: Any = on.prepare(p)
    states = run.executable.new_states()
    array = on.backend.upload(np.ones(3, np.float32))

    def held() -> tuple[int, Any]:
        described = on.backend.describe()
        return sum(run.executable.memory().values()), described.get("memory", described.get("pool_bytes"))

    for k in range(1000):
        (y,) = run.executable.run([array], states)
        if k == 10:
            before = held()
        del y
    assert held() == before
    np.testing.assert_array_equal(on.backend.download(states[0]), [1000] * 3)
    groups = run.executable.program.groups
    assert [span.at for span in run.executable.profile([array], states).spans] == [g.at for g in groups]
    assert [min(g.head, 0) for g in groups] == [0, COPY]


def test_a_ring_buffer_is_written_in_place(on: Runner) -> None:
    """Each run writes one row of a state, at a place that another state counts."""
    rows, columns = 4, 3
    p = on.assembler()
    x, ring, at = p.input("x", (columns,)), p.state("ring", (rows, columns)), p.state("at", (1,))
    y = p.output("y", (rows, columns))
    (g,) = loop_vars("g", (columns,))
    start = scalar.cast(scalar.load(1, scalar.const(0, int32), float32), int32)
    store = Store(2, start * scalar.const(columns, int32) + g, scalar.load(0, g, float32))
    p.kernel(
        Kernel((Port(float32), Port(float32), Port(float32, written=True)), (columns,), (), (store,)), [x, at, ring]
    )
    last = p.const(one(rows - 1))
    full, one_more = p.slot((1,), bool_), p.slot((1,))
    p.op("equal", [at, last], full)
    p.op("add", [at, p.const(one(1))], one_more)
    with p.when(full):
        p.copy(p.const(one(0)), at)
    with p.otherwise():
        p.copy(one_more, at)
    p.copy(ring, y)
    run: Any = on.prepare(p)
    states = run.executable.new_states()
    expected = np.zeros((rows, columns), np.float32)
    for k in range(10):
        row = np.full(columns, k, np.float32)
        expected[k % rows] = row
        np.testing.assert_array_equal(run(row, states=states)[0], expected)


@pytest.mark.parametrize("on", ["wasm", *slow("webgpu")], indirect=True)
def test_a_training_step_learns(on: Runner) -> None:
    """w −= 0.1 · xᵀ(x·w − y) / 8, with w a state: what NumPy computes, run after run."""
    rng = np.random.default_rng(0)
    p = on.assembler()
    x, y, w = p.input("x", (8, 4)), p.input("y", (8, 1)), p.state("w", (4, 1))
    error = p.output("error", (8, 1))
    guess, turned, gradient = p.slot((8, 1)), p.slot((4, 8)), p.slot((4, 1))
    p.op("matmul", [x, w], guess)
    p.op("sub", [guess, y], error)
    p.op("transpose", [x], turned, perm=(1, 0))
    p.op("matmul", [turned, error], gradient)
    p.kernel(in_place(4, lambda old, slope: old - slope * (0.1 / 8)), [gradient, w])
    run: Any = on.prepare(p)
    states = run.executable.new_states()
    given = rng.normal(size=(8, 4)).astype(np.float32)
    wanted = given @ np.array([[1], [-2], [3], [0.5]], np.float32)
    expected = np.zeros((4, 1), np.float32)
    for _ in range(200):
        (found,) = run(given, wanted, states=states)
        fault = given @ expected - wanted
        expected = expected - np.float32(0.1 / 8) * (given.T @ fault)
        np.testing.assert_allclose(found, fault, atol=1e-4)
    assert np.abs(found).max() < 0.1


# --- tools --------------------------------------------------------------------------------------------------------------


def flow(p: Assembler) -> ProgramData:
    x, yes, y, spare = p.input("x", (4,)), p.input("yes", (1,), bool_), p.output("y", (4,)), p.slot((4,))
    p.copy(x, y)
    with p.loop(count=3), p.when(yes):
        p.op("add", [y, x], spare)
        p.copy(spare, y)
    p.host("neg", [y], [spare])
    return p.program()


def test_a_profile_counts_every_turn(on: Runner) -> None:
    data = flow(on.assembler())
    executable = on.backend.prepare(data)
    arrays = [on.backend.upload(a) for a in (np.ones(4, np.float32), is_true(True))]
    timeline = executable.profile(arrays)
    first, doubled, copied, hosted = (g.at for g in data.steps)
    on_device = [span.at for span in timeline.spans if span.at != hosted]
    assert on_device == [first, *[doubled, copied] * 3]
    np.testing.assert_array_equal(on.backend.download(timeline.outputs[0]), [4] * 4)


def test_inspection_counts_what_is_inside(on: Runner) -> None:
    text = describe_program(on.name, flow(on.assembler()), True)
    assert "4: 1 dispatches of 1 kernels, 1 host, 2 copies, 1 branches, 1 loops" in text


def test_words_are_where_the_contract_says() -> None:
    p = Assembler("wasm")
    x, y = p.input("x", (4,)), p.output("y", (4,))
    with p.loop(count=2):
        p.copy(x, y)
    plan = Plan(p.program(), {})
    assert plan.words == [LOOP, 3, 13, 2, 0, -1, 3, y, x, 16, -5, 1, -5]
    assert list(execution_order(list(plan.words), lambda _: False)) == [5, 5]
