"""What is drawn in a step of training: other numbers in every step, those of the same seed again, and after a resume."""

from __future__ import annotations

import numpy as np
import pytest
from devices import RUNNERS

import singe as sg
from singe import nn
from singe.runtime import random_keys
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


def eagerly(steps: int, rate: float = 0.1) -> tuple[list[np.ndarray], nn.Module]:
    """What a loop without a TrainStep draws, and its model."""
    model, optimizer = Noisy().train(), sg.optim.SGD(rate)
    state = optimizer.init(model)
    found: list[np.ndarray] = []
    for _ in range(steps):
        (_, rest), grads = sg.value_and_grad(told, has_aux=True)(model, sg.tensor(X))
        model, state = optimizer.step(model, grads, state)
        found.append(rest["drawn"].numpy())
        sg.rand(2)  # others draw, too
    return found, model


def beside_others(step: TrainStep, steps: int) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for _ in range(steps):
        found += drawn(step, 1)
        sg.rand(2)
    return found


@RUNNERS
def test_a_step_without_a_seed_draws_what_an_eager_loop_draws(device_name: str) -> None:
    step = made(device_name)
    for seed in (5, 6):  # an old step begins anew with the shared sequence
        sg.manual_seed(seed)
        want, _ = eagerly(3)
        sg.manual_seed(seed)
        np.testing.assert_allclose(beside_others(step, 3), want, atol=1e-4)
    with nn.drawing(7):
        want, _ = eagerly(2)
    for each in (made(device_name), step):
        before = random_keys.shared()
        with nn.drawing(7):
            np.testing.assert_allclose(beside_others(each, 2), want, atol=1e-4)
        assert random_keys.shared() == before
    own = made(device_name, seed=5)
    sg.manual_seed(5)
    want = [told(Noisy().train(), sg.tensor(X))[1]["drawn"].numpy() for _ in range(2)]
    with nn.drawing(7):
        np.testing.assert_allclose(drawn(own, 2), want, atol=1e-4)
    step.seed(5)
    np.testing.assert_allclose(drawn(step, 2), want, atol=1e-4)


@pytest.mark.parametrize("steps", [0, 2])
def test_a_state_gives_a_step_its_own_sequence_which_a_resumed_one_shares(steps: int) -> None:
    sg.manual_seed(5)
    step, resumed = made("numpy"), made("numpy")
    drawn(step, steps)
    kept = step.state()
    sg.rand(3)  # what others draw is no part of it
    want = beside_others(step, 3)
    drawn(resumed, steps)
    resumed.resume(kept)
    np.testing.assert_array_equal(beside_others(resumed, 3), want)
    sg.manual_seed(5)
    step = made("numpy")
    drawn(step, steps)
    np.testing.assert_array_equal(step.state()["key"], kept["key"])
    shared = random_keys.shared()
    drawn(step, 1)
    assert random_keys.shared() == shared


def test_a_step_that_is_skipped_draws_other_numbers_afterwards() -> None:
    def loss(model: Noisy, x: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        y = model(sg.ones_like(x))
        return (y * x).sum(), {"drawn": y}

    step = TrainStep(Noisy(), sg.optim.SGD(0.1), loss, device="numpy", seed=1, nonfinite="skip")
    before = step.state()
    drawn_by = [step(np.full_like(X, np.inf))[1]["drawn"] for _ in range(2)]
    after = step.state()
    assert [name for name in before if not np.array_equal(before[name], after[name])] == ["key"]
    assert not np.array_equal(*drawn_by, equal_nan=True)


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


def test_replicas_without_a_seed_draw_of_the_shared_sequence_or_the_block() -> None:
    def parallel() -> DataParallel:
        return DataParallel(Noisy(), sg.optim.SGD(0.1), half, device=["numpy", "numpy"])

    def half(model: Noisy, x: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        y = model(x)
        return y.sum() * 0, {"drawn": y}

    def begun_again(step: DataParallel) -> list[np.ndarray]:
        sg.manual_seed(5)
        return drawn(step, 2)

    step = parallel()
    want = begun_again(step)
    assert not np.array_equal(*want)
    for each in (step, parallel()):
        np.testing.assert_array_equal(begun_again(each), want)
    before = random_keys.shared()
    with nn.drawing(7):
        want = drawn(step, 2)
    with nn.drawing(7):
        np.testing.assert_array_equal(drawn(parallel(), 2), want)
    assert random_keys.shared() == before
    resumed = parallel()
    resumed.resume(step.state())
    np.testing.assert_array_equal(begun_again(resumed), begun_again(step))
    step.seed(3)
    resumed.seed(3)
    np.testing.assert_array_equal(drawn(resumed, 2), drawn(step, 2))


def test_an_exported_step_begins_where_nobody_can_foresee_unless_it_has_its_own_sequence() -> None:
    def begins(step: TrainStep) -> list[int] | None:
        (key,) = (s for s in step.as_model(X).graph().states if s.name == "key")
        return None if key.initial is None else key.initial.tolist()

    step = made("numpy")
    assert begins(step) is None
    model = step.as_model(X)
    sg.manual_seed(3)
    want = drawn(step, 1)
    sg.manual_seed(3)
    np.testing.assert_allclose(model(X)["drawn"], want[0], atol=1e-5)
    step.seed(3)
    assert begins(step) == list(random_keys.begun(3))
    resumed = made("numpy")
    resumed.resume(step.state())
    assert begins(resumed) == list(random_keys.begun(3))


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
