"""Averaged: averages of weights as PyTorch's, on every device; in steps of training, in a Learner, resumed; what it refuses."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS
from recorded import recorded_cases

import singe as sg
from singe import nn, optim
from singe.errors import InputError

CASES, ARRAYS = recorded_cases("optim")
LABELS = [label for label, case in CASES.items() if case["kind"] == "averaged"]
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(8, 2)
Y = X.sum(1, keepdims=True)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3, rng=0), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1, rng=1))


def learner(folder: Path | None = None, **options: Any) -> sg.train.Learner:
    opt = optim.Averaged(optim.SGD(0.2), 0.8)
    given = {"device": "numpy", "averaged": True, "seed": 1, **options}
    return sg.train.Learner(network(), opt, nn.MSELoss(), run=folder, dashboard=None, **given)


def loader() -> sg.data.Loader:
    return sg.data.Loader(sg.data.Dataset.of((X, Y)), 4)


def same(found: nn.Module, expected: nn.Module) -> None:
    for path, x in expected.state_dict().items():
        assert found.state_dict()[path].numpy().tobytes() == x.numpy().tobytes(), path


@RUNNERS
@pytest.mark.parametrize("label", LABELS)
def test_averages_are_those_of_pytorch(label: str, device_name: str) -> None:
    case, names = CASES[label], ("first.weight", "first.bias", "last.weight")
    opt = optim.Averaged(optim.SGD(**case["options"]), case["decay"])
    on = sg.Fusion(device_name)
    model = {name: sg.tensor(ARRAYS[f"weights/{name}"], device=on) for name in names}
    state = opt.init(model)
    for k in range(len(ARRAYS[f"gradients/{names[0]}"])):
        grads = {name: sg.tensor(ARRAYS[f"gradients/{name}"][k], device=on) for name in names}
        model, state = opt.step(model, grads, state)
        for name, x in opt.averaged(model, state).items():
            np.testing.assert_allclose(x.numpy(), ARRAYS[f"{label}/{name}"][k], rtol=1e-5, atol=1e-5)


@RUNNERS
def test_a_compiled_step_averages_once_for_each_update(device_name: str) -> None:
    opt = optim.Averaged(optim.ReduceLROnPlateau(optim.SGD(0.1)), 0.75)
    step = sg.train.TrainStep(network(), opt, nn.MSELoss(), device=device_name, accumulate=2, clip=1.0)
    averages: dict[str, np.ndarray] = {}
    for update in range(3):
        step(X, Y)
        step(X, Y)
        now = {path: p.numpy() for path, p in step.model.named_parameters()}
        averages = now if not update else {path: 0.75 * averages[path] + 0.25 * x for path, x in now.items()}
    found = step.averaged()
    for path, p in found.named_parameters():
        np.testing.assert_allclose(p.numpy(), averages[path], rtol=1e-5, atol=1e-6, err_msg=path)
    for (path, x), (_, y) in zip(found.named_buffers(), step.model.named_buffers(), strict=True):
        np.testing.assert_array_equal(x.numpy(), y.numpy(), path)


def test_a_step_that_is_skipped_leaves_the_averages() -> None:
    opt = optim.Averaged(optim.SGD(0.1), 0.5)
    step = sg.train.TrainStep(network(), opt, nn.MSELoss(), device="numpy", nonfinite="skip")
    step(X, Y)
    before = step.averaged()
    step(X * np.float32("nan"), Y)
    assert step.skipped == 1
    same(step.averaged(), before)


def test_weights_of_fewer_bits_have_averages_in_float32() -> None:
    model = nn.Linear(2, 1, rng=0).cast("float16")
    opt = optim.Averaged(optim.SGD(0.1))
    state = opt.init(model)
    assert state["average.weight"].dtype == sg.float32
    assert opt.averaged(model, state).weight.dtype == sg.float16


@pytest.mark.parametrize("device", ["numpy", ["numpy", "numpy"]])
def test_a_learner_validates_with_the_averages_and_goes_on_from_a_checkpoint(device: Any, tmp_path: Path) -> None:
    whole = learner(device=device)
    summary = whole.fit(loader(), loader(), epochs=4)
    assert summary.last["valid.loss"] == whole.evaluate(loader())["loss"]
    assert whole.evaluate(loader(), whole._step.model)["loss"] != whole.evaluate(loader())["loss"]
    same(whole.model, whole._step.averaged())
    learner(tmp_path / "run", device=device).fit(loader(), loader(), epochs=2)
    again = learner(tmp_path / "run", device=device)
    again.fit(loader(), loader(), epochs=4, resume=True)
    same(again._step.averaged(), whole._step.averaged())
    same(again._step.model, whole._step.model)
    same(again.best, whole.best)


def test_a_learner_tells_the_rate_of_the_optimiser_within() -> None:
    rates: list[float] = []
    trained = sg.train.Learner(
        network(), optim.Averaged(optim.SGD(optim.StepLR(0.5, 1))), nn.MSELoss(), device="numpy", dashboard=None,
        hooks=[lambda e: rates.append(e.values["lr"]) if isinstance(e, sg.train.BatchEnded) else None],
    )  # fmt: skip
    trained.fit(loader())
    assert rates == pytest.approx([0.5, 0.05])
    same(trained.model, trained._step.model)


def test_it_is_data() -> None:
    opt = optim.Averaged(optim.AdamW(1e-3), 0.99)
    assert pickle.loads(pickle.dumps(opt)) == opt


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.Averaged(0.999), r"got 0\.999, expected an optimiser that it goes around"),  # pyright: ignore[reportArgumentType]
        (lambda: optim.Averaged(optim.Accumulated(optim.SGD(), 2)), "Accumulated goes around it"),  # pyright: ignore[reportArgumentType]
        (lambda: optim.Averaged(optim.SGD(), 1.0), r"decay=1\.0, expected at least 0 and less than 1"),
        (
            lambda: sg.train.TrainStep(network(), optim.SGD(), nn.MSELoss(), device="numpy").averaged(),
            "keeps no averages; expected one such as",
        ),
        (
            lambda: sg.train.Learner(network(), optim.SGD(), nn.MSELoss(), device="numpy", averaged=True),
            "keeps no averages; expected one such as",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()
