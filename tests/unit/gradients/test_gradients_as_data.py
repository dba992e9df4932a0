"""Gradients are plain data: arithmetic, devices, pickles and threads; copies of a module understand them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS

import singe as sg
from singe import nn, optim
from singe.tensors.tensor import Tensor

X = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((8, 3)).astype(np.float32)


def network(bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 5, rng=0), nn.Tanh(), nn.Linear(5, 3, bias=bias, rng=1))


def squares(model: Any, x: Any, y: Any) -> Tensor:
    return ((model(x) - y) ** 2).mean()


def recorded(model: nn.Sequential, x: np.ndarray = X, y: np.ndarray = Y) -> tuple[nn.Sequential, sg.Gradients]:
    """The module on a device that records, and what backward() gives: gradients by tensor."""
    device = sg.Autodiff(model[0].weight.device)
    model = model.to(device).map(Tensor.require_grad)
    return model, squares(model, sg.tensor(x, device=device), sg.tensor(y, device=device)).backward()


def arrays(grads: sg.Gradients) -> dict[str, np.ndarray]:
    return {path: g.numpy() for path, g in grads.items()}


def close(found: sg.Gradients, wanted: dict[str, np.ndarray]) -> None:
    assert [path for path, _ in found.items()] == [*wanted]
    for path, g in wanted.items():
        np.testing.assert_allclose(found[path].numpy(), g, rtol=1e-5, atol=1e-6, err_msg=path)


@RUNNERS
def test_arithmetic_is_that_of_each_gradient(device_name: str) -> None:
    model = network().to(device_name)
    a, b = (sg.grad(squares)(model, X[k : k + 4], Y[k : k + 4]) for k in (0, 4))
    one, other = arrays(a), arrays(b)
    whole = arrays(sg.grad(squares)(model, X, Y))
    close(a + b, {path: g + other[path] for path, g in one.items()})
    for double in (a * 2, 2 * a, a * np.float32(2), a * sg.tensor(2.0, device=device_name), a + a):
        close(double, {path: 2 * g for path, g in one.items()})
    close(a / 4, {path: g / 4 for path, g in one.items()})
    for mean in (optim.mean([a, b]), (a + b) / 2, sum([a, b]) / 2):
        close(mean, whole)
    assert (a + b)[model[0].weight].numpy().tolist() == (a + b)["0.weight"].numpy().tolist()
    halves = a.map(lambda g: g.cast(sg.float16)) / 3
    assert {g.dtype for g in halves.values()} == {sg.float16}


@RUNNERS
def test_gradients_of_backward_are_the_same_data(device_name: str) -> None:
    """By tensor; `of` gives them the paths of a module."""
    model, grads = recorded(network().to(device_name))
    wanted = arrays(sg.grad(squares)(network(), X, Y))
    assert dict((grads + grads).items()) == {}
    np.testing.assert_allclose((grads + grads)[model[2].bias].numpy(), 2 * wanted["2.bias"], rtol=1e-4, atol=1e-6)
    close(grads.of(model), wanted)
    close(pickle.loads(pickle.dumps(grads.of(model))), wanted)
    assert len([*pickle.loads(pickle.dumps(grads))]) == len(wanted)


COPIES: dict[str, Callable[[Any], Any]] = {
    "clone": lambda model: model.clone(),
    "another device": lambda model: model.to("wasm"),
    "pickled": lambda model: pickle.loads(pickle.dumps(model)),
    "made anew": lambda model: network(),
    "in another thread": lambda model: ThreadPoolExecutor(1).submit(network).result(),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("way", [sg.grad, "backward"], ids=["grad", "backward"])
def test_a_copy_of_a_module_understands_gradients(how: str, way: Any) -> None:
    model = network()
    wanted = {
        path: p.numpy() - 0.5 * g
        for (path, p), g in zip(model.named_parameters(), arrays(sg.grad(squares)(model, X, Y)).values(), strict=True)
    }
    model, grads = recorded(model) if way == "backward" else (model, way(squares)(model, X, Y))
    grads = grads.of(model)
    copied = COPIES[how](network())
    device = copied[0].weight.device
    opt = optim.SGD(0.5)
    moved, _ = opt.step(copied, grads.to(device), opt.init(copied))
    for path, p in moved.named_parameters():
        np.testing.assert_allclose(p.detach().numpy(), wanted[path], rtol=1e-4, atol=1e-6, err_msg=path)
    there = grads.to(device).of(copied)
    np.testing.assert_array_equal(there[copied[0].weight].numpy(), grads["0.weight"].numpy())
    assert copied[0].weight in there
    close(there + there, {path: 2 * g for path, g in arrays(grads).items()})


def test_a_pickle_has_no_parameters() -> None:
    model = nn.Linear(500, 300, rng=0)
    grads = sg.grad(lambda m: m.bias.sum())(model)
    few = grads.of(nn.Linear(500, 300)).map(lambda g: g)
    assert len(pickle.dumps(few * 1)) < 1.1 * sum(g.numpy().nbytes for g in few.values())
    found = pickle.loads(pickle.dumps(grads))
    assert [*found] == ["weight", "bias"]
    assert found["bias"].numpy().tolist() == [1] * 300
    x = sg.tensor([1.0, 2.0])
    y, by_x = pickle.loads(pickle.dumps((x, sg.grad(lambda x: (x * x).sum())(x))))
    assert by_x[y].tolist() == [2, 4]


def test_threads_train_as_one() -> None:
    """Each computes the gradients of its part of a batch, by its own copy; the mean is that of the whole batch."""
    model = network()

    def work(part: slice) -> sg.Gradients:
        return sg.grad(squares)(model.clone(), X[part], Y[part])

    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(work, [slice(0, 4), slice(4, 8)])]
    close(optim.mean(found), arrays(sg.grad(squares)(model, X, Y)))


def test_what_does_not_fit_is_refused() -> None:
    grads = sg.grad(squares)(network(), X, Y)
    other = sg.grad(squares)(network(bias=False), X, Y)
    with pytest.raises(sg.InputError, match=r"different parameters: <gradients: 0\.weight.*2\.bias.* and <gradients"):
        grads + other
    with pytest.raises(
        sg.InputError, match=r"gradients of 2\.bias, which the Sequential does not have; its parameters are 0\.w"
    ):
        grads.of(network(bias=False))
    with pytest.raises(
        sg.InputError, match=r"SGD\.step: none of the gradients is of a parameter of the model: <gradients: 0\.w"
    ):
        optim.SGD(0.1).step(nn.Linear(4, 3), grads, {"step": sg.tensor(0)})
    with pytest.raises(sg.InputError, match=r"of a copy of the module write grads\.of\(copy\)\[x\]"):
        grads[network()[0].weight]
    with pytest.raises(TypeError):
        grads + 1  # pyright: ignore[reportOperatorIssue]


def test_gradients_of_many_layers_are_one_line() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2, rng=0) for _ in range(40)))
    text = repr(sg.grad(lambda m: m(sg.ones(1, 2)).sum())(model))
    assert text.endswith("and 72 more; as in grads['0.weight']>")
    assert len(text) < 300
