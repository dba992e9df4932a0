"""Gradients by the decorator Autodiff and by the functions grad and value_and_grad: the same numbers on every device."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from devices import NUMPY, RUNNERS

import singe as sg
from singe import nn
from singe.optim import SGD
from singe.runtime.decorators.decorator import Decorator
from singe.tensors.tensor import Tensor
from singe.train import TrainStep

X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


class Counting(Decorator):
    """Counts runs."""

    runs = 0

    def run(self, graph: Any, values: Any) -> Any:
        self.runs += 1
        return super().run(graph, values)


def network() -> nn.Sequential:
    rng = np.random.default_rng(0)
    return nn.Sequential(nn.Linear(4, 8, rng=rng), nn.Tanh(), nn.Linear(8, 3, rng=rng))


def squares(model: Any, x: Any, y: Any) -> Tensor:
    return ((model(x) - y) ** 2).mean()


def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((5, 4)).astype(np.float32), rng.standard_normal((5, 3)).astype(np.float32)


def differences(function: Any, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences of a function of float64 arrays."""
    found = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        moved = np.zeros(x.shape)
        moved[at] = step
        found[at] = (function(x + moved) - function(x - moved)) / (2 * step)
    return found


@RUNNERS
@pytest.mark.parametrize("lazy", [False, True])
def test_backward_gives_the_gradient(device_name: str, lazy: bool) -> None:
    inner = sg.device(device_name)
    device = sg.Autodiff(sg.Fusion(inner) if lazy else inner)
    x = sg.tensor(X, device=device, requires_grad=True)
    y = sg.tensor(X.T, device=device)
    found = ((x @ y).exp() * 0.1).sum().backward()
    wanted = differences(lambda a: (0.1 * np.exp(a @ X.T)).sum(), X.astype(np.float64))
    np.testing.assert_allclose(found[x].numpy(), wanted, rtol=2e-4)
    assert y not in found
    assert len(found) == 1


@RUNNERS
@pytest.mark.parametrize("lazy", [False, True])
def test_backward_of_several_numbers_is_that_of_their_sum(device_name: str, lazy: bool) -> None:
    """And with a gradient that of the sum of their products; also a recorded one, by which it can be differentiated."""
    inner = sg.device(device_name)
    device = sg.Autodiff(sg.Fusion(inner) if lazy else inner)
    x = sg.tensor(X, device=device, requires_grad=True)
    y = x.exp() * x
    np.testing.assert_allclose(y.backward()[x].numpy(), y.sum().backward()[x].numpy(), rtol=1e-6)
    weights = np.array([[1, -2], [0, 0.5]], np.float64)  # which is converted to the tensor's type
    for gradient in (weights, weights.tolist(), sg.tensor(weights, device=device)):
        found = y.backward(gradient)[x].numpy()
        np.testing.assert_allclose(
            found, (y * sg.tensor(weights, device=device)).sum().backward()[x].numpy(), rtol=1e-6
        )
    w = sg.tensor(X, device=device, requires_grad=True)
    by_w = (x * x).backward(gradient=w, create_graph=True)[x].backward()[w]
    np.testing.assert_allclose(by_w.numpy(), 2 * X, rtol=1e-6)


@NUMPY
def test_both_ways_give_the_same_gradients(device_name: str) -> None:
    x, y = batch()
    model = network().to(device_name)
    value, found = sg.value_and_grad(squares)(model, x, y)
    device = sg.Autodiff(sg.device(device_name))
    recorded = network().to(device).map(Tensor.require_grad)
    loss = squares(recorded, sg.tensor(x, device=device), sg.tensor(y, device=device))
    other = loss.backward()
    np.testing.assert_allclose(loss.item(), value.item(), rtol=1e-5)
    assert [name for name, _ in found.items()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for name, parameter in recorded.named_parameters():
        np.testing.assert_allclose(other[parameter].numpy(), found[name].numpy(), rtol=1e-4, atol=1e-6)


def test_forward_and_backward_are_one_run() -> None:
    counting = Counting(sg.device("numpy"))
    device = sg.Autodiff(sg.Fusion(counting))
    x = sg.tensor(X, device=device, requires_grad=True)
    loss = (x @ x).tanh().sum()
    found = loss.backward()
    loss.item()
    found[x].numpy()
    assert counting.runs == 1


@RUNNERS
def test_second_derivatives(device_name: str) -> None:
    def cubes(x: Tensor) -> Tensor:
        return (x**3).sum()

    x = sg.tensor(X, device=device_name)
    found = sg.grad(lambda x: sg.grad(cubes)(x)[x].sum())(x)
    np.testing.assert_allclose(found[x].numpy(), 6 * X, rtol=1e-5)
    y = sg.tensor(X, device=sg.Autodiff(sg.device(device_name)), requires_grad=True)
    again = cubes(y).backward(create_graph=True)[y].sum().backward()
    np.testing.assert_allclose(again[y].numpy(), 6 * X, rtol=1e-5)


@RUNNERS
def test_a_gradient_is_part_of_a_compiled_function(device_name: str) -> None:
    program = sg.compile(lambda x: sg.grad(lambda x: (x * x).sum())(x)[x], X, device=device_name)
    np.testing.assert_allclose(program(X), 2 * X, rtol=1e-6)


def test_a_gradient_within_a_trace_takes_tensors_of_that_trace() -> None:
    """As arguments and from around the function, on either side of an operator, and in a gradient of a gradient."""

    def slopes(x: Any, y: Any) -> Any:
        once = lambda w, z: sg.grad(lambda w: (z * w**3 + y * w + w * y).sum())(w)[""]
        return once(x + 1, x), sg.grad(lambda w: (y * once(w, y)).sum())(x)[""]

    program = sg.compile(slopes, X, 2 * X, device="numpy")
    once, twice = program(X, 2 * X).values()
    np.testing.assert_allclose(once, 3 * X * (X + 1) ** 2 + 4 * X, rtol=1e-5)
    np.testing.assert_allclose(twice, 2 * X * 6 * (2 * X) * X, rtol=1e-5)


@RUNNERS
def test_a_frozen_value_has_no_gradient(device_name: str) -> None:
    x = sg.tensor(X, device=device_name)
    found = sg.grad(lambda x: (x * x.detach()).sum())(x)
    np.testing.assert_allclose(found[x].numpy(), X, rtol=1e-6)
    y = sg.tensor(X, device=sg.Autodiff(sg.device(device_name)), requires_grad=True)
    np.testing.assert_allclose((y * y.detach()).sum().backward()[y].numpy(), X, rtol=1e-6)
    assert not y.detach().requires_grad
    assert (y * 2).requires_grad


@RUNNERS
def test_checkpoints_change_no_gradient(device_name: str) -> None:
    x, y = batch()
    model = network().to(device_name)

    def loss(model: Any, x: Any, y: Any) -> Tensor:
        return ((sg.checkpoint(model)(x) - y) ** 2).mean()

    plain, again = sg.grad(squares)(model, x, y), sg.grad(loss)(model, x, y)
    for name, g in plain.items():
        np.testing.assert_allclose(again[name].numpy(), g.numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@RUNNERS
def test_checkpoints_hold_less_memory(device_name: str) -> None:
    """Of a deep network what is held for the way back are the inputs of its layers, not the values within."""
    if device_name == "numpy":
        pytest.skip("its arrays are no scratch memory of the Program")
    x = np.ones((64, 16), np.float32)
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(6)))

    def scratch(of: Any) -> int:
        def loss(model: Any, x: Any) -> Tensor:
            for block in model:
                x = x + of(block)(x)
            return (x * x).mean()

        step = TrainStep(blocks, SGD(0.1), loss, device=device_name)
        step(x)
        return step.program(x).memory["scratch"]

    assert scratch(sg.checkpoint) < 0.7 * scratch(lambda block: block)


def test_what_a_function_gives_besides_its_value() -> None:
    x, y = batch()

    def loss(model: Any, x: Any, y: Any) -> Any:
        made = model(x)
        return ((made - y) ** 2).mean(), {"made": made, "model": model, "note": "as it is"}

    model = network()
    (value, aux), found = sg.value_and_grad(loss, has_aux=True)(model, x, y)
    assert value.shape == ()
    assert aux["made"].shape == (5, 3)
    assert aux["note"] == "as it is"
    assert aux["model"].state_dict()["0.weight"]._value is model.state_dict()["0.weight"]._value
    gradients, aux = sg.grad(loss, has_aux=True)(model, x, y)
    assert aux["note"] == "as it is"
    assert gradients["0.bias"].shape == found["0.bias"].shape


def test_the_same_function_is_compiled_once() -> None:
    x, y = batch()
    model = network().to("wasm")
    device = sg.device("wasm")
    prepared: list[Any] = []
    prepare = type(device).prepare
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(device), "prepare", lambda self, p: (prepared.append(p), prepare(self, p))[1])
        for k in range(3):
            sg.value_and_grad(squares)(model, x[:3] + k, y[:3])
    assert len(prepared) == 1


def test_threads_share_a_module() -> None:
    x, y = batch()
    device = sg.Autodiff(sg.device("numpy"))
    model = network().to(device).map(Tensor.require_grad)
    wanted = [sg.grad(squares)(network(), x + k, y)["0.weight"].numpy() for k in range(4)]
    found: dict[int, np.ndarray] = {}

    def work(k: int) -> None:
        loss = squares(model, sg.tensor(x + k, device=device), sg.tensor(y, device=device))
        found[k] = loss.backward()[model.state_dict()["0.weight"]].numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, g in enumerate(wanted):
        np.testing.assert_allclose(found[k], g, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_long_records_need_no_recursion() -> None:
    device = sg.Autodiff(sg.device("numpy"))
    x = sg.tensor(1.0, device=device, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y + 1
    assert y.backward()[x].item() == 1


def test_two_autodiffs_of_one_device_are_one() -> None:
    x, y = (sg.tensor(X, device=sg.Autodiff("numpy"), requires_grad=True) for _ in range(2))
    grads = (x * y).sum().backward()
    np.testing.assert_array_equal(grads[x].numpy(), X)
    np.testing.assert_array_equal(grads[y].numpy(), X)


def test_stop_gradient_is_detach() -> None:
    x = sg.tensor(X)
    np.testing.assert_array_equal(sg.grad(lambda x: (x * x.stop_gradient()).sum())(x)[x].numpy(), X)
    straight = sg.grad(lambda x: (x + (x.round() - x).stop_gradient()).sum())(x)[x]  # hints.py's custom_gradient
    np.testing.assert_array_equal(straight.numpy(), np.ones_like(X))


REFUSED = {
    "two devices of one name": (
        lambda: sg.ones(2, device=sg.Fusion("numpy")) + sg.ones(2, device=sg.Fusion("numpy")), sg.DeviceError, "made by two calls",
    ),
    "no Autodiff": (lambda: sg.tensor(1.0).backward(), sg.DeviceError, "sg.Autodiff"),
    "no Autodiff, watched": (lambda: sg.tensor(1.0, requires_grad=True), sg.DeviceError, "sg.Autodiff"),
    "nothing asks for a gradient": (
        lambda: (sg.tensor(X, device=sg.Autodiff("numpy")) * 2).sum().backward(), sg.InputError, "model.to(device).map(sg.Tensor.require_grad)",
    ),
    "the wrong order": (
        lambda: sg.tensor(1.0, device=sg.Fusion(sg.Autodiff(sg.device("numpy")))).backward(), sg.DeviceError, "in this order",
    ),
    "integers": (lambda: sg.tensor(1, device=sg.Autodiff(sg.device("numpy")), requires_grad=True), sg.DTypeError, "float"),
    "another shape to begin with": (
        lambda: sg.tensor(X, device=sg.Autodiff(sg.device("numpy")), requires_grad=True).backward(np.ones(2)), sg.ShapeError,
        "a gradient of the shape (2,), expected (2, 2)",
    ),
    "integers backward": (
        lambda: sg.tensor(X, device=sg.Autodiff(sg.device("numpy")), requires_grad=True).argmax().backward(), sg.DTypeError,
        "int64, expected one of a float type",
    ),
    "a function of several": (lambda: sg.grad(lambda x: x * 2)(sg.tensor(X)), sg.ShapeError, "sum()"),
    "a pair": (lambda: sg.grad(lambda x: (x.sum(), 1))(sg.tensor(X)), sg.InputError, "has_aux"),
    "no pair": (lambda: sg.grad(lambda x: x.sum(), has_aux=True)(sg.tensor(X)), sg.InputError, "aux"),
    "nothing to differentiate by": (lambda: sg.grad(lambda x: x)(3), sg.InputError, "expected a Module"),
    "another tensor": (lambda: sg.grad(lambda x: x.sum())(sg.tensor(X))[sg.tensor(X)], sg.InputError, "does not depend"),
    "another name": (lambda: sg.grad(lambda m: m.weight.sum())(nn.Linear(2, 2))["wait"], sg.InputError, "weight, bias"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused(what: str) -> None:
    call, kind, text = REFUSED[what]
    with pytest.raises(kind, match=text.replace("(", r"\(").replace(")", r"\)")):
        call()


def test_gradients_show_what_they_are_of() -> None:
    x = sg.tensor(X)
    assert repr(sg.grad(lambda x: (x * x).sum())(x)) == "<gradients: float32(2, 2); as in grads[x]>"
    found = sg.grad(squares)(nn.Linear(4, 3, rng=0), *map(sg.tensor, batch()))
    assert repr(found) == "<gradients: weight: float32(3, 4), bias: float32(3,); as in grads['weight']>"
