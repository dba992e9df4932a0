"""Operations on the bits of integers, and on those of floats: the sign, and the numbers beside."""

from __future__ import annotations

from ...dtypes import FLOATS, INTS, NUMBERS, float32, float64
from ...ir import scalar
from ...ir.scalar import Expr, const, select
from ..kinds import WHOLE_RESULT, Elementwise, register


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


def is_negative(x: Expr) -> Expr:
    """Whether the sign is minus, also that of zero."""
    return (scalar.bits(x) if x.dtype.is_float else x) < 0


def _copysign(x: Expr, sign: Expr) -> Expr:
    size = scalar.absolute(x)
    return select(is_negative(sign), -size, size)


def _nextafter(x: Expr, to: Expr) -> Expr:
    """The bits of floats of one sign are ordered as the floats are."""
    own = scalar.bits(x)
    one = const(1, own.dtype)
    beside = scalar.of_bits(select(scalar.eq(to > x, x > 0.0), own + one, own - one))
    least = scalar.of_bits(one)
    from_zero = select(to < 0.0, -least, least)
    found = select(scalar.eq(x, 0.0), from_zero, beside)
    return select(scalar.or_(scalar.isnan(x), scalar.isnan(to)), x + to, select(scalar.eq(x, to), to, found))


register(
    Elementwise(name="bitwise_and", doc="x & other: the bits that both have",
        promote="same", bools="logical_and", numpy="bitwise_and", operator="and",
        body=scalar.and_, onnx="BitwiseAnd", dtypes=INTS),
    Elementwise(name="bitwise_or", doc="x | other: the bits that either has",
        promote="same", bools="logical_or", numpy="bitwise_or", operator="or",
        body=scalar.or_, onnx="BitwiseOr", dtypes=INTS),
    Elementwise(name="bitwise_xor", doc="x ^ other: the bits that only one has",
        promote="same", bools="logical_xor", numpy="bitwise_xor", operator="xor",
        body=scalar.xor, onnx="BitwiseXor", dtypes=INTS),
    Elementwise(name="bitwise_not", doc="~x: every bit turned",
        promote="same", bools="logical_not", numpy="invert", operator="invert", standard="bitwise_invert",
        body=scalar.not_, onnx="BitwiseNot", dtypes=INTS),
    Elementwise(name="bitwise_left_shift", doc="x << other: x times 2 to the power of other",
        promote="same", numpy="left_shift", operator="lshift",
        body=_left_shift, dtypes=INTS),
    Elementwise(name="bitwise_right_shift", doc="x >> other: x divided by 2 to the power of other, rounded down",
        promote="same", numpy="right_shift", operator="rshift",
        body=_right_shift, dtypes=INTS),
    Elementwise(name="signbit", no_gradient=WHOLE_RESULT, doc="whether the sign is negative, as −0.0's is",
        promote="same", numpy="signbit",
        body=is_negative, result_type="bool", dtypes=NUMBERS),
    Elementwise(name="copysign", doc="the absolute value of x with the sign of other",
        promote="float", numpy="copysign",
        body=_copysign, dtypes=FLOATS),
    Elementwise(name="nextafter", doc="the next number after x in the direction of other",
        promote="float", numpy="nextafter",
        no_gradient="its result is a step away from its input, of either sign",
        body=_nextafter, dtypes=(float32, float64)),
)  # fmt: skip
