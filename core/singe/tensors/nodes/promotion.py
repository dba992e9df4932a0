"""Type promotion: numbers, sizes, arrays and nodes become nodes of one dtype. This module does not use Tensors.

Nodes of different dtypes are converted to their common dtype (dtypes.promote). A Python number or a size takes the nodes' dtype,
unless its own kind is higher: a float makes integers float32, an integer makes bools int64. A number outside an integer
type's range is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import DType, bool_, check_fits, complex64, dtype, float32, int64, own, promote
from ...errors import DTypeError, InputError
from ...ir.arrays import convert
from ...ops import as_dtype
from ...ops.movement.move import amount
from ...shapes import Size

NATURAL: Final = {bool: bool_, int: int64, Size: int64, float: float32, complex: complex64}
"""The dtype of a Python number, or of a size, if no operand has one."""
PLAIN: Final = tuple(NATURAL)
KINDS: Final = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3, "string": 4}
"""The kinds of dtypes ↦ which of two holds the other."""
_POWERS: Final = 16
"""The largest exponent for which multiplications are preferred to the row `pow`."""


def whole_array(data: Any) -> np.ndarray:
    """Data as NumPy has it, but with Python's integers as int64 also where NumPy's own are of 32 bits: in WebAssembly."""
    array = np.asarray(data)
    wide = array.dtype == np.int_ and not isinstance(data, (np.ndarray, np.generic))
    return array.astype(np.int64, copy=False) if wide else array


def plain_array(data: Any, kind: DType | None = None) -> np.ndarray:
    """Data as an array of a supported dtype, always a copy.

    Unless a dtype is given, float64 becomes float32: it is only the default of Python and NumPy, and many devices lack
    it. Python's integers become int64. A number outside an integer type's range is refused.
    """
    try:
        array = own(whole_array(data))
    except ValueError:  # lists of different lengths
        array = np.empty(0, object)
    if array.dtype == object and array.size and all(isinstance(v, int) for v in array.flat):  # beyond 64 bits
        for v in array.flat:
            check_fits(v, kind or int64)
        array = np.array([_as_float(v, kind or int64) for v in array.flat]).reshape(array.shape)
    if array.dtype == object:
        raise InputError(
            f"tensor: got {data!r:.80}, expected numbers or strings in lists of equal lengths, or an array"
        )
    if kind is None:
        kind = float32 if array.dtype == np.float64 else dtype(array.dtype)
    check_fits(array, kind)
    return np.array(convert(array, kind.numpy))


def _as_float(x: int, kind: DType) -> float:
    """An integer beyond NumPy's as a float, for a type of floats."""
    try:
        return float(x)
    except OverflowError:
        raise DTypeError(
            f"an integer of {x.bit_length()} bits does not fit {kind}; give float('inf') for infinity"
        ) from None


def common_type(operands: Sequence[Any]) -> DType:
    """The common dtype of nodes, dtypes and numbers."""
    kinds = [x if isinstance(x, DType) else x.dtype for x in operands if not isinstance(x, PLAIN)]
    kind = promote(*kinds) if kinds else bool_
    for x in operands:
        natural = next((NATURAL[c] for c in type(x).__mro__ if c in NATURAL), None)
        if natural is not None and KINDS[natural.kind] > KINDS[kind.kind]:
            kind = promote(kind, natural) if natural is complex64 and kind.is_float else natural
    return kind


def as_type(b: Any, x: Any, kind: DType) -> Any:
    """A node or a number as a node of a dtype."""
    if not isinstance(x, PLAIN):
        return as_dtype(b, x, kind)
    if isinstance(x, Size):
        return amount(b, x, kind)
    try:
        check_fits(x, kind)
    except DTypeError as e:
        raise DTypeError(f"{e}; cast the tensor first") from None
    if isinstance(x, int) and not kind.is_int and x.bit_length() > 63:
        x = _as_float(x, kind)
    return b.const(x, kind)


def matmul_nodes(b: Any, x: Any, y: Any) -> Any:
    """x @ y in their common dtype."""
    kind = common_type((x, y))
    return b.matmul(as_type(b, x, kind), as_type(b, y, kind))


def is_small_power(exponent: Any) -> bool:
    """Whether `power` takes this exponent."""
    return type(exponent) in (int, float) and (exponent % 1 == 0 or abs(exponent) == 0.5) and abs(exponent) <= _POWERS


def power(b: Any, x: Any, exponent: Any) -> Any:
    """x to a small power: whole exponents by multiplications, 0.5 by a square root. With both, as in 1.5, the gradient at 0
    would be 0 · ∞."""
    if not x.dtype.is_float and (exponent < 0 or exponent != int(exponent)):
        x = b.cast(x, to=float32)
    if abs(exponent) == 0.5:
        y = b.sqrt(x)
    else:
        factors = []
        square = x
        for bit in reversed(f"{int(abs(exponent)):b}"):
            factors += [square] if bit == "1" else []
            square = b.mul(square, square)
        y = factors[0] if factors else b.expand(b.const(1, x.dtype), shape=x.shape)
        for f in factors[1:]:
            y = b.mul(y, f)
    return b.reciprocal(y) if exponent < 0 else y
