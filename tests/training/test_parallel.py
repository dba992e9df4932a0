"""Several devices train as one does with the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.runtime import random_keys
from singe.train import DataParallel, TrainStep

EPS = np.finfo(np.float32).eps


def network(norm: bool = False) -> nn.Module:
    rng = np.random.default_rng(0)
    middle = [nn.BatchNorm2d(4)] if norm else []
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, rng=rng), *middle, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5, rng=rng)
    ).train()  # fmt: skip


def loss(model: Any, x: Any, y: Any) -> Any:
    prediction = model(x)
    return nn.CrossEntropyLoss()(prediction, y), {"prediction": prediction, "rows": (prediction * 0 + 1)[:, 0].mean()}


def batches(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((n, 1, 6, 6)).astype(np.float32), rng.integers(0, 5, n)) for n in sizes]


def settings(**given: Any) -> dict[str, Any]:
    return {"clip": 0.5, "accumulate": 2, "seed": 0} | given


def assert_near(state: dict[str, np.ndarray], wanted: dict[str, np.ndarray], eps: float) -> None:
    assert state.keys() == wanted.keys()
    for name, array in wanted.items():
        most = max(float(np.abs(array.astype(np.float64)).max(initial=0)), 1e-2)
        np.testing.assert_allclose(state[name], array, rtol=0, atol=eps * most, err_msg=name)


@pytest.mark.parametrize("optimizer", [sg.optim.SGD(0.1, momentum=0.9), sg.optim.AdamW(0.01)], ids=["sgd", "adamw"])
@pytest.mark.parametrize("devices", [["numpy", "numpy"], ["wasm", "wasm"], ["numpy", "wasm", "wasm"]], ids="+".join)
def test_several_devices_are_as_one_with_the_whole_batch(devices: list[str], optimizer: Any) -> None:
    """Parts of unequal sizes, a batch with fewer items than devices, clipping and accumulation included."""
    one = TrainStep(network(), optimizer, loss, device=devices[0], **settings())
    several = DataParallel(network(), optimizer, loss, device=devices, **settings())
    for x, y in batches(8, 7, 7, 8, 1, 2, 5, 8):
        wanted, told = one(x, y)
        found, joined = several(x, y)
        assert found == pytest.approx(wanted, rel=1e-5)
        np.testing.assert_allclose(joined["prediction"], told["prediction"], rtol=1e-4, atol=1e-5)
        assert joined["rows"] == 1
    found, wanted = several.state(), one.state()
    taken = tuple(found.pop("key")), tuple(wanted.pop("key"))
    assert taken == (random_keys.after(random_keys.begun(0), 8), random_keys.begun(0)), (
        "several take a key in each step, one for each draw"
    )
    assert_near(found, wanted, 50 * EPS)
    for step in several._steps:  # replicas on devices of one kind are equal to the bit
        assert_near(step.state(), several.state(), 0 if len({*devices}) == 1 else 10 * EPS)


def test_half_precision_skips_what_overflows_in_one_part() -> None:
    several = DataParallel(network(), sg.optim.SGD(0.1), loss, device=["wasm", "wasm"], precision="float16")
    ((x, y),) = batches(8)
    several(x, y)
    before = several.state()
    x[0] *= 1e6  # beyond float16, in the first part
    several(x, y)
    for step in several._steps:
        after = step.state()
        assert after["scale"][0] == before["scale"][0] / 2
        np.testing.assert_array_equal(after["model.0.weight"], before["model.0.weight"])


def test_running_statistics_are_the_mean_of_the_parts() -> None:
    optimizer = sg.optim.SGD(0.1)
    several = DataParallel(network(norm=True), optimizer, loss, device=["numpy", "numpy"])
    parts = [TrainStep(network(norm=True), optimizer, loss, device="numpy") for _ in range(2)]
    ((x, y),) = batches(9)
    several(x, y)
    for part, (low, high) in zip(parts, ((0, 4), (4, 9)), strict=True):
        part(x[low:high], y[low:high])
    first, second = (part.state() for part in parts)
    for step in several._steps:
        state = step.state()
        for name in ("model.1.running_mean", "model.1.running_var"):
            np.testing.assert_allclose(state[name], (4 * first[name] + 5 * second[name]) / 9, rtol=1e-5, atol=1e-7)
        assert state["model.1.num_batches_tracked"] == 1


def test_an_update_is_that_of_the_buffers_that_it_names() -> None:
    """Also where buffers of the same form were updated before under other names."""
    step = TrainStep(network(norm=True), sg.optim.SGD(0.1), loss, device="numpy")
    ((x, y),) = batches(4)
    gradients = step.share(x, y).gradients
    for name, value in (("1.running_mean", 3.0), ("1.running_var", 4.0)):
        step.update(gradients, {name: np.full(4, value, np.float32)})
    state = step.state()
    np.testing.assert_array_equal(state["model.1.running_mean"], np.full(4, 3.0))
    np.testing.assert_array_equal(state["model.1.running_var"], np.full(4, 4.0))


def test_layers_draw_other_numbers_on_each_device_and_go_on_to_the_bit() -> None:
    model = nn.Sequential(nn.Dropout(0.5)).train()

    def drawn(model: Any, x: Any, scale: Any) -> Any:
        y = model(x) * scale.weight
        return y.mean(), {"y": y}

    def made(seed: int) -> DataParallel:
        held = nn.Sequential(model, nn.Linear(1, 1, rng=0)).train()
        return DataParallel(
            held, sg.optim.SGD(0.1), lambda m, x: drawn(m[0], x, m[1]), device=["wasm", "wasm"], seed=seed
        )

    x = np.ones((40, 16), np.float32)
    first, second = made(1), made(2)
    _, told = first(x)
    y = told["y"] != 0
    assert not np.array_equal(y[:20], y[20:])
    second.resume(first.state())
    assert [second(x)[0] for _ in range(3)] == [first(x)[0] for _ in range(3)]


def test_a_module_in_a_batch_is_given_to_each_part() -> None:
    def distilled(model: Any, x: Any, teacher: Any) -> Any:
        return ((model(x) - teacher(x)) ** 2).mean()

    ((x, _),) = batches(6)
    teacher = network().eval()
    student = network().map(lambda t: t * 0.5)
    one = TrainStep(student, sg.optim.SGD(0.1), distilled, device="wasm")
    several = DataParallel(student, sg.optim.SGD(0.1), distilled, device=["wasm", "wasm"])
    for _ in range(3):
        assert several(x, teacher) == pytest.approx(one(x, teacher), rel=1e-5)


def test_a_mean_of_integers_is_no_integer() -> None:
    loss = lambda m, x: (m(x).sum(), {"n": (x > 0).sum()})
    step = DataParallel(nn.Linear(1, 1), sg.optim.SGD(0.1), loss, device=["numpy", "numpy"])
    _, told = step(np.array([[1], [1], [1], [-1]], np.float32))
    assert told["n"] == 1.5


def test_mistakes_say_what_to_do() -> None:
    def made(loss: Any = loss, device: Any = ("numpy", "numpy")) -> DataParallel:
        return DataParallel(network(), sg.optim.SGD(0.1), loss, device=device)

    ((x, y),) = batches(6)
    with pytest.raises(sg.ShapeError, match="as many items in each of its parts"):
        made()(x, y[:3])
    with pytest.raises(sg.ShapeError, match="arrays with a row for each item"):
        made(lambda m, x, y: (loss(m, x, y)[0], {"weights": m[0].weight}))(x, y)
    with pytest.raises(sg.InputError, match="a list of devices"):
        made(device="wasm")
    with pytest.raises(sg.DeviceError, match="comes twice"):
        made(device=[sg.device("numpy")] * 2)
    with pytest.raises(sg.ShapeError):  # the error of a thread
        made()(x[:, :, :3], y)
