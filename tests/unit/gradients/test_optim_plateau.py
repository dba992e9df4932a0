"""ReduceLROnPlateau: rates as PyTorch's, on every device; in steps of training, in a Learner, resumed; what it refuses."""

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
LABELS = [label for label, case in CASES.items() if case["kind"] == "plateau"]
VALUES = ARRAYS["plateau values"]
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(8, 2)
Y = X.sum(1, keepdims=True)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3, rng=0), nn.Tanh(), nn.Linear(3, 1, rng=1))


def learner(optimizer: Any, folder: Path | None = None, **options: Any) -> sg.train.Learner:
    return sg.train.Learner(
        network(), optimizer, nn.MSELoss(), run=folder, seed=1, dashboard=None, **{"device": "numpy", **options}
    )


def loader() -> sg.data.Loader:
    return sg.data.Loader(sg.data.Dataset.of((X, Y)), 4)


@pytest.mark.parametrize("label", LABELS)
def test_rates_are_those_of_pytorch(label: str) -> None:
    case = CASES[label]
    opt = optim.ReduceLROnPlateau(optim.SGD(case["lr"]), **case["options"])
    state = opt.init(sg.zeros(1))
    found: list[float] = []
    for value in VALUES:
        state = opt.observe(float(value), state)
        found.append(opt.rate(0, state["rate_scale"].item()))
    np.testing.assert_allclose(found, ARRAYS[label], rtol=1e-6)


@RUNNERS
def test_a_compiled_step_moves_by_the_reduced_rates(device_name: str) -> None:
    """One Program serves all rates, with a schedule, groups, accumulation and clipping."""
    rates = optim.SGD(optim.StepLR(0.5, 2, 0.5), groups={"1.*": {"lr": 0.125}})
    opt = optim.ReduceLROnPlateau(rates, patience=0, factor=0.5, min_lr=0.05)
    model = nn.Sequential(nn.Linear(1, 1, bias=False, rng=0), nn.Linear(1, 1, bias=False, rng=1))

    def both(model: Any, x: Any) -> Any:
        return (model[0].weight * x).sum() + (model[1].weight * x).sum()

    step = sg.train.TrainStep(model, opt, both, device=device_name, accumulate=2, clip=100.0)
    weights = [step.model.state_dict()[name].item() for name in ("0.weight", "1.weight")]
    for update, scale in enumerate((1, 1, 0.5, 0.25)):
        for _ in range(2):
            step(np.ones((1, 1), np.float32))
        moved = [
            w - step.model.state_dict()[name].item() for w, name in zip(weights, ("0.weight", "1.weight"), strict=True)
        ]
        weights = [w - m for w, m in zip(weights, moved, strict=True)]
        expected = [max(rate * scale, min(rate, 0.05)) for rate in (0.5 * 0.5 ** (update // 2), 0.125)]
        assert moved == pytest.approx(expected, abs=1e-6), update
        assert step.observe(1.0) == (1, 0.5, 0.25, 0.25)[update]  # at last both rates are the least one


def test_muon_and_its_adamw_are_reduced() -> None:
    opt = optim.ReduceLROnPlateau(optim.Muon(0.1, adamw=optim.AdamW(0.1)), patience=0, factor=0.0, eps=0.0)
    model = network()
    state = opt.init(model)
    for _ in range(2):
        state = opt.observe(1.0, state)
    after, _ = opt.step(model, {p: sg.ones_like(x) for p, x in model.named_parameters()}, state)
    for path, x in model.state_dict().items():
        np.testing.assert_array_equal(after.state_dict()[path].numpy(), x.numpy(), path)


def test_a_step_goes_on_from_its_state_to_the_bit() -> None:
    def made() -> sg.train.TrainStep:
        opt = optim.ReduceLROnPlateau(optim.AdamW(0.1), patience=1, cooldown=1)
        return sg.train.TrainStep(network(), opt, nn.MSELoss(), device="numpy", seed=0)

    def trained(step: sg.train.TrainStep, count: int) -> None:
        for _ in range(count):
            step(X, Y)
            step.observe(1.0)

    whole, first, second = made(), made(), made()
    trained(whole, 8)
    trained(first, 3)
    second.resume(first.state())
    trained(second, 5)
    assert {name: x.tobytes() for name, x in second.state().items()} == {
        name: x.tobytes() for name, x in whole.state().items()
    }


@pytest.mark.parametrize("device", ["numpy", ["numpy", "numpy"]])
def test_a_learner_tells_it_the_value_of_each_epoch_and_goes_on_from_a_checkpoint(device: Any, tmp_path: Path) -> None:
    opt = optim.ReduceLROnPlateau(optim.SGD(0.05), patience=0, factor=0.5, threshold=0.5)

    def told(to: list[float]) -> Callable[[Any], None]:
        return lambda event: (
            to.append(event.values["lr"]) if isinstance(event, sg.train.BatchEnded) and event.phase == "train" else None
        )

    rates: list[float] = []
    parts: list[float] = []
    whole = learner(opt, device=device, hooks=[told(rates)])
    whole.fit(loader(), loader(), epochs=6)
    assert rates[0] == rates[2] == 0.05 > rates[-1]
    assert all(rates[k] == rates[k + 1] for k in range(0, 12, 2))
    learner(opt, tmp_path / "run", device=device, hooks=[told(parts)]).fit(loader(), loader(), epochs=4)
    again = learner(opt, tmp_path / "run", device=device, hooks=[told(parts)])
    again.fit(loader(), loader(), epochs=6, resume=True)
    assert parts == rates
    for path, x in whole.model.state_dict().items():
        assert again.model.state_dict()[path].numpy().tobytes() == x.numpy().tobytes(), path


def test_it_is_data() -> None:
    opt = optim.ReduceLROnPlateau(optim.AdamW(1e-3), "max", value="valid.accuracy")
    assert pickle.loads(pickle.dumps(opt)) == opt


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.ReduceLROnPlateau(1e-3), r"got 0\.001, expected an optimiser"),  # pyright: ignore[reportArgumentType]
        (lambda: optim.ReduceLROnPlateau(optim.Accumulated(optim.SGD(), 2)), "Accumulated and Averaged go around it"),  # pyright: ignore[reportArgumentType]
        (lambda: optim.ReduceLROnPlateau(optim.SGD(), "least"), "mode='least', expected 'min' or 'max'"),  # pyright: ignore[reportArgumentType]
        (lambda: optim.ReduceLROnPlateau(optim.SGD(), factor=1.0), r"factor=1\.0, expected at least 0 and less than 1"),
        (
            lambda: optim.ReduceLROnPlateau(optim.SGD(), patience=-1),
            "patience=-1, expected a whole number of at least 0",
        ),
        (
            lambda: optim.ReduceLROnPlateau(optim.SGD(), min_lr=float("nan")),
            "min_lr=nan, expected a number of at least 0",
        ),
        (lambda: optim.ReduceLROnPlateau(optim.SGD(), threshold_mode="x"), "'rel' or 'abs'"),  # pyright: ignore[reportArgumentType]
        (lambda: optim.ReduceLROnPlateau(optim.SGD(), value="loss"), "as in 'valid.loss'"),
        (
            lambda: learner(optim.ReduceLROnPlateau(optim.SGD())).fit(loader()),
            "ReduceLROnPlateau watches 'valid.loss', and",
        ),
        (
            lambda: learner(optim.ReduceLROnPlateau(optim.SGD(), value="train.accuracy")).fit(loader()),
            "there is no value 'train.accuracy' to watch; there are loss",
        ),
        (
            lambda: sg.train.TrainStep(network(), optim.SGD(), nn.MSELoss(), device="numpy").observe(1.0),
            "has no use for it",
        ),
        (
            lambda: sg.train.TrainStep(
                network(), optim.ReduceLROnPlateau(optim.SGD()), nn.MSELoss(), device="numpy"
            ).observe("1.0"),  # pyright: ignore[reportArgumentType]
            "got '1.0', expected the value of an epoch as a number",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()
