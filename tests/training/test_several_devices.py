"""A network whose parts are on two devices trains as on one: by value_and_grad, TrainStep, the Learner and LBFGS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import slow

import singe as sg
from singe import nn
from singe.runtime import eager
from singe.train.steps.step import TrainStep

RNG = np.random.default_rng(5)
X = RNG.normal(size=(16, 4)).astype(np.float32)
Y = RNG.integers(0, 3, 16)
FULL = [pytest.mark.slow, pytest.mark.full]


def full(*values: Any) -> list[Any]:
    """Parameters that repeat a property, for `make full`."""
    return [pytest.param(value, marks=FULL) for value in values]


PAIRS = [("wasm", "numpy"), *slow(("numpy", "webgpu")), *full(("numpy", "wasm"), ("webgpu", "wasm"))]
pairs = pytest.mark.parametrize("pair", PAIRS, ids="+".join)


class Parts(nn.Module):
    """A network whose head may be elsewhere. place: where forward moves what it hands on; None: to the head's weights."""

    def __init__(self, place: Any = None) -> None:
        self.body = nn.Linear(4, 8, bias=False, rng=np.random.default_rng(0))
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(8, 3, rng=np.random.default_rng(1))
        self.place = place

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        hidden = self.norm(self.body(x)).tanh()
        kept = hidden.to(self.head.weight.device if self.place is None else self.place)
        return self.head(self.drop(kept)) + (kept * kept).mean(1, keepdim=True)  # two gradients go back by one move


def router(*names: str) -> sg.Router:
    try:
        return sg.Router(*names)
    except sg.DeviceError as e:
        pytest.skip(str(e))


def parts(device: sg.Router, place: Any = None) -> Parts:
    model = Parts(place)
    first = {name: getattr(model, name).to(device[0]) for name in ("body", "norm", "drop")}
    return model.replace(**first, head=model.head.to(device[1]))


def same(found: nn.Module, wanted: nn.Module, tolerance: float = 1e-5) -> None:
    other = wanted.state_dict()
    for path, x in found.state_dict().items():
        np.testing.assert_allclose(x.numpy(), other[path].numpy(), rtol=tolerance, atol=tolerance, err_msg=path)


# --- value_and_grad ---------------------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize("named", [False, True], ids=["by weights", "by name"])
def test_gradients_are_those_of_one_device_and_on_each_parameters_own(pair: Sequence[str], named: bool) -> None:
    device = router(*pair)

    def loss(model: Any, x: Any, y: Any) -> Any:
        found = model(x)
        return nn.CrossEntropyLoss()(found, y.to(found.device)), found

    (wanted, output), gradients = sg.value_and_grad(loss, has_aux=True)(Parts(), sg.tensor(X), sg.tensor(Y))
    model = parts(device, device[1] if named else None)
    x, y = sg.tensor(X, device=device[0]), sg.tensor(Y, device=device[0])
    (value, found), there = sg.value_and_grad(loss, has_aux=True)(model, x, y)
    np.testing.assert_allclose(value.item(), wanted.item(), rtol=1e-5)
    np.testing.assert_allclose(found.numpy(), output.numpy(), rtol=1e-4, atol=1e-5)
    assert (value.device, found.device) == (device[1], device[1])
    for path, parameter in model.named_parameters():
        assert there[path].device == parameter.device
        np.testing.assert_allclose(there[path].numpy(), gradients[path].numpy(), rtol=1e-4, atol=1e-6, err_msg=path)


def test_a_part_on_which_the_loss_does_not_depend_has_a_gradient_of_zeros_on_its_device() -> None:
    device = sg.Router("wasm", "numpy")
    given = {"a": sg.tensor([2.0], device=device[0]), "b": sg.tensor([3.0], device=device[1])}
    value, found = sg.value_and_grad(lambda t: (t["a"] ** 2).sum())(given)
    assert (value.item(), found["a"].tolist(), found["b"].tolist()) == (4, [4], [0])
    assert found["b"].device is device[1]
    assert sg.grad(lambda t: sg.tensor(1.0))(given)["a"].tolist() == [0]


def test_gradients_over_two_devices_can_be_differentiated() -> None:
    device = sg.Router("wasm", "numpy")

    def inner(t: Any) -> Any:
        return (t["x"].to(device[1]) ** 3 * t["w"]).sum()

    def outer(t: Any) -> Any:
        found = sg.grad(inner)(t)
        return found["x"].to(device[1]).sum() + found["w"].sum()  # 3 x² w + x³

    given = {"x": sg.tensor([2.0, 3.0], device=device[0]), "w": sg.tensor([5.0, 7.0], device=device[1])}
    found = sg.grad(outer)(given)
    assert found["x"].tolist() == [6 * 2 * 5 + 3 * 4, 6 * 3 * 7 + 3 * 9]
    assert found["w"].tolist() == [3 * 4, 3 * 9]
    recorded: Any = sg.Autodiff(device)
    x = sg.tensor([2.0, 3.0], device=recorded[0], requires_grad=True)
    w = sg.tensor([5.0, 7.0], device=recorded[1])
    again = sg.grad(lambda t: (t["x"].to(recorded[1]) ** 3 * t["w"]).sum())({"x": x, "w": w})
    assert again["x"].sum().backward()[x].tolist() == [6 * 2 * 5, 6 * 3 * 7]


def test_what_a_function_takes_from_outside_is_taken_over_on_its_device_only() -> None:
    device = sg.Router("wasm", "numpy")
    there, here = sg.tensor([10.0], device=device[1]), sg.tensor([10.0], device=device[0])
    given = {"x": sg.tensor([2.0], device=device[0]), "w": sg.tensor([5.0], device=device[1])}
    assert sg.grad(lambda t: (t["x"].to(device[1]) * t["w"] * there).sum())(given)["w"].tolist() == [20]
    with pytest.raises(sg.DeviceError, match=r'<device wasm> meets one of <device numpy>; .*\.to\("numpy"\)'):
        sg.grad(lambda t: (t["w"] * here).sum())(given)


# --- TrainStep --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        *slow({"clip": 0.5, "accumulate": 2, "nonfinite": "stop", "seed": 3}),
        *full({}, {"nonfinite": "skip"}, {"training": False}, {"precision": "float16"}),
    ],
    ids=lambda s: ", ".join(map(str, s)) or "plain",
)
@pairs
def test_a_step_over_two_devices_is_that_of_one(pair: Sequence[str], settings: dict[str, Any]) -> None:
    """Losses, weights, statistics, moments; what is drawn is equal, too."""
    device = router(*pair)
    optimizer = sg.optim.Adam(sg.optim.CosineAnnealingLR(0.05, 10))
    on_one = TrainStep(Parts(), optimizer, nn.CrossEntropyLoss(), device="numpy", **settings)
    on_two = TrainStep(parts(device, device[1]), optimizer, nn.CrossEntropyLoss(), device=device, **settings)
    found = []
    for step in (on_one, on_two):
        sg.manual_seed(7)
        found.append([step(X, Y) for _ in range(4)])
    tolerance = 1e-5 if settings.get("precision") is None else 3e-3
    np.testing.assert_allclose(found[1], found[0], rtol=tolerance)
    same(on_two.model, on_one.model, tolerance)
    state = on_one.state()
    assert on_two.state().keys() == state.keys()
    np.testing.assert_allclose(on_two.evaluate(X, Y)[0], on_one.evaluate(X, Y)[0], rtol=tolerance)
    for path, x in on_two.model.state_dict().items():
        assert x.device == parts(device).state_dict()[path].device


@pytest.mark.slow
def test_the_second_batch_of_a_form_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    device = sg.Router("wasm", "numpy")
    step = TrainStep(
        parts(device), sg.optim.AdamW(0.01), nn.CrossEntropyLoss(), device=device, nonfinite="stop", clip=1
    )
    compiled: list[str] = []
    plain = eager.compiling.compile_graph

    def seen(graph: Any, target: Any) -> Any:
        compiled.append(target.name)
        return plain(graph, target)

    monkeypatch.setattr(eager.compiling, "compile_graph", seen)
    step(X, Y)
    assert compiled
    compiled.clear()
    for _ in range(3):
        step(X, Y)
    assert not compiled


@pytest.mark.slow
def test_a_step_goes_on_from_its_state_to_the_bit() -> None:
    device = sg.Router("wasm", "numpy")

    def made() -> TrainStep:
        return TrainStep(parts(device), sg.optim.Adam(0.05), nn.CrossEntropyLoss(), device=device)

    first = made()
    first(X, Y)
    state = first.state()
    wanted = [first(X, Y), first(X, Y)]
    second = made()
    second.resume(state)
    assert [second(X, Y), second(X, Y)] == wanted


@pytest.mark.slow
def test_a_step_that_is_not_finite_changes_no_weight_on_any_device() -> None:
    device = sg.Router("wasm", "numpy")
    step = TrainStep(parts(device), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device=device, nonfinite="skip")
    before = step.state()
    bad = X.copy()
    bad[3, 1] = np.nan
    assert np.isnan(step(bad, Y))
    after = step.state()
    assert step.skipped == 1
    assert all(np.array_equal(after[name], before[name]) for name in before if name != "key")
    step = TrainStep(parts(device), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device=device, nonfinite="stop")
    with pytest.raises(sg.NonFinite, match="the loss is nan"):
        step(bad, Y)


def test_what_needs_one_device_is_refused_and_says_so() -> None:
    device = sg.Router("wasm", "numpy")
    step = TrainStep(parts(device), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device=device)
    for refused in (
        lambda: step.program(X, Y),
        lambda: step.as_model(X, Y),
        lambda: step.share(X, Y),
        lambda: step.update(np.zeros(3, np.float32), {}),
    ):
        with pytest.raises(
            sg.InputError,
            match=r"whose parts are on several devices, expected one on one device, as in TrainStep\(model\.to",
        ):
            refused()
    with pytest.raises(
        sg.DeviceError, match=r"body\.weight is on <device wasm>, which is none of <device router\(numpy\)>"
    ):
        TrainStep(parts(device), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device=sg.Router("numpy"))
    with pytest.raises(sg.DeviceError, match=r"while a function is traced.*take such a model with device=sg\.Router"):
        TrainStep(parts(device, device[1]), sg.optim.SGD(0.1), nn.CrossEntropyLoss(), device="wasm")(X, Y)


# --- the Learner, LBFGS -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_learner_trains_a_network_on_two_devices_as_on_one(tmp_path: Path) -> None:
    device = sg.Router("wasm", "numpy")
    data = [(X[:8], Y[:8]), (X[8:], Y[8:])]

    def learner(model: Any, on: Any, run: Path | None = None) -> sg.train.Learner:
        return sg.train.Learner(
            model, sg.optim.Adam(0.05), nn.CrossEntropyLoss(), [sg.metrics.Accuracy()], device=on, seed=3, run=run,
            dashboard=None,
        )  # fmt: skip

    one, two = learner(Parts(), "numpy"), learner(parts(device, device[1]), device, tmp_path)
    wanted, found = one.fit(data, data, epochs=2), two.fit(data, data, epochs=2)
    for a, b in zip(wanted.rows, found.rows, strict=True):
        for phase, values in a.values.items():
            for name in values:
                if name in ("loss", "accuracy"):
                    np.testing.assert_allclose(b.values[phase][name], values[name], rtol=1e-5)
    same(two.model, one.model)
    assert two.best.state_dict()["head.weight"].device == device[1]
    np.testing.assert_allclose(two.evaluate(data, two.best)["loss"], one.evaluate(data, one.best)["loss"], rtol=1e-5)
    again = learner(parts(device, device[1]), device, tmp_path)
    again.fit(data, data, epochs=3, resume=True)
    one.fit(data, data, epochs=3)
    same(again.model, one.model)


@pytest.mark.parametrize("search", [*slow(None), *full("strong_wolfe")])
def test_lbfgs_moves_the_parts_of_a_network_together(search: str | None) -> None:
    device = sg.Router("wasm", "numpy")
    optimizer = sg.optim.LBFGS(max_iter=3, line_search_fn=search)

    def trained(model: Any) -> Any:
        state = optimizer.init(model)

        def loss(model: Any) -> Any:
            found = model(sg.tensor(X, device=model.body.weight.device))
            return nn.CrossEntropyLoss()(found, sg.tensor(Y, device=found.device))

        for _ in range(2):
            model, state = optimizer.step(model, sg.value_and_grad(loss), state)
        return model

    found = trained(parts(device))
    same(found, trained(Parts()), 1e-4)
    assert (found.body.weight.device, found.head.weight.device) == (device[0], device[1])
