"""Operators and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...dtypes import bool_, dtype, float32
from ...ops import ROWS, Elementwise
from ..meet import PLAIN, as_type, common_type, matmul_nodes, power
from ..tensor import Tensor, TensorLike, apply
from .attach import method
from .rows import call_row, elementwise, operand

_LOGIC: Final = {
    "and": ("logical_and", "bitwise_and"),
    "or": ("logical_or", "bitwise_or"),
    "xor": ("logical_xor", "bitwise_xor"),
}


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    """A binary operator from an elementwise row."""

    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(other, (Tensor, np.ndarray, np.generic, *PLAIN)):
            return NotImplemented
        row = ROWS[name]
        assert isinstance(row, Elementwise)
        number = operand(other)
        return elementwise(row, (number, self) if reflected else (self, number))

    return method


def _division(reflected: bool) -> Callable[..., Any]:
    """True division: if both sides are integers, they become float32 first."""
    divide = _operator("div", reflected)

    def method(self: Tensor, other: Any) -> Tensor:
        if not self.dtype.is_float and not (isinstance(other, (Tensor, np.ndarray)) and dtype(other.dtype).is_float):
            self = self.cast(float32)
        return divide(self, other)

    return method


def _logic(word: str) -> Callable[..., Any]:
    """& | ^: logical for bools, bitwise for integers."""

    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(other, (Tensor, np.ndarray, np.generic, bool, int)):
            return NotImplemented

        def build(b: Any, *given: Any) -> Any:
            kind = common_type(given)
            logical, bitwise = _LOGIC[word]
            return getattr(b, logical if kind is bool_ else bitwise)(*(as_type(b, x, kind) for x in given))

        return apply(build, self, operand(other))

    return method


OPERATORS: Final = {
    "__add__": _operator("add"),
    "__radd__": _operator("add"),
    "__mul__": _operator("mul"),
    "__rmul__": _operator("mul"),
    "__sub__": _operator("sub"),
    "__rsub__": _operator("sub", reflected=True),
    "__truediv__": _division(reflected=False),
    "__rtruediv__": _division(reflected=True),
    "__eq__": _operator("equal"),
    "__lt__": _operator("less"),
    "__le__": _operator("less_equal"),
    "__gt__": _operator("greater"),
    "__ge__": _operator("greater_equal"),
    "__and__": _logic("and"),
    "__rand__": _logic("and"),
    "__or__": _logic("or"),
    "__ror__": _logic("or"),
    "__xor__": _logic("xor"),
    "__rxor__": _logic("xor"),
}
for _name, _function in OPERATORS.items():
    _function.__name__ = _name
    method(_function)


@method
def __ne__(x: Tensor, other: object) -> Any:
    same = x.__eq__(other)
    return same if same is NotImplemented else ~same


@method
def __neg__(x: Tensor) -> Tensor:
    return call_row(ROWS["neg"], (x,))


@method
def __pos__(x: Tensor) -> Tensor:
    return x


@method
def __abs__(x: Tensor) -> Tensor:
    return call_row(ROWS["abs"], (x,))


@method
def __invert__(x: Tensor) -> Tensor:
    return call_row(ROWS["logical_not" if x.dtype is bool_ else "bitwise_not"], (x,))


@method
def __pow__(x: Tensor, exponent: Any) -> Tensor:
    return apply(lambda b, x: power(b, x, operand(exponent)), x)


@method
def __matmul__(x: Tensor, other: Any) -> Tensor:
    return x.matmul(other) if isinstance(other, (Tensor, np.ndarray)) else NotImplemented


@method
def __rmatmul__(x: Tensor, other: Any) -> Tensor:
    return apply(matmul_nodes, other, x) if isinstance(other, np.ndarray) else NotImplemented


@method
def matmul(x: Tensor, other: TensorLike) -> Tensor:
    """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
    return apply(matmul_nodes, x, other)
