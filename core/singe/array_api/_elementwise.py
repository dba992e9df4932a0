"""Elementwise functions: those of rows, by their names in the standard, and others that are written out."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

from ..errors import DTypeError, InputError
from ..ir.scalar import Number
from ..ops import ROWS, Elementwise
from ..tensors.argument_errors import check_functions, checked
from ..tensors.arithmetic import compute
from ..tensors.tensor import Tensor, TensorLike
from ._types import result_type


def function_of(row: Elementwise, name: str) -> Callable[..., Tensor]:
    """The function of a row under a name of the standard."""

    def one(x: Tensor, /) -> Tensor:
        return compute(row.name, x)

    def two(x1: TensorLike, x2: TensorLike, /) -> Tensor:
        return compute(row.name, x1, x2)

    return named(name, two if row.arity == 2 else one, f"{row.doc or row.name}, element by element.")


def named(name: str, function: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    """The function under a name of the standard, which is put into its docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc.format(name.replace("_", " "))
    return function


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


ROW_FUNCTIONS: Final = {
    name: checked(function_of(row, name))
    for row in ROWS.values()
    if isinstance(row, Elementwise) and row.promote
    for name in (row.name if row.standard is None else row.standard,)
    if name and name not in globals()
}
"""Those of rows, unless a function of this name is written out above."""
check_functions(globals())
