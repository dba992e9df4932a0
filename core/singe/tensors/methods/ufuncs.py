"""What NumPy's elementwise functions do with a Tensor: an operator of an array beside it is the Tensor's own, and others are
refused with what to write."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...errors import InputError
from ..arithmetic import FUNCTIONS
from ..tensor import Tensor

OPERATORS: Final = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__", np.power: "__rpow__", np.matmul: "__rmatmul__", np.less: "__gt__",
    np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__", np.equal: "__eq__", np.not_equal: "__ne__",
    np.bitwise_and: "__rand__", np.bitwise_or: "__ror__", np.bitwise_xor: "__rxor__", np.left_shift: "__rlshift__",
    np.right_shift: "__rrshift__", np.divmod: "__rdivmod__",
}  # fmt: skip
"""NumPy's functions of operators ↦ the Tensor's method for `array + tensor` and others."""
METHODS: Final = {f.numpy: name for name, f in FUNCTIONS.items()}
"""NumPy's functions ↦ the Tensor's methods that compute the same."""


def array_ufunc(x: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """The protocol by which NumPy asks what its function gives."""
    assigned = options.keys() == {"out"} and options["out"][0] is inputs[0]  # as in `array += tensor`
    plain = method == "__call__" and (not options or assigned)
    if plain and ufunc in OPERATORS and not isinstance(inputs[0], Tensor):
        return getattr(x, OPERATORS[ufunc])(inputs[0])
    name = METHODS.get(ufunc, "") if plain else ""
    said = f"x.{name}({', '.join('y' for _ in inputs[1:])}), or " if hasattr(Tensor, name) else ""
    raise InputError(
        f"np.{ufunc.__name__}: NumPy's elementwise functions take no Tensor; write {said}np.{ufunc.__name__} of x.numpy()"
    )


Tensor.__array_ufunc__ = array_ufunc  # pyright: ignore[reportAttributeAccessIssue] (the stub has None, see tests/stubs.py)
