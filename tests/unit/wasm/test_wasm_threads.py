"""The threads that share a run of the backend "wasm" outside of pages."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.errors import DeviceError
from singe.runtime.eager import EagerDevice
from singe.time_limits import opened_for
from singe_wasm import printing, shared_calls
from singe_wasm.calls import PARTS_BITS
from singe_wasm.code.encode import Body, atomic, get_local, i32, integers, module, ops
from singe_wasm.shared_runs import shared_runs

pytest.importorskip("wasmtime", reason="wasmtime is not installed")
native = pytest.importorskip("singe_wasm.native")

BEGUN = 4096
"""The address of a word for each of two parts."""
PATIENCE = 1 << 30


@pytest.fixture
def shares_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are shared however short they are."""
    monkeypatch.setattr(printing, "MANY_TURNS", 0)
    monkeypatch.setattr(shared_calls, "CALL_US", 0)
    monkeypatch.setattr(shared_calls, "RUN_US", 0)


def opened(threads: int) -> EagerDevice:
    backend = native.WasmBackend()
    backend.engine.threads = threads
    return EagerDevice(backend)


def image_model(x: sg.Tensor, weights: sg.Tensor, square: sg.Tensor) -> tuple[sg.Tensor, ...]:
    y = sg.conv2d(x, weights, padding=1).relu()
    rows = y.reshape(y.shape[0], y.shape[1], -1).mean(axis=1) @ square
    return y, sg.softmax(rows, axis=-1), sg.sort(rows, axis=-1).values, rows.cumsum(axis=-1), rows.argmax(axis=-1)


def language_model(x: sg.Tensor, weights: sg.Tensor) -> tuple[sg.Tensor, ...]:
    y = x @ weights
    return sg.scaled_dot_product_attention(y, x, y), y.sum(axis=-1), sg.concat([x, y], axis=-1).transpose(0, 2, 1, 3)


CASES = {
    "image": (image_model, [(2, 5, 16, 16), (7, 5, 3, 3), (256, 33)]),
    "language": (language_model, [(1, 3, 19, 16), (16, 16)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_threads_answer_with_the_bits_of_one(case: str, threads: int, shares_all: None) -> None:
    function, shapes = CASES[case]
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    alone, together = (sg.compile(function, *given, device=opened(count)) for count in (1, threads))
    expected = alone(*given)
    for _ in range(20):
        for made, wanted in zip(together(*given), expected, strict=True):
            np.testing.assert_array_equal(made, wanted)


def test_threads_share_calls_whose_sizes_a_run_finds() -> None:
    def chosen(x: sg.Tensor, rows: sg.Tensor) -> sg.Tensor:
        found = rows[sg.nonzero(x > 0, as_tuple=True)[0]]
        return found @ found.transpose(0, 1)

    rows = np.random.default_rng(1).standard_normal((512, 256)).astype(np.float32)
    backend = native.WasmBackend()
    backend.engine.threads = 2
    device = EagerDevice(backend)
    alone, together = (sg.compile(chosen, rows[:, 0], rows, device=d) for d in (opened(1), device))
    for count in (3, 512, 512, 7, 400):
        x = np.where(np.arange(512) < count, 1, -1).astype(np.float32)
        np.testing.assert_array_equal(together(x, rows), alone(x, rows))
        assert (backend.engine._team is None) == (count == 3)


def meeting(traps: bool) -> bytes:
    """A module whose function waits in each of two parts for the other one to begin, so that two threads must take them."""
    body = Body(integers(2))
    left = body.local("i32")
    word = i32(4)
    body.add(get_local(0) + word + ops("i32.mul") + i32(1) + atomic("i32.atomic.store", BEGUN))
    body.add(i32(PATIENCE))
    body.set(left)
    with body.block(), body.repeat():  # until the other part has begun
        body.add(i32(1) + get_local(0) + ops("i32.sub") + word + ops("i32.mul") + atomic("i32.atomic.load", BEGUN))
        body.add(b"\x0d\x01")
        body.increase(left, -1)
        body.get(left)
        body.op("i32.eqz")
        with body.when():
            body.op("unreachable")
        body.add(i32(1))
    if traps:
        body.get(0)
        with body.when():
            body.add(i32(1) + i32(0) + ops("i32.div_s drop"))
    return module(shared_runs({"k0": body.finish()}), {"k0": body.finish()}, relaxed=False)


WORDS = np.array([2 << PARTS_BITS, 0], np.uint32)


def engine_of_two() -> Any:
    engine = native.WasmtimeEngine()
    engine.threads = 2
    engine.take(2 * BEGUN)
    return engine


def test_two_threads_work_at_the_same_time() -> None:
    engine = engine_of_two()
    linked = engine.link(meeting(traps=False))
    assert engine.can_share(linked)
    for _ in range(50):
        engine.write(BEGUN, np.zeros(2, np.uint32))
        assert engine.run(linked, WORDS.copy(), 0, (0, 0)) == WORDS.size


def test_a_trap_in_any_thread_is_the_error_of_the_run() -> None:
    engine = engine_of_two()
    linked, good = engine.link(meeting(traps=True)), engine.link(meeting(traps=False))
    for _ in range(20):
        engine.write(BEGUN, np.zeros(2, np.uint32))
        with pytest.raises(DeviceError, match="a kernel failed: integer divide by zero"):
            engine.run(linked, WORDS.copy(), 0, (0, 0))
        engine.write(BEGUN, np.zeros(2, np.uint32))
        assert engine.run(good, WORDS.copy(), 0, (0, 0)) == WORDS.size


def test_threads_that_have_no_run_take_no_time() -> None:
    engine = engine_of_two()
    engine.write(BEGUN, np.zeros(2, np.uint32))
    engine.run(engine.link(meeting(traps=False)), WORDS.copy(), 0, (0, 0))
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.05


def test_a_device_under_a_time_limit_has_one_thread() -> None:
    with opened_for(60):
        assert native.WasmtimeEngine().threads == 1


def test_short_programs_stay_on_one_thread() -> None:
    backend = native.WasmBackend()
    backend.engine.threads = 2
    program = sg.compile(sg.Tensor.exp, np.zeros(8, np.float32), device=EagerDevice(backend))
    assert program(np.zeros(8, np.float32)).sum() == 8
    assert backend.engine._team is None


def test_the_number_of_threads_can_be_chosen(shares_all: None) -> None:
    backend = native.WasmBackend()
    device = EagerDevice(backend)
    x = np.random.default_rng(1).standard_normal((70, 70)).astype(np.float32)
    program = sg.compile(sg.matmul, x, x, device=device)
    expected = None
    for count in (1, 3, 1, 2):
        device.use_threads(count)
        made = program(x, x)
        expected = made if expected is None else expected
        np.testing.assert_array_equal(made, expected)
        assert backend.describe()["threads"] == count
        assert (backend.engine._team is None) == (count == 1)
    for wrong in (0, 32, 1.5, True):
        with pytest.raises(sg.SingeError, match="expected a number from 1 to 31"):
            device.use_threads(wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DeviceError, match="does not share runs"):
        sg.device("numpy").use_threads(2)
    with opened_for(60):
        limited = native.WasmBackend()
    with pytest.raises(DeviceError, match="under a time limit"):
        limited.use_threads(2)


def test_memory_that_other_threads_do_not_get_leaves_a_run_to_one(shares_all: None) -> None:
    """Their workspaces are beyond the limit; the run itself is not."""
    backend = native.WasmBackend()
    device = EagerDevice(backend)
    device.use_threads(2)
    shape = (1, 2, 256, 64)
    given = [np.random.default_rng(k).standard_normal(shape).astype(np.float32) for k in range(3)]
    program = sg.compile(sg.scaled_dot_product_attention, *given, device=device)
    expected = program(*given)
    assert backend.engine._team is not None
    device.use_threads(2)
    backend.clean()
    take = backend.take
    backend.take = refuse(take)
    np.testing.assert_array_equal(program(*given), expected)
    assert backend.engine._team is None


def refuse(take: Any) -> Any:
    """A method `take` that has no memory for threads."""

    def taking(count: int, what: Any, *use: Any) -> int:
        if what() == "workspaces of threads":
            raise DeviceError("wasm: the limit is reached")
        return take(count, what, *use)

    return taking


FORK = """
import os, sys, warnings
import numpy as np, singe as sg
from singe_wasm import printing, shared_calls
from singe_wasm.native import WasmtimeEngine
printing.MANY_TURNS = shared_calls.CALL_US = shared_calls.RUN_US = 0
device = sg.device("wasm")
device.backend.engine.threads = 2
x = np.ones((64, 64), np.float32)
program = sg.compile(sg.matmul, x, x, device=device)
def run():
    return float(program(x, x).sum()) == 64.0 ** 3 and len(device.backend.engine._team._threads) == 1
assert run()
child = os.fork()
if child == 0:
    os._exit(0 if run() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert run()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_a_process_forks_and_ends_with_threads() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", FORK], check=True, timeout=120)
