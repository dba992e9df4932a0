"""Elementwise kernels that store several values: which are joined, and that answers, states and memory stay right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from devices import COMPILED, RUNNERS, slow
from networks.random_graphs.drawn import compare

from singe.compiler.compile import compile_graph
from singe.compiler.schedule.beside import BESIDE
from singe.dtypes import DType, bool_, float16, float32, int32, int64
from singe.graph import Builder, Graph, GraphState, Node, gradient, leaf
from singe.program.program import ProgramData
from singe.program.words import COPY
from singe.shapes import Dim, evaluate, size
from singe_wasm.target import WasmTarget
from singe_webgpu.target import WgslTarget

N = size("N")
TARGETS = pytest.mark.parametrize("target", [WasmTarget, WgslTarget])
Shape = tuple[Dim, ...]


def kernels(program: ProgramData) -> int:
    """Code for some sizes each is one kernel: it is dispatched over the same buffers. Kernels that are one step count one by one."""
    steps = {g.reads: program.kernels[g.head].label for g in program.groups if g.head >= 0}
    return sum(label.count(BESIDE) + 1 for label in steps.values())


def copies(program: ProgramData) -> int:
    return sum(g.head == COPY for g in program.groups)


def graph_of(build: Callable[..., Any], shape: Shape, kind: DType = float32, states: Sequence[str] = ()) -> Graph:
    """The outputs, or the outputs and what the states become, of a function of a Builder, inputs x and y, and states."""
    b = Builder()
    inputs = [b.input(name, shape, kind) for name in "xy"]
    leaves = [leaf(shape, kind, name) for name in states]
    found = build(b, *inputs, *leaves)
    outputs, updated = found if states else (found, ())
    return Graph(
        tuple(inputs), tuple(outputs), tuple(f"o{k}" for k in range(len(outputs))),
        states=tuple(GraphState(x, x.name, None, u) for x, u in zip(leaves, updated, strict=True)),
    )  # fmt: skip


def runs(graph: Graph, *counts: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    shapes = [[evaluate(d, {"N": n}) for d in x.shape] for n in counts for x in graph.inputs]
    arrays = [
        rng.integers(-4, 5, s).astype(x.dtype.numpy) for s, x in zip(shapes, graph.inputs * len(counts), strict=True)
    ]
    return [arrays[k : k + len(graph.inputs)] for k in range(0, len(arrays), len(graph.inputs))]


# --- reductions that store several values ------------------------------------------------------------------------------


@COMPILED
def test_what_readers_can_compute_from_stored_values_is_not_stored(device_name: str) -> None:
    """Of a normalisation whose differences and quotients are both read later, as gradients do, the differences are stored."""

    b = Builder()
    x, y = b.input("x", (32, 64), float32), b.input("y", (64, 64), float32)
    mean = b.div(b.reduce_sum(x, axes=(1,)), b.const(64, float32))
    away = b.sub(x, mean)
    spread = b.sqrt(b.add(b.reduce_sum(b.mul(away, away), axes=(1,)), b.const(1, float32)))
    normal = b.div(away, spread)
    product = b.matmul(b.tanh(normal), y)
    graph = Graph((x, y), (b.add(b.mul(product, normal), b.mul(away, spread)),), ("out",))
    program = compare(device_name, graph, runs(graph, 1), tolerance=2e-5)
    if device_name != "numpy":
        shapes = [buffer.shape for buffer in program.buffers if buffer.place[0] == "slot"]
        assert shapes.count((32, 64)) == 2, "the differences, and what the product reads"


# --- kernels that are joined ------------------------------------------------------------------------------------------


def momentum(b: Builder, x: Node, y: Node, weight: Node, moment: Node) -> Any:
    """A step of descent: x is the gradient."""
    moved = b.add(b.mul(moment, b.const(0.5, x.dtype)), x)
    return (), (b.sub(weight, b.mul(moved, b.const(0.25, x.dtype))), moved)


def adam(b: Builder, x: Node, y: Node, weight: Node, first: Node, second: Node) -> Any:
    c: Callable[[float], Node] = lambda value: b.const(value, x.dtype)
    first = b.add(b.mul(first, c(0.5)), b.mul(x, c(0.5)))
    second = b.add(b.mul(second, c(0.75)), b.mul(b.mul(x, x), c(0.25)))
    return (), (b.sub(weight, b.div(b.mul(first, c(0.125)), b.add(b.sqrt(second), c(0.5)))), first, second)


def dropout(b: Builder, x: Node, y: Node) -> Any:
    """x where y is beyond a ratio, and the mask."""
    kept = b.greater_equal(y, b.const(0.5, x.dtype))
    return b.where(kept, b.mul(x, b.const(2, x.dtype)), b.const(0, x.dtype)), kept


def chain(b: Builder, x: Node, y: Node) -> Any:
    """A value that is expensive to compute is an output, and another output reads it."""
    middle = b.tanh(b.mul(x, y))
    return b.add(b.exp(middle), y), middle


def siblings(b: Builder, x: Node, y: Node) -> Any:
    """Three functions of the same element, and the smallest of all."""
    low, high = b.minimum(x, y), b.maximum(x, y)
    return b.sub(high, low), low, high, b.less(x, y)


def swapped(b: Builder, x: Node, y: Node, one: Node, other: Node) -> Any:
    """Two states that are swapped: neither can be written before both are read."""
    return (), (b.add(other, x), b.mul(one, b.const(3, x.dtype)))


def turned(b: Builder, x: Node, y: Node, place: Node, speed: Node) -> Any:
    """A pendulum's step: the states read each other."""
    quick = b.sub(speed, b.mul(b.sin(place), b.const(0.5, x.dtype)))
    return (b.add(quick, y),), (b.add(place, b.mul(speed, x)), quick)


def flipped(b: Builder, x: Node, y: Node, old: Node) -> Any:
    """A state of booleans."""
    return (b.logical_not(x),), (b.logical_xor(old, x),)


CASES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "flipped": (flipped, ("p",)),
    "momentum": (momentum, ("w", "m")),
    "adam": (adam, ("w", "m", "v")),
    "dropout": (dropout, ()),
    "chain": (chain, ()),
    "siblings": (siblings, ()),
    "swapped": (swapped, ("p", "q")),
    "turned": (turned, ("p", "q")),
}
SHAPES: dict[str, Shape] = {"open": (N, 5), "one": (1, 1), "odd": (3, 7), "empty": (0, 4), "fours": (520, 256), "large": (523, 257)}  # fmt: skip


@COMPILED
@pytest.mark.parametrize("shape", ["open", "odd", "empty", "fours", *slow("one", "large")])
@pytest.mark.parametrize("name", [name for name in CASES if name != "flipped"])
def test_one_kernel_stores_all_with_the_right_answers(name: str, shape: str, device_name: str) -> None:
    """States, which begin with zeros, are carried on, and are updated in place."""
    build, states = CASES[name]
    if states and shape == "open":
        shape = "odd"  # a state keeps its shape
    graph = graph_of(build, SHAPES[shape], states=states)
    program = compare(device_name, graph, runs(graph, 3, 1, 0, 6), tolerance=2e-6)
    if device_name != "numpy":
        assert (kernels(program), copies(program)) == (1, 0)


@COMPILED
@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, kind) for name in ("siblings", "swapped") for kind in (float16, int32, int64)), ("flipped", bool_)],
)
def test_every_type_is_joined_with_its_like(name: str, kind: DType, device_name: str) -> None:
    build, states = CASES[name]
    graph = graph_of(build, SHAPES["fours"], kind, states)
    program = compare(device_name, graph, runs(graph, 1, 1), tolerance=2e-3)
    if device_name != "numpy":
        assert (kernels(program), copies(program)) == (1, 0)


@RUNNERS
@pytest.mark.parametrize("length", [2, 5])
def test_parts_of_a_tensor_are_read_by_one_kernel(length: int, device_name: str) -> None:
    """As in a recurrent cell: two values of parts of a product, of which one is computed from the other."""
    b, rng = Builder(), np.random.default_rng(1)
    x, old = b.input("x", (N, 6), float32), b.input("old", (N, 7), float32)
    gates = b.matmul(x, b.const(rng.normal(size=(6, 21)).astype(np.float32)))
    part = [b.slice(gates, starts=(0, k * 7), steps=(1, 1), sizes=(N, 7)) for k in range(3)]
    cell = b.add(b.mul(b.sigmoid(part[0]), old), b.tanh(part[1]))
    graph = Graph((x, old), (b.mul(b.tanh(cell), b.sigmoid(part[2])), cell), ("h", "c"))
    program = compare(device_name, graph, runs(graph, length, 1), tolerance=2e-6)
    if device_name != "numpy":
        assert kernels(program) == 2


@RUNNERS
def test_a_training_step_updates_each_weight_by_one_kernel(device_name: str) -> None:
    """Adam on the weight and the bias of a layer: a kernel for each beside those of the loss and its gradients."""
    b = Builder()
    x, y = b.input("x", (8, 5), float32), b.input("y", (8, 3), float32)
    weights = [leaf((5, 3), float32, "w"), leaf((3,), float32, "b")]
    miss = b.sub(b.tanh(b.add(b.matmul(x, weights[0]), weights[1])), y)
    loss = b.reduce_mean(b.mul(miss, miss), axes=(0, 1))
    found = gradient(Graph((x, y), (loss,), ("loss",)), b, [b.const(1.0)], weights)
    states: list[GraphState] = []
    for w, g in zip(weights, found, strict=True):
        moments = [leaf(w.shape, float32, f"{name}.{w.name}") for name in "mv"]
        _, updated = adam(b, g, g, w, *moments)
        states += (GraphState(n, n.name, None, u) for n, u in zip((w, *moments), updated, strict=True))
    graph = Graph((x, y), (loss,), ("loss",), states=tuple(states))
    program = compare(device_name, graph, runs(graph, 1, 1, 1), tolerance=1e-5)
    if device_name != "numpy":
        moments = {k for k, b in enumerate(program.buffers) if b.name[:2] in ("m.", "v.")}
        steps = [g for g in program.groups if g.head >= 0 and not moments.isdisjoint(g.reads)]
        assert (len(steps), copies(program)) == (2, 0)


def wide(b: Builder, x: Node, y: Node, *states: Node) -> Any:
    """Five states, each updated from the one before it: twelve buffers, of which five are both read and stored."""
    updated: list[Node] = []
    for k, state in enumerate(states):
        updated.append(b.add(b.mul(state, b.const(0.5)), updated[-1] if k else b.mul(x, y)))
    return (), updated


def read_later(b: Builder, x: Node, y: Node, *states: Node) -> Any:
    """The same, and a sum over the old value of one state and the new one of another: the former is updated after it."""
    _, updated = wide(b, x, y, *states)
    return (b.reduce_sum(b.mul(states[1], b.tanh(updated[3])), axes=(0,)),), updated


@RUNNERS
@pytest.mark.parametrize(("build", "counts"), [(wide, {1}), (read_later, {2, 3, 4, 5})])
def test_states_that_are_computed_in_place_count_once(
    build: Callable[..., Any], counts: set[int], device_name: str
) -> None:
    """A kernel of WebGPU may bind eight buffers."""
    graph = graph_of(build, SHAPES["odd"], states=("p", "q", "r", "s", "t"))
    program = compare(device_name, graph, runs(graph, 1, 1, 1), tolerance=2e-6)
    if device_name != "numpy":
        assert kernels(program) in counts
        assert build is read_later or copies(program) == 0


# --- kernels that are not joined --------------------------------------------------------------------------------------


def elsewhere(b: Builder, x: Node, y: Node) -> Any:
    """The elements of the first value are read in another order than they are stored."""
    first = b.exp(b.mul(x, y))
    return b.add(first, b.slice(first, starts=(0, x.shape[1] - 1), steps=(1, -1), sizes=x.shape)), first


def between(b: Builder, x: Node, y: Node) -> Any:
    """A kernel between the two needs all of the first value, and the last one needs its result."""
    first = b.exp(b.mul(x, y))
    return b.add(b.running_sum(first, axis=1), first), first


def loops(b: Builder, x: Node, y: Node) -> Any:
    """One kernel reads the input by rows, the other by columns."""
    return b.exp(x), b.mul(b.transpose(x, perm=(1, 0)), b.const(2.0))


def types(b: Builder, x: Node, y: Node) -> Any:
    """A CPU computes 64-bit integers one at a time: their kernels do not join vectorised ones."""
    return b.exp(x), b.cast(x, to=int64)


def gathered(b: Builder, x: Node, y: Node) -> Any:
    """Kernels that gather are not vectorised, and do not join others."""
    rows = b.cast(b.abs(b.slice(y, starts=(0, 0), steps=(1, 1), sizes=(4, 1))), to=int32)
    return b.exp(x), b.add(b.gather(x, b.reshape(b.minimum(rows, b.const(3, int32)), shape=(4,)), axis=0), x)


def nothing(b: Builder, x: Node, y: Node) -> Any:
    """Two kernels that have no element in common save nothing."""
    return b.exp(x), b.exp(y)


@RUNNERS
@pytest.mark.parametrize("build", [elsewhere, between, loops, types, gathered, nothing])
def test_what_cannot_be_joined_or_gains_nothing_stays_apart(build: Callable[..., Any], device_name: str) -> None:
    graph = graph_of(build, (4, 8))
    program = compare(device_name, graph, runs(graph, 1), tolerance=2e-6)
    if device_name != "numpy":
        assert kernels(program) > 1


@TARGETS
def test_a_kernel_has_as_many_ports_as_a_target_allows(target: Any) -> None:
    """Sixteen functions of one element."""
    values: Callable[..., Any] = lambda b, x, y: [b.mul(b.exp(x), b.const(float(k))) for k in range(2, 18)]
    program = compile_graph(graph_of(values, (4, 8)), target())
    most = target().max_ports - 1
    assert kernels(program) == -(-16 // most)


def early(b: Builder, x: Node, y: Node) -> Any:
    """If the second function of x were computed together with the first, its result would be held during the widest step."""
    first = b.exp(b.mul(x, y))
    wide = b.softmax(b.concat(first, first, first, axis=1), axis=1)
    last = b.tanh(b.mul(b.sin(x), b.const(2.0)))
    return b.reduce_sum(wide, axes=(0,)), b.reduce_sum(
        b.concat(last, b.transpose(last, perm=(1, 0)), axis=1), axes=(1,)
    )


def late(b: Builder, x: Node, y: Node) -> Any:
    """If the first output were computed together with the second, its inputs would be held during the widest step."""
    first = b.mul(b.running_sum(x, axis=1), y)
    wide = b.softmax(b.concat(x, y, x, y, axis=1), axis=1)
    part = b.running_sum(b.slice(wide, starts=(0, 0), steps=(1, 1), sizes=x.shape), axis=1)
    return first, b.add(b.tanh(first), part)


@TARGETS
@pytest.mark.parametrize("build", [dropout, chain, siblings, elsewhere, between, early, late])
def test_memory_does_not_grow(build: Callable[..., Any], target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joining increases neither the memory held nor the bytes that kernels read and write."""
    graph = graph_of(build, (64, 64))
    together = compile_graph(graph, target())
    monkeypatch.setattr("singe.compiler.fuse.joined", lambda graph, groups, max_ports: list(groups))
    apart = compile_graph(graph, target())
    assert together.peak({}) <= apart.peak({})
    assert moved(together) <= moved(apart)


def moved(program: ProgramData) -> int:
    return sum(program.buffers[k].bytes for g in program.groups if g.head >= 0 for k in g.reads)  # pyright: ignore[reportReturnType]
