"""Operations on the bits of integers."""

from __future__ import annotations

import numpy as np

from ...dtypes import INTS
from ...ir import scalar
from ...ir.scalar import Expr, const, select
from .._reference import elementwise as reference
from .._row import Elementwise, register


def _left_shift(x: Expr, amount: Expr) -> Expr:
    return select(_is_below(amount, x.dtype.bits), scalar.shl(x, amount), const(0, x.dtype))


def _right_shift(x: Expr, amount: Expr) -> Expr:
    """Beyond the width only copies of the sign are left."""
    most = const(x.dtype.bits - 1, x.dtype)
    if x.dtype.kind == "int":
        return scalar.shr(x, select(_is_below(amount, x.dtype.bits), amount, most))
    return select(_is_below(amount, x.dtype.bits), scalar.shr(x, amount), const(0, x.dtype))


def _is_below(amount: Expr, bits: int) -> Expr:
    """Whether the amount of a shift is within the width. A negative amount is not: it counts as large."""
    return amount < bits if amount.dtype.kind == "uint" else (amount >= 0) & (amount < bits)


register(
    Elementwise(name="bitwise_and", body=scalar.and_, reference=np.bitwise_and, onnx="BitwiseAnd", dtypes=INTS),
    Elementwise(name="bitwise_or", body=scalar.or_, reference=np.bitwise_or, onnx="BitwiseOr", dtypes=INTS),
    Elementwise(name="bitwise_xor", body=scalar.xor, reference=np.bitwise_xor, onnx="BitwiseXor", dtypes=INTS),
    Elementwise(name="bitwise_not", body=scalar.not_, reference=np.invert, onnx="BitwiseNot", dtypes=INTS),
    Elementwise(name="bitwise_left_shift", body=_left_shift, reference=reference.left_shift, dtypes=INTS),
    Elementwise(name="bitwise_right_shift", body=_right_shift, reference=reference.right_shift, dtypes=INTS),
)  # fmt: skip
