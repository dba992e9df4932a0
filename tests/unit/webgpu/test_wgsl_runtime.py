"""The webgpu backend apart from kernels: memory, plans, limits, error messages."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from singe.compiler.schedule.steps import Copy, Dispatch, Step, words_of
from singe.dtypes import float16, float32
from singe.errors import DeviceError, DeviceLost, InputError, ShapeError
from singe.program.container import ALIGN
from singe.program.plan import Plan
from singe.program.program import Buffer, Check, Code, Host, ProgramData, Variant
from singe.runtime.backend import Backend
from singe.runtime.memory.settings import Memory
from singe.shapes import size

pytest.importorskip("wgpu", reason="wgpu is not installed")
from wgsl_checks import own_gpu

from singe_gpu.device import recording
from singe_gpu.device.memory import Binding, Launch
from singe_gpu.device.pool import ExclusiveBuffers, Pool, SlotBuffers, size_class
from singe_gpu.device.recording import spread
from singe_gpu.device.runtime import MAX_RECORDINGS
from singe_webgpu.device.native import _MAX_UNUSED_PIPELINES, NativeGpu, WebGpuBackend

ADD = """
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
@group(0) @binding(3) var<uniform> sizes: array<vec4<i32>, 1>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let point = i32((group.x + group.y * groups.x) * 64u + lane);
  if (point >= sizes[0].x) { return; }
  b2[point] = b0[point] + b1[point % 4i];
}
"""


@pytest.fixture
def gpu() -> Iterator[WebGpuBackend]:
    with own_gpu() as backend:
        yield backend


def adding(code: str = ADD, checks: Sequence[Check] = ()) -> ProgramData:
    """y (N, 4) = (x + w0) + w1, through a slot; z is a copy of w1. checks: what a run requires before."""
    n = size("N")
    weights = np.zeros(2 * ALIGN, np.uint8)
    weights[:16] = np.array([1, 2, 3, 4], np.float32).view(np.uint8)
    weights[ALIGN : ALIGN + 16] = np.array([10, 20, 30, 40], np.float32).view(np.uint8)
    buffers = (
        Buffer("x", float32, (n, 4), 4, ("input", 0)),
        Buffer("w0", float32, (4,), 4, ("weights", 0)),
        Buffer("w1", float32, (4,), 4, ("weights", ALIGN)),
        Buffer("between", float32, (n, 4), 4, ("slot", 0)),
        Buffer("y", float32, (n, 4), 4, ("output", 0)),
        Buffer("z", float32, (4,), 4, ("output", 1)),
    )
    add = Code("add", "nest", 3, (n * 4,), (Variant("w0", groups=((n * 4 + 63) // 64, 1, 1)),))
    words = words_of([*checks, Dispatch(0, (0, 1, 3)), Dispatch(0, (3, 2, 4)), Copy(2, 5)], (add,), (0,))
    return ProgramData("wgsl", (0,), (4, 5), buffers, 1, (add,), *words, {"w0": code}, weights)


def answer(x: np.ndarray) -> np.ndarray:
    return x + np.array([11, 22, 33, 44], np.float32)


def test_a_program_runs_at_many_sizes(gpu: WebGpuBackend) -> None:
    assert isinstance(gpu, WebGpuBackend)
    backend: Backend = gpu
    executable = backend.prepare(adding())
    for n in (3, 0, 1000, 3, *range(1, MAX_RECORDINGS + 3)):
        x = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
        y, z = executable.run([backend.upload(x)])
        np.testing.assert_allclose(backend.download(y), answer(x), rtol=1e-6)
        np.testing.assert_array_equal(backend.download(z), [10, 20, 30, 40])
    assert executable.memory()["weights"] == 2 * ALIGN
    backend.synchronize()


def test_sizes_that_recur_are_recorded_once(gpu: WebGpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the parts of a conversation's context do, in each conversation."""
    made: list[Plan] = []
    monkeypatch.setattr(recording, "Plan", lambda *args: made.append(Plan(*args)) or made[-1])
    executable = gpu.prepare(adding())
    for n in 2 * list(range(960, 0, -64)):
        y, _ = executable.run([gpu.upload(np.full((n, 4), n, np.float32))])
        np.testing.assert_array_equal(gpu.download(y), answer(np.full((n, 4), n, np.float32)))
    assert len(made) == 15


def test_a_run_whose_checks_hold_is_recorded(gpu: WebGpuBackend) -> None:
    executable = gpu.prepare(adding(checks=[Check(size("N") - 2, "N must be at least 2")]))
    for n in (2, 3, 2, 3):
        x = gpu.upload(np.full((n, 4), n, np.float32))
        y, _ = executable.run([x])
        np.testing.assert_array_equal(gpu.download(y), answer(np.full((n, 4), n, np.float32)))
    assert [recording.plan.is_straight for recording in executable._recordings] == [True, True]
    with pytest.raises(ShapeError, match="N must be at least 2"):
        executable.run([gpu.upload(np.ones((1, 4), np.float32))])


def test_a_run_that_recurs_is_encoded_while_the_one_before_works(
    gpu: WebGpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(gpu.gpu, NativeGpu)
    executable = gpu.prepare(adding())
    sent: list[object] = []
    encode = gpu.gpu._encode
    monkeypatch.setattr(gpu.gpu, "_encode", lambda commands: sent.append(commands) or encode(commands))
    for k in range(5):
        x = gpu.upload(np.full((5, 4), k, np.float32))
        y, _ = executable.run([x])
        submitted = len(sent)
        np.testing.assert_array_equal(gpu.download(y), answer(np.full((5, 4), k, np.float32)))
        assert submitted == len(sent) - 1  # to read it
        del x, y, _
    assert len(sent) == 1 + 2 + 1 + 1 + 1 + 5  # two at the second run, and each reading


def test_a_loop_neither_allocates_nor_binds_anew(gpu: WebGpuBackend) -> None:
    executable = gpu.prepare(adding())
    x = gpu.upload(np.ones((500, 4), np.float32))
    kept = executable.run([x])
    for _ in range(3):
        kept = executable.run([x])
    before, bind = gpu.pool.reserved, gpu.gpu.bind
    bound: list[object] = []
    gpu.gpu.bind = lambda *args: bound.append(args) or bind(*args)  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(10):
        kept = executable.run([x])
    assert gpu.pool.reserved == before
    assert not bound
    np.testing.assert_array_equal(gpu.download(kept[0]), answer(np.ones((500, 4), np.float32)))


@pytest.mark.slow
def test_arrays_give_their_buffers_back(gpu: WebGpuBackend) -> None:
    first = gpu.upload(np.zeros(1000, np.float32))
    buffer = first.piece.buffer
    del first
    gc.collect()
    assert gpu.upload(np.zeros(990, np.float32)).piece.buffer is buffer


def test_a_slot_that_cannot_grow_shares_its_buffer_with_no_array(gpu: WebGpuBackend) -> None:
    slots = SlotBuffers(gpu.pool)
    slots.grow(0, 4000)
    gpu.gpu.limits = replace(gpu.gpu.limits, buffer=1 << 20)
    with pytest.raises(DeviceError, match=r"slot 0 .* holds at most 1048576"):
        slots.grow(0, 1 << 21)
    assert gpu.upload(np.zeros(1000, np.float32)).piece.buffer is not slots[0].buffer
    assert not slots.fit([4000])


def test_a_pool_counts_what_it_holds(gpu: WebGpuBackend) -> None:
    """Also where the device's limit is below the class of a size."""
    limit = 100_100
    assert size_class(limit) > limit
    gpu.gpu.limits = replace(gpu.gpu.limits, buffer=limit)
    pool = Pool(gpu.gpu)
    piece = pool.take(limit, "an array")
    assert pool.reserved == piece.size == limit
    pool.give(piece)
    assert pool.reserved == limit
    assert pool.take(limit, "an array").buffer is piece.buffer
    full = Pool(gpu.gpu, Memory(keep=0))
    full.give(full.take(limit, "an array"))
    assert full.reserved == 0


@pytest.mark.slow
def test_finalizers_leave_everything_as_it_is_until_memory_is_next_taken(gpu: WebGpuBackend) -> None:
    """The collector may run them in the middle of a change."""
    array, executable = gpu.upload(np.zeros(1000, np.float32)), gpu.prepare(adding())
    executable.run([gpu.upload(np.zeros((5, 4), np.float32))])
    gpu.upload(np.zeros(0, np.float32))
    freed: list[object] = []
    gpu.gpu.free = freed.append
    arrays = gpu.pool._arrays
    assert isinstance(arrays, ExclusiveBuffers)
    idle, held = arrays._idle_bytes, len(gpu.uploads._held)
    del array, executable
    gc.collect()
    assert (arrays._idle_bytes, len(gpu.uploads._held), freed) == (idle, held, [])
    gpu.upload(np.zeros(0, np.float32))
    assert arrays._idle_bytes > idle
    assert len(gpu.uploads._held) < held
    assert freed


@pytest.mark.slow
def test_reading_a_large_array_leaves_no_memory_taken(gpu: WebGpuBackend) -> None:
    assert isinstance(gpu.gpu, NativeGpu)
    for _ in range(2):
        x = np.arange(1 << 22, dtype=np.float32)
        np.testing.assert_array_equal(gpu.download(gpu.upload(x)), x)
        assert sum(size * len(kept) for size, kept in gpu.gpu._staging.items()) < x.nbytes


@pytest.mark.slow
def test_a_pipeline_goes_a_while_after_the_programs_that_run_it(gpu: WebGpuBackend) -> None:
    first, second = gpu.prepare(adding()), gpu.prepare(adding())
    assert first.kernels.pipelines[0] is second.kernels.pipelines[0]
    pipeline = weakref.ref(first.kernels.pipelines[0])
    del first
    others = [f"{ADD}// {k}" for k in range(_MAX_UNUSED_PIPELINES)]
    gpu.gpu.pipelines(others)
    assert pipeline() is not None
    del second
    gc.collect()
    assert pipeline() is None
    assert gpu.gpu.pipelines(others[-1:]) == gpu.gpu.pipelines(others[-1:])


def test_size_classes_waste_little() -> None:
    for count in (0, 1, 255, 256, 257, 5000, 10**6, 123456789):
        assert count <= size_class(count) <= max(512, 1.26 * count)
        assert size_class(count) % ALIGN == 0


def test_weights_are_cut_where_a_buffer_is_too_small(gpu: WebGpuBackend) -> None:
    gpu.gpu.limits = replace(gpu.gpu.limits, buffer=ALIGN)
    executable = gpu.prepare(adding())
    assert len(executable.weights._parts) == 2
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(gpu.download(executable.run([gpu.upload(x)])[0]), answer(x))


@pytest.mark.parametrize("method", ["allocate", "write"])
def test_weights_that_do_not_all_fit_are_let_go(
    gpu: WebGpuBackend, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu.gpu.limits = replace(gpu.gpu.limits, buffer=ALIGN)
    made: list[object] = []
    allocate, free = gpu.gpu.allocate, gpu.gpu.free
    monkeypatch.setattr(gpu.gpu, "allocate", lambda size: made.append(buffer := allocate(size)) or buffer)
    monkeypatch.setattr(gpu.gpu, "free", lambda buffer: made.remove(buffer) or free(buffer))
    plain, calls = getattr(gpu.gpu, method), []

    def second_fails(*given: object) -> object:
        calls.append(given)
        if len(calls) >= 2:
            raise DeviceError("there is no memory")
        return plain(*given)

    monkeypatch.setattr(gpu.gpu, method, second_fails)
    with pytest.raises(DeviceError, match="no memory"):
        gpu.prepare(adding())
    gpu.pool.reclaim()
    assert not made
    assert not gpu.uploads._held


def test_limits_are_errors_with_both_numbers(gpu: WebGpuBackend) -> None:
    executable = gpu.prepare(adding())
    gpu.gpu.limits = replace(gpu.gpu.limits, binding=1024)
    with pytest.raises(DeviceError, match=r"16000 bytes .* at most 1024"):
        executable.run([gpu.upload(np.zeros((1000, 4), np.float32))])
    gpu.gpu.limits = replace(gpu.gpu.limits, buffer=4096)
    with pytest.raises(DeviceError, match=r"8000 bytes .* at most 4096"):
        gpu.upload(np.zeros(2000, np.float32))


def test_groups_arespread_over_x_and_y(gpu: WebGpuBackend) -> None:
    assert spread((70000, 1, 1), 65535, "add") == (35000, 2, 1)
    with pytest.raises(DeviceError, match="at most 16"):
        spread((1000, 1, 1), 16, "add")
    gpu.gpu.limits = replace(gpu.gpu.limits, groups=7)
    x = np.ones((300, 4), np.float32)
    np.testing.assert_array_equal(gpu.download(gpu.prepare(adding()).run([gpu.upload(x)])[0]), answer(x))


def test_wrong_inputs_are_named(gpu: WebGpuBackend) -> None:
    executable = gpu.prepare(adding())
    with pytest.raises(InputError, match="takes 1 inputs, got 0"):
        executable.run([])
    with pytest.raises(InputError, match="'x': got int32, expected float32"):
        executable.run([gpu.upload(np.zeros((1, 4), np.int32))])
    with pytest.raises(ShapeError, match="'x'"):
        executable.run([gpu.upload(np.zeros((1, 5), np.float32))])


def test_bad_shaders_show_their_line(gpu: WebGpuBackend) -> None:
    with pytest.raises(DeviceError, match=r"line 12:   b2\[point\] = b0\[point\] \* true;"):
        gpu.prepare(adding(ADD.replace("b0[point] + b1[point % 4i]", "b0[point] * true")))


def doing(program: ProgramData, step: Step) -> ProgramData:
    """The Program with this step alone."""
    words, counts, stops = words_of([step], program.kernels, range(len(program.kernels)))
    return replace(program, words=words, counts=counts, stops=stops)


def test_what_cannot_run_is_refused(gpu: WebGpuBackend) -> None:
    program = adding()
    with pytest.raises(DeviceError, match="target 'wgsl'"):
        gpu.prepare(replace(program, target="wasm"))
    needy = replace(program.kernels[0], variants=(replace(program.kernels[0].variants[0], requires=("warp-drive",)),))
    with pytest.raises(DeviceError, match="requires warp-drive"):
        gpu.prepare(replace(program, kernels=(needy,)))
    x = gpu.upload(np.zeros((1, 4), np.float32))
    with pytest.raises(DeviceError, match="op 'levitate' on the host"):
        gpu.prepare(doing(program, Host("levitate", {}, (0,), (4,)))).run([x])
    with pytest.raises(DeviceError, match="through two bindings"):
        gpu.prepare(doing(program, Dispatch(0, (3, 1, 3)))).run([x])


def test_an_odd_number_of_halves_is_copied_whole(gpu: WebGpuBackend) -> None:
    n = size("N")
    buffers = (Buffer("x", float16, (n,), 2, ("input", 0)), Buffer("y", float16, (n,), 2, ("output", 0)))
    program = ProgramData(
        "wgsl", (0,), (1,), buffers, 0, (), *words_of([Copy(0, 1)], (), ()), {}, np.zeros(0, np.uint8)
    )
    x = np.arange(7, dtype=np.float16)
    np.testing.assert_array_equal(gpu.download(gpu.prepare(program).run([gpu.upload(x)])[0]), x)


def test_disposing_frees_everything(gpu: WebGpuBackend) -> None:
    executable = gpu.prepare(adding())
    executable.run([gpu.upload(np.zeros((5, 4), np.float32))])
    executable.dispose()
    assert executable.memory() == {"weights": 0, "shared": 0, "scratch": 0, "states": 0}


def test_what_a_run_does_wrong_is_an_error_and_the_next_one_runs(gpu: WebGpuBackend) -> None:
    assert isinstance(gpu.gpu, NativeGpu)
    (pipeline,) = gpu.gpu.pipelines([ADD])
    buffers = [gpu.gpu.allocate(256) for _ in range(4)]
    bound = gpu.gpu.bind(pipeline, [Binding(buffer, 0, 256) for buffer in buffers])
    with pytest.raises(DeviceError, match="70000"):
        gpu.gpu.submit([Launch(pipeline, bound, (1, 1, 1)), Launch(pipeline, bound, (70_000, 1, 1))])
    gpu.gpu.write(buffers[0], 0, np.ones(4, np.float32).view(np.uint8))
    gpu.gpu.write(buffers[3], 0, np.array([4], np.int32).view(np.uint8))
    gpu.gpu.submit([Launch(pipeline, bound, (1, 1, 1))])
    np.testing.assert_array_equal(gpu.gpu.read(buffers[2], 16).view(np.float32), np.ones(4, np.float32))


def test_a_lost_device_says_so(gpu: WebGpuBackend) -> None:
    executable = gpu.prepare(adding())
    x = gpu.upload(np.zeros((5, 4), np.float32))
    assert isinstance(gpu.gpu, NativeGpu)
    gpu.gpu.device.destroy()
    with pytest.raises(DeviceLost):
        gpu.download(executable.run([x])[0])


def test_the_device_describes_itself(gpu: WebGpuBackend) -> None:
    told = gpu.describe()
    assert told["backend"] == "webgpu"
    assert told["adapter"]
    assert told["limits"]["binding"] >= 128 << 20
