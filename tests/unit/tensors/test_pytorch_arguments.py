"""Arguments that PyTorch's users pass, and those that they leave out: the results are what PyTorch 2 gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import EAGER

import singe as sg

CUBE = np.arange(24).reshape(2, 3, 4)
THREES = np.random.default_rng(0).normal(size=(2, 3, 4, 3)).astype(np.float32)


def reduced(reduce: str, include_self: bool) -> Callable[[Any], sg.Tensor]:
    return lambda t: t([1.0, 2.0, 3.0]).scatter_reduce(0, t([0, 0]), t([5.0, 6.0]), reduce, include_self=include_self)


def reduced_integers(reduce: str, include_self: bool) -> Callable[[Any], sg.Tensor]:
    return lambda t: t([1, 2, 3]).scatter_reduce(0, t([0, 0]), t([5, -8]), reduce, include_self=include_self)


CASES: dict[str, tuple[Callable[[Any], sg.Tensor], Any, str]] = {
    "diagonal": (lambda t: t(CUBE).diagonal(1), [[4, 20], [5, 21], [6, 22], [7, 23]], "int64"),
    "take_along_dim": (lambda t: t(CUBE).take_along_dim(t([[1, 5]])), [1, 5], "int64"),
    "cross": (lambda t: t(THREES[0]).cross(t(THREES[1])), np.cross(*THREES, axis=0), "float32"),
    "round": (lambda t: t([0.125, 1.115, 2.675, -0.5]).round(decimals=2), [0.12, 1.12, 2.68, -0.5], "float32"),
    "round to hundreds": (lambda t: t([1250.0, 1350.0]).round(decimals=-2), [1200, 1400], "float32"),
    "div towards 0": (lambda t: t([7, -7]).div(2, rounding_mode="trunc"), [3, -3], "int64"),
    "div of floats towards 0": (lambda t: t([7, -7.0]).divide(2, rounding_mode="trunc"), [3, -3], "float32"),
    "div downwards": (lambda t: t([7, -7]).div(t([2, 2]), rounding_mode="floor"), [3, -4], "int64"),
    "add": (lambda t: t([1, 2]).add(t([1, 1]), alpha=3), [4, 5], "int64"),
    "sub": (lambda t: t([1, 2]).sub(1, alpha=3), [-2, -1], "int64"),
    "nonzero": (lambda t: sg.stack(t(CUBE > 21).nonzero(as_tuple=True)), [[1, 1], [2, 2], [2, 3]], "int64"),
    "full": (lambda t: t(sg.full((2,), fill_value=3)), [3, 3], "int64"),
    "new_full": (lambda t: t([1.0]).new_full((2,), fill_value=3), [3, 3], "float32"),
    "bincount": (lambda t: t([0, 1, 1]).bincount(t([0.5, 0.5, 1.0])), [0.5, 1.5], "float32"),
    "bincount of integers": (lambda t: t([0, 1, 1]).bincount(np.array([1, 2, 3]), minlength=3), [1, 5, 0], "float64"),
    "sum": (reduced("sum", False), [11, 2, 3], "float32"),
    "prod": (reduced("prod", False), [30, 2, 3], "float32"),
    "mean": (reduced("mean", False), [5.5, 2, 3], "float32"),
    "mean with what is there": (reduced("mean", True), [4, 2, 3], "float32"),
    "mean of integers": (reduced_integers("mean", False), [-2, 2, 3], "int64"),
    "mean of integers with what is there": (reduced_integers("mean", True), [-1, 2, 3], "int64"),
    "amax": (reduced_integers("amax", False), [5, 2, 3], "int64"),
    "amin": (reduced("amin", False), [5, 2, 3], "float32"),
}


@EAGER
@pytest.mark.parametrize("name", CASES)
def test_arguments(name: str, on: sg.Device) -> None:
    function, want, kind = CASES[name]
    got = function(lambda data: sg.tensor(data, device=on))
    assert str(got.dtype) == kind
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("fold", ["sum", "prod", "mean", "amax", "argmax", "max", "any", "logsumexp"])
def test_keepdims_is_a_bool(fold: str) -> None:
    for given in (np.float64, "float32", 1):
        with pytest.raises(sg.InputError, match=f"{fold}: got .* as keepdims, expected True or False"):
            getattr(sg.tensor(CUBE), fold)(0, given)
        with pytest.raises(sg.InputError, match="as keepdims, expected True or False"):
            getattr(sg.tensor(CUBE), fold)(0, keepdim=given)
    assert getattr(sg.tensor(CUBE), fold)(0, keepdims=np.True_) is not None


FAULTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "cross of fours": (lambda: sg.zeros(2, 4).cross(sg.zeros(2, 4)), sg.ShapeError, "no axis of .* has three elements"),
    "a mode of rounding": (lambda: sg.ones(2).div(2, rounding_mode="up"), sg.InputError, "expected 'floor', 'trunc'"),
    "round of integers to tens": (lambda: sg.tensor([15]).round(decimals=-1), sg.DTypeError, "cast them first"),
    "the trace of matrices": (lambda: sg.zeros(2, 3, 3).trace(), sg.ShapeError, "expected a matrix"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    function, kind, text = FAULTS[name]
    with pytest.raises(kind, match=text):
        function()


def test_cross_asks_for_the_axis_where_an_open_one_may_have_three_elements() -> None:
    with pytest.raises(sg.ShapeError, match="pass dim="):
        sg.Model.of(lambda x: x.cross(x), {"x": ("N", 3)}, "numpy")
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    model = sg.Model.of(lambda x: x.cross(x + 1, dim=1), {"x": ("N", 3)}, "numpy")
    np.testing.assert_allclose(model(x), np.cross(x, x + 1), rtol=1e-5, atol=1e-5)


def test_a_program_has_a_repr() -> None:
    program = sg.Model.of(lambda x: x + 1, {"x": ("N", 3)}, "numpy").program()
    assert repr(program).startswith(
        "<program on numpy: x: float32(N, 3) → output: float32(N, 3); steps: 1, bytes of weights: "
    )
