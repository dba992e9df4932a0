"""What NumPy's elementwise functions do with a Tensor: an operator of an array beside it is the Tensor's own, and others are
refused with what to write."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...ops import ROWS, Elementwise
from ..tensor import Tensor

MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
"""Comparisons ↦ those that say the same of the operands in the other order."""
OPERATORS: Final = {
    **{
        getattr(np, str(row.numpy)): f"__{MIRRORED.get(row.operator, f'r{row.operator}')}__"
        for row in ROWS.values() if isinstance(row, Elementwise) and row.operator and row.arity == 2
    },
    np.power: "__rpow__", np.matmul: "__rmatmul__", np.not_equal: "__ne__", np.divmod: "__rdivmod__",
}  # fmt: skip
"""NumPy's functions of operators ↦ the Tensor's method for `array + tensor` and others."""


def array_ufunc(x: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """The protocol by which NumPy asks what its function gives."""
    assigned = options.keys() == {"out"} and options["out"][0] is inputs[0]  # as in `array += tensor`
    plain = method == "__call__" and (not options or assigned)
    if plain and ufunc in OPERATORS and not isinstance(inputs[0], Tensor):
        return getattr(x, OPERATORS[ufunc])(inputs[0])
    name = _method_of(ufunc) if plain else ""
    said = f"x.{name}({', '.join('y' for _ in inputs[1:])}), or " if hasattr(Tensor, name) else ""
    raise InputError(
        f"np.{ufunc.__name__}: NumPy's elementwise functions take no Tensor; write {said}np.{ufunc.__name__} of x.numpy()"
    )


def _method_of(ufunc: Any) -> str:
    """The Tensor's method that computes the same as a function of NumPy, or nothing."""
    rows = [row for row in ROWS.values() if isinstance(row, Elementwise) and isinstance(row.numpy, str)]
    return next((row.name for row in rows if getattr(np, str(row.numpy), None) is ufunc), "")


Tensor.__array_ufunc__ = array_ufunc  # pyright: ignore[reportAttributeAccessIssue] (the stub has None, see tests/stubs.py)
