"""A branch of a traced function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.tensors.branches import branch

X = np.array([1.0, -2.0, 3.0], np.float32)
on_devices = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)


@on_devices
def test_a_branch_gives_what_one_of_two_functions_gives(device_name: str) -> None:
    def chosen(x: Any, y: Any) -> Any:
        return branch(x.sum() > 0, lambda x, y: (x + y, x * 2), lambda x, y: (x - y, y), [x, y])

    program = sg.compile(chosen, X, X, device=device_name)
    for x, wanted in ((X, (X + 1, X * 2)), (-X, (-X - 1, np.ones(3)))):
        for got, want in zip(program(x, np.ones(3, np.float32)).values(), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_branch_of_one_result() -> None:
    double = lambda x: branch(x.sum() > 0, lambda x: [x * 2], lambda x: [x], [x])[0]
    np.testing.assert_array_equal(sg.compile(double, X, device="numpy")(X), X * 2)


def test_a_tensor_from_outside_of_a_branch_is_refused() -> None:
    with pytest.raises(sg.DeviceError, match="the trace of another function"):
        sg.compile(lambda x: branch(x.sum() > 0, lambda y: [y + x], lambda y: [y], [x * 2])[0], X, device="numpy")


def chain(x: Any) -> Any:
    for _ in range(20):
        x = (x + 1).exp().log()
    return x


def test_what_a_branch_computes_on_numpy_takes_no_more_memory_than_outside() -> None:
    """Nothing is kept until the branch ends; what it computes on is written over."""
    taken = {}
    for name, f in {
        "plain": chain,
        "branch": lambda x: branch(x.sum() > 0, lambda x: [chain(x)], lambda x: [x], [x])[0],
    }.items():
        executable: Any = sg.compile(f, X, device="numpy").executable
        taken[name] = sum(bool(op.spent) for op in executable._ops.values())
    assert taken["branch"] == taken["plain"] > 50


def test_what_is_read_after_a_branch_lives_through_it() -> None:
    """Though it was computed, and read, within."""

    def f(x: Any) -> Any:
        def then(x: Any) -> Any:
            y = x + 1
            return y, y.exp(), y * y

        y, z, w = branch(x.sum() > 0, then, lambda x: (x, x, x), [x])
        return (y + z).exp() - w * y, z

    got = sg.compile(f, X, device="numpy")(X)
    y = X + 1
    np.testing.assert_allclose(got["output0"], np.exp(y + np.exp(y)) - y * y * y, rtol=1e-5)
    np.testing.assert_allclose(got["output1"], np.exp(y), rtol=1e-5)


@on_devices
def test_states_that_a_branch_takes_twice_change_together(device_name: str) -> None:
    def step(x: Any, *, a: Any, b: Any) -> Any:
        after = branch(x.sum() > 0, lambda a, b, p, q: (a + p, b - q), lambda a, b, p, q: (a, b), [a, b, b, a])
        return x, dict(zip("ab", after, strict=True))

    a, b = X, X * 3
    session = sg.compile(step, X, states={"a": a, "b": b}, device=device_name).session()
    for x in (X, -X, X):
        session(x)
        a, b = (a + b, b - a) if x is X else (a, b)
    np.testing.assert_array_equal([session.read("a"), session.read("b")], [a, b])
