"""Elementwise functions: the table of ../arithmetic.py under the standard's names."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

from ..errors import DTypeError, InputError
from ..ir.scalar import Number
from ..tensors.argument_errors import check_functions
from ..tensors.arithmetic import compute
from ..tensors.tensor import Tensor, TensorLike
from ._types import result_type

UNARY: Final = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "bitwise_invert": "bitwise_not",
    "ceil": "ceil", "conj": "conj", "cos": "cos", "cosh": "cosh", "exp": "exp", "expm1": "expm1", "floor": "floor", "imag": "imag",
    "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "logical_not": "logical_not", "negative": "neg", "real": "real", "reciprocal": "reciprocal", "round": "round", "signbit": "signbit",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip
"""The standard's functions of one array ↦ their names in the table."""
BINARY: Final = {
    "add": "add", "atan2": "atan2", "bitwise_and": "bitwise_and", "bitwise_left_shift": "bitwise_left_shift", "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift", "bitwise_xor": "bitwise_xor", "copysign": "copysign", "divide": "div", "equal": "equal",
    "floor_divide": "floor_divide", "greater": "greater", "greater_equal": "greater_equal", "hypot": "hypot", "less": "less", "less_equal": "less_equal",
    "logaddexp": "logaddexp", "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor", "maximum": "maximum",
    "minimum": "minimum", "multiply": "mul", "nextafter": "nextafter", "remainder": "remainder", "subtract": "sub",
}  # fmt: skip
"""The standard's functions of two arrays, or of an array and a number."""


def _one(name: str, row: str) -> Callable[..., Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return compute(row, x)

    return named(name, function, _DOC)


def _two(name: str, row: str) -> Callable[..., Tensor]:
    def function(x1: TensorLike, x2: TensorLike, /) -> Tensor:
        return compute(row, x1, x2)

    return named(name, function, _DOC)


_DOC: Final = "{} of each element, as the standard defines it."


def named(name: str, function: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    """The function under a name of the standard, which is put into its docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc.format(name.replace("_", " "))
    return function


globals().update({name: _one(name, row) for name, row in UNARY.items()})
globals().update({name: _two(name, row) for name, row in BINARY.items()})


def not_equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Whether elements differ."""
    return compute("equal", x1, x2).logical_not()


def positive(x: Tensor, /) -> Tensor:
    """The elements."""
    return x


def square(x: Tensor, /) -> Tensor:
    """x · x."""
    return x.square()


def sign(x: Tensor, /) -> Tensor:
    """−1, 0 or 1; NaN for NaN."""
    y = compute("sign", x)
    return y if not x.dtype.is_float else compute("abs", y).where(x == 0, y)


def pow(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Elements of x1 to powers in x2."""
    kind = result_type(x1, x2)
    if kind.kind == "bool":
        raise DTypeError("pow: got bools, expected numbers")
    return compute("pow", x1, x2)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements clipped to the range from min to max (None: no limit), in the dtype of x."""
    y = x
    for bound, name in ((min, "maximum"), (max, "minimum")):
        if bound is None:
            continue
        if isinstance(bound, Tensor) and bound.dtype.is_float and not x.dtype.is_float:
            raise InputError(
                f"clip: a bound is {bound.dtype}, and the array {x.dtype}; cast one to the type of the other"
            )
        if not isinstance(bound, Tensor) and x.dtype.is_int:
            least, most = x.dtype.limits
            bound = builtins.min(builtins.max(int(bound), least), most)
        y = compute(name, y, bound.cast(x.dtype) if isinstance(bound, Tensor) else bound)
    return y


check_functions(globals())
