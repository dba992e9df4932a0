"""What is drawn in a step of training: other numbers in every step, those of the same seed again, and after a resume."""

from __future__ import annotations

import numpy as np
import pytest
from devices import RUNNERS

import singe as sg
from singe import nn
from singe.train import DataParallel, TrainStep

X = np.ones((8, 4), np.float32)


class Noisy(nn.Module):
    """It learns nothing, and its loss is what it draws."""

    def __init__(self) -> None:
        self.weight = sg.zeros((4,))
        self.drop = nn.Dropout(0.5)

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        return x * self.weight + sg.randn_like(x) + self.drop(x)


def told(model: Noisy, x: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
    y = model(x) + sg.rand(8, 4) * 0.1
    return y.sum() * 0, {"drawn": y}


def made(device: str, seed: int | None = None) -> TrainStep:
    return TrainStep(Noisy().train(), sg.optim.SGD(0.1), told, device=device, seed=seed)


def drawn(step: TrainStep | DataParallel, steps: int) -> list[np.ndarray]:
    return [step(X)[1]["drawn"] for _ in range(steps)]


@RUNNERS
def test_each_step_draws_anew_and_a_resumed_one_goes_on(device_name: str) -> None:
    step = made(device_name, seed=3)
    want = drawn(step, 6)
    assert len({y.tobytes() for y in want}) == 6
    again, resumed = made(device_name, seed=3), made(device_name, seed=4)
    np.testing.assert_allclose(drawn(again, 3), want[:3], atol=1e-5)
    resumed.resume(again.state())
    np.testing.assert_allclose(drawn(resumed, 3), want[3:], atol=1e-5)
    np.testing.assert_allclose(drawn(made("numpy", seed=3), 2), want[:2], atol=1e-4)
    assert not np.allclose(drawn(made(device_name, seed=4), 1)[0], want[0])


def test_manual_seed_decides_what_steps_draw() -> None:
    found: list[list[np.ndarray]] = []
    for seed in (5, 5, 6):
        sg.manual_seed(seed)
        found.append([*drawn(made("numpy"), 2), *drawn(made("numpy"), 2), sg.rand(8, 4).numpy()])
    np.testing.assert_array_equal(found[0], found[1])
    assert len({y.tobytes() for y in (*found[0], *found[2])}) == 10


def test_replicas_draw_different_numbers_and_go_on_exactly() -> None:
    def parallel() -> DataParallel:
        return DataParallel(Noisy().train(), sg.optim.SGD(0.1), half, device=["numpy", "numpy"], seed=1)

    def half(model: Noisy, x: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        y = model(x)
        return y.sum() * 0, {"drawn": y}

    step = parallel()
    want = drawn(step, 2)
    step(X[:1])  # which gives the second replica nothing
    kept = step.state()
    later = drawn(step, 2)
    parts = [y[k : k + 4].tobytes() for y in (*want, *later) for k in (0, 4)]
    assert len({*parts}) == 8
    resumed = parallel()
    resumed.resume(kept)
    np.testing.assert_array_equal(drawn(resumed, 2), later)


@pytest.mark.slow
@RUNNERS
def test_an_exported_step_draws_on(device_name: str) -> None:
    step = made(device_name, seed=2)
    drawn(step, 1)
    model = step.as_model(X)
    want = drawn(step, 2)
    np.testing.assert_allclose([model(X)["drawn"] for _ in range(2)], want, atol=1e-5)
    model.seed(2)
    np.testing.assert_allclose(model(X)["drawn"], drawn(made(device_name, seed=2), 1)[0], atol=1e-5)
