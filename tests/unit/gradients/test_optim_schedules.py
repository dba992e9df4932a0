"""Schedules of learning rates: as PyTorch's, of Python ints and of tensors on every device; what they refuse."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS, slow
from recorded import recorded_cases

import singe as sg
from singe import optim
from singe.errors import InputError

CASES, ARRAYS = recorded_cases("optim")
LABELS = [label for label, case in CASES.items() if case["kind"] == "schedule"]
UPDATES = 64

OWN: dict[str, tuple[optim.Schedule, Callable[[int], float]]] = {
    "NoamLR": (optim.NoamLR(16, 10, 0.5), lambda n: 0.5 * 16**-0.5 * min((n + 1) ** -0.5, (n + 1) * 10**-1.5)),
    "OneCycleLR, after its end": (
        optim.OneCycleLR(0.3, 21, 0.5, "linear", 10, 5),
        lambda n: float(np.interp(n, [0, 9.5, 20], [0.03, 0.3, 0.006])),
    ),
    "OneCycleLR, at once at its top": (
        optim.OneCycleLR(0.3, 10, 0.1, "linear", 10, 5),
        lambda n: float(np.interp(n, [0, 9], [0.3, 0.006])),
    ),
    "WarmUp": (optim.WarmUp(0.3, 8), lambda n: 0.3 * min(1, (n + 1) / 8)),
    "WarmUp, then a cosine": (
        optim.WarmUp(optim.CosineAnnealingLR(0.3, 50), 8),
        lambda n: 0.3 * (n + 1) / 8 if n < 8 else 0.15 * (1 + math.cos(math.pi * (n - 8) / 50)),
    ),
    "a sequence of a number and a schedule": (
        optim.SequentialLR([0.5, optim.StepLR(0.3, 10)], [20]),
        lambda n: 0.5 if n < 20 else 0.3 * 0.1 ** ((n - 20) // 10),
    ),
    "a product": (10 * optim.ExponentialLR(0.3, 0.9) * optim.StepLR(1.0, 5), lambda n: 3 * 0.9**n * 0.1 ** (n // 5)),
    "a schedule of a schedule": (
        optim.LinearLR(optim.ExponentialLR(0.3, 0.9), total_iters=4, start_factor=0.5),
        lambda n: 0.3 * 0.9**n * min(1, 0.5 + n / 8),
    ),
}


def schedule(label: str) -> optim.Schedule:
    case = CASES[label]
    made = [getattr(optim, name)(case["lr"], **options) for name, options in case["parts"]]
    if case["name"] == "SequentialLR":
        return optim.SequentialLR(made, case["milestones"])
    if case["name"] == "ChainedScheduler":
        rest = [getattr(optim, name)(1.0, **options) for name, options in case["parts"][1:]]
        return optim.ChainedScheduler([made[0], *rest])
    return made[0]


def expected(label: str) -> tuple[optim.Schedule, np.ndarray]:
    if label in OWN:
        made, rate = OWN[label]
        return made, np.array([rate(n) for n in range(UPDATES)])
    return schedule(label), ARRAYS[label]


@pytest.mark.parametrize("label", [*LABELS, *OWN])
def test_rates_of_ints_are_those_of_pytorch(label: str) -> None:
    made, rates = expected(label)
    found = [made(n) for n in range(UPDATES)]
    assert {type(x) for x in found} == {float}
    np.testing.assert_allclose(found, rates, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@RUNNERS
def test_rates_of_tensors_are_those_of_ints(device_name: str) -> None:
    """All schedules in one Program, for each number of updates."""
    labels = [*LABELS, *OWN]
    all_of_them = [expected(label)[0] for label in labels]

    def rates(step: sg.Tensor) -> Any:
        return sg.stack([s(step) for s in all_of_them])

    program = sg.compile(rates, np.int32(0), device=device_name)
    found = np.array([program(np.int32(n)) for n in range(UPDATES)]).T
    assert found.dtype == np.float32
    for label, got in zip(labels, found, strict=True):
        np.testing.assert_allclose(got, expected(label)[1], rtol=2e-6, atol=1e-7, err_msg=label)


@pytest.mark.parametrize("device_name", ["numpy", *slow("wasm", "webgpu")], indirect=True)
def test_late_steps_are_counted_exactly(device_name: str) -> None:
    for made, steps in (
        (optim.StepLR(1.0, 7, 0.999999), (7 * 123456 - 1, 7 * 123456)),
        (optim.CosineAnnealingWarmRestarts(1.0, 10, 2), (10 * (2**20 - 1) - 1, 10 * (2**20 - 1))),
        (optim.MultiStepLR(1.0, [5, 10_000_019]), (10_000_018, 10_000_019)),
    ):
        for n in steps:
            got = made(sg.tensor(n, dtype="int32", device=device_name)).item()
            assert got == pytest.approx(made(n), rel=2e-5, abs=1e-6), (made, n)


def test_a_schedule_is_data() -> None:
    for label in LABELS:
        made = schedule(label)
        assert pickle.loads(pickle.dumps(made)) == made


def test_any_function_is_a_schedule() -> None:
    opt = optim.SGD(lambda step: 0.5 / (step + 1))
    x = sg.zeros(1)
    state = opt.init(x)
    for n in range(3):
        before = x.item()
        x, state = opt.step(x, {"": sg.ones(1)}, state)
        assert before - x.item() == pytest.approx(0.5 / (n + 1))
    assert opt.rate(1) == 0.25


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.StepLR(0.1, 0), "step_size=0, expected a whole number of at least 1"),
        (lambda: optim.CosineAnnealingLR(0.1, 2.5), "T_max=2.5"),
        (lambda: optim.ExponentialLR(0.1, 0.0), "gamma=0.0, expected a positive number"),
        (lambda: optim.CosineAnnealingWarmRestarts(0.1, 5, 0), "T_mult=0"),
        (lambda: optim.SequentialLR([0.1, 0.2], [3, 4]), "one fewer than schedules"),
        (lambda: optim.SequentialLR([0.1, 0.2, 0.3], [4, 3]), "rising milestones"),
        (lambda: optim.OneCycleLR(0.1, 0), "total_steps=0"),
        (lambda: optim.OneCycleLR(-0.1, 9), r"OneCycleLR: got max_lr=-0\.1, expected at least 0"),
        (lambda: optim.OneCycleLR(0.1, 9, 1.5), r"pct_start=1\.5, expected at least 0 and at most 1"),
        (lambda: optim.OneCycleLR(0.1, 9, anneal_strategy="cosine"), "'cosine', expected 'cos' or 'linear'"),
        (lambda: optim.OneCycleLR(0.1, 9, div_factor=0), "div_factor=0, expected more than 0"),
        (lambda: optim.ChainedScheduler([]), "no schedules"),
        (lambda: optim.ConstantLR(-0.1), r"ConstantLR: got lr=-0\.1, expected at least 0"),
        (lambda: optim.WarmUp(float("nan"), 8), "WarmUp: got lr=nan"),
        (lambda: optim.CosineAnnealingLR("0.1", 8), "CosineAnnealingLR: got lr='0.1'"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()
