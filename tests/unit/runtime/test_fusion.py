"""Fusion runs live values together, once, through the device that it wraps; training steps are compiled once."""

from __future__ import annotations

import gc
import time
import tracemalloc
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS

import singe as sg
from singe.awaitables import MaybeAwaitable
from singe.compiler.array_target import ARRAYS
from singe.graph import Builder, Graph, gradient
from singe.graph.structure import structure
from singe.program.program import ProgramData
from singe.runtime.backend import Executable
from singe.runtime.decorators import Decorator, fusion
from singe.runtime.device import Build, Device
from singe.runtime.eager import EagerDevice
from singe.runtime.numpy_backend import NumpyBackend
from singe.tensors.tracing import trace_call


@pytest.fixture
def eager(device_name: str) -> EagerDevice:
    """A device with no compiled Programs."""
    found = sg.device(device_name)
    assert isinstance(found, EagerDevice)
    return EagerDevice(found.backend)


class Recording(Decorator):
    """A device that records the Graphs that it runs, and counts the Programs that it prepares."""

    def __init__(self, inner: Device) -> None:
        super().__init__(inner)
        self.graphs: list[Graph] = []
        self.prepared = 0

    def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        self.graphs.append(graph)
        return super().run(graph, values)

    def prepare(self, program: ProgramData) -> Executable:
        self.prepared += 1
        return super().prepare(program)


class Remote(Device):
    """A device that shares no code with ours: its values are indices into a table of arrays."""

    class Ticket:
        def __init__(self, number: int, array: Any) -> None:
            self.number, self.shape, self.dtype = number, array.shape, array.dtype

    def __init__(self, there: EagerDevice) -> None:
        self.there = there
        self.lock = there.lock
        self.table: dict[int, Any] = {}

    name = "remote"  # pyright: ignore[reportAssignmentType]
    target = ARRAYS  # pyright: ignore[reportAssignmentType]

    def _held(self, array: Any) -> Remote.Ticket:
        self.table[len(self.table)] = array
        return self.Ticket(len(self.table) - 1, array)

    def upload(self, array: np.ndarray) -> Remote.Ticket:
        return self._held(self.there.upload(array))

    def fetch(self, value: Remote.Ticket) -> MaybeAwaitable[np.ndarray]:
        return self.there.fetch(self.table[value.number])

    def apply(self, build: Build, values: Sequence[Remote.Ticket]) -> tuple[Remote.Ticket, ...]:
        return tuple(map(self._held, self.there.apply(build, [self.table[v.number] for v in values])))

    def run(self, graph: Graph, values: Sequence[Remote.Ticket]) -> tuple[Remote.Ticket, ...]:
        return tuple(map(self._held, self.there.run(graph, [self.table[v.number] for v in values])))

    def synchronize(self) -> None:
        self.there.synchronize()

    def describe(self) -> Mapping[str, Any]:
        return {"remote": True}

    def prepare(self, program: ProgramData) -> Executable:
        raise sg.DeviceError("no Programs here")


# --- a training step, written with Tensors ----------------------------------------------------------------------------

BATCH, CLASSES, CHANNELS, SIDE = 16, 10, 4, 8
Weights = dict[str, Any]


def initial() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"conv": (CHANNELS, 1, 3, 3), "linear": (CHANNELS * SIDE * SIDE // 4, CLASSES), "bias": (CLASSES,)}
    weights = {k: (rng.normal(size=s) * 0.2).astype(np.float32) for k, s in shapes.items()}
    return weights | {f"{k}.moment": np.zeros(s, np.float32) for k, s in shapes.items()}


def batches(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Batches of pictures, each of which has one bright quarter, its class."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(count):
        classes = rng.integers(0, 4, BATCH)
        x = rng.normal(size=(BATCH, 1, SIDE, SIDE)).astype(np.float32) * 0.3
        for k, c in enumerate(classes):
            x[k, 0, c // 2 * 4 : c // 2 * 4 + 4, c % 2 * 4 : c % 2 * 4 + 4] += 1
        found.append((x, np.eye(CLASSES, dtype=np.float32)[classes]))
    return found


def step(w: Weights, x: Any, wanted: Any, rate: float = 0.2) -> tuple[Any, Weights]:
    """The loss of a CNN, and its weights after a step of gradient descent with momentum;
    gradients are written by hand."""
    h = x.conv(w["conv"], padding=1)
    flat = h.relu().avg_pool(2).reshape(BATCH, -1)
    logits = flat @ w["linear"] + w["bias"]
    p = logits.log_softmax(-1)
    loss = -(p * wanted).sum() / BATCH
    dlogits = (p.exp() - wanted) / BATCH
    dpooled = (dlogits @ w["linear"].T).reshape(BATCH, CHANNELS, SIDE // 2, SIDE // 2)
    dh = dpooled.interpolate(scale=2) * 0.25 * (h > 0).cast("float32")
    gradients = {
        "conv": x.transpose(1, 0, 2, 3).conv(dh.transpose(1, 0, 2, 3), padding=1).transpose(1, 0, 2, 3),
        "linear": flat.T @ dlogits,
        "bias": dlogits.sum(0),
    }
    moments = {k: w[f"{k}.moment"] * 0.9 + g for k, g in gradients.items()}
    return loss, {k: w[k] - m * rate for k, m in moments.items()} | {f"{k}.moment": m for k, m in moments.items()}


def trained(device: Device, steps: int) -> tuple[list[float], list[float], Weights]:
    """The losses of some training steps (nothing else is read), the seconds of each step, and the final weights."""
    w: Weights = {k: sg.tensor(a, device=device) for k, a in initial().items()}
    losses, seconds = [], []
    for x, wanted in batches(steps):
        start = time.perf_counter()
        loss, w = step(w, sg.tensor(x, device=device), sg.tensor(wanted, device=device))
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return losses, seconds, w


@pytest.mark.slow
@RUNNERS
def test_a_training_step_is_one_graph_that_is_compiled_once(eager: EagerDevice) -> None:
    recording = Recording(eager)
    losses, _, w = trained(sg.Fusion(recording), 20)
    assert len(recording.graphs) == 20
    assert len(eager._programs) == 1
    wanted, _, reference = trained(sg.Numpy(), 20)
    np.testing.assert_allclose(losses, wanted, rtol=1e-3, atol=1e-5)
    assert losses[-1] < losses[0] / 100
    for name, t in w.items():
        np.testing.assert_allclose(t.numpy(), reference[name].numpy(), atol=1e-4, err_msg=name)
    assert len(recording.graphs) == 20, "the weights were computed with the loss"
    assert {len(g.outputs) for g in recording.graphs} == {1 + len(w)}, "intermediates got memory of their own"


@pytest.mark.slow
@RUNNERS
def test_training_steps_take_flat_time_and_memory(eager: EagerDevice) -> None:
    class Counting(Decorator):
        """A device that counts the values that are alive when a Graph is run."""

        def __init__(self, inner: Device) -> None:
            super().__init__(inner)
            self.made: list[weakref.ref[Any]] = []
            self.alive: list[int] = []

        def upload(self, array: np.ndarray) -> Any:
            value = super().upload(array)
            self.made.append(weakref.ref(value))
            return value

        def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
            found = super().run(graph, values)
            self.made = [v for v in self.made if v() is not None] + [weakref.ref(v) for v in found]
            self.alive.append(len(self.made))
            return found

    counting = Counting(eager)
    _, seconds, _ = trained(sg.Fusion(counting), 100)
    assert len(eager._programs) == 1
    assert max(counting.alive[50:]) <= max(counting.alive[:10])
    # A past that grew would make the last steps cost 20 times the first; a busy machine makes some cost twice as much.
    assert min(seconds[70:]) < 4 * min(seconds[1:10])

    tracemalloc.start()
    held = []
    for _ in range(4):
        trained(sg.Fusion(counting), 20)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # The first round fills caches, and a table of the process may grow in one of the others; the nodes of 20 steps, if they
    # were kept, would be more than this in every round.
    assert min(after - before for before, after in pairwise(held)) < 20_000, held


@pytest.mark.slow
@RUNNERS
def test_gradients_that_are_derived_are_those_by_hand(eager: EagerDevice) -> None:
    """The Graph of a traced function's gradients is run as any other: by a device, lazy or not."""
    (x, wanted), w = batches(1)[0], initial()
    names = ["conv", "linear", "bias"]

    def loss_of(x: Any, wanted: Any, *weights: Any) -> Any:
        given = dict(zip(names, weights, strict=True)) | {f"{k}.moment": sg.zeros(1) for k in names}
        return step(given, x, wanted)[0]

    traced = trace_call(loss_of, [x, wanted, *(w[k] for k in names)])
    b = Builder()
    found = tuple(gradient(traced, b, [b.const(np.ones((), np.float32))], traced.inputs[2:]))
    graph = Graph(traced.inputs, (*traced.outputs, *found), ("loss", *names))

    by_hand = step({k: sg.tensor(a) for k, a in w.items()}, sg.tensor(x), sg.tensor(wanted))
    for device in (eager, sg.Fusion(eager)):
        loss, *gradients = device.run(graph, [device.upload(a) for a in (x, wanted, *(w[k] for k in names))])
        np.testing.assert_allclose(device.download(loss), by_hand[0].numpy(), rtol=1e-5)
        for name, value in zip(names, gradients, strict=True):
            np.testing.assert_allclose(device.download(value), by_hand[1][f"{name}.moment"].numpy(), atol=1e-5)


# --- which ops run, and when ------------------------------------------------------------------------------------------

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def recording() -> Recording:
    return Recording(EagerDevice(NumpyBackend()))


def test_what_is_live_beside_a_value_is_computed_with_it(recording: Recording) -> None:
    x = sg.tensor(A, device=sg.Fusion(recording))
    h = (x + 1).exp()
    y, z = h.sum(), h * 2
    assert not recording.graphs
    np.testing.assert_allclose(y.numpy(), np.exp(A + 1).sum(), rtol=1e-6)
    np.testing.assert_allclose(z.numpy(), np.exp(A + 1) * 2, rtol=1e-6)
    np.testing.assert_allclose(h.numpy(), np.exp(A + 1), rtol=1e-6)
    (graph,) = recording.graphs
    assert len(graph.outputs) == 3


def test_what_nobody_holds_is_no_result(recording: Recording) -> None:
    x = sg.tensor(A, device=sg.Fusion(recording))
    h = (x + 1).exp()
    y = h.sum()
    del h
    y.numpy()
    assert [n.op for n in recording.graphs[0].outputs] == ["reshape"]


def test_what_shares_only_computed_values_stays_pending(recording: Recording) -> None:
    x = sg.tensor(A, device=sg.Fusion(recording))
    y, z = x + 1, x * 2
    y.numpy()
    assert [len(g.outputs) for g in recording.graphs] == [1]
    z.numpy()
    assert len(recording.graphs) == 2


def test_equal_work_is_compiled_once(recording: Recording) -> None:
    device = sg.Fusion(recording)
    for k in range(5):
        x = sg.tensor(A + k, device=device)
        np.testing.assert_array_equal(((x + 1) * np.float32(3)).numpy(), (A + k + 1) * 3)
    assert len(recording.graphs) == 5
    assert recording.prepared == 0, "the device inside compiles for itself"
    assert len(recording.inner._programs) == 1  # pyright: ignore[reportAttributeAccessIssue]


def test_a_chain_that_nobody_reads_is_run_in_pieces(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "MAX_PENDING_CHAIN", 100)
    x = sg.tensor(np.zeros(2, np.float32), device=sg.Fusion(recording))
    for _ in range(210):
        x = x + 1
    assert len(recording.graphs) == 2
    assert x.tolist() == [210] * 2


def test_an_error_of_what_nobody_asked_for_waits_until_somebody_does() -> None:
    class Lacking(Decorator):
        def run(self, graph: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
            if "sin" in graph.ops():
                raise sg.CompileError("there is no sin here")
            return super().run(graph, values)

    x = sg.tensor(A, device=sg.Fusion(Lacking(sg.Numpy())))
    h = x + 1
    y, z = h.sin(), h * 2
    np.testing.assert_array_equal(z.numpy(), (A + 1) * 2)
    with pytest.raises(sg.CompileError, match="no sin"):
        y.numpy()


ORDERS: dict[str, Callable[[], Device]] = {
    "recording outside": lambda: Recording(sg.Fusion(sg.Numpy())),
    "recording inside": lambda: sg.Fusion(Recording(sg.Numpy())),
    "lazy twice": lambda: sg.Fusion(sg.Fusion(sg.Numpy())),
    "on a device of another kind": lambda: sg.Fusion(Remote(EagerDevice(NumpyBackend()))),
}


@pytest.mark.parametrize("order", ORDERS)
def test_decorators_compose(order: str) -> None:
    device = ORDERS[order]()
    x = sg.tensor(A, device=device)
    y = x @ x.T
    np.testing.assert_array_equal(y.numpy(), A @ A.T)
    np.testing.assert_array_equal((y.relu() + y).numpy(), A @ A.T * 2)
    device.synchronize()
    if not isinstance(device.eager, Remote):
        program = sg.compile(lambda a: a * 2, A, device=device)
        np.testing.assert_array_equal(program(A), A * 2)


def test_a_recording_device_sees_every_run_of_tensors_and_every_program_of_models(recording: Recording) -> None:
    device = sg.Fusion(recording)
    x = sg.tensor(A, device=device)
    for k in range(3):
        (x + k).numpy()
    assert len(recording.graphs) == 3
    np.testing.assert_array_equal(sg.Model.of(lambda x: x + 1, {"x": ("N", 3)}, device)(A), A + 1)
    assert recording.prepared == 1


def test_the_key_of_a_graph_tells_graphs_apart() -> None:
    def key(function: Callable[..., Any], shape: tuple[int, ...] = (2, 3)) -> Any:
        return structure(trace_call(function, [np.zeros(shape, np.float32)]))

    large = np.ones((50, 50), np.float32)
    other = large.copy()
    other[49, 49] = 2
    functions: list[Callable[..., Any]] = [
        lambda x: x + 1, lambda x: x + 2, lambda x: x * 2, lambda x: x.sum(0), lambda x: x.sum(1), lambda x: (x + 1, x * 2),
        lambda x: (x * 2, x + 1), lambda x: sg.tensor(large) * x.sum(), lambda x: sg.tensor(other) * x.sum(),
    ]  # fmt: skip
    keys = [key(f) for f in functions] + [key(functions[0], (3, 2))]
    assert len(set(keys)) == len(keys)
    assert keys[:-1] == [key(f) for f in functions]
