"""Arithmetic, roots and exponentials: each op is one expression over the scalar vocabulary, and needs nothing
else.

To add an op, add a row: README.md in the folder above says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import COMPLEX, FLOATS, INTS, NUMBERS, SINGLES
from ...errors import SizeNeeded
from ...ir import scalar
from ...ir.scalar import Expr, clip, const, exp, log, maximum, minimum, select, sqrt
from ...shapes import Dim, floordiv, symbols
from ..kinds import ROWS, Elementwise, register, sum_to


def _sign(x: Expr) -> Expr:
    return select(x > 0, const(1, x.dtype), select(x < 0, const(-1, x.dtype), x))


def _sign_on_host(x: np.ndarray) -> np.ndarray:
    """Of complex numbers, x / |x|."""
    return np.where(x == 0, 0, x / np.abs(x)).astype(x.dtype) if x.dtype.kind == "c" else np.sign(x)


def _remainder(a: Expr, b: Expr) -> Expr:
    """The remainder with the sign of the divisor, as in Python."""
    left = scalar.rem(a, b)
    if a.dtype.kind == "uint":
        return left
    none = scalar.eq(left, 0)
    moved = select(scalar.or_(none, scalar.eq(left < 0, b < 0)), left, left + b)
    zero = select(b < 0, const(-0.0, b.dtype), const(0, b.dtype))
    return select(none, zero, moved)


def _floor_divide(a: Expr, b: Expr) -> Expr:
    """⌊a / b⌋ as in Python: of floats, the exact quotient counts, not the rounded one."""
    if a.dtype.kind == "uint":
        return a / b
    left = scalar.rem(a, b)
    unlike = scalar.and_(scalar.ne(left, 0), scalar.ne(left < 0, b < 0))
    if a.dtype.is_int:
        return a / b - select(unlike, const(1, a.dtype), const(0, a.dtype))
    whole = scalar.round_((a - left) / b - select(unlike, const(1, a.dtype), const(0, a.dtype)))
    zero = select(scalar.eq(b, 0.0), a / b, a / b * 0.0)  # which has the sign of the quotient
    return select(scalar.or_(scalar.eq(b, 0.0), scalar.eq(whole, 0.0)), zero, whole)


SHORT = tuple(kind for kind in INTS if kind.size <= 4)
"""For numbers of 64 bits, 94 divisions of two words each are too long a shader."""
GOLDEN = (1 + math.sqrt(5)) / 2


def _gcd(a: Expr, b: Expr) -> Expr:
    """Euclid's steps, as many as the two worst numbers, neighbours of Fibonacci's series, need."""
    one = const(1, a.dtype)
    for _ in range(math.ceil(8 * a.dtype.size * math.log(2, GOLDEN)) + 1):
        done = scalar.eq(b, 0)
        a, b = select(done, a, b), scalar.rem(a, select(done, one, b))
    return scalar.absolute(a)


def _lcm(a: Expr, b: Expr) -> Expr:
    return scalar.absolute(a / maximum(_gcd(a, b), const(1, a.dtype)) * b)


def _remainder_of_dims(a: Dim, b: Dim) -> Dim:
    """By the quotient, so that a + (-a) % b is known to be a multiple of b."""
    if b == 0:
        raise SizeNeeded(f"{a} % 0 is no dimension", symbols([a]))
    return a - floordiv(a, b) * b


def _remainder_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    """y is a − q · c for a whole q, which is constant between jumps."""
    a, c = inputs
    quotient = b.round(b.div(b.sub(y, a), c))
    return [sum_to(b, g, a.shape), sum_to(b, b.mul(g, quotient), c.shape)]


def _extreme_vjp(greater: str) -> Callable[..., list[Any]]:
    """To the larger (or lesser) of two; if they are equal, half to each, as in PyTorch."""

    def vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
        left, right = inputs
        zero, half = b.const(0, g.dtype), b.mul(g, b.const(0.5, g.dtype))
        tied, first = b.equal(left, right), b.apply(ROWS[greater], left, right)
        parts = b.where(first, g, zero), b.where(first, zero, g)
        return [sum_to(b, b.where(tied, half, part), x.shape) for part, x in zip(parts, inputs, strict=True)]

    return vjp


def _falling_exp(x: Expr) -> Expr:
    """A softmax of elements masked with −100 would be full of subnormal numbers, which a CPU takes a hundred times as long
    to multiply."""
    return select(x < math.log(np.finfo(x.dtype.numpy).tiny), 0.0, exp(x))


register(
    Elementwise(name="add", doc="x + other",
        promote="same", numpy="add", operator="add",
        body=lambda a, b: a + b, onnx="Add", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="sub", doc="x − other",
        promote="same", numpy="subtract", operator="sub", standard="subtract",
        body=lambda a, b: a - b, onnx="Sub", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="mul", doc="x · other",
        promote="same", numpy="multiply", operator="mul", standard="multiply", also=("multiply",),
        body=lambda a, b: a * b, onnx="Mul", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="div", doc="x / other",
        promote="float", numpy="divide", operator="truediv", standard="divide", also=("true_divide",),
        body=lambda a, b: a / b, onnx="Div", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="fmod", doc="the remainder of x / other, with the sign of x, as in C",
        promote="same", numpy="fmod", standard="",
        body=scalar.rem, vjp=_remainder_vjp, dtypes=NUMBERS),
    Elementwise(
        name="remainder", doc="the remainder of x / other, with the sign of other, as Python's %",
        promote="same", numpy="remainder", operator="mod",
        body=_remainder, vjp=_remainder_vjp, dtypes=NUMBERS, dims=_remainder_of_dims,
    ),
    Elementwise(name="floor_divide", doc="x / other rounded down, as Python's //",
        promote="same", numpy="floor_divide", operator="floordiv",
        body=_floor_divide, vjp=lambda b, g, inputs, y: [None, None], dtypes=NUMBERS),
    Elementwise(name="gcd", doc="the greatest common divisor",
        promote="same", numpy="gcd", standard="",
        body=_gcd, dtypes=SHORT),
    Elementwise(name="lcm", doc="the least common multiple",
        promote="same", numpy="lcm", standard="",
        body=_lcm, dtypes=SHORT),
    Elementwise(name="minimum", doc="the lesser of two; NaN where either is",
        promote="same", numpy="minimum",
        body=minimum, vjp=_extreme_vjp("less"), dtypes=NUMBERS),
    Elementwise(name="maximum", doc="the greater of two; NaN where either is",
        promote="same", numpy="maximum",
        body=maximum, vjp=_extreme_vjp("greater"), dtypes=NUMBERS),
    Elementwise(name="neg", doc="−x",
        promote="same", numpy="negative", operator="neg", standard="negative", also=("negative",),
        body=lambda x: -x, onnx="Neg", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="abs", doc="the absolute value",
        promote="same", numpy="abs", complex=True, operator="abs", also=("absolute",),
        body=scalar.absolute, onnx="Abs", dtypes=NUMBERS),
    Elementwise(name="sign", doc="−1, 0 or 1: the sign of x",
        promote="same", unchanged=("bool",), numpy=_sign_on_host, complex=True, also=("sgn",),
        body=_sign, vjp=lambda b, g, inputs, y: [None], onnx="Sign", dtypes=NUMBERS),
    Elementwise(name="reciprocal", doc="1 / x",
        promote="float", numpy="reciprocal", complex=True,
        body=lambda x: 1.0 / x, onnx="Reciprocal", dtypes=FLOATS),
    Elementwise(name="floor", doc="the greatest whole number that is at most x",
        promote="same", unchanged=("int", "uint"), numpy="floor",
        body=scalar.floor, onnx="Floor", dtypes=FLOATS),
    Elementwise(name="ceil", doc="the least whole number that is at least x",
        promote="same", unchanged=("int", "uint"), numpy="ceil",
        body=scalar.ceil, onnx="Ceil", dtypes=FLOATS),
    Elementwise(name="round", doc="the nearest whole number; of two that are equally near, the even one",
        promote="same", unchanged=("int", "uint"), numpy="round", complex=True,
        body=scalar.round_, onnx="Round", dtypes=FLOATS),
    Elementwise(name="trunc", doc="the whole number without the fraction",
        promote="same", unchanged=("int", "uint"), numpy="trunc", also=("fix",),
        body=lambda x: select(x < 0.0, scalar.ceil(x), scalar.floor(x)), dtypes=FLOATS),
    Elementwise(name="clip", doc="x where it is between low and high, else the nearer of the two",
        body=clip, dtypes=NUMBERS),
    Elementwise(name="sqrt", doc="the square root",
        promote="float", numpy="sqrt", complex=True,
        body=sqrt, onnx="Sqrt", dtypes=FLOATS, domain=(0.01, 9)),
    Elementwise(name="exp", doc="e^x, the exponential function",
        promote="float", numpy="exp", complex=True,
        body=exp, onnx="Exp", dtypes=FLOATS, domain=(-20, 10), tolerance=8),
    Elementwise(name="falling_exp", public=False, doc="e^x of numbers up to 0, but 0 where it would be subnormal",
        body=_falling_exp, vjp=lambda b, g, inputs, y: [b.mul(g, y)], dtypes=FLOATS, domain=(-80, 0), tolerance=8),
    Elementwise(name="log", doc="the natural logarithm",
        promote="float", numpy="log", complex=True,
        body=log, onnx="Log", dtypes=FLOATS, domain=(0.01, 50), tolerance=8),
    Elementwise(name="log2", doc="the logarithm to base 2",
        promote="float", numpy="log2", complex=True,
        body=lambda x: log(x) / math.log(2), dtypes=SINGLES, domain=(0.01, 50), tolerance=8),
    Elementwise(name="log10", doc="the logarithm to base 10",
        promote="float", numpy="log10", complex=True,
        body=lambda x: log(x) / math.log(10), dtypes=SINGLES, domain=(0.01, 50), tolerance=8),
    Elementwise(name="real", doc="the real part",
        promote="same", unchanged=("bool", "int", "uint", "float"), numpy="real", complex=True,
        body=lambda x: x, dtypes=()),
    Elementwise(name="imag", doc="the imaginary part",
        promote="same", numpy="imag", complex=True,
        body=lambda x: const(0, x.dtype), dtypes=()),
    Elementwise(name="conj", doc="the complex conjugate",
        promote="same", unchanged=("bool", "int", "uint", "float"), numpy="conj", complex=True,
        body=lambda x: x, dtypes=()),
)  # fmt: skip
