"""One rule of dtypes: operands are converted to their common dtype, the same for tensors, NumPy's arrays, and traced functions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from devices import few

import singe as sg
from singe.dtypes import dtype, promote

KINDS = ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32")
KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "maximum": sg.maximum,
    "where": lambda a, b: sg.where(a == a, a, b),
    "concat": lambda a, b: sg.concat([a, b]),
    "stack": lambda a, b: sg.stack([a, b]),
    "matmul": lambda a, b: a @ b,
    "outer": lambda a, b: a.outer(b),
}
"""Functions whose results have the common dtype."""
FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "div": lambda a, b: a / b,
    "atan2": sg.atan2,
    "hypot": sg.hypot,
}
"""Functions of floats: whole numbers become float32."""


def kind_of(function: Callable[[], Any]) -> str:
    try:
        return function().dtype.name
    except sg.SingeError:
        return "refused"


@pytest.mark.slow
@few(3, "name", [*KEPT, *FLOATS])
def test_results_have_the_common_dtype_wherever_they_are_computed(name: str) -> None:
    function = (KEPT | FLOATS)[name]
    for first, second in product(KINDS, KINDS):
        a, b = sg.tensor([1, 0], first), sg.tensor([1, 0], second)
        common = promote(dtype(first), dtype(second))
        expected = sg.float32 if name in FLOATS and not common.is_float else common
        eager = kind_of(lambda: function(a, b))  # noqa: B023
        assert eager in (expected.name, "refused"), (first, second)
        inputs = {"a": (2,), "b": (2,)}
        traced = kind_of(lambda: sg.Model.of(function, inputs, dtypes={"a": first, "b": second}).outputs[0])  # noqa: B023
        assert traced == eager, (first, second)
        if second != "bfloat16":
            assert kind_of(lambda: function(a, np.array([1, 0], second))) == eager, (first, second)  # noqa: B023


@pytest.mark.parametrize("kind", KINDS)
def test_python_numbers_take_the_dtype_of_the_tensor_unless_theirs_is_of_a_higher_kind(kind: str) -> None:
    x = sg.tensor([1, 0], kind)
    whole, floating = x.dtype.is_int, x.dtype.is_float
    assert (x * 2).dtype is (x.dtype if whole or floating else sg.int64)
    assert (x * 2.5).dtype is (x.dtype if floating else sg.float32)
    assert (2 * x).dtype is (x * 2).dtype
    assert (2.5 * x).dtype is (x * 2.5).dtype
