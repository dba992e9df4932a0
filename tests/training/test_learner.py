"""The Learner: what it tells, keeps and returns, and that it goes on exactly where it was."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from told import Told

import singe as sg
from singe import data, metrics, nn, optim
from singe.errors import InputError
from singe.train import (
    BatchEnded,
    Checkpoints,
    CheckpointSaved,
    EarlyStopping,
    EpochBegan,
    EpochEnded,
    Event,
    Learner,
    Note,
    RunBegan,
    Stopped,
    TrainStep,
    read_config,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6)).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(np.int64)
EPOCHS = 4
BATCHES = 4


@dataclass(frozen=True)
class Config:
    rate: float = 0.1


def network() -> nn.Module:
    """With weights, buffers, and layers that draw."""
    return nn.Sequential(nn.Linear(6, 8, rng=0), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2, rng=1))


def loader(train: bool = True) -> data.Loader:
    return data.Loader((X, Y), 13, shuffle=train, seed=3)


def learner(hooks: Sequence[Any] = (), **given: Any) -> Learner:
    optimizer = optim.AdamW(optim.CosineAnnealingLR(0.05, EPOCHS * BATCHES))
    given = {"device": "numpy", "dashboard": None, "seed": 5} | given
    return Learner(network(), optimizer, nn.CrossEntropyLoss(), [metrics.Accuracy()], hooks=hooks, **given)


@pytest.fixture(scope="module")
def whole() -> tuple[dict[int, float], dict[str, np.ndarray], list[Any]]:
    return whole_on("numpy")


@cache
def whole_on(*devices: str) -> tuple[dict[int, float], dict[str, np.ndarray], list[Any]]:
    """The losses, the last weights and the rows of a run that nothing interrupts."""
    told = Told()
    trained = learner([told], device=devices if len(devices) > 1 else devices[0])
    summary = trained.fit(loader(), loader(False), EPOCHS)
    return told.losses(), weights(trained), [row.values for row in summary.rows]


def weights(trained: Learner) -> dict[str, np.ndarray]:
    return {name: t.numpy() for name, t in trained.model.state_dict().items()}


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


# --- what a run is ----------------------------------------------------------------------------------------------------


def test_a_run_tells_its_events_in_order(tmp_path: Path) -> None:
    told = Told()
    summary = learner([told], run=tmp_path / "r").fit(loader(), loader(False), 2)
    kinds = [type(e) if not isinstance(e, BatchEnded) else e.phase for e in told]
    epoch = [EpochBegan, *["train"] * BATCHES, *["valid"] * BATCHES, EpochEnded, CheckpointSaved]
    assert kinds == [RunBegan, *epoch, *epoch, Stopped]
    began = told[0]
    assert isinstance(began, RunBegan)
    assert (began.run, began.epochs, began.batches) == ("r", 2, {"train": BATCHES, "valid": BATCHES})
    assert [e.step for e in told.of(BatchEnded) if e.phase == "train"] == list(range(1, 2 * BATCHES + 1))
    assert [e.items for e in told.of(BatchEnded)[:BATCHES]] == [13, 13, 13, 11]
    assert told.of(Stopped)[0].reason == summary.reason == "finished"
    assert set(told.of(EpochEnded)[0].values) == {"train", "valid"}
    assert {"loss", "accuracy", "lr"} == set(told.of(BatchEnded)[0].values)


@pytest.mark.slow
def test_batches_say_how_much_memory_the_device_has_in_use() -> None:
    for device, counts in (("wasm", True), ("numpy", False)):
        told = Told()
        learner([told], device=device).fit(loader(), loader(False), 1)
        assert {type(e.memory) for e in told.of(BatchEnded)} == {int if counts else type(None)}


def test_training_learns(device_name: str) -> None:
    if device_name not in ("numpy", "wasm"):
        pytest.skip("a device of tests only, or a slow one")
    summary = learner(device=device_name).fit(loader(), loader(False), EPOCHS)
    assert summary.rows[-1].values["train"]["loss"] < summary.rows[0].values["train"]["loss"]
    assert summary.last["valid.accuracy"] > 0.8


def test_the_summary_has_last_and_best_values(whole: Any) -> None:
    summary = learner().fit(loader(), loader(False), EPOCHS)
    assert [row.values for row in summary.rows] == whole[2], "equal seeds give equal runs"
    accuracies = [row.values["valid"]["accuracy"] for row in summary.rows]
    assert summary.best("valid.accuracy") == (max(accuracies), accuracies.index(max(accuracies)) + 1)
    assert summary.best("valid.nothing")[1] == 0
    lines = str(summary).splitlines()
    assert lines[0].startswith(f"{EPOCHS} epochs, {EPOCHS * BATCHES} steps in ")
    assert [line.split()[0] for line in lines[2:]] == list(summary.last)


def test_evaluate_measures_all_data_together() -> None:
    trained = learner()
    trained.fit(loader(), epochs=1)
    found = trained.evaluate(loader(False))
    logits = trained.model(sg.tensor(X)).numpy().astype(np.float64)
    picked = logits[np.arange(len(Y)), Y] - np.log(np.exp(logits).sum(1))
    assert found["loss"] == pytest.approx(-picked.mean(), rel=1e-5)
    assert found["accuracy"] == pytest.approx((logits.argmax(1) == Y).mean())


def test_a_loss_function_tells_more_than_the_loss() -> None:
    def loss(model: nn.Module, x: sg.Tensor, y: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        prediction = model(x)
        return nn.CrossEntropyLoss()(prediction, y), {"prediction": prediction, "largest": prediction.amax()}

    told = Told()
    trained = Learner(
        network(), optim.SGD(0.1), loss, [metrics.Accuracy()], device="numpy", hooks=[told], dashboard=None
    )
    summary = trained.fit(loader(), epochs=1)
    assert set(summary.last) == {"train.loss", "train.largest", "train.accuracy"}
    silent = Learner(network(), optim.SGD(0.1), lambda *given: loss(*given)[0], device="numpy", dashboard=None)
    assert set(silent.fit(loader(), epochs=1).last) == {"train.loss"}
    without = Learner(
        network(), optim.SGD(0.1), lambda *given: loss(*given)[0], [metrics.Accuracy()], device="numpy", dashboard=None
    )
    with pytest.raises(InputError, match="returns no predictions"):
        without.fit(loader())


def test_the_best_epoch_is_kept(tmp_path: Path) -> None:
    """Also if later epochs are worse."""
    told = Told()
    trained = learner([told], run=tmp_path, config=Config())
    states: list[dict[str, np.ndarray]] = []
    trained._hooks = (told, lambda e: states.append(weights(trained)) if isinstance(e, EpochEnded) else None)
    targets = [Y, Y, 1 - Y, 1 - Y]  # the last epochs unlearn
    for epoch, target in enumerate(targets, 1):
        trained.fit(data.Loader((X, target), 13), loader(False), epoch)
    best = max(k for k, e in enumerate(told.of(EpochEnded)) if e.best)
    assert best < 3
    same({name: t.numpy() for name, t in trained.best.state_dict().items()}, states[best])
    found = trained.evaluate(loader(False), trained.best)
    assert found == pytest.approx(dict(told.of(EpochEnded)[best].values["valid"]))
    again = sg.load_weights(network(), tmp_path / "best.safetensors")
    same({name: t.numpy() for name, t in again.state_dict().items()}, states[best])
    assert read_config(tmp_path / "config.json", Config) == Config()


def test_training_stops_early(whole: Any) -> None:
    trained = learner(early_stopping=EarlyStopping("valid.accuracy", patience=2, min_delta=1.0))
    summary = trained.fit(loader(), loader(False), 50)
    assert (summary.reason, trained.epoch) == ("patience", 3)
    assert "no better valid.accuracy for 2 epochs" in str(summary)


def test_each_checkpoint_is_written_once(tmp_path: Path) -> None:
    steps: list[str] = []
    hook = lambda event: steps.append(Path(event.path).name) if isinstance(event, CheckpointSaved) else None
    stopping = EarlyStopping("valid.accuracy", patience=2, min_delta=1.0)
    trained = learner([hook], early_stopping=stopping, run=tmp_path / "run")
    assert trained.fit(loader(), loader(False), 50).reason == "patience"
    assert len(steps) == len(set(steps)) == 3
    assert (tmp_path / "run" / "checkpoints" / steps[-1]).exists()


def test_what_a_run_that_was_killed_left_of_its_files_is_removed(tmp_path: Path) -> None:
    (tmp_path / "best.safetensors.0a1b2c3d.part").write_bytes(b"the beginning")
    learner(run=tmp_path).fit(loader(), epochs=1)
    assert list(tmp_path.rglob("*.part")) == []
    assert (tmp_path / "best.safetensors").exists()


class Elsewhere(TrainStep):
    """A step of which a test sees whether it was closed."""

    closed = 0

    exchange = "objects"
    workers = 0

    def close(self) -> None:
        self.closed += 1


class Workers:
    def step(self, *given: Any, **settings: Any) -> Elsewhere:
        self.made = Elsewhere(*given, **settings)
        return self.made


def test_workers_end_with_a_run_however_it_ends() -> None:
    workers = Workers()
    trained = learner(workers=workers)
    trained.fit(loader(), epochs=1)
    assert workers.made.closed == 1

    def broken() -> Iterator[Any]:
        yield from loader()
        raise RuntimeError("no more data")

    with pytest.raises(RuntimeError, match="no more data"):
        trained.fit(broken(), epochs=2)
    assert workers.made.closed == 2


# --- going on ---------------------------------------------------------------------------------------------------------


def stopping_at(trained: Learner, step: int, how: str) -> Any:
    def hook(event: Event) -> None:
        if isinstance(event, BatchEnded) and event.step == step:
            if how == "stop":
                trained.stop()
            elif how == "interrupt":
                signal.raise_signal(signal.SIGINT)
            else:
                raise RuntimeError("a fault")

    return hook


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "interrupt", "fault"])
@pytest.mark.parametrize(
    ("devices", "step"),
    [("numpy", 1), ("numpy", 5), ("numpy", 8), ("numpy", 11), ("wasm", 5), ("wasm", 8), ("wasm+wasm", 5)],
)
def test_a_run_goes_on_exactly(tmp_path: Path, devices: str, step: int, how: str) -> None:
    """To the bit: losses, weights and metrics of all epochs; from the checkpoint of the stop, or from the one before a fault."""
    told = Told()
    device = devices if "+" not in devices else devices.split("+")
    first = learner([told], run=tmp_path, checkpoints=Checkpoints(steps=3), device=device)
    first._hooks = (told, stopping_at(first, step, how))
    if how == "fault":
        with pytest.raises(RuntimeError, match="a fault"):
            first.fit(loader(), loader(False), EPOCHS)
        assert told.of(Stopped)[0].message == "RuntimeError: a fault"
    else:
        summary = first.fit(loader(), loader(False), EPOCHS)
        assert summary.reason == {"stop": "asked", "interrupt": "interrupted"}[how]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert isinstance(told[-1], Stopped)
    second = learner([told], run=tmp_path, checkpoints=Checkpoints(steps=3), device=device)
    summary = second.fit(loader(), loader(False), EPOCHS, resume=True)
    losses, last, rows = whole_on(*devices.split("+"))
    assert told.losses() == losses
    if how != "fault":
        assert [e.step for e in told.of(BatchEnded) if e.phase == "train"] == list(losses), (
            "no batch was trained on twice"
        )
    same(weights(second), last)
    assert [row.values for row in summary.rows] == rows


def test_a_learner_goes_on_after_a_stop(whole: Any) -> None:
    """In the same process, and without a folder."""
    told = Told()
    trained = learner([told])
    for step in (2, 4, 9):
        trained._hooks = (told, stopping_at(trained, step, "stop"))
        assert trained.fit(loader() if step == 2 else LOADER, loader(False), EPOCHS).reason == "asked"
    trained._hooks = (told,)
    trained.fit(LOADER, loader(False), 3)
    trained.fit(LOADER, loader(False), EPOCHS)
    assert told.losses() == whole[0]
    same(weights(trained), whole[1])


LOADER = loader()


def test_batches_in_a_list_go_on_too(tmp_path: Path) -> None:
    batches = [(X[k : k + 10], Y[k : k + 10]) for k in range(0, 50, 10)]
    told, again = Told(), Told()
    learner([told]).fit(batches, epochs=2)
    first = learner(run=tmp_path)
    first._hooks = (again, stopping_at(first, 7, "stop"))
    first.fit(batches, epochs=2)
    learner([again], run=tmp_path).fit(batches, epochs=2, resume=True)
    assert again.losses() == told.losses()


def test_a_damaged_checkpoint_is_noted_and_passed_over(whole: Any, tmp_path: Path) -> None:
    told = Told()
    learner([told], run=tmp_path).fit(loader(), loader(False), 3)
    newest = max((tmp_path / "checkpoints").iterdir())
    newest.write_bytes(newest.read_bytes()[:-5])
    learner([told], run=tmp_path).fit(loader(), loader(False), EPOCHS, resume=True)
    assert [str(newest) in note.text for note in told.of(Note)] == [True]
    assert told.losses() == whole[0]


def test_a_full_disk_does_not_end_training(whole: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    trained = learner([told], run=tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    trained.fit(loader(), loader(False), 1)
    for name in ("singe.train.saving.checkpoints.write", "singe.train.monitor.logs.tables.write"):
        monkeypatch.setattr(name, full)
    assert trained.fit(LOADER, loader(False), 3).reason == "finished"
    monkeypatch.undo()
    notes = [note.text for note in told.of(Note)]
    assert any("step-00000012" in text and "No space left" in text for text in notes)
    assert sum("epochs.csv" in text for text in notes) == 1
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step-00000004.safetensors"]
    learner([told], run=tmp_path).fit(loader(), loader(False), EPOCHS, resume=True)
    assert told.losses() == whole[0]


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX")
def test_a_folder_has_one_learner_at_a_time(tmp_path: Path) -> None:
    """Also one of another process; when a process ends, however that happens, its lock does."""
    second = learner(run=tmp_path / "r")
    first = learner(run=tmp_path / "r")

    def hook(event: Event) -> None:
        if isinstance(event, EpochBegan):
            with pytest.raises(InputError, match=rf"in use by process {os.getpid()}, .*give another folder"):
                second.fit(loader())

    first._hooks = (hook,)
    first.fit(loader())
    code = "import sys, time; from pathlib import Path; from singe.train.saving.folder_lock import locked\n"
    code += "with locked(Path(sys.argv[1])): print('locked', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "r")], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(InputError, match=f"in use by process {process.pid},"):
            second.fit(loader(), resume=True)
        process.kill()
    assert second.fit(loader(), epochs=2, resume=True).rows[-1].step == 2 * BATCHES


def test_a_folder_with_checkpoints_is_not_overwritten(tmp_path: Path) -> None:
    learner(run=tmp_path).fit(loader(), epochs=1)
    with pytest.raises(InputError, match=r"resume=True \(--resume on a command line\) goes on"):
        learner(run=tmp_path).fit(loader(), epochs=1)
    with pytest.raises(InputError, match="needs the folder of a run"):
        learner().fit(loader(), epochs=1, resume=True)
    with pytest.raises(InputError, match="checkpoints need a folder"):
        learner(checkpoints=Checkpoints())
    assert learner(run=tmp_path / "new").fit(loader(), epochs=1, resume=True).reason == "finished"


def test_a_run_of_which_all_epochs_are_done_trains_no_more(tmp_path: Path) -> None:
    learner(run=tmp_path).fit(loader(), loader(False), 2)
    told = Told()
    trained = learner([told], run=tmp_path)
    summary = trained.fit(loader(), loader(False), 2, resume=True)
    assert [type(e) for e in told] == [RunBegan, Note, Stopped]
    assert told.of(Note)[0].text == "there is nothing to train: up to epoch 2 was asked, and 2 are done"
    assert len(summary.rows) == 2
    assert trained.best is not None


# --- threads, faults --------------------------------------------------------------------------------------------------


def test_fit_runs_in_any_thread() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(learner().fit(loader(), epochs=1).reason))
    thread.start()
    thread.join()
    assert found == ["finished"]


def test_a_loss_that_is_no_number_is_noted() -> None:
    told = Told()
    learner([told], nonfinite="ignore").fit([(X, Y), (X * math.inf, Y), (X, Y)], epochs=2)
    notes = [note.text for note in told.of(Note)]
    assert notes == ["the loss of step 2 is nan", "the loss of step 4 is nan"], "once an epoch, as long as it stays so"


def test_what_cannot_be_trained_on_is_refused() -> None:
    with pytest.raises(InputError, match="gave no batch"):
        learner().fit([])
    with pytest.raises(InputError, match="expected an array, a dict of arrays, or a tuple"):
        learner().fit([3])
    with pytest.raises(InputError, match=r"watches 'valid.accuracy', and there is no validation data"):
        learner(early_stopping=EarlyStopping("valid.accuracy")).fit(loader())
    with pytest.raises(InputError, match=r"no value 'train.f1'"):
        learner(early_stopping=EarlyStopping("train.f1")).fit(loader())
    with pytest.raises(InputError, match="accuracy comes twice"):
        Learner(network(), optim.SGD(0.1), nn.CrossEntropyLoss(), [metrics.Accuracy()] * 2, device="numpy")
