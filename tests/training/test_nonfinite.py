"""Steps whose loss or gradients are not finite, or whose indices are out of range: what they change, and what is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from told import Told

import singe as sg
from singe import nn
from singe.errors import NonFinite, OutOfRange
from singe.program.program import Host
from singe.program.words import UNLESS
from singe.tools.cli import main
from singe.train.steps.fault import first_fault
from singe.train.steps.step import TrainStep

on_devices = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
X, Y = np.ones((4, 3), np.float32), np.array([0, 1, 2, 1])


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4, rng=0), nn.Linear(4, 3, rng=1))


def loss(model: Any, x: Any, y: Any, scale: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x) * scale, y)


def steep(model: Any, x: Any) -> Any:
    """Of which the norm of the gradients, not the value, is infinite."""
    return model(x).sum() * 1e25


def step(device: str, how: Any, loss: Any = loss, **options: Any) -> TrainStep:
    return TrainStep(network(), sg.optim.AdamW(0.1), loss, device=device, nonfinite=how, **options)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> list[str]:
    """The states that are the same."""
    return [name for name in a if np.array_equal(a[name], b[name], equal_nan=True)]


GOOD, BAD = np.float32(1), np.float32(np.inf)


@on_devices
@pytest.mark.slow
def test_a_step_that_stops_changes_nothing(device_name: str) -> None:
    one = step(device_name, "stop")
    first = one(X, Y, GOOD)
    before = one.state()
    with pytest.raises(NonFinite, match="the loss is nan"):
        one(X, Y, BAD)
    assert same(before, one.state()) == [*before]
    other = step(device_name, "ignore")
    assert (first, one(X, Y, GOOD)) == pytest.approx((other(X, Y, GOOD), other(X, Y, GOOD)), rel=1e-6)


@on_devices
@pytest.mark.slow
def test_gradients_count_beside_the_loss(device_name: str) -> None:
    one = step(device_name, "stop", steep)
    before = one.state()
    with pytest.raises(NonFinite, match="the norm of the gradients is"):
        one(X)
    assert same(before, one.state()) == [*before]


@on_devices
@pytest.mark.slow
def test_a_step_is_skipped(device_name: str) -> None:
    one, other = step(device_name, "skip"), step(device_name, "ignore")
    one(X, Y, GOOD)
    assert np.isnan(one(X, Y, BAD))
    other(X, Y, GOOD)
    assert one(X, Y, GOOD) == pytest.approx(other(X, Y, GOOD), rel=1e-6)


def test_who_does_not_look_has_no_more_to_compute() -> None:
    one = step("numpy", "ignore")
    assert np.isnan(one(X, Y, BAD))
    assert np.isnan(one(X, Y, GOOD)), "the weights are none any more"
    assert [p.name for p in one.program(X, Y, GOOD).outputs] == ["loss"]


def test_what_is_checked_is_read_with_the_loss() -> None:
    """One array more would be one more round trip to a GPU."""
    one = step("numpy", "stop")
    assert [(p.name, p.shape) for p in one.program(X, Y, GOOD).outputs] == [("checks", (3,))]


def test_checks_are_a_handful_of_calls_on_numpy() -> None:
    """A call of NumPy costs more than the arithmetic of a small network, however many states there are."""
    counts = {how: len(step("numpy", how).program(X, Y, GOOD).data.groups) for how in ("ignore", "stop", "skip")}
    assert counts["stop"] - counts["ignore"] <= 3, "the norm, the checks, and the branch in which the states are new"
    assert counts["skip"] == counts["stop"]


@pytest.mark.parametrize("device_name", ["wasm", "webgpu"], indirect=True)
def test_checks_ask_nothing_of_the_host_elsewhere(device_name: str) -> None:
    """A branch would be one more round trip to a GPU."""
    groups = step(device_name, "stop").program(X, Y, GOOD).data.groups
    assert not [g for g in groups if g.head == UNLESS or isinstance(g.stop, Host)]


class Mixed(nn.Module):
    """Of running statistics, a shared weight, and (see `mixed`) gradients that are weights themselves, which change as well."""

    def __init__(self) -> None:
        self.first, self.norm = nn.Linear(3, 3, rng=0), nn.BatchNorm1d(3)
        self.shared = self.first.weight
        self.a, self.b = sg.tensor([1.0, 2.0, 3.0]), sg.tensor([4.0, 5.0, 6.0])

    def forward(self, x: Any) -> Any:
        return self.norm(self.first(x)) @ self.shared


def mixed(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x), y) + (model.a * model.b).sum()


WAYS = {
    "AdamW": (sg.optim.AdamW(sg.optim.CosineAnnealingLR(0.1, 5)), {"clip": 1.0}),
    "SGD": (sg.optim.SGD(0.1), {}),
    "Adagrad": (sg.optim.Adagrad(0.1), {"clip": 1.0, "accumulate": 2}),
}


@on_devices
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("way", WAYS)
def test_a_step_that_passes_its_checks_is_one_without(device_name: str, way: str, precision: Any) -> None:
    optimizer, options = WAYS[way]
    x, y = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32), Y
    found = {}
    for how in ("ignore", "stop"):
        one = TrainStep(
            Mixed(), optimizer, mixed, device=device_name, nonfinite=how, precision=precision, seed=0, **options
        )
        found[how] = [one(x, y) for _ in range(4)], one.state()
    assert found["stop"][0] == pytest.approx(found["ignore"][0], rel=1e-5)
    for name, state in found["ignore"][1].items():
        np.testing.assert_allclose(found["stop"][1][name], state, rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_model_that_is_exported_tells_its_loss_alone() -> None:
    made = step("numpy", "stop").as_model(X, Y, GOOD)
    assert [p.name for p in made.outputs] == ["loss"]


@pytest.mark.slow
def test_halves_stop_too() -> None:
    one = step("numpy", "stop")
    share = one.share(X, Y, GOOD)
    before = one.state()
    with pytest.raises(NonFinite, match="the norm of the gradients is"):
        one.update(share.gradients * np.float32(np.nan), share.buffers)
    assert set(before) - set(same(before, one.state())) == {"key"}
    several = sg.train.DataParallel(network(), sg.optim.AdamW(0.1), loss, device=["numpy", "numpy"], nonfinite="stop")
    several(X, Y, np.ones((4, 1), np.float32))
    with pytest.raises(NonFinite):
        several(X, Y, np.full((4, 1), BAD))


def shifted(model: Any, x: Any, by: Any) -> Any:
    """Of which the value, but no gradient, is infinite where `by` is."""
    return model(x).sum() + by.sum()


def test_halves_look_at_the_loss_beside_the_gradients() -> None:
    several = sg.train.DataParallel(network(), sg.optim.SGD(0.1), shifted, device=["numpy", "numpy"], nonfinite="stop")
    by = np.zeros(4, np.float32)
    several(X, by)
    before = several.state()
    by[3] = np.inf  # of one of the two parts
    with pytest.raises(NonFinite, match="the loss is inf"):
        several(X, by)
    assert set(before) - set(same(before, several.state())) == {"key"}
    skipping = sg.train.DataParallel(network(), sg.optim.SGD(0.1), shifted, device=["numpy", "numpy"], nonfinite="skip")
    assert np.isinf(skipping(X, by))
    assert skipping.skipped == 1


def test_an_overflow_of_half_precision_is_what_its_scale_is_for() -> None:
    one = step("numpy", "stop", precision="float16")
    state = one.state()
    state["scale"][0] = 2.0**40
    one.resume(state)
    scales = []
    for _ in range(3):
        one(X, Y, GOOD)
        scales.append(float(one.state()["scale"][0]))
    assert scales == [2.0**39, 2.0**38, 2.0**37]


@on_devices
def test_classes_of_a_batch_are_checked_before_the_step(device_name: str) -> None:
    one = step(device_name, "ignore")
    one(X, np.array([0, 1, 2, -100]), GOOD)
    before = one.state()
    with pytest.raises(
        OutOfRange, match=r"input 'y': CrossEntropyLoss: .*'target': nll_loss: .*got 3, expected from 0 to 2, or -100"
    ):
        one(X, np.array([0, 1, 2, 3]), GOOD)
    assert len(same(before, one.state())) == len(before)


class Shifted(nn.Module):
    """Looks up what is next to what is asked for."""

    def __init__(self) -> None:
        self.table = nn.Embedding(5, 3, rng=0)

    def forward(self, x: Any) -> Any:
        return self.table(x + 1)


def picked(model: Any, x: Any) -> Any:
    return model(x).sum()


def classes(model: Any, x: Any) -> Any:
    """Their numbers come from what the model gives."""
    rows = model(x - 1)
    return nn.CrossEntropyLoss()(rows, (rows.argmax(1) * 0 + x))


@on_devices
@pytest.mark.slow
@pytest.mark.parametrize("what", [picked, classes])
def test_the_step_tells_what_only_the_device_finds_out_of_range(device_name: str, what: Any) -> None:
    one = TrainStep(Shifted(), sg.optim.SGD(0.1), what, device=device_name)
    table = "the layer 'table', Embedding: its argument 'x': index: axis 0 of .5, 3."
    wrong, text = (4, table) if what is picked else (3, "CrossEntropyLoss: the target")
    assert np.isfinite(one(np.array([0, 1])))
    before = one.state()
    with pytest.raises(OutOfRange, match=f"{text}: what the device computed is out of range"):
        one(np.array([0, wrong]))
    assert same(before, one.state()) == [*before]
    assert np.isfinite(one(np.array([0, 1])))


def narrowed(model: Any, x: Any) -> Any:
    return model.table(x.cast(sg.uint8)).sum()


def test_the_step_looks_at_indices_behind_a_cast_that_changes_them() -> None:
    one = TrainStep(Shifted(), sg.optim.SGD(0.1), narrowed, device="numpy")
    assert np.isfinite(one(np.array([257])))
    with pytest.raises(OutOfRange, match="what the device computed is out of range"):
        one(np.array([256 + 5]))


@on_devices
@pytest.mark.parametrize("what", [picked, classes])
def test_an_evaluation_tells_it_too(device_name: str, what: Any) -> None:
    """And a loss that is not finite is what it gives: nothing was to be learned."""
    one = TrainStep(Shifted(), sg.optim.SGD(0.1), what, device=device_name, nonfinite="stop")
    wrong = 4 if what is picked else 3
    assert np.isfinite(one.evaluate(np.array([0, 1])))
    before = one.state()
    with pytest.raises(OutOfRange, match="what the device computed is out of range"):
        one.evaluate(np.array([0, wrong]))
    assert set(same(before, one.state())) == set(before)
    assert np.isfinite(one.evaluate(np.array([0, 1])))
    endless = TrainStep(network(), sg.optim.SGD(0.1), loss, device=device_name, nonfinite="stop")
    assert np.isnan(endless.evaluate(X, Y, BAD))


def test_another_way_is_refused() -> None:
    with pytest.raises(sg.InputError, match="nonfinite: got 'halt', expected one of 'stop', 'skip', 'ignore'"):
        step("numpy", "halt")


# --- the Learner ------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """Two layers; the second is given numbers far too large for one batch, or has an infinite gradient there."""

    def __init__(self, how: str) -> None:
        self.first, self.second, self.how = nn.Linear(3, 4, rng=0), nn.Linear(4, 3, rng=1), how

    def forward(self, x: Any) -> Any:
        hidden = self.first(x)
        if self.how == "output":
            hidden = hidden * x.sum().exp()  # finite for all batches but that of 200
        if self.how == "gradient":
            hidden = hidden + (hidden.abs() * (100 - x.sum().minimum(100.0))).sqrt()  # of 0, for the batch of 200
        return self.second(hidden)


def data(bad: int | None, epochs: int = 4) -> list[tuple[np.ndarray, np.ndarray]]:
    """Four batches, of which one is bad."""
    return [(np.full((4, 3), 200 if k == bad else 0.1, np.float32), Y) for k in range(epochs)]


def learner(how: str, device: str = "numpy", **options: Any) -> sg.train.Learner:
    settings: dict[str, Any] = {"dashboard": None, **options}
    return sg.train.Learner(Net(how), sg.optim.SGD(0.01), nn.CrossEntropyLoss(), device=device, **settings)


SAID = {
    "output": "the loss is nan; the first output that is not finite is that of the layer 'second', Linear",
    "gradient": "the norm of the gradients is (nan|inf); on the way back, the first gradient that is not finite is that of the output "
    "of the layer 'first', Linear",
}


@on_devices
@pytest.mark.slow
@pytest.mark.parametrize("how", ["output"])
def test_a_learner_stops_and_says_where_it_began(device_name: str, how: str, tmp_path: Path) -> None:
    one = learner(how, device_name, run=tmp_path / "run")
    assert one.fit(data(None), epochs=1).reason == "finished"
    summary = one.fit(data(2), epochs=3)
    assert summary.reason == "nonfinite"
    assert re.search(f"epoch 2, step 7: {SAID[how]}", summary.message)
    newest = max(one._files.checkpoints.steps())  # pyright: ignore[reportOptionalMemberAccess]
    assert newest == 4
    assert summary.message.endswith(f"the last checkpoint is {one._files.checkpoints.path(4)}")  # pyright: ignore[reportOptionalMemberAccess]
    assert all(np.isfinite(t.numpy()).all() for t in one.model.parameters())
    assert "stopped at a number that is not finite" in str(summary)


def test_gradients_are_watched_on_their_way_back() -> None:
    one = learner("gradient")
    summary = one.fit(data(1), epochs=1)
    assert re.search(f"epoch 1, step 2: {SAID['gradient']}", summary.message)


def test_steps_are_skipped_or_taken_as_they_are() -> None:
    told = Told()
    skipping = learner("output", nonfinite="skip", hooks=[told])
    assert skipping.fit(data(2), epochs=2).reason == "finished"
    assert [note.text for note in told.of(sg.train.Note)] == [
        "the loss of step 3 is nan; the step is skipped", "the loss of step 7 is nan; the step is skipped",
    ]  # fmt: skip
    assert all(np.isfinite(e.values["train"]["loss"]) for e in told.of(sg.train.EpochEnded))
    ignoring = learner("output", nonfinite="ignore")
    assert ignoring.fit(data(2), epochs=1).reason == "finished"
    assert not np.isfinite(ignoring.model.second.weight.numpy()).all()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("how", SAID)
def test_skipped_steps_are_counted(how: str, tmp_path: Path, capsys: Any) -> None:
    told = Told()
    one = learner(how, nonfinite="skip", hooks=[told], run=tmp_path / "run", dashboard="plain")
    summary = one.fit(data(2), epochs=1)
    assert [e.values["train"]["skipped"] for e in told.of(sg.train.EpochEnded)] == [1]
    assert summary.skipped == 1
    assert "train skipped 1 loss" in capsys.readouterr().out
    resumed = learner(how, nonfinite="skip", run=tmp_path / "run")
    summary = resumed.fit([*data(2), *data(0)], epochs=3, resume=True)
    assert (summary.reason, summary.step, summary.skipped, summary.last["train.skipped"]) == ("finished", 20, 5, 2)
    assert "20 steps (5 skipped, as they were not finite)" in str(summary)
    assert "train.skipped" in (tmp_path / "run" / "epochs.csv").read_text().splitlines()[0]


def test_an_epoch_of_which_each_step_was_skipped_ends_training() -> None:
    one = learner("output", nonfinite="skip")
    bad = [data(0)[0]] * 2
    said = "epoch 1: each of its 2 steps was skipped, as it was not finite"
    summary = one.fit(bad, epochs=3)
    assert (summary.reason, summary.skipped, summary.rows) == ("nonfinite", 2, ())
    assert summary.message.startswith(
        f"{said}; the first output that is not finite is that of the layer 'second', Linear"
    )
    assert one.fit(bad, epochs=3).message == said


def test_replicas_count_what_they_skip() -> None:
    several = sg.train.DataParallel(network(), sg.optim.SGD(0.1), steep, device=["numpy", "numpy"], nonfinite="skip")
    several(X)
    assert several.skipped == 1


def test_a_metric_that_is_not_finite_stops_before_the_epoch_is_kept(tmp_path: Path) -> None:
    def loss(model: Any, x: Any, y: Any) -> Any:
        value = nn.CrossEntropyLoss()(model(x), y)
        return value, {"ratio": x.mean() / (x.mean() - 0.5)}

    one = sg.train.Learner(Net(""), sg.optim.SGD(0.01), loss, device="numpy", dashboard=None, run=tmp_path / "run")
    valid = [(np.full((4, 3), 0.5, np.float32), Y)]
    summary = one.fit(data(None), valid, epochs=2)
    assert (summary.reason, summary.message) == (
        "nonfinite", "epoch 1: valid.ratio is inf; there is no checkpoint yet",
    )  # fmt: skip


def test_what_was_not_finite_from_the_start_is_said() -> None:
    x = np.full((4, 3), np.nan, np.float32)
    assert "part 0 of the batch holds NaN" in learner("").fit([(x, Y)], epochs=1).message
    net = Net("")
    net = net.with_state({**net.state_dict(), "first.bias": np.array([0, np.inf, 0, 0], np.float32)})
    one = sg.train.Learner(net, sg.optim.SGD(0.01), nn.CrossEntropyLoss(), device="numpy", dashboard=None)
    assert "the parameter 'first.bias' holds infinity before the step" in one.fit(data(None), epochs=1).message


@pytest.mark.slow
def test_the_command_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(["train", "sums", "--quick", "--plain", "--device", "numpy", "--run", "run", "--lr", "1e30"])
    assert code == 1
    assert "stopped at a number that is not finite" in capsys.readouterr().out


def test_a_batch_of_a_type_that_numpy_lacks_is_named() -> None:
    bad = sg.tensor(np.full((2, 3), np.nan, np.float32)).cast(sg.bfloat16).numpy()
    objective = lambda model, x: (model(x.cast(sg.float32)).sum(), {})
    found = first_fault(objective, network(), [bad], sg.device("numpy"), np.zeros(2, np.uint32))
    assert found == "part 0 of the batch holds NaN"
