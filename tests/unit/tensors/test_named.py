"""Tensors with names of dimensions give what plain Tensors give, and refuse names that do not agree."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.ops import ROWS, Elementwise
from singe.tensors.methods.row_methods import names_of

on_devices = pytest.mark.parametrize(
    "device_name",
    ["numpy", *(pytest.param(name, marks=pytest.mark.slow) for name in ("wasm", "webgpu"))],
    indirect=True,
)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4), np.float32)
B = RNG.standard_normal(3, np.float32)
W = RNG.standard_normal((4, 5), np.float32)
CASES: dict[str, tuple[tuple[str, ...], Callable[[Any, Any, Any], Any], Callable[[Any, Any, Any], Any]]] = {
    "what one lacks": (("n", "c", "t"), lambda x, b, w: x + b, lambda x, b, w: x + b[:, None]),
    "the longer one second": (("n", "c", "t"), lambda x, b, w: b - x, lambda x, b, w: b[:, None] - x),
    "another order": (("n", "c", "t"), lambda x, b, w: x * x.permute("t", "n", "c"), lambda x, b, w: x * x),
    "a size of 1": (
        ("n", "c", "t"),
        lambda x, b, w: x / x.abs().sum("c", keepdim=True),
        lambda x, b, w: x / x.abs().sum(1, keepdim=True),
    ),
    "numbers": (("n", "c", "t"), lambda x, b, w: 2 - x**2 % 3, lambda x, b, w: 2 - x**2 % 3),
    "a Tensor without axes": (
        ("n", "c", "t"),
        lambda x, b, w: b.tensor.sum() * x,
        lambda x, b, w: b.sum() * x,
    ),
    "comparison": (("n", "c", "t"), lambda x, b, w: (x < b).cast(sg.float32), lambda x, b, w: (x < b[:, None]).cast(sg.float32)),
    "a function of two": (("n", "c", "t"), lambda x, b, w: x.maximum(other=b), lambda x, b, w: x.maximum(b[:, None])),
    "a function with numbers": (("n", "c", "t"), lambda x, b, w: x.clip(-0.5, max=1), lambda x, b, w: x.clip(-0.5, 1)),
    "sum": (("n", "t"), lambda x, b, w: x.sum("c"), lambda x, b, w: x.sum(1)),
    "mean of several": (("c",), lambda x, b, w: x.mean(("t", "n")), lambda x, b, w: x.mean((0, 2))),
    "of all": ((), lambda x, b, w: x.prod(), lambda x, b, w: x.prod()),
    "max": (("n", "c"), lambda x, b, w: x.max(dim="t").values, lambda x, b, w: x.max(2).values),
    "std": (("n", "c"), lambda x, b, w: x.std("t", correction=0), lambda x, b, w: x.std(2, correction=0)),
    "softmax": (("n", "c", "t"), lambda x, b, w: x.softmax("c"), lambda x, b, w: x.softmax(1)),
    "flip": (("n", "c", "t"), lambda x, b, w: x.flip("c", "t"), lambda x, b, w: x.flip(1, 2)),
    "permute": (("t", "n", "c"), lambda x, b, w: x.permute("t", "n", "c"), lambda x, b, w: x.permute(2, 0, 1)),
    "transpose": (("n", "t", "c"), lambda x, b, w: x.transpose("t", "c"), lambda x, b, w: x.transpose(1, 2)),
    "rename": (("batch", "c", "t"), lambda x, b, w: x.rename(n="batch"), lambda x, b, w: x),
    "flatten": (("n", "all"), lambda x, b, w: x.flatten(("c", "t"), "all"), lambda x, b, w: x.flatten(1)),
    "unflatten": (("n", "c", "u", "v"), lambda x, b, w: x.unflatten("t", u=2, v=-1), lambda x, b, w: x.unflatten(2, (2, 2))),
    "select": (("c",), lambda x, b, w: x.select(t=-1, n=0), lambda x, b, w: x[0, :, -1]),
    "slice": (("n", "c", "t"), lambda x, b, w: x.slice(c=slice(1, None)), lambda x, b, w: x[:, 1:]),
    "matmul": (("n", "c", "o"), lambda x, b, w: x @ w, lambda x, b, w: x @ w),
    "the inner name first or last": (("n", "c", "o"), lambda x, b, w: x @ w.transpose("t", "o"), lambda x, b, w: x @ w),
    "a product with a vector": (("n", "t"), lambda x, b, w: x.permute("n", "t", "c") @ b, lambda x, b, w: x.transpose(1, 2) @ b),
    "a product of batches": (
        ("n", "c", "d"),
        lambda x, b, w: x @ x.rename(c="d"),
        lambda x, b, w: x @ x.transpose(1, 2),
    ),
}  # fmt: skip
"""A way to use names ↦ the names of the result, and the same with and without names."""


def operands(device: str) -> tuple[list[sg.Tensor], list[sg.NamedTensor]]:
    plain = [sg.tensor(a, device=device) for a in (X, B, W)]
    return plain, [x.named(*names) for x, names in zip(plain, (("n", "c", "t"), ("c",), ("t", "o")), strict=True)]


@on_devices
def test_names_give_what_axes_give(device_name: str) -> None:
    plain, named = operands(device_name)
    for case, (names, with_names, without) in CASES.items():
        got, wanted = with_names(*named), without(*plain).numpy()
        assert got.names == names, case
        assert got.sizes == dict(zip(names, wanted.shape, strict=True)), case
        np.testing.assert_allclose(got.tensor.numpy(), wanted, rtol=1e-5, atol=1e-5, err_msg=case)


def test_every_public_elementwise_row_is_a_member() -> None:
    x = sg.tensor(X).named("n", "c", "t")
    for row in ROWS.values():
        if isinstance(row, Elementwise):
            assert all(hasattr(sg.NamedTensor, name) for name in names_of(row)), row.name
        if isinstance(row, Elementwise) and row.arity == 1 and row.promote == "float":
            np.testing.assert_array_equal(getattr(x, row.name)().tensor.numpy(), getattr(x.tensor, row.name)().numpy())


@on_devices
def test_gradients_go_through_names(device_name: str) -> None:
    w, x = sg.tensor(W, device=device_name), sg.tensor(X, device=device_name)
    loss = lambda w: ((x.named("n", "c", "t") @ w.named("t", "o")) ** 2).mean().tensor
    plain = lambda w: ((x @ w) ** 2).mean()
    np.testing.assert_allclose(sg.grad(loss)(w)[w].numpy(), sg.grad(plain)(w)[w].numpy(), rtol=1e-4, atol=1e-5)


def test_a_module_with_names_is_traced_with_open_sizes() -> None:
    class Mean(nn.Module):
        weight: sg.Tensor

        def __init__(self) -> None:
            self.weight = sg.tensor(W)

        def forward(self, x: sg.Tensor) -> sg.Tensor:
            y = x.named("n", "c", "t") - x.named("n", "c", "t").mean("c")
            return (y.softmax("t") @ self.weight.named("t", "o")).permute("o", "n", "c").tensor

    net = Mean()
    model = sg.Model.of(net, {"x": ("N", "C", 4)}, "numpy")
    for a in (X, X[:1]):
        np.testing.assert_allclose(model(a), net(sg.tensor(a)).numpy(), rtol=1e-5, atol=1e-6)


def test_copies_keep_names() -> None:
    x = sg.tensor(X).named("n", "c", "t")
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.to("numpy")):
        assert other.names == x.names
        np.testing.assert_array_equal(other.tensor.numpy(), X)


REFUSED: dict[str, tuple[Callable[[Any, Any, Any], Any], type[Exception], str]] = {
    "foreign names": (lambda x, b, w: x + w, sg.InputError, r"a \+ b: got the names \('n', 'c', 't'\) and \('t', 'o'\)"),
    "sizes": (lambda x, b, w: x + b.rename(c="t"), sg.ShapeError, r"\(n=2, c=3, t=4\) and \(t=3\), expected equal sizes of 't' or 1"),
    "a Tensor with axes": (lambda x, b, w: x + b.tensor, sg.InputError, "an operand without names"),
    "a Tensor first": (lambda x, b, w: b.tensor * x, sg.InputError, "an operand without names"),
    "an array first": (lambda x, b, w: B * x, sg.InputError, "an operand without names"),
    "a list": (lambda x, b, w: x.add([1.0]), sg.InputError, "an operand without names"),
    "a number for a name": (lambda x, b, w: x.sum(1), sg.InputError, r"expected one of \('n', 'c', 't'\)"),
    "no name": (lambda x, b, w: x.softmax(), sg.InputError, r"softmax: got no dimension, expected one of"),
    "several names": (lambda x, b, w: x.softmax(("c", "t")), sg.InputError, r"softmax: got the dimensions \('c', 't'\), expected one"),
    "a name twice": (lambda x, b, w: x.sum(("c", "c")), sg.InputError, "each once"),
    "a foreign name": (lambda x, b, w: x.select(o=0), sg.InputError, r"select: got 'o' as a dimension"),
    "no neighbours": (lambda x, b, w: x.flatten(("n", "t"), "a"), sg.InputError, "permute them first"),
    "equal names": (lambda x, b, w: x.rename(n="c"), sg.InputError, "expected different ones"),
    "too few": (lambda x, b, w: x.tensor.named("n"), sg.ShapeError, r"got 1 names, \('n'\), for the shape \(2, 3, 4\)"),
    "no identifier": (lambda x, b, w: b.tensor.named("a b"), sg.InputError, "expected an identifier"),
    "not all": (lambda x, b, w: x.permute("n", "c"), sg.InputError, r"expected all of \('n', 'c', 't'\)"),
    "no inner name": (lambda x, b, w: w @ x, sg.InputError, r"\('t', 'o'\) and \('n', 'c', 't'\), expected 'o'"),
    "an unclear product": (lambda x, b, w: x @ x, sg.InputError, r"write \(x \* y\).sum\('t'\)"),
    "inner sizes": (lambda x, b, w: x @ b.rename(c="t"), sg.ShapeError, "expected equal sizes of 't'"),
    "a product without names": (lambda x, b, w: x @ w.tensor, sg.InputError, "without names"),
    "an index": (lambda x, b, w: x[0], sg.InputError, r"x\.select\(channels=0\)"),
    "iteration": (lambda x, b, w: list(x), sg.InputError, r"x\.tensor"),
    "an array": (lambda x, b, w: np.asarray(x), sg.InputError, r"x\.tensor\.numpy\(\)"),
    "another method": (lambda x, b, w: x.reshape(-1), AttributeError, r"x\.tensor\.reshape"),
    "no method": (lambda x, b, w: x.shine(), AttributeError, r"x\.tensor"),
    "a function": (lambda x, b, w: sg.relu(x), sg.InputError, "a NamedTensor"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_by_names_is_refused(case: str) -> None:
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call(*operands("numpy")[1])


def test_a_module_refuses_it_as_a_parameter() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            self.weights = [sg.ones(3).named("c")]

    with pytest.raises(sg.InputError, match=r"the field 'weights\.0' is a NamedTensor"):
        Scale().state_dict()
