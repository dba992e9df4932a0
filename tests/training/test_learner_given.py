"""What a Learner and its steps are given: precision, metrics of the run, batches that are dicts; and what they refuse, and when."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from told import Told

from singe import data, metrics, nn, optim
from singe.cluster import RayWorkers
from singe.ending import OrderlyEnd
from singe.errors import InputError, SingeError
from singe.train import BatchEnded, Checkpoints, DataParallel, EarlyStopping, Event, Learner, RunBegan, TrainStep
from singe.train.config import plain
from singe.train.interrupts import interruptible
from singe.train.monitor.reports import find_runs, read_run

X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(np.int64)


def network() -> nn.Module:
    return nn.Linear(3, 2, rng=0)


def loader() -> data.Loader:
    return data.Loader((X, Y), 8)


def learner(given: Any = (), **more: Any) -> Learner:
    options = {"device": "numpy", "dashboard": None} | more
    return Learner(network(), options.pop("optimizer", optim.SGD(0.1)), nn.CrossEntropyLoss(), given, **options)


def told(model: Any, row: Any) -> Any:
    y = model(row["x"])
    return nn.CrossEntropyLoss()(y, row["y"]), {"prediction": y, "target": row["y"], "size": y.abs().mean()}


# --- precision --------------------------------------------------------------------------------------------------------


def test_a_learner_computes_in_the_precision_it_is_given() -> None:
    step = TrainStep(network(), optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy", precision="float16")
    told = Told()
    learner(precision="float16", hooks=[told]).fit(loader())
    assert list(told.losses().values()) == [step(x, y) for x, y in loader()]
    with pytest.raises(InputError, match="expected one of 'float32', 'float16', 'bfloat16'"):
        learner(precision="half")


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_metrics_of_the_run_are_fed_by_the_learner() -> None:
    told = Told()
    own = [metrics.LearningRate(), metrics.IterationSpeed(), metrics.Mean(), metrics.Accuracy()]
    rate = optim.StepLR(0.4, 2)
    summary = learner(own, optimizer=optim.SGD(rate), hooks=[told]).fit(loader(), loader())
    assert summary.last["train.learning rate"] == pytest.approx(rate(2))
    assert summary.last["train.iterations per second"] > 0
    assert summary.last["valid.iterations per second"] > 0
    assert "valid.learning rate" not in summary.last
    assert [e.values["lr"] for e in told.of(BatchEnded) if e.phase == "train"] == pytest.approx(
        [rate(n) for n in range(3)]
    )


def test_numbers_that_a_loss_function_tells_may_be_the_latest() -> None:
    rows = data.Loader(data.Dataset.of({"x": X, "y": Y}), 8)
    trained = Learner(
        network(), optim.SGD(0.1), told, [metrics.Latest(of="size")], device="numpy", dashboard=None
    )  # fmt: skip
    *_, last = [trained._step(batch)[1]["size"] for batch in rows]
    again = Learner(network(), optim.SGD(0.1), told, [metrics.Latest(of="size")], device="numpy", dashboard=None)
    assert again.fit(rows).last["train.size"] == pytest.approx(float(last))


def test_a_constant_rate_is_recorded_too() -> None:
    told = Told()
    learner(optimizer=optim.Accumulated(optim.SGD(0.25), 2), hooks=[told]).fit(loader())
    assert {e.values["lr"] for e in told.of(BatchEnded)} == {0.25}


def test_a_confusion_matrix_has_no_best(tmp_path: Path) -> None:
    told = Told()
    own = [metrics.ConfusionMatrix(), metrics.Recall(average=None), metrics.Accuracy()]
    summary = learner(own, run=tmp_path / "r", hooks=[told]).fit(loader(), loader())
    assert np.isnan(summary.best("valid.confusion matrix.3")[0])
    assert summary.best("valid.recall.1")[1] == 1
    run = read_run(tmp_path / "r")
    assert run.best("confusion matrix.0") is None
    assert run.best("accuracy") is not None
    assert [e.modes["confusion matrix"] for e in told.of(RunBegan)] == [None]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([lambda p, t: 0.0], "expected a Metric"),
        ([metrics.Accuracy], "expected a Metric"),
        (metrics.Accuracy(), r"expected a list of them"),
        ([metrics.Accuracy(), metrics.Accuracy()], "accuracy comes twice"),
        ([metrics.Mean(), metrics.Mean()], "loss comes twice"),
    ],
)
def test_what_is_no_metric_is_refused_at_once(given: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        learner(given)


def test_a_number_that_is_not_told_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match=r"by the name 'latest'; it returns loss"):
        learner([metrics.Latest()]).fit(loader())


# --- batches that are dicts -------------------------------------------------------------------------------------------


def test_rows_of_a_table_are_trained_on() -> None:
    rows = data.Loader(data.Dataset.of({"x": X, "y": Y}), 8)
    trained = Learner(network(), optim.SGD(0.1), told, [metrics.Accuracy()], device="numpy", dashboard=None)
    assert trained.fit(rows, rows, 2).last["valid.accuracy"] == trained.evaluate(rows)["accuracy"]
    plain = learner()
    plain.fit(loader(), epochs=2)
    for name, t in plain.model.state_dict().items():
        np.testing.assert_array_equal(trained.model.state_dict()[name].numpy(), t.numpy())


def test_dicts_are_shared_by_devices_and_nest() -> None:
    def loss(model: Any, batch: Any, weights: Any) -> Any:
        each = nn.CrossEntropyLoss(reduction="none")(model(batch["in"]["x"]), batch["y"])
        return (each * weights).mean()

    batch = {"in": {"x": X}, "y": Y}, np.ones(24, np.float32)
    one = TrainStep(network(), optim.SGD(0.1), loss, device="numpy")
    two = DataParallel(network(), optim.SGD(0.1), loss, device=["numpy", "numpy"])
    assert two(*batch) == pytest.approx(one(*batch), abs=1e-6)
    for name, t in one.model.state_dict().items():
        np.testing.assert_allclose(two.model.state_dict()[name].numpy(), t.numpy(), atol=1e-6)
    assert [p.name for p in one.program(*batch).inputs] == ["batch.in.x", "batch.y", "weights"]


def test_what_of_a_table_cannot_be_trained_on_is_named() -> None:
    step = TrainStep(network(), optim.SGD(0.1), lambda model, row: told(model, row)[0], device="numpy")
    with pytest.raises(SingeError, match=r"'row\.name' is \['a', 'b'\], expected an array of numbers; Dataset\.map"):
        step({"x": X[:2], "y": Y[:2], "name": ["a", "b"]})
    with pytest.raises(InputError, match=r"a batch is a dict of 'x', 'y'; expected a tuple of at least two arrays"):
        learner().fit(data.Loader(data.Dataset.of({"x": X, "y": Y}), 8))
    untold = lambda model, row: (told(model, row)[0], {"prediction": model(row["x"])})
    trained = Learner(network(), optim.SGD(0.1), untold, [metrics.Accuracy()], device="numpy", dashboard=None)
    with pytest.raises(InputError, match="the loss function returns no targets"):
        trained.fit(data.Loader(data.Dataset.of({"x": X, "y": Y}), 8))


# --- what is refused before it begins ---------------------------------------------------------------------------------

MODEL, RATE, LOSS = network(), optim.SGD(0.1), nn.CrossEntropyLoss()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: learner(optimizer=optim.LBFGS()), r"cannot be compiled with it.*state = opt\.init\(model\)"),
        (lambda: TrainStep(MODEL, optim.LBFGS(), LOSS, device="numpy"), "got the optimizer LBFGS"),
        (lambda: learner(optimizer=optim.LBFGS(), workers=RayWorkers(1)), "got the optimizer LBFGS"),
        (lambda: learner(clip="value"), r"got clip='value', expected the largest norm"),
        (lambda: learner(accumulate=0), r"got accumulate=0, expected how many batches"),
        (lambda: Learner(lambda x: x, RATE, LOSS, device="numpy"), "got the model <function"),  # pyright: ignore[reportArgumentType]
        (lambda: TrainStep(lambda x: x, RATE, LOSS, device="numpy"), "expected a Module"),  # pyright: ignore[reportArgumentType]
        (lambda: Learner(MODEL, RATE, "mse", device="numpy"), "got the loss 'mse', expected a layer"),  # pyright: ignore[reportArgumentType]
        (lambda: TrainStep(MODEL, RATE, nn.MSELoss, device="numpy"), "expected a layer, such as nn.MSELoss()"),
        (lambda: EarlyStopping("loss"), r"expected its name with the phase before it, as in 'valid\.loss'"),
        (lambda: Checkpoints(best="accuracy"), r"as in 'valid\.accuracy'"),
        (lambda: learner().fit((X, Y)), r"a tuple of arrays as training data.*sg\.data\.Loader"),
        (lambda: learner().evaluate((X, Y)), "evaluate: got a tuple of arrays as data"),
        (lambda: learner().fit(X), "got ndarray as training data"),
        (lambda: learner().fit(data.Dataset.of((X, Y))), "as training data, expected what gives batches"),
        (lambda: learner().fit(loader(), 0.1), "got float as validation data.*epochs=…"),  # pyright: ignore[reportArgumentType]
        (lambda: learner().fit(loader(), epochs=0), "got epochs=0, expected up to which epoch"),
        (lambda: learner().fit(loader(), epochs=-1), "got epochs=-1"),
        (lambda: learner().fit(iter(loader()), epochs=2), "gives its batches once, for 2 epochs"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_it_begins(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()


@pytest.mark.parametrize(
    "given", [{"early_stopping": EarlyStopping("valid.zzz")}, {"early_stopping": EarlyStopping("train.zzz")}]
)
def test_a_value_that_there_is_not_is_refused_after_the_first_batch(given: Any) -> None:
    told = Told()
    with pytest.raises(InputError, match=r"there is no value '(valid|train)\.zzz' to watch; there are loss, accuracy"):
        learner([metrics.Accuracy()], hooks=[told], **given).fit(loader(), loader())
    assert not told.of(BatchEnded)


def test_a_generator_gives_one_epoch() -> None:
    assert learner().fit((batch for batch in loader()), epochs=1).reason == "finished"


class Rewinding:
    """Batches that are their own iterator, which begins again."""

    def __iter__(self) -> Rewinding:
        self.left = iter(loader())
        return self

    def __next__(self) -> Any:
        return next(self.left)


def test_an_iterator_that_begins_again_gives_every_epoch() -> None:
    assert learner().fit(Rewinding(), epochs=2).step == 6


def test_numbers_of_numpy_are_numbers() -> None:
    assert learner(clip=np.float32(1), accumulate=np.int64(3)).fit(loader()).reason == "finished"
    assert optim.SGD(np.float32(0.5)).lr == optim.SGD(lr=np.float32(0.5)).lr == 0.5


def test_a_run_of_numbers_of_numpy_is_listed(tmp_path: Path) -> None:
    learner(run=tmp_path / "run", clip=np.float32(1.5)).fit(loader(), epochs=np.int64(1))
    assert len(find_runs(tmp_path)) == 1
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (facts["epochs"], facts["settings"]["clip"]) == (1, 1.5)
    assert plain({"rate": np.float32(0.5), "folder": tmp_path}) == {"rate": 0.5, "folder": str(tmp_path)}


# --- SIGTERM ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM ends a process at once elsewhere")
def test_sigterm_ends_a_run_in_order(tmp_path: Path) -> None:
    def end(event: Event) -> None:
        if isinstance(event, BatchEnded) and event.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    trained = learner(run=tmp_path / "r", hooks=[end])
    summary = trained.fit(loader(), epochs=3)
    assert (summary.reason, summary.step) == ("terminated", 2)
    assert read_run(tmp_path / "r").reason == "terminated"
    assert signal.getsignal(signal.SIGTERM) is before
    assert learner(run=tmp_path / "r").fit(loader(), epochs=3, resume=True).step == 9


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM ends a process at once elsewhere")
def test_a_forked_process_ends_by_sigterm() -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()

    def wait() -> None:
        ready.set()  # Python forgets signals that come before it runs again
        time.sleep(60)

    with interruptible(lambda _: None, OrderlyEnd(lambda: 1.0, str)):
        child = context.Process(target=wait)
        child.start()
        assert ready.wait(60)
        child.terminate()
        child.join(60)
    assert child.exitcode == -signal.SIGTERM


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM ends a process at once elsewhere")
def test_a_handler_of_the_program_stays() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        once = lambda e: os.kill(os.getpid(), signal.SIGTERM) if isinstance(e, BatchEnded) and e.step == 1 else None
        assert learner(hooks=[once]).fit(loader()).reason == "finished"
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
