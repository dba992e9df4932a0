"""Indices out of range: refused where the host has them, eagerly and compiled; elsewhere one rule on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.errors import OutOfRange
from singe.program.format import from_bytes, to_bytes

X = np.arange(15, dtype=np.float32).reshape(5, 3)
on_devices = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
TABLE = sg.tensor(np.arange(10, dtype=np.float32).reshape(5, 2))

Case = tuple[Callable[[Any, Any], Any], Any, Any, str]
CASES: dict[str, Case] = {
    "an index": (lambda x, i: x[i], [0, -5], [0, 5], r"index: axis 0 of \(5, 3\): got 5, expected from -5 to 4"),
    "of the second axis": (lambda x, i: x.take(i, 1), [2, -3], [0, -4], r"axis 1 of \(5, 3\): got -4, expected from -3"),
    "of two axes": (lambda x, i: x[i, i], [2, -3], [0, 4], "index: an axis of 3: got 4, expected from -3 to 2"),
    "index_select": (lambda x, i: x.index_select(0, i), [4, 0], [0, 9], "got 9, expected from -5 to 4"),
    "gather": (lambda x, i: x.gather(0, i), [[4, 0, -1]], [[0, 1, 7]], r"gather: axis 0 of \(5, 3\): got 7"),
    "take_along_dim": (lambda x, i: x.take_along_dim(i, 1), [[2]] * 5, [[-4]] * 5, "got -4, expected from -3 to 2"),
    "scatter": (lambda x, i: x.scatter(0, i, 1.0), [[4, 0, 1]], [[0, 5, 0]], r"scatter: axis 0 of \(5, 3\): got 5"),
    "scatter_add": (lambda x, i: x.scatter_add(0, i, x[:1]), [[4, 0, 1]], [[0, 5, 0]], "got 5, expected from -5 to 4"),
    "at": (lambda x, i: x.at[i].set(0.0), [4, -5], [4, -6], "got -6, expected from -5 to 4"),
    "a reshaped index": (lambda x, i: x[i.reshape(2, 1)], [0, 4], [0, 5], "got 5, expected from -5 to 4"),
    "classes": (nn.CrossEntropyLoss(), [0, 1, 2, -100, 1], [0, 1, 2, -1, 1], "got -1, expected from 0 to 2"),
    "a number that is ignored": (
        nn.NLLLoss(ignore_index=7), [0, 1, 2, 7, 1], [0, 1, 2, -100, 1], "got -100, expected .* or 7 for places",
    ),
    "classes of a row": (lambda x, i: x.cross_entropy(i), [0, 1, 2, -100, 1], [3, 1, 2, 1, 1], "got 3, expected from 0 to 2"),
    "a table": (lambda x, i: nn.Embedding(5, 2, rng=0).to(x.device)(i), [0, 4], [0, 5], "got 5, expected from -5 to 4"),
}  # fmt: skip


@on_devices
@pytest.mark.parametrize("case", CASES)
def test_tensors_of_the_host_are_checked(case: str, device_name: str) -> None:
    what, right, wrong, text = CASES[case]
    if case == "take_along_dim":
        text = f"take_along_dim: axis 1 of .*: {text}"
    x = sg.tensor(X, device=device_name)
    what(x, sg.tensor(right, device=device_name)).numpy()
    if case == "a reshaped index" and device_name == "webgpu":
        return  # computed there
    with pytest.raises(OutOfRange, match=text):
        what(x, sg.tensor(wrong, device=device_name)).numpy()


@on_devices
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_inputs_of_a_compiled_function_are_checked(case: str, device_name: str) -> None:
    what, right, wrong, text = CASES[case]
    if case == "a table":
        table = nn.Embedding(5, 2, rng=0)
        what = lambda x, i: table(i)
    program = sg.compile(what, X, np.array(right), device=device_name)
    program(X, np.array(right))
    with pytest.raises(OutOfRange, match=f"input 'x1': .*{text}"):
        program(X, np.array(wrong))


@pytest.mark.parametrize("device_name", ["webgpu"], indirect=True)
def test_a_device_that_must_be_waited_for_keeps_what_may_be_indices(device_name: str) -> None:
    """Not pictures, nor long arrays: the copy lives as long as the tensor."""
    kept = {"int64": 4, "int32": 4, "uint8": 4, "int16": 4, "uint32": (1 << 18) + 1}
    found = {kind: sg.tensor(np.zeros(n, kind), device=device_name) for kind, n in kept.items()}
    held = [kind for kind, t in found.items() if t.device.integers(t._value) is not None]
    assert held == ["int64", "int32"]


@on_devices
def test_lazy_devices_and_gradients_are_checked(device_name: str) -> None:
    for wrap in (sg.Fusion, sg.Autodiff, lambda d: sg.Autodiff(sg.Fusion(d))):
        on = wrap(sg.device(device_name))
        x = sg.tensor(X, device=on)
        with pytest.raises(OutOfRange, match="got 5, expected from -5 to 4"):
            x[sg.tensor([0, 5], device=on)].numpy()
    model = nn.Embedding(5, 2, rng=0).to(device_name)
    with pytest.raises(OutOfRange, match="got 5"):
        sg.value_and_grad(lambda m, i: m(i).sum())(model, sg.tensor([0, 5], device=device_name))


@pytest.mark.parametrize("device_name", ["numpy", "wasm"], indirect=True)
def test_only_the_part_that_is_an_index_counts(device_name: str) -> None:
    """A language model reads all tokens but the last, and predicts all but the first."""
    table = nn.Embedding(5, 2, rng=0)
    program = sg.compile(lambda i: table(i[:, :-1]), np.zeros((2, 3), np.int64), device=device_name)
    program(np.array([[0, 4, 9], [1, -5, -9]]))
    with pytest.raises(OutOfRange, match="got 5"):
        program(np.array([[0, 5, 0], [1, 1, 1]]))


@on_devices
def test_a_cast_that_keeps_each_number_may_lie_between(device_name: str) -> None:
    """Another one makes new numbers: 257 in 8 bits is 1."""
    x, picked = X[:, 0], sg.tensor(X[:, 0], device=device_name)
    for given, kind in (("int64", "int32"), ("int32", "int64"), ("uint8", "int16")):
        program = sg.compile(lambda x, i, kind=kind: x[i.cast(kind)], x, np.zeros(1, given), device=device_name)
        with pytest.raises(OutOfRange, match="got 5, expected from -5 to 4"):
            program(x, np.array([5], given))
    for index, given, kind in ((257, "int64", "uint8"), (2**32 - 1, "uint32", "int32"), (2**16 - 2, "uint16", "int16")):
        what = lambda x, i, kind=kind: x[i.cast(kind)]
        i = np.array([index], given)
        program = sg.compile(what, x, i, device=device_name)
        assert program(x, i).tolist() == what(picked, sg.tensor(i, device=device_name)).tolist()


def test_lengths_that_are_open_are_checked() -> None:
    model = sg.Model.of(lambda x, i: x[i], {"x": ("N", 2), "i": ("K",)}, "numpy", dtypes={"i": "int64"})
    ones = np.ones((3, 2), np.float32)
    assert model(ones, np.array([2, -3])).shape == (2, 2)
    with pytest.raises(OutOfRange, match=r"input 'i': index: axis 0 of .*: got 3, expected from -3 to 2"):
        model(ones, np.array([3]))
    assert model(np.ones((4, 2), np.float32), np.array([3])).shape == (1, 2)


@on_devices
def test_constants_of_a_compiled_function_are_checked(device_name: str) -> None:
    for index in (sg.tensor([0, 5]), np.array([0, 5]), [0, 5]):
        with pytest.raises(OutOfRange, match="got 5, expected from -5 to 4"):
            sg.compile(lambda x, i=index: x[i], X, device=device_name)
    sg.compile(lambda x: x[sg.tensor([0, 4])], X, device=device_name)


def test_a_file_keeps_the_ranges() -> None:
    program = sg.compile(lambda x, i: x[i[::2]], X, np.zeros(4, np.int64), device="numpy")
    again = from_bytes(to_bytes(program.data))
    assert again.ranges == program.data.ranges
    (found,) = again.ranges
    assert (found.input, found.part, found.least, found.most) == (1, ((0, 2, 2),), -5, 4)


RULE = np.array([0, 4, 5, 99, -1, -5, -6, -99, 2**31 - 1, -(2**31), 2**32 + 1, 2**40 + 3, -(2**40) - 2])
"""Indices of an axis of 5 that only the device knows, and below them what each names."""
NAMED = [0, 4, 4, 4, 4, 0, 0, 0, 4, 0, 1, 3, 3]


@on_devices
@pytest.mark.slow
def test_indices_that_a_device_computes_follow_one_rule(device_name: str) -> None:
    """The lower 32 bits count; negative ones count from the end; beyond the axis the nearest element is meant."""
    x = np.arange(5, dtype=np.float32)
    grid = np.stack([x, x + 10], 1)
    table = {
        "index": lambda x, g, i: x[i * 1],
        "two axes": lambda x, g, i: g[i * 1, i * 0 + 1] - 10,
        "the second of two axes": lambda x, g, i: (g.T)[i * 0 + 1, i * 1] - 10,
        "gather": lambda x, g, i: x.gather(0, i * 1),
    }
    for name, what in table.items():
        program = sg.compile(what, x, grid, RULE, device=device_name)
        assert program(x, grid, RULE).tolist() == NAMED, name
    one = sg.compile(lambda x, i: x.scatter(0, i * 1, 7.0), x, RULE[:1], device=device_name)
    for index, place in zip(RULE, NAMED, strict=True):
        assert np.flatnonzero(one(x, np.array([index])) == 7).tolist() == [place], index


@on_devices
def test_a_class_that_only_the_device_knows_makes_the_loss_no_number(device_name: str) -> None:
    program = sg.compile(lambda x, i: x.cross_entropy(i + 1), X, np.zeros(5, np.int64), device=device_name)
    assert np.isfinite(program(X, np.array([-1, 0, 1, -101, 1])))
    assert np.isnan(program(X, np.array([-1, 0, 2, 0, 1])))


class Table(nn.Module):
    def __init__(self) -> None:
        self.lookups = [nn.Embedding(5, 3, rng=k) for k in range(2)]

    def forward(self, ids: Any) -> Any:
        return self.lookups[0](ids * 0) + self.lookups[1](ids.reshape(-1))


@on_devices
@pytest.mark.parametrize("how", ["eagerly", "lazily", "compiled", "in a step"])
def test_the_layer_and_its_argument_are_named(device_name: str, how: str) -> None:
    """By its path in the model, also where the Program of a layer of the same shapes was compiled before."""
    table, wrong = Table(), np.array([0, 5])
    own = "the layer 'lookups.1', Embedding: its argument 'x': index: axis 0 of .5, 3.: got 5"
    on: Any = {"eagerly": device_name, "lazily": sg.Fusion(device_name)}.get(how)
    if on is not None:
        placed = table.to(on)
        placed.lookups[0](sg.tensor([1, 2], device=on)).numpy()
        run: Any = lambda: placed(sg.tensor(wrong, device=on)).numpy()
        if device_name == "webgpu":  # where a reshaped array is the device's
            own, run = (
                own.replace("the layer 'lookups.1', ", ""),
                lambda: placed.lookups[1](sg.tensor(wrong, device=on)).numpy(),
            )
    elif how == "compiled":
        program = sg.compile(table, np.array([0, 1]), device=device_name)
        run, own = lambda: program(wrong), f"input 'x0': {own}"
    else:
        step = sg.train.TrainStep(table, sg.optim.SGD(0.1), lambda model, ids: model(ids).sum(), device=device_name)
        run, own = lambda: step(wrong), f"input 'ids': {own}"
    with pytest.raises(OutOfRange, match=own):
        run()


def test_the_layer_is_named_within_a_lifted_trace_and_in_a_file() -> None:
    program = sg.compile(lambda i: nn.Embedding(5, 2, rng=0)(i).sum(), np.zeros(4, np.int64), device="numpy")
    (found,) = from_bytes(to_bytes(program.data)).ranges
    assert found.text == "Embedding: its argument 'x': index: axis 0 of (5, 2)"
    lazy = sg.Fusion("numpy")
    loss = sg.value_and_grad(lambda model, ids: model(ids).sum())
    with pytest.raises(OutOfRange, match=r"the layer 'lookups.1', Embedding: its argument 'x': .*got 5"):
        loss(Table().to(lazy), sg.tensor([0, 5], device=lazy))[0].numpy()
