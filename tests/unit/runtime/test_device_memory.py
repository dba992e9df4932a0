"""Memory that one can choose and see: `sg.Memory`, `device.memory()`, `device.clean()`, on each device."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from devices import MORE, slow
from networks.remembering import DESCENT

import singe as sg
from singe.ops import ROWS
from singe.runtime.eager import EagerDevice
from singe.runtime.registry import open_backend

STRATEGIES = {"wasm": ("pages",), "webgpu": ("exclusive", "pages", "exact")}
"""Those that a device has; others have all."""
COUNTED = ("wasm", *slow("webgpu", *(name for name in MORE if name.startswith(("webgpu", "cuda")))))


@pytest.fixture(params=COUNTED)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device of the test's own, with nothing on it."""
    try:
        backend: Any = open_backend(request.param)
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")
    yield EagerDevice(backend)
    backend.dispose()


def strategies(device: Any) -> tuple[Any, ...]:
    return STRATEGIES.get(device.name.partition(":")[0], STRATEGIES["webgpu"])


def full(device: sg.Device, count: int) -> sg.Tensor:
    return sg.tensor(np.ones(count, np.float32), device=device)


def number(count: int | None) -> int:
    assert count is not None
    return count


def held(device: sg.Device) -> int:
    use = device.memory()
    return number(use.in_use) + number(use.padding)


def test_texts_and_numbers_say_how_many_bytes() -> None:
    assert [sg.Memory(limit=x).limit for x in ("2 GiB", "1.5MB", " 300 ", 7)] == [2 << 30, 1_500_000, 300, 7]
    assert sg.Memory("exact") == sg.Memory("exact")
    assert pickle.loads(pickle.dumps(sg.Memory("pages", "1 GiB", keep=0))) == sg.Memory("pages", 1 << 30, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": "slabs"}, "got the strategy 'slabs', expected one of exclusive, pages, exact"),
        ({"limit": "2 gigs"}, "limit='2 gigs', expected at least 1 bytes as an int, or as a text"),
        ({"limit": 0}, "limit=0, expected at least 1"),
        ({"limit": True}, "limit=True"),
        ({"keep": -1}, "keep=-1, expected at least 0"),
        ({"strategy": "exact", "keep": 5}, '"exact" keeps no idle memory; leave keep out'),
    ],
)
def test_what_is_no_memory_is_refused(given: Any, message: str) -> None:
    with pytest.raises(sg.InputError, match=message):
        sg.Memory(**given)


def test_a_device_refuses_what_it_cannot_do() -> None:
    with pytest.raises(sg.InputError, match=r"memory: got '2 GiB', expected a Memory"):
        sg.Wasm(memory="2 GiB")  # pyright: ignore[reportArgumentType]
    with pytest.raises(sg.DeviceError, match=r"no memory strategy .*exclusive.*: its arrays are slices of one memory"):
        sg.Wasm(memory=sg.Memory("exclusive"))
    with pytest.raises(sg.DeviceError, match="memory only grows"):
        sg.Wasm(memory=sg.Memory(keep="1 MB"))
    with pytest.raises(sg.DeviceError, match=r"numpy.*does not take memory by itself"):
        sg.Numpy().configure(sg.Memory())
    assert sg.Wasm(memory=sg.Memory("pages")) is sg.device("wasm")


def test_what_a_device_does_not_count_is_unknown() -> None:
    use = sg.Numpy().memory()
    assert (use.in_use, use.padding, use.reserved, use.peak, use.count) == (None,) * 5
    assert "unknown" in repr(use)
    sg.Numpy().clean()
    sg.Numpy().reset_peak()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch", "jax", "cupy"])
def test_array_libraries_say_what_they_know(name: str) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed")
    try:
        device = sg.device(name)
    except sg.DeviceError as e:
        pytest.skip(str(e))
    kept = full(device, 1000)
    use = device.memory()
    assert use.in_use is None or use.in_use >= 4000
    assert (use.count, use.by_kind) == (None, {})
    device.clean()
    device.reset_peak()
    assert kept.sum().item() == 1000


def test_arrays_are_counted_while_somebody_holds_them(device: Any) -> None:
    for strategy in strategies(device):
        device.configure(sg.Memory(strategy))
        x = full(device, 1000)
        y = [full(device, 10) for _ in range(5)]
        use = device.memory()
        assert use.by_kind["tensors"].in_use == 4000 + 5 * 40
        assert use.by_kind["tensors"].count == 6
        assert use.by_pool[strategy].in_use >= 4200
        assert held(device) <= number(use.reserved)
        assert held(device) <= number(use.peak)
        del x, y
        gc.collect()
        assert device.memory().by_kind["tensors"].count == 0
        device.reset_peak()
        assert device.memory().peak == held(device)


def test_a_model_has_weights_states_and_scratch_memory(device: Any) -> None:
    w1, w2 = (np.random.default_rng(k).normal(size=(16, 16)).astype(np.float32) for k in range(2))
    x = np.ones((8, 16), np.float32)
    program = sg.compile(lambda x: ((x @ w1).softmax(0) @ w2).softmax(0), x, device=device)
    program(x)
    use = device.memory()
    assert use.by_kind["weights"].in_use >= 2 * 16 * 16 * 4
    assert use.by_kind["scratch"].in_use > 0
    device.clean()
    assert device.memory().by_kind["scratch"].in_use == 0
    assert program(x).shape == (8, 16)  # scratch memory is taken again
    del program
    gc.collect()
    device.clean()
    assert device.memory().by_kind["weights"].in_use == 0


def test_a_step_on_the_host_may_clean_the_device(device: Any) -> None:
    """What a run has in scratch memory stays there."""
    keep: list[sg.Tensor] = []

    def cleaning(x: np.ndarray) -> np.ndarray:
        device.clean()
        keep.append(full(device, 1000))  # it would lie where the scratch memory was
        return x.copy()

    def softmax(x: Any) -> Any:
        return np.exp(x - x.max()) / np.exp(x - x.max()).sum()

    x = np.arange(6, dtype=np.float32)
    cleaned = sg.op("cleaned", numpy=cleaning, shapes=lambda x: [(x.shape, x.dtype)])
    try:
        program = sg.compile(lambda x: (y := (x * 2).softmax(0)) + cleaned(x.softmax(0)) * y, x, device=device)
        for _ in range(2):
            np.testing.assert_allclose(program(x), softmax(2 * x) + softmax(x) * softmax(2 * x), rtol=1e-5)
    finally:
        del ROWS["cleaned"]
    assert len(keep) >= 2


def test_states_are_counted_while_their_session_lives(device: Any) -> None:
    model = DESCENT.model(device)
    before = device.memory().by_kind["states"].in_use
    session = model.session()
    session(DESCENT.inputs[0])
    own = device.memory().by_kind["states"].in_use - before
    assert own == sum(session.read(name).nbytes for name in session.names)
    assert device.name == "wasm" or device.memory().by_pool["persistent"].in_use >= own
    del session
    gc.collect()
    assert device.memory().by_kind["states"].in_use == before


def test_beyond_its_limit_a_device_says_what_holds_the_memory(device: Any) -> None:
    for strategy in strategies(device):
        device.configure(sg.Memory(strategy, limit="2 MiB"))
        kept: list[sg.Tensor] = []
        with pytest.raises(sg.OutOfMemory, match=r"limits this device to 2097152 bytes") as e:
            kept.extend(full(device, 20_000) for _ in range(100))
        assert len(kept) > 10
        assert number(device.memory().reserved) <= 2 << 20
        assert f"{len(kept)}\n" in str(e.value)
        del kept
        gc.collect()
        assert full(device, 20_000).sum().item() == 20_000
        device.configure(sg.Memory())


@pytest.mark.parametrize("runs", [100, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.full])])
def test_random_runs_under_each_strategy_are_right_and_leave_nothing(device: Any, runs: int) -> None:
    rng = np.random.default_rng(0)
    for strategy in strategies(device):
        device.configure(sg.Memory(strategy))
        given = [np.arange(k, k + 64, dtype=np.int32) for k in range(8)]
        values = {k: (sg.tensor(array, device=device), array) for k, array in enumerate(given)}
        for _ in range(runs):
            a, b, c = rng.integers(0, 8, 3).tolist()
            (x, ex), (y, ey) = values[a], values[b]
            values[c] = (x * 3 + y, ex * 3 + ey)  # of 32 bits, on both sides
        for z, expected in values.values():
            np.testing.assert_array_equal(z.numpy(), expected)
        values.clear()
        x = y = z = None
        gc.collect()
        assert device.memory().by_kind["tensors"].count == 0


def test_a_donated_input_shares_no_page_with_what_is_read(device: Any) -> None:
    for strategy in strategies(device):
        device.configure(sg.Memory(strategy))
        model = sg.Model.of(
            lambda cache, row: (cache + row, cache.sum()), {"cache": (8,), "row": (8,)}, device, donate=("cache",)
        )
        program = model.program()
        cache, row = (device.upload(np.full(8, v, np.float32)) for v in (1, 2))
        for k in range(3):
            cache, total = program.executable.run([cache, row])
            assert device.download(total) == 8 * (1 + 2 * k)
        np.testing.assert_array_equal(device.download(cache), [7] * 8)
        np.testing.assert_array_equal(device.download(row), [2] * 8)


def test_decorators_pass_memory_through_and_a_router_sums(device: Any) -> None:
    kept = full(device, 1000)
    assert sg.Fusion(device).memory() == sg.Autodiff(device).memory() == device.memory()
    own = device.memory()
    router = sg.Router(device, sg.Wasm(), device)
    total, other = router.memory(), sg.Wasm().memory()
    assert total.in_use == number(own.in_use) + number(other.in_use)
    assert total.peak is None
    assert {name.split(":")[0] for name in total.by_pool} == {f"0 {device.name}".split(":")[0], "1 wasm"}
    assert sg.Router(device, "numpy").memory().in_use is None
    router.clean()
    router.reset_peak()
    assert kept.sum().item() == 1000
