"""TrainStep: one Program gives the losses of a loop over Tensors, on every device; its state is all that it depends on."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.runtime import random_keys
from singe.train.steps.step import TrainStep

on_devices = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)


def network() -> nn.Module:
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False, rng=rng), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(4 * 3 * 3, 5, rng=rng),
    ).train()  # fmt: skip


def loss(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x), y)


def batches(count: int, size: int = 6) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((size, 1, 6, 6)).astype(np.float32), rng.integers(0, 5, size)) for _ in range(count)]


def by_hand(optimizer: Any, data: Any) -> tuple[list[float], nn.Module]:
    """The same training, op by op."""
    model: Any = network()
    state = optimizer.init(model)
    losses = []
    for x, y in data:

        def observed(model: Any, x: Any, y: Any) -> Any:
            with nn.observing() as seen:
                value = loss(model, x, y)
            return value, model.with_modules(seen)

        ((value, model), grads) = sg.value_and_grad(observed, has_aux=True)(model, x, y)
        model, state = optimizer.step(model, grads, state)
        losses.append(value.item())
    return losses, model


@on_devices
def test_a_step_is_what_a_loop_does(device_name: str) -> None:
    optimizer, data = sg.optim.AdamW(lr=0.01), batches(4)
    wanted, model = by_hand(optimizer, data)
    step = TrainStep(network(), optimizer, loss, device=device_name)
    np.testing.assert_allclose([step(x, y) for x, y in data], wanted, rtol=1e-4)
    for path, t in step.model.state_dict().items():
        np.testing.assert_allclose(t.numpy(), model.state_dict()[path].numpy(), rtol=1e-3, atol=1e-4, err_msg=path)
    assert len(step._runs.models) == 1


@on_devices
def test_weights_stay_where_they_are(device_name: str) -> None:
    """A run copies no state, and batches of another size use the same states."""
    step = TrainStep(network(), sg.optim.SGD(lr=0.1, momentum=0.9), loss, device=device_name, seed=1)
    for x, y in (*batches(2), *batches(1, 3), *batches(1)):
        step(x, y)
    assert tuple(step.state()["key"]) == random_keys.begun(1)  # nothing was drawn
    assert step.state()["optimizer.step"] == 4


def test_a_state_is_all_that_a_step_depends_on() -> None:
    def made(seed: int) -> TrainStep:
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(36, 5, rng=0)).train()
        return TrainStep(model, sg.optim.Adam(lr=0.01), loss, device="wasm", seed=seed, clip=0.5)

    data = batches(6)
    first, second, compiled, third = made(3), made(0), made(0), made(4)
    losses = [first(*b) for b in data[:3]]
    second.resume(first.state())
    compiled.program(*data[0])
    compiled.resume(asyncio.run(first.state_async()))
    rest = [first(*b) for b in data[3:]]
    assert [second(*b) for b in data[3:]] == rest
    assert [compiled(*b) for b in data[3:]] == rest
    assert [third(*b) for b in data[:3]] != losses


def test_a_model_can_be_lent_without_a_copy() -> None:
    """It has the weights of the moment, before and after further steps."""
    for device in ("numpy", "wasm"):
        on = sg.Fusion(sg.device(device))
        step = TrainStep(network(), sg.optim.SGD(lr=0.1), loss, device=device)
        lent: Any = step.lent(on)
        for k, batch in enumerate([None, *batches(2)]):
            if batch is not None:
                step(*batch)
                lent = lent if k > 1 else step.lent(on)
            for path, t in step.model.state_dict().items():
                np.testing.assert_array_equal(lent.state_dict()[path].numpy(), t.numpy(), err_msg=path)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_a_model_is_trained_in_training_mode_and_comes_back_in_inference_mode(given: bool, training: bool) -> None:
    """Batch norms learn their statistics in training mode only; training=False leaves each layer in its mode."""
    network_given: Any = network().train(given)
    step = TrainStep(network_given, sg.optim.SGD(lr=0.1), loss, device="wasm", training=training)
    for batch in batches(2):
        step(*batch)
    model: Any = step.model
    assert model[1].training is False
    assert network_given[1].training is given
    training = training or given
    states = model.state_dict()
    assert {t.device.name for t in states.values()} == {"numpy"}
    (count,) = (t.numpy() for path, t in states.items() if path.endswith("num_batches_tracked"))
    assert count == (2 if training else 0)


def test_accumulated_batches_make_one_update() -> None:
    data = batches(4)
    step = TrainStep(network(), sg.optim.SGD(lr=0.1), loss, device="numpy", accumulate=2, clip=1.0)
    before = step.state()
    step(*data[0])
    between = step.state()
    step(*data[1])
    after = step.state()
    weight = "model.0.weight"
    assert np.array_equal(before[weight], between[weight])
    assert not np.array_equal(before[weight], after[weight])


def test_what_a_loss_tells() -> None:
    def telling(model: Any, x: Any, y: Any) -> Any:
        prediction = model(x)
        return nn.CrossEntropyLoss()(prediction, y), {"prediction": prediction}

    value, told = TrainStep(network(), sg.optim.SGD(lr=0.1), telling, device="numpy")(*batches(1)[0])
    assert value > 0
    assert told["prediction"].shape == (6, 5)


@on_devices
def test_half_precision_learns_and_skips_what_overflows(device_name: str) -> None:
    data = batches(1) * 8
    step = TrainStep(network(), sg.optim.AdamW(lr=0.01), loss, device=device_name, precision="float16")
    losses = [step(x, y) for x, y in data]
    assert losses[-1] < 0.8 * losses[0]
    before = step.state()
    x, y = data[0]
    step(x * 1e6, y)  # beyond float16
    after = step.state()
    assert after["scale"][0] == before["scale"][0] / 2
    assert np.array_equal(before["model.0.weight"], after["model.0.weight"])


@on_devices
def test_bfloat16_follows_float32_as_far_as_it_is_rounded(device_name: str) -> None:
    seen: list[Any] = []

    def noted(model: Any, x: Any, y: Any) -> Any:
        found = model(x)
        seen.extend((x.dtype, next(model.parameters()).dtype, found.dtype))
        return nn.CrossEntropyLoss()(found, y)

    data = batches(1) * 8
    steps = [
        TrainStep(network(), sg.optim.AdamW(lr=0.01), noted, device=device_name, precision=precision)
        for precision in ("bfloat16", "float32")
    ]
    losses, exact = ([step(x, y) for x, y in data] for step in steps)
    assert seen[:3] == [sg.bfloat16] * 3
    assert losses[-1] < 0.8 * losses[0]
    np.testing.assert_allclose(losses, exact, rtol=0.04)
    state = steps[0].state()
    assert "scale" not in state
    assert {a.dtype.name for name, a in state.items() if "weight" in name} == {"float32"}
    x, y = data[0]
    assert np.isfinite(steps[0](x * 1e6, y))  # beyond float16


def test_a_frozen_part_stays() -> None:
    model: Any = network().freeze("0.*")
    step = TrainStep(model, sg.optim.SGD(lr=0.1), loss, device="numpy")
    before = step.state()
    step(*batches(1)[0])
    after = step.state()
    assert np.array_equal(before["model.0.weight"], after["model.0.weight"])
    assert not np.array_equal(before["model.5.weight"], after["model.5.weight"])


def test_a_state_of_another_step_is_refused() -> None:
    step = TrainStep(network(), sg.optim.SGD(lr=0.1), loss, device="numpy")
    other = TrainStep(network(), sg.optim.Adam(lr=0.1), loss, device="numpy").state()
    with pytest.raises(sg.InputError, match="unknown 'optimizer"):
        step.resume(other)
    with pytest.raises(sg.ShapeError, match="shape"):
        step.resume({**step.state(), "key": np.zeros(3, np.uint32)})
    with pytest.raises(sg.InputError, match="precision"):
        TrainStep(network(), sg.optim.SGD(lr=0.1), loss, precision="float8")  # pyright: ignore[reportArgumentType]


def towards(model: Any, x: Any, other: Any) -> Any:
    return ((model(x) - other(x).detach()) ** 2).mean()


@on_devices
def test_a_part_of_a_batch_may_be_a_module(device_name: str) -> None:
    step = TrainStep(network(), sg.optim.SGD(0.1), towards, device=device_name)
    (x, _), others = batches(1)[0], [network().map(lambda t, k=k: t * k) for k in (1.5, 0.5)]
    model, wanted = network(), []
    for other in others:
        with nn.observing() as seen:
            (value, grads) = sg.value_and_grad(towards)(model, sg.tensor(x), other)
        model, _ = sg.optim.SGD(0.1).step(model.with_modules(seen), grads, sg.optim.SGD(0.1).init(model))
        wanted.append(value.item())
    np.testing.assert_allclose([step(x, other) for other in others], wanted, rtol=1e-4)
    assert len(step._runs.models) == 1, "another module of the same form takes the same Program"
    step(x, others[0].eval())
    assert len(step._runs.models) == 2, "what a module does is part of its form"
    assert [p.name for p in step.as_model(x, others[0]).inputs][:2] == ["x", "other.0.weight"]


def test_a_loss_may_be_a_module() -> None:
    by_module, by_function = (
        TrainStep(network(), sg.optim.SGD(0.1), f, device="numpy") for f in (nn.CrossEntropyLoss(), loss)
    )
    assert [by_module(*batch) for batch in batches(2)] == [by_function(*batch) for batch in batches(2)]


def test_habits_of_pytorch_are_answered() -> None:
    model = network()
    with pytest.raises(sg.InputError, match=r"Adam: got <generator.*does not hold parameters"):
        sg.optim.Adam(model.parameters(), lr=1e-3)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(sg.InputError, match=r"the order is \(model, optimizer, loss\)"):
        TrainStep(model, nn.CrossEntropyLoss(), sg.optim.SGD(0.1))  # pyright: ignore[reportArgumentType]
    for name, instead in (("load_state_dict", "with_state"), ("cuda", "to"), ("requires_grad_", "freeze")):
        with pytest.raises(AttributeError, match=rf"no '{name}'; in its place: module = module\.{instead}"):
            getattr(model, name)


@on_devices
def test_a_step_evaluates_in_inference_mode_with_its_weights(device_name: str) -> None:
    """Dropout does nothing, batch norms use their statistics, and nothing is learned."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 5, rng=0), nn.BatchNorm1d(5), nn.Dropout(0.5))
    step = TrainStep(model, sg.optim.SGD(lr=0.1), nn.MSELoss(), device=device_name)
    x, y = batches(1)[0][0], np.zeros((len(batches(1)[0][0]), 5), np.float32)
    for _ in range(2):
        step(x, y)
        prediction = step.model(sg.tensor(x))
        value, told = step.evaluate(x, y)
        np.testing.assert_allclose(told["prediction"], prediction.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(value, nn.MSELoss()(prediction, sg.tensor(y)).item(), rtol=1e-4)
    before = step.state()
    step.evaluate(x, y)
    for name, array in step.state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    assert asyncio.run(step.evaluate_async(x, y))[0] == step.evaluate(x, y)[0]


class TwoParts(nn.Module):
    def __init__(self) -> None:
        self.body, self.head = nn.Linear(3, 2, rng=0), nn.Linear(2, 2, rng=1)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


@on_devices
def test_a_loss_that_teaches_the_model_nothing_is_refused(device_name: str) -> None:
    outer, x, y = TwoParts(), np.ones((2, 3), np.float32), np.zeros((2, 2), np.float32)
    placed = outer.to(device_name)
    losses: list[Any] = [
        lambda model, x, y: nn.MSELoss()(placed(x), y),
        lambda model, x, y: (x * 2).mean(),
        lambda model, x, y: nn.MSELoss()(model.body(x), y),
    ]
    for loss, model in zip(losses, [outer, outer, outer.freeze("body")], strict=True):
        step = TrainStep(model, sg.optim.SGD(0.1), loss, device=device_name)
        with pytest.raises(sg.InputError, match="depends on no parameter of the step's model"):
            step(x, y)


def test_a_part_that_is_frozen_and_a_model_in_inference_mode_learn() -> None:
    x, y = np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)
    for model, options in [
        (TwoParts().freeze("body"), {}),
        (TwoParts(), {"training": False}),
        (TwoParts(), {"precision": "float16"}),
    ]:
        step = TrainStep(model, sg.optim.SGD(0.1), nn.MSELoss(), device="numpy", **options)
        losses = [step(x, y) for _ in range(6)]  # in float16 the first overflow, until the scale fits
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("whose", ["a step", "a learner"])
def test_an_index_out_of_range_names_the_part_of_the_batch_as_its_owner_does(whose: str) -> None:
    """By the parameters of the model and of the loss, also where a Learner wraps them; what is exported keeps its names."""
    x, wrong = np.zeros((2, 3), np.float32), np.array([0, 7])
    losses = {
        "target": nn.CrossEntropyLoss(),
        "labels": lambda model, x, labels: nn.CrossEntropyLoss()(model(x), labels),
    }
    for name, loss in losses.items():
        given: Any = (nn.Linear(3, 3, rng=0), sg.optim.SGD(0.1), loss)
        if whose == "a step":
            train: Any = sg.train.TrainStep(*given, device="numpy")
        else:
            learner = sg.train.Learner(*given, device="numpy", dashboard=None)
            train = lambda *batch, learner=learner: learner.fit([batch])
        with pytest.raises(sg.OutOfRange, match=f"input '{name}': .*got 7"):
            train(x, wrong)
    step = sg.train.TrainStep(nn.Linear(3, 3, rng=0), sg.optim.SGD(0.1), losses["target"], device="numpy")
    assert [p.name for p in step.as_model(x, wrong).inputs] == ["x0", "x1"]


def test_parts_of_a_batch_whose_names_meet_are_numbered() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.linear = nn.Linear(3, 3, rng=0)

        def forward(self, target: Any) -> Any:
            return self.linear(target)

    step = sg.train.TrainStep(Net(), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device="numpy")
    with pytest.raises(sg.OutOfRange, match="input 'part 1 of the batch': "):
        step(np.zeros((2, 3), np.float32), np.array([0, 7]))
