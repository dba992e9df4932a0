"""Names that users of PyTorch and NumPy type first, and that Singe lacks: each error says what to write in its place."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.hints import INSTEAD
from singe.ops import ROWS

X = sg.tensor([1.0, 2.0])
MODEL = nn.Linear(2, 2)
SGD = sg.optim.SGD(0.1)


def the(owner: Any, name: str) -> Callable[[], Any]:
    return lambda: getattr(owner, name)


OWNERS: dict[str, Any] = {
    "singe": sg, "singe.nn": nn, "singe.linalg": sg.linalg, "singe.optim": sg.optim, "singe.data": sg.data, "Optimizer": SGD, "Module": MODEL, "Tensor": X,
}  # fmt: skip


@pytest.mark.parametrize("owner", OWNERS)
def test_every_name_of_the_table_is_an_attribute_error_that_says_what_to_write(owner: str) -> None:
    for name, text in INSTEAD[owner].items():
        if (owner, name) == ("Optimizer", "step"):  # which is there, with other arguments
            continue
        with pytest.raises(AttributeError) as e:
            getattr(OWNERS[owner], name)
        assert str(e.value).endswith(f"{name!r}; in its place: {text}")
        assert not hasattr(OWNERS[owner], name)


@pytest.mark.parametrize("owner", ["singe", "singe.nn", "Tensor"])
def test_other_names_are_errors_for_which_python_finds_the_nearest(owner: str) -> None:
    """Python looks for it among the names of the error's object."""
    with pytest.raises(AttributeError) as e:
        _ = OWNERS[owner].tensr
    said = "a tensor has no method" if owner == "Tensor" else f"module {owner!r} has no attribute"
    assert str(e.value) == f"{said} 'tensr'"
    assert e.value.name == "tensr"
    assert e.value.obj is OWNERS[owner]


def test_all_methods_of_a_tensor_are_among_the_names_that_python_compares() -> None:
    assert {name for name, row in ROWS.items() if row.public} <= set(dir(X))


def test_values_and_indices_are_a_tuple() -> None:
    values, indices = X.max(0)
    assert not hasattr(X.max(0), "__array__")
    assert (X.aminmax().min.item(), X.aminmax().max.item()) == (1.0, 2.0)
    assert (values.item(), indices.item()) == (2.0, 1)


def functions() -> None:
    from singe.nn import functional  # noqa: F401, PLC0415 # pyright: ignore[reportAttributeAccessIssue]


FAULTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "step": (SGD.step, sg.InputError, "sg.value_and_grad"),  # pyright: ignore[reportCallIssue]
    "params=": (lambda: sg.optim.Adam(params=MODEL.parameters()), sg.InputError, "does not hold parameters"),
    "backward": (lambda: X.sum().backward(), sg.DeviceError, r"requires_grad=True\); grads = loss.backward\(\)"),
    "add_": (the(X, "add_"), AttributeError, r"x = x.add\("),
    "tan_h_": (the(X, "tan_h_"), AttributeError, r"does not change: x = x.at\[key\].set"),
    "values and indices": (lambda: X - X.max(0), sg.InputError, r"write .values, as in x.max\(1\).values"),
    "an array and a pair": (lambda: np.ones(2) * X.sort(), sg.InputError, "write .values"),
    "a pair and a number": (lambda: X.sort() * 2, sg.InputError, "write .values"),
    "a pair's shape": (lambda: X.max(0).shape, AttributeError, "has no 'shape'; .*write .values"),
    "Tensor of data": (lambda: sg.Tensor([1, 2]), sg.InputError, r"sg.tensor\(data\)"),  # pyright: ignore
    "Model of a module": (lambda: sg.Model(MODEL), sg.InputError, r"sg.Model.of\(function, shapes\)"),  # pyright: ignore
    "mps": (lambda: sg.tensor([1], device="mps"), sg.DeviceError, '"webgpu"'),
    "nn.functional": (functions, ImportError, r"x.relu\(\) or sg.relu\(x\)"),
    "torch.nn.functional as F": (
        lambda: importlib.import_module("singe.nn.functional"),
        ImportError,
        "layers called at once",
    ),
    "argnums=": (
        lambda: sg.grad(sg.exp, argnums=1),  # pyright: ignore[reportCallIssue]
        sg.InputError,
        "grad: there is no argument argnums=; in its place",
    ),
    "maximize=": (
        lambda: sg.optim.SGD(0.1, maximize=True),
        sg.InputError,
        "SGD: there is no argument maximize=.*-loss",
    ),
    "fused=": (lambda: sg.optim.Adam(0.1, fused=True), sg.InputError, "Adam: there is no argument fused=.*one kernel"),
    "a slip of an argument": (lambda: sg.optim.Adam(0.1, fussed=True), TypeError, "fussed"),
    "Gradients": (
        lambda: sg.grad(lambda x: sg.grad(lambda y: (y**3).sum())(x).sum())(X),
        AttributeError,
        r"grad\(f\)\(y\)\[y\]",
    ),
    "a slip": (the(sg, "tensr"), AttributeError, "module 'singe' has no attribute 'tensr'"),
    "a slip in nn": (the(nn, "Linaer"), AttributeError, "module 'singe.nn' has no attribute 'Linaer'"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_pytorchs_users_write_first_is_answered(name: str) -> None:
    call, kind, text = FAULTS[name]
    with pytest.raises(kind, match=text):
        call()
