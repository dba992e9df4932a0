"""Trigonometric and hyperbolic functions, and their inverses.

The vocabulary has sin, cos and tanh. The inverses are made of two of them, atan and asinh: asin and acos are angles of
triangles, acosh and atanh are asinh of other arguments. The identities are those without cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...dtypes import FLOATS, float32, float64
from ...ir import scalar
from ...ir.scalar import Expr, absolute, clip, const, exp, log, maximum, select, sqrt, tanh
from ..kinds import Elementwise, register, sum_to
from .activations import polynomial
from .bits import is_negative

# Of f(t) = t + t · t² · P(t²) for small t, the coefficients of P: our own fits, within half a unit in the last place.
_ATAN: Final = {  # to tan(π/8)
    float32: (-0.0645159726, 0.107436316, -0.142639464, 0.199995402, -0.333333318),
    float64: (
        -0.019174543571928365, 0.039229744536528326, -0.05085383488839586, 0.058581362519054436, -0.06664509989817952,
        0.07692183087342018, -0.09090904573669059, 0.11111111015146714, -0.1428571428466518, 0.19999999999995513, -1 / 3,
    ),
}  # fmt: skip
_ASINH: Final = {  # to 1/2
    float32: (0.00993650431, -0.0205267935, 0.0301561786, -0.0446300219, 0.0749997289, -0.166666666),
    float64: (
        0.0018854117654944328, -0.0049927171981288725, 0.0076223094274731834, -0.009591452221670122, 0.011526210169674886,
        -0.013962235682232248, 0.017352587715192564, -0.022372151449922602, 0.030381944248546365, -0.044642857140252436,
        0.0749999999999864, -1 / 6,
    ),
}  # fmt: skip
_SINH: Final = {
    kind: tuple(1 / math.factorial(2 * k + 3) for k in reversed(range(terms)))
    for kind, terms in ((float32, 4), (float64, 8))
}  # the Taylor series, to 1


def _odd(t: Expr, coefficients: tuple[float, ...]) -> Expr:
    square = t * t
    return t + t * square * polynomial(square, coefficients)


def _like(sign: Expr, size: Expr) -> Expr:
    """The size with a sign; zero and NaN keep the sign's value."""
    return select(sign < 0.0, -size, select(sign > 0.0, size, sign))


def _atan(x: Expr) -> Expr:
    """Arguments above tan(π/8) are turned by π/4, those above tan(3π/8) by π/2."""
    size = absolute(x)
    far, middle = size > math.tan(3 * math.pi / 8), size > math.tan(math.pi / 8)
    one = const(1, x.dtype)
    top = select(far, -one, select(middle, size - 1.0, size))
    turn = select(far, const(math.pi / 2, x.dtype), select(middle, const(math.pi / 4, x.dtype), const(0, x.dtype)))
    angle = _odd(top / select(far, size, select(middle, size + 1.0, one)), _ATAN[x.dtype])
    return _like(x, turn + angle)


def _asin(x: Expr) -> Expr:
    return _atan(x / sqrt((1.0 - x) * (1.0 + x)))


def _acos(x: Expr) -> Expr:
    return 2.0 * _atan(sqrt((1.0 - x) / (1.0 + x)))


def _halves(x: Expr) -> tuple[Expr, Expr]:
    """e^|x| / 2 and e^−|x| / 2. The root of e^|x| is squared, because e^|x| may overflow where its half does not."""
    root = exp(absolute(x) * 0.5)
    grown = 0.5 * root * root
    return grown, 0.25 / grown


def _sinh(x: Expr) -> Expr:
    grown, shrunk = _halves(x)
    return select(absolute(x) < 1.0, _odd(x, _SINH[x.dtype]), _like(x, grown - shrunk))


def _cosh(x: Expr) -> Expr:
    grown, shrunk = _halves(x)
    return grown + shrunk


def _asinh(x: Expr) -> Expr:
    """log(x + √(x² + 1)); the square would overflow from 2⁶⁰ on, where it exceeds 1 by far."""
    size = absolute(x)
    huge = size > 2.0**60
    safe = select(huge, const(1, x.dtype), size)
    grown = log(select(huge, size, safe + sqrt(safe * safe + 1.0))) + select(
        huge, const(math.log(2), x.dtype), const(0, x.dtype)
    )
    return _like(x, select(size < 0.5, _odd(size, _ASINH[x.dtype]), grown))


def _acosh(x: Expr) -> Expr:
    return 2.0 * _asinh(sqrt((x - 1.0) * 0.5))


def _atanh(x: Expr) -> Expr:
    return _asinh(x / sqrt((1.0 - x) * (1.0 + x)))


def log1p(x: Expr) -> Expr:
    """log(1 + x) without the cancellation near 0: 2 · atanh(x / (2 + x))."""
    return select(absolute(x) < 0.5, 2.0 * _atanh(x / (x + 2.0)), log(x + 1.0))


def _expm1(x: Expr) -> Expr:
    """e^x − 1 without the cancellation near 0: of t = tanh(x / 2), 2 · t / (1 − t)."""
    t = tanh(clip(x, -1.0, 1.0) * 0.5)
    return select(absolute(x) < 1.0, 2.0 * t / (1.0 - t), exp(x) - 1.0)


def _expm1_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [b.mul(g, b.exp(inputs[0]))]


def _atan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y): that below the diagonal, reflected into the octant of the point."""
    a, b = absolute(x), absolute(y)
    steep, zero = b > a, const(0, x.dtype)
    ratio = select(scalar.eq(a, b), const(1, x.dtype), select(steep, a, b) / select(steep, b, a))
    angle = _atan(select(scalar.eq(maximum(a, b), 0.0), zero, ratio))
    angle = select(steep, math.pi / 2 - angle, angle)
    angle = select(is_negative(x), math.pi - angle, angle)
    return select(is_negative(y), -angle, angle)


def _atan2_vjp(b: Any, g: Any, inputs: Sequence[Any], angle: Any) -> list[Any]:
    """x / (x² + y²) and −y / (x² + y²); at the origin, where there is no slope, 0."""
    y, x = inputs
    square = b.add(b.mul(x, x), b.mul(y, y))
    zero = b.const(0, square.dtype)
    part = b.where(b.equal(square, zero), zero, b.div(g, square))
    return [sum_to(b, b.mul(part, x), y.shape), sum_to(b, b.neg(b.mul(part, y)), x.shape)]


def _by_slope(slope: Callable[[Any, Any, Any], Any]) -> Callable[..., list[Any]]:
    """A gradient from the inverse of the derivative, slope(builder, x, 1). The bodies' own derivatives would not do: they
    are NaN where the half of a select that is not taken is infinite."""

    def vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
        (x,) = inputs
        return [b.div(g, slope(b, x, b.const(1, x.dtype)))]

    return vjp


def _sinh_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [b.mul(g, b.cosh(inputs[0]))]


def _cosh_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [b.mul(g, b.sinh(inputs[0]))]


def _rest(b: Any, x: Any, one: Any) -> Any:
    """1 − x²."""
    return b.mul(b.sub(one, x), b.add(one, x))


_asin_vjp: Final = _by_slope(lambda b, x, one: b.sqrt(_rest(b, x, one)))
_acos_vjp: Final = _by_slope(lambda b, x, one: b.neg(b.sqrt(_rest(b, x, one))))
_atan_vjp: Final = _by_slope(lambda b, x, one: b.add(one, b.mul(x, x)))
_asinh_vjp: Final = _by_slope(lambda b, x, one: b.sqrt(b.add(one, b.mul(x, x))))
_acosh_vjp: Final = _by_slope(lambda b, x, one: b.mul(b.sqrt(b.sub(x, one)), b.sqrt(b.add(x, one))))
_log1p_vjp: Final = _by_slope(lambda b, x, one: b.add(one, x))
_atanh_vjp: Final = _by_slope(_rest)

register(
    Elementwise(name="sin", doc="the sine of an angle in radians",
        promote="float", numpy="sin", complex=True,
        body=scalar.sin, onnx="Sin", dtypes=FLOATS, domain=(-20, 20), tolerance=8),
    Elementwise(name="cos", doc="the cosine of an angle in radians",
        promote="float", numpy="cos", complex=True,
        body=scalar.cos, onnx="Cos", dtypes=FLOATS, domain=(-20, 20), tolerance=8),
    Elementwise(name="tan", doc="the tangent of an angle in radians",
        promote="float", numpy="tan", complex=True,
        body=lambda x: scalar.sin(x) / scalar.cos(x), onnx="Tan", dtypes=FLOATS, domain=(-1.2, 1.2), tolerance=16),
    Elementwise(name="asin", doc="the inverse sine, in radians",
        promote="float", numpy="arcsin", complex=True, also=("arcsin",),
        body=_asin, vjp=_asin_vjp, onnx="Asin", dtypes=FLOATS, domain=(-0.99, 0.99), floor=0),
    Elementwise(name="acos", doc="the inverse cosine, in radians",
        promote="float", numpy="arccos", complex=True, also=("arccos",),
        body=_acos, vjp=_acos_vjp, onnx="Acos", dtypes=FLOATS, domain=(-0.99, 0.99), floor=0),
    Elementwise(name="atan", doc="the inverse tangent, in radians",
        promote="float", numpy="arctan", complex=True, also=("arctan",),
        body=_atan, vjp=_atan_vjp, onnx="Atan", dtypes=FLOATS, domain=(-8, 8), floor=0),
    Elementwise(name="atan2", doc="the angle of the point (other, x) in radians, −π … π",
        promote="float", numpy="arctan2", also=("arctan2",),
        body=_atan2, vjp=_atan2_vjp, dtypes=FLOATS, floor=0),
    Elementwise(name="sinh", doc="the hyperbolic sine",
        promote="float", numpy="sinh", complex=True,
        body=_sinh, vjp=_sinh_vjp, onnx="Sinh", dtypes=FLOATS, tolerance=16, floor=0),
    Elementwise(name="cosh", doc="the hyperbolic cosine",
        promote="float", numpy="cosh", complex=True,
        body=_cosh, vjp=_cosh_vjp, onnx="Cosh", dtypes=FLOATS, tolerance=16, floor=0),
    Elementwise(name="tanh", doc="the hyperbolic tangent",
        promote="float", numpy="tanh", complex=True,
        body=tanh, onnx="Tanh", dtypes=FLOATS, tolerance=16),
    Elementwise(name="asinh", doc="the inverse hyperbolic sine",
        promote="float", numpy="arcsinh", complex=True, also=("arcsinh",),
        body=_asinh, vjp=_asinh_vjp, onnx="Asinh", dtypes=FLOATS, domain=(-20, 20), tolerance=8, floor=0),
    Elementwise(name="acosh", doc="the inverse hyperbolic cosine",
        promote="float", numpy="arccosh", complex=True, also=("arccosh",),
        body=_acosh, vjp=_acosh_vjp, onnx="Acosh", dtypes=FLOATS, domain=(1.01, 20), tolerance=8, floor=0),
    Elementwise(name="log1p", doc="log(1 + x), exact for small x",
        promote="float", numpy="log1p", complex=True,
        body=log1p, vjp=_log1p_vjp, dtypes=FLOATS, domain=(-0.9, 20), tolerance=8, floor=0),
    Elementwise(name="expm1", doc="e^x − 1, exact for small x",
        promote="float", numpy="expm1", complex=True,
        body=_expm1, vjp=_expm1_vjp, dtypes=FLOATS, domain=(-20, 10), tolerance=8, floor=0),
    Elementwise(name="atanh", doc="the inverse hyperbolic tangent",
        promote="float", numpy="arctanh", complex=True, also=("arctanh",),
        body=_atanh, vjp=_atanh_vjp, onnx="Atanh", dtypes=FLOATS, domain=(-0.99, 0.99), tolerance=8, floor=0),
)  # fmt: skip
