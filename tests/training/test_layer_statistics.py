"""Figures of weights and gradients while a Learner trains: they are those of the step, and change nothing."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.errors import InputError
from singe.train.events import BatchEnded, Event, LayersObserved
from singe.train.monitor.logs.tensorboard import histograms_of
from singe.train.steps.step import TrainStep

on_devices = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
pytestmark = pytest.mark.slow
X, Y = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32), np.arange(8) % 3


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4, rng=0), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 3, rng=1))


def loss(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x), y)


@on_devices
def test_the_gradients_are_those_of_the_next_step(device_name: str) -> None:
    """With what it draws, before they are clipped; and it draws as if nobody had asked."""
    one, other = (TrainStep(network(), sg.optim.SGD(1.0), loss, device=device_name, seed=3) for _ in range(2))
    for _ in range(2):
        before = one.state()
        found = one.gradients(X, Y)
        assert all(np.array_equal(x, before[name]) for name, x in one.state().items())
        weights = {path: t.numpy() for path, t in one.model.named_parameters()}
        assert one(X, Y) == other(X, Y)
        assert found.keys() == weights.keys()
        for path, t in one.model.named_parameters():
            np.testing.assert_allclose(weights[path] - t.numpy(), found[path], atol=1e-5)


def test_they_are_neither_clipped_nor_scaled() -> None:
    plain = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(4, 3, rng=1))

    def made(clip: float | None = None, precision: Literal["float32", "float16"] = "float32") -> TrainStep:
        return TrainStep(plain, sg.optim.SGD(0.0), loss, device="numpy", clip=clip, precision=precision)

    steps = [made(), made(clip=1e-3), made(precision="float16")]
    for _ in range(4):  # until the scale of float16 is small enough
        steps[2](X, Y)
    first, clipped, scaled = (step.gradients(X, Y) for step in steps)
    for path, g in first.items():
        np.testing.assert_array_equal(g, clipped[path])
        np.testing.assert_allclose(g, scaled[path], atol=2e-2)


def learner(run: Path | None, hooks: list[Event], **options: Any) -> sg.train.Learner:
    return sg.train.Learner(
        network(), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy", run=run, seed=1, dashboard=None, hooks=[hooks.append], **options
    )  # fmt: skip


def test_a_learner_tells_and_keeps_them(tmp_path: Path) -> None:
    told: list[Event] = []
    plain: list[Event] = []
    data = [(X, Y)] * 3
    learner(tmp_path, told, statistics=2).fit(data, epochs=1)
    learner(tmp_path, told, statistics=2).fit(data, epochs=2, resume=True)
    learner(None, plain).fit(data, epochs=2)
    losses = [[e.values["loss"] for e in events if isinstance(e, BatchEnded)] for events in (told, plain)]
    assert losses[0] == losses[1]
    seen = [e for e in told if isinstance(e, LayersObserved)]
    assert [(e.epoch, e.step) for e in seen] == [(1, 1), (1, 3), (2, 5)]
    weight = network().state_dict()["0.weight"].numpy()
    row = seen[0].weights["0.weight"]
    assert row.norm == pytest.approx(float(np.linalg.norm(weight)))
    assert sum(row.bins) == weight.size
    assert seen[0].gradients["3.bias"].norm > 0
    rows = list(csv.DictReader((tmp_path / "layers.csv").read_text().splitlines()))
    names = [row.name for row in seen[0].gradients.rows]
    assert [(r["step"], r["what"], r["layer"]) for r in rows] == [
        (str(e.step), what, name) for e in seen for what in ("weight", "gradient") for name in names
    ]
    assert float(rows[0]["norm"]) == pytest.approx(row.norm, rel=1e-5)
    events = b"".join(path.read_bytes() for path in (tmp_path / "tensorboard").iterdir())
    assert events.count(b"gradient norm/0.weight") == events.count(b"weight/0.weight") == 3
    assert histograms_of({"weight/0.weight": row}).partition(b"weight/0.weight")[2] in events


def test_what_cannot_be_told_is_refused() -> None:
    for wrong in (0, True, "2"):
        with pytest.raises(InputError, match=r"statistics: got .*, expected a number of steps"):
            learner(None, [], statistics=wrong)
    with pytest.raises(InputError, match="on one device"):
        sg.train.Learner(network(), sg.optim.SGD(0.1), loss, device=["numpy", "numpy"], statistics=1)


def test_figures_of_numbers_that_are_not_finite_have_a_norm_of_the_others() -> None:
    step = TrainStep(network(), sg.optim.SGD(1.0), lambda model, x: model(x).sum() * math.inf, device="numpy")
    assert not np.isfinite(step.gradients(X)["3.bias"]).all()
