"""Gradients that workers of Ray exchange by PyTorch's Gloo, as on GPUs by NCCL: the same code, on the loopback interface."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from clusters import kill

import singe as sg
from singe import nn, optim
from singe.cluster import RayStep, RayWorkers
from singe.cluster.engine import PeerLost
from singe.cluster.exchange import chosen_way, refusal
from singe.cluster.placement import on_gpu, own_device, placed
from singe.cluster.worker import Worker
from singe.train import TrainStep

pytestmark = pytest.mark.usefixtures("collected")
slow, full = pytest.mark.slow, pytest.mark.full
RNG = np.random.default_rng(0)
X = RNG.normal(size=(13, 1, 6, 6)).astype(np.float32)
Y = (X.mean((1, 2, 3)) > 0).astype(np.int64)
HALF = {"num_cpus": 0.5}
DEVICES = ("numpy", "wasm", "torch:cpu")


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="no package torch: pip install 'singe[torch]'")


def network() -> nn.Module:
    layers = nn.Conv2d(1, 4, 3, rng=0), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2, rng=1)
    return nn.Sequential(*layers)


def training() -> tuple[nn.Module, Any, Any]:
    return network(), optim.AdamW(0.05), nn.CrossEntropyLoss()


def gloo(count: int = 2, device: str = "numpy", **settings: Any) -> RayStep:
    return RayWorkers(count, HALF, exchange="gloo").step(*training(), device=device, seed=0, **settings)


def by_objects(device: str, sizes: list[int]) -> tuple[list[float], dict[str, np.ndarray]]:
    step = RayWorkers(2, HALF, exchange="objects").step(*training(), device=device, seed=0, clip=0.5)
    losses = [step(X[:n], Y[:n]) for n in sizes]
    state = step.state()
    step.close()
    return losses, state


@slow
@full
@pytest.mark.parametrize("device", DEVICES)
def test_a_group_trains_as_pieces_do(ray: Any, torch: Any, device: str) -> None:
    """Shares of unequal weight, fewer items than workers, running statistics, clipping."""
    sizes = [13, 12, 1, 13]
    losses, state = by_objects(device, sizes)
    step = gloo(device=device, clip=0.5)
    assert step.exchange == "gloo"
    assert "exchange: gloo" in repr(step)
    assert [step(X[:n], Y[:n]) for n in sizes] == pytest.approx(losses, rel=1e-4)
    after = step.state()
    assert after.keys() == state.keys()
    for name, x in state.items():
        np.testing.assert_allclose(after[name], x, rtol=1e-3, atol=1e-5, err_msg=name)
    states = [ray.get(worker.state.remote()) for worker in step._workers]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in state), "replicas are equal to the bit"
    step.close()


@slow
@full
def test_a_group_trains_as_one_device(ray: Any, torch: Any) -> None:
    given = nn.Sequential(nn.Flatten(), nn.Linear(36, 2, rng=1)), optim.AdamW(0.05), nn.CrossEntropyLoss()
    one = TrainStep(*given, device="numpy", seed=0)
    step = RayWorkers(2, HALF, exchange="gloo").step(*given, device="numpy", seed=0)
    assert [step(X, Y) for _ in range(4)] == pytest.approx([one(X, Y) for _ in range(4)], rel=1e-5)
    step.close()


@slow
@full
def test_a_group_skips_a_step_that_is_not_finite(ray: Any, torch: Any) -> None:
    step = gloo(nonfinite="skip")
    step(X, Y)
    before, bad = step.state(), X.copy()
    bad[0, 0, 0, 0] = np.inf
    step(bad, Y)
    assert step.skipped == 1
    after = step.state()
    assert [name for name in before if not np.array_equal(before[name], after[name])] == ["key"]
    assert np.isfinite(step(X, Y))
    step.close()


@slow
@full
@pytest.mark.parametrize("when", ["between steps", "in mid-exchange"])
def test_a_group_that_loses_a_worker_forms_another_and_loses_no_step(ray: Any, torch: Any, when: str) -> None:
    step = gloo(3)
    one = RayWorkers(1, HALF).step(*training(), device="numpy", seed=0)
    found, wanted = [], []
    for k in range(5):
        if k == 2 and when == "between steps":
            kill(ray, step, 1)
        elif k == 2:  # it ends as its group waits for it
            dying = lambda self: setattr(self._group, "mean", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            ray.get(step._workers[1].__ray_call__.remote(dying))
        x = X[:12] if k < 3 else X
        found.append(step(x, Y[: len(x)]))
        wanted.append(one(x, Y[: len(x)]))
    assert step.exchange == "gloo"
    step.state()
    assert step._done == 5
    assert found == pytest.approx(wanted, rel=0.3), "batch norms see parts of the batch"
    states = [ray.get(worker.state.remote()) for worker in step._workers]
    for state in states[1:]:
        assert all(np.array_equal(states[0][name], x) for name, x in state.items())
    step.close()
    one.close()


@slow
@full
def test_an_error_of_one_worker_leaves_no_other_waiting(ray: Any, torch: Any) -> None:
    """Its group is formed again for the next step."""
    step = gloo()
    first = step(X, Y)
    assert np.isfinite(first)
    failing = lambda self: setattr(self._step, "share", None)
    broken = step._workers[0]
    ray.get(broken.__ray_call__.remote(failing))
    with pytest.raises(ray.exceptions.RayTaskError, match="not callable"):
        step(X, Y)
    assert step._exchange is None
    ray.get(broken.__ray_call__.remote(lambda self: delattr(self._step, "share")))
    assert np.isfinite(step(X, Y))
    step.close()


@pytest.fixture
def group(torch: Any) -> Iterator[list[Any]]:
    """Two members in threads of this process."""
    from singe.cluster import torch_group  # noqa: PLC0415

    store, port = torch_group.meeting("127.0.0.1", 60.0)
    members = [torch_group.TorchGroup("gloo") for _ in range(2)]
    threads = [threading.Thread(target=m.join, args=("127.0.0.1", port, k, 2, 60.0)) for k, m in enumerate(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    yield members
    del store


@slow
@full
def test_a_member_that_waits_for_another_can_be_stopped(group: list[Any]) -> None:
    errors: list[Exception] = []

    def wait() -> None:
        try:
            group[0].mean(np.ones(3, np.float32), 0.5, 3)
        except PeerLost as e:
            errors.append(e)

    waiting = threading.Thread(target=wait)
    waiting.start()
    group[0].stop()
    waiting.join(60)
    assert [str(e) for e in errors] == ["the exchange was stopped, as a worker is lost"]


@slow
@full
def test_members_who_do_not_come_are_waited_for_no_longer_than_said(torch: Any) -> None:
    from singe.cluster import torch_group  # noqa: PLC0415

    store, port = torch_group.meeting("127.0.0.1", 60.0)
    with pytest.raises(PeerLost):
        torch_group.TorchGroup("gloo").join("127.0.0.1", port, 0, 2, 0.5)
    del store


def test_an_exchange_that_fails_leaves_no_mean_of_the_one_before() -> None:
    worker = Worker(lambda **_: SimpleNamespace(skipped=0, gradient_count=1, update=None), 0, "numpy")  # pyright: ignore[reportArgumentType]
    worker._group = SimpleNamespace(mean=lambda *_: np.ones(1, np.float32))
    worker.reduce(0.0)
    worker._group = None
    with pytest.raises(PeerLost, match="in no group"):
        worker.reduce(0.0)
    with pytest.raises(PeerLost, match="no mean"):
        worker.update(1, {}, 0.0)


def test_the_way_is_the_first_that_all_workers_can_take() -> None:
    reasons = {"nccl": ["", ""], "gloo": ["", "no PyTorch"]}
    ask = lambda way: reasons[way]
    assert chosen_way("auto", ask) == "nccl"
    assert chosen_way("objects", ask) == "objects"
    with pytest.raises(sg.DeviceError, match="1 of the workers cannot: no PyTorch"):
        chosen_way("gloo", ask)
    reasons["nccl"] = ["'numpy' is no NVIDIA GPU", ""]
    assert chosen_way("auto", ask) == "objects"
    assert refusal("nccl", sg.device("numpy")) == "'numpy' is no NVIDIA GPU"
    with pytest.raises(sg.InputError, match="expected one of 'auto', 'objects', 'nccl', 'gloo'"):
        RayWorkers(2, exchange="mpi")  # pyright: ignore[reportArgumentType]


class FakeCluster:
    """What placement asks Ray."""

    def __init__(self, gpus: int, given: str = "") -> None:
        self.gpus, self.given = gpus, given

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 8.0, **({"GPU": float(self.gpus)} if self.gpus else {})}

    def get_runtime_context(self) -> Any:
        return self

    def get_accelerator_ids(self) -> dict[str, list[str]]:
        return {"GPU": [self.given] if self.given else []}


def test_each_worker_on_a_gpu_gets_one_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SINGE_DEVICE", raising=False)
    devices = ("cuda", "cuda:1", "torch:cuda:1", "cupy", "webgpu", "webgpu:nvidia", "auto")
    for device in devices:
        assert on_gpu(device)
    for device in ("numpy", "wasm", "cpu", "torch:cpu", "torch:mps", "remote:ws://127.0.0.1:3000"):
        assert not on_gpu(device)
    monkeypatch.setattr("singe.cluster.placement.engine", lambda: FakeCluster(gpus=2))
    assert placed("cuda", {}) == {"num_cpus": 1, "num_gpus": 1}
    assert placed("cuda", {"num_gpus": 0.5}) == {"num_cpus": 1, "num_gpus": 0.5}
    assert placed("numpy", {"num_cpus": 4}) == {"num_cpus": 4}
    monkeypatch.setattr("singe.cluster.placement.engine", lambda: FakeCluster(gpus=0))
    assert placed("cuda", {}) == {"num_cpus": 1}
    monkeypatch.setenv("SINGE_DEVICE", "wasm")
    assert not on_gpu("auto")


def test_a_worker_s_only_gpu_is_number_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for WebGPU, to which Ray hides none."""
    monkeypatch.setattr("singe.cluster.placement.engine", lambda: FakeCluster(gpus=4, given="3"))
    devices = ("cuda", "cuda:1", "torch:cuda:2", "torch:cuda", "webgpu", "webgpu:0", "numpy")
    own = ["cuda", "cuda:0", "torch:cuda:0", "torch:cuda", "webgpu:3", "webgpu:3", "numpy"]
    assert [own_device(device) for device in devices] == own
    monkeypatch.setattr("singe.cluster.placement.engine", lambda: FakeCluster(gpus=0))
    assert own_device("cuda:1") == "cuda:1"
