"""Powers, and what is composed of powers and logarithms without overflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import FLOATS, NUMBERS
from ...ir import scalar
from ...ir.scalar import Expr, absolute, const, exp, log, maximum, minimum, select, sqrt
from ..kinds import Elementwise, register, sum_to
from .trigonometry import log1p


def _pow(x: Expr, y: Expr) -> Expr:
    return _float_power(x, y) if x.dtype.is_float else _integer_power(x, y)


def _integer_power(x: Expr, y: Expr) -> Expr:
    """By squaring; from an exponent of 64 on, all results but 0, 1 and −1 are out of range. A negative exponent gives
    1 / x⁻ʸ, rounded toward zero, and 0 for x = 0."""
    one, zero = const(1, x.dtype), const(0, x.dtype)
    product, square, left = one, x, y
    for _ in range(6):
        half = scalar.shr(left, const(1, y.dtype))
        product = select(scalar.eq(scalar.and_(left, const(1, y.dtype)), 1), product * square, product)
        square, left = square * square, half
    product = select(scalar.and_(y > 63, scalar.eq(scalar.and_(x, one), 0)), zero, product)
    if x.dtype.kind == "uint":
        return product
    unit = scalar.or_(scalar.eq(x, 1), scalar.eq(x, -1))
    return select(scalar.and_(y < 0, scalar.not_(unit)), zero, product)


def _float_power(x: Expr, y: Expr) -> Expr:
    """Whole exponents and halves below 64 by squaring and a square root, which are exact if the result is exact; others by
    the logarithm."""
    most = float(np.finfo(x.dtype.numpy).max)
    times, size = absolute(y), absolute(x)
    left = scalar.floor(times)
    half = scalar.eq(times - left, 0.5)
    root = sqrt(select(scalar.or_(x < -most, scalar.eq(x, 0.0)), size, x))  # of −∞ and −0: ∞ and 0
    product, square = select(half, root, const(1, x.dtype)), select(half, size, x)
    for _ in range(6):
        rest = scalar.floor(left * 0.5)
        product = select(scalar.eq(left - rest * 2.0, 1.0), product * square, product)
        square, left = square * square, rest
    whole = scalar.eq(scalar.floor(y), y)
    by_squaring = select(y < 0.0, 1.0 / product, product)
    odd = scalar.eq(times - scalar.floor(times * 0.5) * 2.0, 1.0)
    power = exp(y * log(select(whole, size, select(x < -most, size, x))))  # NaN if x < 0 and y is not whole
    power = select(scalar.and_(x < 0.0, scalar.and_(whole, odd)), -power, power)
    one = scalar.or_(scalar.eq(x, 1.0), scalar.and_(scalar.eq(size, 1.0), times > most))
    exact = scalar.and_(scalar.or_(whole, half), times < 64.0)
    return select(exact, by_squaring, select(one, const(1, x.dtype), power))


def _pow_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    """Of zeros, where the logarithm and negative powers are infinite, powers are constant."""
    x, exponent = inputs
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    constant = b.equal(exponent, zero)
    slope = b.mul(exponent, b.pow(x, b.sub(b.where(constant, one, exponent), one)))
    by_base = b.where(constant, zero, b.mul(g, slope))
    nothing = b.logical_and(b.equal(x, zero), b.greater_equal(exponent, zero))
    grown = b.mul(y, b.log(b.where(nothing, one, x)))
    return [sum_to(b, by_base, x.shape), sum_to(b, b.where(nothing, zero, b.mul(g, grown)), exponent.shape)]


def _hypot(x: Expr, y: Expr) -> Expr:
    """√(x² + y²), of which no square overflows; infinite if one of them is, also beside NaN."""
    a, b = absolute(x), absolute(y)
    most = float(np.finfo(x.dtype.numpy).max)
    size, other = maximum(a, b), minimum(a, b)
    ratio = select(scalar.eq(size, 0.0), const(0, x.dtype), other / size)
    return select(scalar.or_(a > most, b > most), const(math.inf, x.dtype), size * sqrt(ratio * ratio + 1.0))


def _hypot_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    """x / y; at the origin, where there is no slope, 0."""
    zero = b.const(0, y.dtype)
    part = b.where(b.equal(y, zero), zero, b.div(g, y))
    return [sum_to(b, b.mul(part, x), x.shape) for x in inputs]


def _logaddexp(x: Expr, y: Expr) -> Expr:
    """log(eˣ + eʸ): the larger, plus log(1 + e⁻ᵈ) of their distance d."""
    distance = select(scalar.eq(x, y), const(0, x.dtype), absolute(x - y))
    return maximum(x, y) + log1p(exp(-distance))


def _logaddexp_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [sum_to(b, b.mul(g, b.exp(b.sub(x, y))), x.shape) for x in inputs]


register(
    Elementwise(name="pow", doc="x to the power of other",
        promote="same", numpy="power", complex=True,
        body=_pow, vjp=_pow_vjp, dtypes=NUMBERS, domain=(0.1, 4), tolerance=64),
    Elementwise(name="hypot", doc="√(x² + other²), without overflow on the way",
        promote="float", numpy="hypot",
        body=_hypot, vjp=_hypot_vjp, dtypes=FLOATS, tolerance=4, floor=0),
    Elementwise(name="logaddexp", doc="log(e^x + e^other), without overflow on the way",
        promote="float", numpy="logaddexp",
        body=_logaddexp, vjp=_logaddexp_vjp, dtypes=FLOATS, tolerance=16),
)  # fmt: skip
