"""Training and inference by workers of Ray: a local cluster of two, on the loopback interface."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from clusters import kill
from told import Told

import singe as sg
from singe import data, metrics, nn, optim
from singe.cluster import RayStep, RayWorkers
from singe.runtime import random_keys
from singe.train import BatchEnded, Checkpoints, Event, Learner, Note, RunBegan, TrainStep
from singe.train.steps.parallel import average_buffers

pytestmark = pytest.mark.usefixtures("collected")
slow = pytest.mark.slow
RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 1, 6, 6)).astype(np.float32)
Y = (X.mean((1, 2, 3)) > 0).astype(np.int64)
EPOCHS = 2
STEPS = 8


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3, rng=0), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2, rng=1))


def loader(train: bool = True) -> data.Loader:
    return data.Loader((X, Y), 13, shuffle=train, seed=3)


def learner(*hooks: Any, **given: Any) -> Learner:
    optimizer = optim.AdamW(optim.CosineAnnealingLR(0.05, STEPS))
    given = {"device": "numpy", "dashboard": None, "clip": 0.5, "accumulate": 2} | given
    return Learner(network(), optimizer, nn.CrossEntropyLoss(), [metrics.Accuracy()], hooks=hooks, **given)


@pytest.fixture(scope="module")
def whole() -> dict[int, float]:
    """The losses of a single process with the same batches."""
    told = Told()
    learner(told).fit(loader(), loader(False), EPOCHS)
    return told.losses()


def same(losses: dict[int, float], wanted: dict[int, float]) -> None:
    assert losses == pytest.approx(wanted, rel=1e-4)


def once_at(step: int, do: Callable[[], object]) -> Callable[[Event], None]:
    """A hook that does something after a step, the first time."""
    left = [step]

    def hook(event: Event) -> None:
        if isinstance(event, BatchEnded) and event.phase == "train" and event.step in left:
            left.clear()
            do()

    return hook


def step_of(trained: Learner) -> RayStep:
    assert isinstance(trained._step, RayStep)
    return trained._step


@slow
def test_workers_train_as_one_process_with_the_whole_batch(ray: Any, whole: dict[int, float]) -> None:
    told = Told()
    trained = learner(told, workers=RayWorkers(2))
    summary = trained.fit(loader(), loader(False), EPOCHS)
    assert "2 workers of Ray, each on numpy" in told.of(RunBegan)[0].device
    same(told.losses(), whole)
    one = learner()
    alone = one.fit(loader(), loader(False), EPOCHS)
    for name in ("valid.loss", "valid.accuracy"):  # each batch of which one of the workers has
        assert summary.last[name] == pytest.approx(alone.last[name], rel=1e-4)


@slow
def test_workers_skip_a_step_of_which_one_loss_is_not_finite(ray: Any) -> None:
    """Though its gradients are."""
    step = RayWorkers(2).step(
        network(), optim.SGD(0.1), lambda model, x, by: model(x).sum() + by.sum(), device="numpy", nonfinite="skip"
    )
    by = np.zeros(10, np.float32)
    step(X[:10], by)
    before = step.state()
    by[9] = np.inf
    assert np.isinf(step(X[:10], by))
    assert step.skipped == 1
    after = step.state()
    assert [name for name in before if not np.array_equal(before[name], after[name])] == ["key"]


@slow
def test_workers_share_dicts_and_compute_in_a_precision(ray: Any) -> None:
    loss = lambda model, row: nn.CrossEntropyLoss()(model(row["x"]), row["y"])
    given = network(), optim.SGD(0.1), loss
    step = RayWorkers(2).step(*given, device="numpy", precision="float16")
    one = TrainStep(*given, device="numpy", precision="float16")
    batches = list(data.Loader(data.Dataset.of({"x": X, "y": Y}), 10))
    assert [step(batch) for batch in batches] == pytest.approx([one(batch) for batch in batches], abs=0.01)
    step.close()


@slow
@pytest.mark.parametrize("when", ["between steps", "in a step"])
def test_a_worker_that_is_killed_loses_no_step(
    ray: Any, whole: dict[int, float], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    told = Told()
    others: list[Callable[[Event], object]] = []
    trained = learner(told, lambda event: [hear(event) for hear in others], workers=RayWorkers(2))
    step = step_of(trained)
    if when == "between steps":
        others.append(once_at(3, lambda: kill(ray, step, 1)))
    else:  # when it has told its share, and before its weights are updated

        def killing(shares: Any) -> Any:
            if step._done == 4 and len(step._workers) == 2:
                kill(ray, step, 1)
            return average_buffers(shares)

        monkeypatch.setattr("singe.cluster.workers.average_buffers", killing)
    assert trained.fit(loader(), loader(False), EPOCHS).reason == "finished"
    assert [e.step for e in told.of(BatchEnded) if e.phase == "train"] == list(range(1, STEPS + 1))
    same(told.losses(), whole)
    assert step.workers == 0, "they end with fit"
    counts: set[int] = set()
    others.append(lambda _: counts.add(step.workers))
    trained.fit(loader(), epochs=EPOCHS + 1)
    assert 2 in counts, "others have come"


@slow
def test_training_goes_on_from_a_checkpoint_when_all_workers_are_lost(
    ray: Any, whole: dict[int, float], tmp_path: Path
) -> None:
    told = Told()
    killing = once_at(5, lambda: kill(ray, step_of(trained), 2))
    trained = learner(told, killing, workers=RayWorkers(2), run=tmp_path, checkpoints=Checkpoints(steps=2))
    summary = trained.fit(loader(), loader(False), EPOCHS)
    assert (summary.reason, trained.step) == ("finished", STEPS)
    assert [e.step for e in told.of(BatchEnded) if e.phase == "train"] == [1, 2, 3, 4, 5, 5, 6, 7, 8]
    assert ["all of 2 workers of Ray were lost" in note.text for note in told.of(Note)] == [True]
    assert [(e.epoch, e.batch, e.step) for e in told.of(RunBegan)] == [(1, 0, 0), (2, 0, 4)]
    same(told.losses(), whole)


@slow
def test_a_run_without_a_folder_ends_when_all_workers_are_lost(ray: Any) -> None:
    without = learner(once_at(2, lambda: kill(ray, step_of(without), 1)), workers=RayWorkers(1))
    with pytest.raises(sg.DeviceError, match="all of 1 worker of Ray were lost in step 3"):
        without.fit(loader())


@slow
def test_an_interrupted_run_goes_on_with_another_number_of_workers(
    ray: Any, whole: dict[int, float], tmp_path: Path
) -> None:
    told = Told()
    interrupting = once_at(3, lambda: signal.raise_signal(signal.SIGINT))
    first = learner(told, interrupting, workers=RayWorkers(2), run=tmp_path)
    assert first.fit(loader(), loader(False), EPOCHS).reason == "interrupted"
    second = learner(told, workers=RayWorkers(1), run=tmp_path)
    assert second.fit(loader(), loader(False), EPOCHS, resume=True).reason == "finished"
    same(told.losses(), whole)


@slow
def test_a_step_over_workers_serves_a_loop_of_ones_own(ray: Any) -> None:
    """More workers than items, a state that another step goes on from, and errors of the loss function."""

    def loss(model: Any, x: Any, y: Any) -> Any:
        return nn.CrossEntropyLoss()(model(x), y)

    step = RayWorkers(2, {"num_cpus": 0.5}).step(network().train(), optim.SGD(0.1), loss, device="numpy")
    one = TrainStep(network().train(), optim.SGD(0.1), loss, device="numpy")
    assert step(X[:1], Y[:1]) == pytest.approx(one(X[:1], Y[:1]), rel=1e-5)
    one.resume(step.state())
    assert step(X, Y) == pytest.approx(one(X, Y), rel=1e-5)
    with pytest.raises(sg.SingeError):
        step(X[:, :, :2], Y)
    assert step(X, Y) == pytest.approx(one(X, Y), rel=1e-5)


@slow
def test_workers_refuse_a_model_that_computes_with_its_own_count_by_name(ray: Any) -> None:
    class Warming(nn.Module):
        def __init__(self, network: nn.Module) -> None:
            self.network = network
            self.calls = {"n": 0}

        def forward(self, x: Any) -> Any:
            self.calls["n"] += 1
            return self.network(x) * self.calls["n"]

    step = RayWorkers(2, {"num_cpus": 0.5}).step(
        Warming(network()), optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy"
    )
    with pytest.raises(sg.InputError, match=r"reads model\.calls\['n'\] and changes it"):
        step(X, Y)
    step.close()


@slow
def test_map_gives_the_outputs_in_order(ray: Any, tmp_path: Path) -> None:
    """Also when a worker is killed."""
    model, mark = network(), tmp_path / "killed"

    class Deadly(data.Dataset):
        def __len__(self) -> int:
            return len(X)

        def __getitem__(self, index: int) -> Any:
            if index == 30 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return X[index]

    trained = learner(workers=RayWorkers(2))
    trained.fit(loader())  # whose workers have all that there is, until it ends
    found = list(sg.cluster.map(model, Deadly(), batch_size=8, workers=RayWorkers(2), device="numpy"))
    assert mark.exists()
    assert [len(part) for part in found] == [8] * 6 + [2]
    np.testing.assert_allclose(np.concatenate(found), model.eval()(sg.tensor(X)).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(sg.InputError, match="the path of the model's file"):
        sg.cluster.map(sg.Model.of(model, {"x": ("N", 1, 6, 6)}, "numpy"), X)  # pyright: ignore[reportArgumentType]


def test_a_predictor_takes_batches_in_all_forms() -> None:
    """Of arrays, tuples, and dicts, as Ray Data gives them."""
    predict = sg.cluster.Predictor(network(), device="numpy")
    wanted = network().eval()(sg.tensor(X[:3])).numpy()
    for found in (predict(X[:3]), predict((X[:3],)), predict({"input": X[:3]})["output"]):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_without_ray_an_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(sg.DeviceError, match=r"pip install 'singe\[cluster\]'"):
        learner(workers=RayWorkers(2))
    with pytest.raises(sg.DeviceError, match=r"pip install 'singe\[cluster\]'"):
        next(sg.cluster.map(network(), X))
    with pytest.raises(sg.InputError, match="at least 1"):
        RayWorkers(0)
    with pytest.raises(sg.InputError, match="several devices and workers"):
        learner(device=["numpy", "numpy"], workers=RayWorkers(2))


class FakeRay:
    """The few functions of Ray that RayStep calls, in this process. fails: (number of the worker, method) ↦ its error."""

    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        def __init__(self, cause: Exception) -> None:
            super().__init__(str(cause))
            self.cause = cause

    def __init__(self) -> None:
        self.exceptions = self
        self.fails: dict[tuple[int, str], Exception] = {}
        self.made = 0
        self.killed: list[Any] = []

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def get(self, there: Any, timeout: float | None = None) -> Any:
        if isinstance(there, list):
            return [self.get(one) for one in there]
        if isinstance(there, Exception):
            raise there
        return there

    def put(self, value: Any) -> Any:
        return value

    def wait(self, there: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return there, []

    def kill(self, worker: Any) -> None:
        self.killed.append(worker)

    def remote(self, **_: Any) -> Any:
        return lambda made: SimpleNamespace(remote=functools.partial(self._actor, made))

    def _actor(self, made: Any, *given: Any) -> Any:
        number, worker = self.made, made(*given)
        self.made += 1

        def method(name: str) -> Any:
            def call(*args: Any) -> Any:
                lost = next((x for x in args if isinstance(x, Exception)), None)
                try:
                    return self.fails.get((number, name)) or lost or getattr(worker, name)(*args)
                except Exception as e:
                    return self.RayTaskError(e)

            def several(num_returns: int) -> Any:
                def call_for_all(*args: Any) -> list[Any]:
                    found = call(*args)
                    return [found] * num_returns if isinstance(found, Exception) else list(found)

                return SimpleNamespace(remote=call_for_all)

            return SimpleNamespace(remote=call, options=several)

        return SimpleNamespace(**{name: method(name) for name in dir(worker) if not name.startswith("_")})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay()
    monkeypatch.setattr("singe.cluster.workers.engine", lambda: ray)
    monkeypatch.setattr("singe.cluster.engine.engine", lambda: ray)
    return ray


def made_step() -> RayStep:
    return RayWorkers(3).step(network(), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy")


@pytest.mark.parametrize("method", ["share", "mean", "update"])
def test_a_lost_worker_is_replaced(fake: FakeRay, method: str) -> None:
    """Wherever in the step it is lost."""
    sg.manual_seed(0)
    step = made_step()
    sg.manual_seed(0)
    whole = TrainStep(network(), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy")
    y = np.arange(6) % 2
    step(X[:6], y)
    fake.fails = {(1, name): fake.RayError("lost") for name in (method, "done")}
    step(X[:6], y)
    step(X[:6], y)
    for _ in range(3):
        whole(X[:6], y)
    assert step.workers == 3
    want = whole.state()
    first, second = want.pop("key").tolist()
    assert tuple(step.state()["key"]) == random_keys.after((first, second), 3), "several take a key in each step"
    for name, x in want.items():
        np.testing.assert_allclose(step.state()[name], x, rtol=1e-4, atol=1e-6)


def test_a_worker_that_is_lost_after_a_step_was_told_loses_none(fake: FakeRay) -> None:
    """What asks for the states waits for the step, which the others do again."""
    step, whole = made_step(), TrainStep(network(), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy")
    x, y = X[:6].copy(), np.arange(6) % 2
    fake.fails = {(k, name): fake.RayError("lost") for k in (0, 1) for name in ("update", "done")}
    assert step(x, y) == pytest.approx(whole(x, y), rel=1e-5)
    assert step.workers == 3
    x[:], y[:] = np.nan, 0  # the caller's arrays hold the next batch before the step is done again
    found = step.state()
    assert step.workers == 1
    for name, x in whole.state().items():
        assert name == "key" or np.allclose(found[name], x, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("nonfinite", ["stop", "skip"])
def test_a_step_whose_gradients_are_not_finite_is_told_by_its_own_call(fake: FakeRay, nonfinite: Any) -> None:
    loss = lambda model, x, by: (model(x) * by).sum().abs().sqrt()  # of 0, where its slope is infinite
    step = RayWorkers(3).step(network(), optim.SGD(0.1), loss, device="numpy", nonfinite=nonfinite)
    by = np.ones((6, 2), np.float32)
    step(X[:6], by)
    before = step.state()
    if nonfinite == "stop":
        with pytest.raises(fake.RayTaskError, match="the norm of the gradients is nan"):
            step(X[:6], 0 * by)
    else:
        assert step(X[:6], 0 * by) == 0
        assert step._skipped == 1
    after = step.state()
    assert [name for name in before if not np.array_equal(before[name], after[name])] == ["key"]


def test_what_was_learned_stays_when_workers_end(fake: FakeRay) -> None:
    step, whole = made_step(), TrainStep(network(), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy")
    y = np.arange(6) % 2
    for each in (step, whole):
        each(X[:6], y)
    before = step.state()
    step.close()
    step.close()
    assert (step.workers, len(fake.killed)) == (0, 3)
    assert all(np.array_equal(x, before[name]) for name, x in step.state().items())
    np.testing.assert_array_equal(step.model.state_dict()["0.weight"].numpy(), before["model.0.weight"])
    assert step(X[:6], y) == pytest.approx(whole(X[:6], y), rel=1e-5)
    assert step.workers == 3


def test_map_says_when_no_worker_can_start(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("singe.cluster.mapping.engine", lambda: fake)
    monkeypatch.setattr(fake, "wait", lambda there, **_: ([], there))
    with pytest.raises(sg.DeviceError, match=r"none of 2 workers of Ray could start within 3 s.*close\(\)"):
        next(iter(sg.cluster.map(network(), X, workers=RayWorkers(2, patience=3.0))))


def test_an_error_of_a_step_leaves_the_one_before_done(fake: FakeRay) -> None:
    step, y = made_step(), np.arange(6) % 2
    step(X[:6], y)
    fake.fails = {(1, "share"): fake.RayTaskError(ValueError("of the loss"))}
    with pytest.raises(fake.RayTaskError, match="of the loss"):
        step(X[:6], y)
    fake.fails = {}
    step(X[:6], y)
    step.state()
    assert (step._done, step.workers) == (2, 3)


def test_an_error_of_what_a_worker_runs_is_raised(fake: FakeRay) -> None:
    """Also while workers are counted that are left: it is no loss."""
    step = made_step()
    fake.fails = {(1, "share"): fake.RayError("lost"), (2, "done"): fake.RayTaskError(MemoryError("of the worker"))}
    with pytest.raises(fake.RayTaskError, match="of the worker"):
        step(X[:6], np.arange(6) % 2)
