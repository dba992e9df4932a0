"""What `singe bench` measures: times add up and belong to the right steps; traces."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from networks.graphs import two_layers
from traces import check_trace

import singe as sg
from singe.dtypes import bool_, float16, float32, int64
from singe.errors import DeviceError, InputError
from singe.graph import Builder, Graph
from singe.model import profiling
from singe.model.arguments import TensorSpec
from singe.model.model import Model
from singe.model.profiling import Profile, profile, trace_data
from singe.model.program import Program
from singe.ops import find_row
from singe.program.program import ProgramData
from singe.runtime.backend import Backend, Executable, Span, TimedExecutable, Timeline
from singe.runtime.device import Device
from singe.runtime.devices import device as open_device
from singe.runtime.eager import EagerDevice
from singe.shapes import known, product, size
from singe.tools.measuring import bench
from singe.tools.measuring.bench import (
    gemm,
    kept_seconds,
    peaks,
    random_arrays,
    random_inputs,
    time_model,
    timed_seconds,
    timing_data,
)
from singe.tools.measuring.profiling import Peaks, describe_profile, profile_data

NAMES = ("numpy", "wasm", "webgpu")
PEAKS = Peaks(2e12, 1e11, "a product of 64³", 1 << 20)
ROWS = 5


@pytest.fixture(params=NAMES)
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn; a missing device is a visible skip."""
    try:
        return open_device(request.param)
    except DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")


@pytest.fixture
def runnable(device: Device) -> Program:
    return Model(two_layers(), device).program()


@pytest.fixture
def given() -> list[np.ndarray]:
    return [np.random.default_rng(1).standard_normal((ROWS, 16)).astype(np.float32)]


def working(program: ProgramData) -> list[int]:
    """The positions of the groups that have work for ROWS: a product's code for other sizes has no workgroups."""
    groups = [product(code.variants[-1].groups) for code in program.kernels]
    return [g.at for g in program.steps if g.head < 0 or known(groups[g.head], {"N": ROWS})]


# --- timed runs -------------------------------------------------------------------------------------------------------


def backend_of(runnable: Program) -> Backend:
    on = runnable.device.eager
    assert isinstance(on, EagerDevice)
    return on.backend


def timed(runnable: Program, given: list[np.ndarray]) -> Timeline:
    executable: Executable = runnable.executable
    assert isinstance(executable, TimedExecutable)
    return executable.profile([backend_of(runnable).upload(a) for a in given])


def check_timeline(runnable: Program, given: list[np.ndarray], found: Timeline) -> None:
    """Check that each step is timed once, in order, inside the run, and that the outputs are those of a plain run."""
    assert [s.at for s in found.spans] == working(runnable.data)
    assert all(s.seconds >= 0 and s.overhead >= 0 and s.start >= 0 for s in found.spans)
    assert 0 < sum(s.seconds + s.overhead for s in found.spans) <= found.seconds
    starts = [s.start for s in found.spans]
    assert starts == sorted(starts)
    for array, wanted in zip(found.outputs, runnable.run(given), strict=True):
        np.testing.assert_array_equal(backend_of(runnable).download(array), wanted)


def test_a_timed_run_times_each_step_and_answers_alike(runnable: Program, given: list[np.ndarray]) -> None:
    found = timed(runnable, given)
    check_timeline(runnable, given, found)
    assert found.clock


def test_a_gpu_without_timestamps_is_timed_dispatch_by_dispatch(
    given: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    native = pytest.importorskip("singe_webgpu.device.native", reason="wgpu is not installed")
    runnable = Model(two_layers(), on_webgpu()).program()
    monkeypatch.setattr(backend_of(runnable).gpu, "has_timestamps", False)  # pyright: ignore
    found = timed(runnable, given)
    check_timeline(runnable, given, found)
    assert "empty submit" in found.clock
    assert all(s.overhead > 0 for s in found.spans)
    assert native._SUBMITS_TO_TIME > 1


def on_webgpu() -> Device:
    try:
        return open_device("webgpu")
    except DeviceError as e:
        pytest.skip(f"no webgpu here: {e}")


def test_timestamps_of_many_dispatches_lie_in_several_sets(
    given: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    native = pytest.importorskip("singe_webgpu.device.native", reason="wgpu is not installed")
    runnable = Model(two_layers(), on_webgpu()).program()
    if not runnable.device.backend.gpu.has_timestamps:  # pyright: ignore
        pytest.skip("this adapter has no timestamp queries")
    monkeypatch.setattr(native, "_MAX_QUERIES", 4)
    assert len(working(runnable.data)) > 2
    check_timeline(runnable, given, timed(runnable, given))


def test_the_cost_of_a_call_into_wasmtime_is_told_apart(given: list[np.ndarray]) -> None:
    native = pytest.importorskip("singe_wasm.native", reason="wasmtime is not installed")
    runnable = Model(two_layers(), "wasm").program()
    found = timed(runnable, given)
    engine = runnable.device.backend.engine  # pyright: ignore
    assert isinstance(engine, native.WasmtimeEngine)
    assert engine.calls is None, "a plain run after a timed one keeps no times"
    assert engine.call_seconds(3) > 0
    for span in found.spans:
        assert (span.overhead > 0) == (runnable.data.words[span.at] >= 0)


# --- profiles ---------------------------------------------------------------------------------------------------------


def test_a_profile_adds_up_to_the_run(runnable: Program, given: list[np.ndarray]) -> None:
    told: list[int] = []
    found = profile(runnable, given, 4, told.append)
    assert told == [0, 1, 2, 3, 4]
    assert found.runs == 4
    assert found.device == runnable.device.name
    assert set(found.rest) == set(profiling.REST)
    total = sum(k.seconds for k in found.kernels) + sum(found.rest.values())
    assert total == pytest.approx(found.seconds, rel=1e-9)
    assert [k.seconds for k in found.kernels] == sorted((k.seconds for k in found.kernels), reverse=True)
    assert sum(k.calls for k in found.kernels) == len(working(runnable.data))


@pytest.mark.parametrize("taken", [True, False])
def test_a_profile_counts_what_runs_in_branches_and_loops(device: Device, taken: bool) -> None:
    """A loop of three turns that doubles, then exp or a sine of what is not zero."""
    b = Builder()
    flag, x = b.input("flag", (), bool_), b.input("x", (6,), float32)
    v = b.input("v", (6,), float32)
    body = b.graph((v,), (b.const(True), b.add(v, v)))
    many = b.loop(x, body=body, carried=1, conditional=False, count=3)
    some = b.compress(many, b.less(b.const(0.0), many), axis=0)
    w = b.input("w", some.shape, float32)
    y = b.apply(find_row("if"), flag, some, then=b.graph((w,), (b.exp(w),)), otherwise=b.graph((w,), (b.sin(w),)))
    runnable = Model(Graph((flag, x), (y,), ("y",), b.size_nodes), device).program()
    given = [np.array(taken), np.array([0, 1, 2, 0, 3, 4], np.float32)]
    timeline = timed(runnable, given)
    np.testing.assert_allclose(device.download(timeline.outputs[0]), runnable.run(given)[0])
    assert 4 in timeline.sizes.values()
    assert {s.at for s in timeline.spans} <= {g.at for g in runnable.data.steps}
    kernels = profile(runnable, given, 1).kernels
    assert [k.calls for k in kernels if k.label == "add"] == [3]
    assert [k.label for k in kernels if k.label in ("exp", "sin")] == ["exp" if taken else "sin"]


def test_equal_steps_are_one_row_with_the_work_of_all(runnable: Program, given: list[np.ndarray]) -> None:
    found = profile(runnable, given, 1)
    products = [k for k in found.kernels if k.output == "(5, 16)" and (k.kind == "matmul" or k.label == "dot")]
    assert sum(k.calls for k in products) == 2
    for k in products:
        assert k.flops is not None
        assert k.flops >= k.calls * 2 * ROWS * 16 * 16
        assert k.bytes >= k.calls * 4 * (2 * ROWS * 16 + 16 * 16)
    code = runnable.data.kernels
    if code:
        uses = [head for at in working(runnable.data) if (head := runnable.data.words[at]) >= 0]
        assert sum(k.flops or 0 for k in found.kernels) == sum(known(code[u].flops, {"N": ROWS}) for u in uses)
        assert len([k for k in found.kernels if k.kind != "copy"]) == len(set(uses))


def test_zeros_around_an_input_are_no_operations() -> None:
    x, w = np.ones((1, 4, 6, 6), np.float32), np.ones((4, 4, 3, 3), np.float32)
    program = sg.compile(lambda x, w: sg.conv2d(x, w, padding=1), x, w, device="wasm")
    (conv,) = (k for k in profile(program, [x, w], 1).kernels if k.kind == "conv")
    assert conv.flops == 2 * 4 * 6 * 6 * 4 * 9


def test_a_profile_is_the_mean_of_the_faster_half(given: list[np.ndarray]) -> None:
    runnable = Model(two_layers(), "numpy").program()
    groups = runnable.data.steps
    steps = len(groups)

    def sample(each: float) -> profiling._Sample:
        spans = tuple(Span(g.at, k * each, each * 0.5, each * 0.25) for k, g in enumerate(groups))
        return profiling._Sample(0.1, Timeline([], steps * each, spans, "a made-up clock"), 0.2)

    samples = [sample(1.0), sample(3.0), sample(100.0)]
    found = profiling._summed(runnable, {"x": (ROWS, 16)}, samples)
    assert found.seconds == pytest.approx(0.3 + 2 * steps)
    assert sum(k.seconds for k in found.kernels) == pytest.approx(steps)
    expected = {"upload": 0.1, "calls": 0.5 * steps, "dispatch": 0.5 * steps, "readback": 0.2}
    assert found.rest == pytest.approx(expected)
    assert found.clock == "a made-up clock"


def test_a_device_that_cannot_time_its_steps_says_so(given: list[np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    runnable = Model(two_layers(), "numpy").program()

    class Plain:
        def run(self, inputs: Any) -> Any: ...
        def memory(self) -> Any: ...
        def dispose(self) -> None: ...

    monkeypatch.setattr(runnable, "executable", Plain())
    with pytest.raises(DeviceError, match="cannot time its steps"):
        profile(runnable, given, 1)


def test_the_table_shows_kernels_and_the_rest(runnable: Program, given: list[np.ndarray]) -> None:
    found = profile(runnable, given, 2)
    text = describe_profile(found, PEAKS)
    lines = text.splitlines()
    assert " ".join(lines[0].split()) == "kernel kind output calls ms share GFLOP GFLOP/s of peak GB/s of peak"
    for k in found.kernels:
        assert any(line.startswith(k.label) and k.output in line for line in lines)
    assert any(line.startswith("dispatch") for line in lines)
    assert any(line.startswith("together") and line.endswith("100.0%") for line in lines)
    assert "2.0 TFLOP/s (a product of 64³), 100.0 GB/s" in text
    short = describe_profile(found, PEAKS, most=1)
    assert f"{len(found.kernels) - 1} others" in short
    assert len(short.splitlines()) == len(lines) - (len(found.kernels) - 2)


def test_shares_of_peaks_are_rates_over_them() -> None:
    kernel = profiling.KernelTime("dot", "matmul", "(4, 4)", 2, 0.5, 10**12, 10**10)
    found = Profile("numpy", "a clock", 3, 1.0, (kernel,), {"upload": 0.5}, ())
    (data,) = profile_data(found, PEAKS)["kernels"]
    assert data["of_peak_flops"] == pytest.approx(1.0)
    assert data["of_peak_bytes"] == pytest.approx(0.2)
    assert data["share"] == pytest.approx(0.5)
    row = describe_profile(found, PEAKS).splitlines()[1].split()
    assert row[-8:] == ["2", "500.000", "50.0%", "1000.000", "2000.0", "100%", "20.0", "20%"]


# --- traces -----------------------------------------------------------------------------------------------------------


def test_a_trace_keeps_the_formats_rules(runnable: Program, given: list[np.ndarray]) -> None:
    found = profile(runnable, given, 2)
    events = check_trace(json.dumps(trace_data(found)))
    by_name = {e["name"]: e for e in events}
    run = by_name["run"]
    steps = [e for e in events if e["tid"] != run["tid"]]
    assert len(steps) == sum(k.calls for k in found.kernels)
    assert all(e["ts"] >= run["ts"] for e in steps)
    assert {e["name"] for e in steps} == {k.label for k in found.kernels}
    assert by_name["readback"]["ts"] == pytest.approx(run["ts"] + run["dur"])


# --- models and devices -----------------------------------------------------------------------------------------------


def test_a_model_is_timed(device: Device) -> None:
    model = Model(two_layers(), device)
    told: list[str] = []
    timing, runnable = time_model(model, random_inputs(model.inputs, 3), 0.5, "network", 7, told.append)
    assert runnable is model.program({"x": (3, 16)})
    assert len(timing.runs) == 7
    assert min(timing.runs) <= timing.quartiles[0] <= timing.median <= timing.quartiles[1] <= max(timing.runs)
    assert (timing.batch, timing.device, timing.load) == (3, device.name, 0.5)
    assert timing.memory["weights"] >= 2 * 16 * 16 * 4
    assert told[-1] == "run 7 of 7"
    data = timing_data(timing, None, None)
    assert data["items_per_second"] == pytest.approx(3 / timing.median)
    assert json.loads(json.dumps(data, default=str))["inputs"] == [{"name": "x", "dtype": "float32", "shape": [3, 16]}]


def test_without_a_number_runs_fill_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BUDGET", 1e-9)
    model = Model(two_layers(), "numpy")
    timing, _ = time_model(model, random_inputs(model.inputs, None), 0.0, "network")
    assert len(timing.runs) == bench.RUNS[0]
    assert timing.batch == 1


def test_random_inputs_fit_their_ports() -> None:
    ports = [TensorSpec("x", float32, (size("N"), 3)), TensorSpec("i", int64, (2,))]
    found = random_inputs(ports, 4)
    assert {k: (a.dtype, a.shape) for k, a in found.items()} == {"x": (np.float32, (4, 3)), "i": (np.int64, (2,))}
    assert 0 <= found["x"].min() <= found["x"].max() < 1
    assert set(found["i"].tolist()) <= {0, 1}
    with pytest.raises(InputError, match=r"--input-shape x=7x1$"):
        random_inputs([TensorSpec("x", float32, (7, size("H")))], None)
    with pytest.raises(InputError, match="no input has an open first dimension"):
        random_inputs([TensorSpec("x", float32, (1, 3))], 2)


def test_a_device_has_peaks(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "GEMMS", (64, 128))
    monkeypatch.setattr(bench, "COPIES", (1 << 20, 1 << 22))
    monkeypatch.setattr(bench, "SAMPLE", 0.001)
    found = peaks(device)
    assert found.gemm in ("a product of 64³", "a product of 128³")
    assert found.copied in (1 << 20, 1 << 22)
    assert 1e7 < found.flops < 1e15
    assert 1e7 < found.bytes < 1e14


@pytest.mark.slow
def test_products_of_odd_shapes_have_times(device: Device) -> None:
    for kind in (float32, float16):
        runnable = Model(gemm(197, 129, 131, kind), device).program()
        given = random_arrays(runnable)
        assert [(a.shape, a.dtype) for a in given] == [((197, 129), kind.numpy)]
        assert timed_seconds(runnable, given) > 0
        assert kept_seconds(runnable, given) > 0
