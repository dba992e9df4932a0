"""The elementwise rows: each op is one expression over the scalar vocabulary, and needs nothing else.

To add an op, add a row: README.md in this folder says how.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import ALL, COMPLEX, FLOATS, INTS, NUMBERS, SINGLES, STORED, DType, bool_
from ...ir import scalar
from ...ir.scalar import Expr, clip, const, exp, log, maximum, minimum, select, sqrt, tanh
from .._reference import elementwise as reference
from .._row import Elementwise, register, sum_to

LOGIC: Final = (bool_,)
SQRT_HALF: Final = math.sqrt(0.5)


def _polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    total = const(coefficients[0], x.dtype)
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _erf(x: Expr) -> Expr:
    """erf as x · P(x²) / Q(x²), our own minimax fit, within 6 ulp; beyond ±4 it is ±1 in float32."""
    t = clip(x, -4.0, 4.0)
    s = t * t
    top = _polynomial(s, _ERF_TOP)
    bottom = _polynomial(s, _ERF_BOTTOM)
    return clip(t * top / bottom, -1.0, 1.0)


_ERF_TOP: Final = (1.9109846e-08, -1.9422346e-06, 1.4728215e-04, 3.9905128e-03, 5.1524781e-02, 2.0712475e-01, 1.1283791)
_ERF_BOTTOM: Final = (1.0210884e-03, 1.4957989e-02, 1.1797051e-01, 5.1689076e-01, 1.0)


def _cast(x: Expr, *, to: DType, saturate: bool = True) -> Expr:
    """saturate: a number beyond the range of a float8 becomes the largest float8, not infinity or NaN."""
    value = scalar.cast(x, scalar.COMPUTE[to])
    return clip(value, -to.most, to.most) if saturate and to.is_float and to in STORED else value


def _pow(x: Expr, y: Expr) -> Expr:
    """Whole exponents below 64 by squaring, which is exact if the result is exact; others by the logarithm."""
    most = float(np.finfo(x.dtype.numpy).max)
    times = scalar.absolute(y)
    product, square, left = const(1, x.dtype), x, times
    for _ in range(6):
        half = scalar.floor(left * 0.5)
        product = select(scalar.eq(left - half * 2.0, 1.0), product * square, product)
        square, left = square * square, half
    whole = scalar.eq(scalar.floor(y), y)
    by_squaring = select(y < 0.0, 1.0 / product, product)
    odd = scalar.eq(times - scalar.floor(times * 0.5) * 2.0, 1.0)
    size = scalar.absolute(x)
    power = exp(y * log(select(whole, size, select(x < -most, size, x))))  # NaN if x < 0 and y is not whole
    power = select(scalar.and_(x < 0.0, scalar.and_(whole, odd)), -power, power)
    one = scalar.or_(scalar.eq(x, 1.0), scalar.and_(scalar.eq(size, 1.0), times > most))
    return select(scalar.and_(whole, times < 64.0), by_squaring, select(one, const(1, x.dtype), power))


def _sigmoid(x: Expr) -> Expr:
    return 1.0 / (1.0 + exp(-x))


def _sign(x: Expr) -> Expr:
    return select(x > 0, const(1, x.dtype), select(x < 0, const(-1, x.dtype), x))


def _softplus(x: Expr) -> Expr:
    return maximum(x, 0.0) + log(1.0 + exp(-scalar.absolute(x)))


# Gradients of ops where the derivative of the expression would be less exact, or NaN where exp overflows.


def _erf_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    (x,) = inputs
    return [b.mul(g, b.mul(b.const(2 / math.sqrt(math.pi), x.dtype), b.exp(b.neg(b.mul(x, x)))))]


def _gelu_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    """g · (Φ(x) + x · φ(x)), where Φ is the normal distribution and φ its density."""
    (x,) = inputs
    half = b.const(0.5, x.dtype)
    below = b.mul(half, b.add(b.erf(b.mul(x, b.const(SQRT_HALF, x.dtype))), b.const(1.0, x.dtype)))
    density = b.mul(b.const(1 / math.sqrt(2 * math.pi), x.dtype), b.exp(b.neg(b.mul(half, b.mul(x, x)))))
    return [b.mul(g, b.add(below, b.mul(x, density)))]


def _sigmoid_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [b.mul(g, b.mul(y, b.sub(b.const(1.0, y.dtype), y)))]


def _silu_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    s = b.sigmoid(inputs[0])
    return [b.mul(g, b.add(s, b.mul(y, b.sub(b.const(1.0, y.dtype), s))))]


def _softplus_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [b.mul(g, b.sigmoid(inputs[0]))]


def _pow_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    x, exponent = inputs
    slope = b.mul(exponent, b.pow(x, b.sub(exponent, b.const(1.0, x.dtype))))
    return [sum_to(b, b.mul(g, slope), x.shape), sum_to(b, b.mul(g, b.mul(y, b.log(x))), exponent.shape)]


def _cast_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, to: DType, saturate: bool = True) -> list[Any]:
    (x,) = inputs
    return [b.cast(g, to=x.dtype) if x.dtype in FLOATS else None]


register(
    # arithmetic
    Elementwise(name="add", body=lambda a, b: a + b, reference=np.add, onnx="Add", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="sub", body=lambda a, b: a - b, reference=np.subtract, onnx="Sub", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="mul", body=lambda a, b: a * b, reference=np.multiply, onnx="Mul", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="div", body=lambda a, b: a / b, reference=reference.divide, onnx="Div", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="minimum", body=minimum, reference=np.minimum, dtypes=NUMBERS),
    Elementwise(name="maximum", body=maximum, reference=np.maximum, dtypes=NUMBERS),
    Elementwise(name="neg", body=lambda x: -x, reference=np.negative, onnx="Neg", dtypes=(*NUMBERS, *COMPLEX)),
    Elementwise(name="abs", body=scalar.absolute, reference=np.abs, onnx="Abs", dtypes=NUMBERS),
    Elementwise(name="sign", body=_sign, reference=np.sign, onnx="Sign", dtypes=NUMBERS),
    Elementwise(name="reciprocal", body=lambda x: 1.0 / x, reference=lambda x: 1 / x, onnx="Reciprocal", dtypes=FLOATS),
    Elementwise(name="floor", body=scalar.floor, reference=np.floor, onnx="Floor", dtypes=FLOATS),
    Elementwise(name="ceil", body=scalar.ceil, reference=np.ceil, onnx="Ceil", dtypes=FLOATS),
    Elementwise(name="round", body=scalar.round_, reference=np.rint, onnx="Round", dtypes=FLOATS),
    Elementwise(name="clip", body=clip, reference=lambda x, low, high: np.minimum(np.maximum(x, low), high), dtypes=NUMBERS),
    # exponentials, roots, trigonometry
    Elementwise(name="sqrt", body=sqrt, reference=np.sqrt, onnx="Sqrt", dtypes=FLOATS, domain=(0.01, 9)),
    Elementwise(name="exp", body=exp, reference=np.exp, onnx="Exp", dtypes=FLOATS, domain=(-20, 10), tolerance=8),
    Elementwise(name="log", body=log, reference=np.log, onnx="Log", dtypes=FLOATS, domain=(0.01, 50), tolerance=8),
    Elementwise(name="pow", body=_pow, reference=np.power, vjp=_pow_vjp, dtypes=FLOATS, domain=(0.1, 4), tolerance=64),
    Elementwise(name="sin", body=scalar.sin, reference=np.sin, onnx="Sin", dtypes=FLOATS, domain=(-20, 20), tolerance=8),
    Elementwise(name="cos", body=scalar.cos, reference=np.cos, onnx="Cos", dtypes=FLOATS, domain=(-20, 20), tolerance=8),
    Elementwise(name="tan", body=lambda x: scalar.sin(x) / scalar.cos(x), reference=np.tan, onnx="Tan", dtypes=FLOATS, domain=(-1.2, 1.2), tolerance=16),
    Elementwise(name="tanh", body=tanh, reference=np.tanh, onnx="Tanh", dtypes=FLOATS, tolerance=16),
    Elementwise(name="erf", body=_erf, reference=reference.erf, vjp=_erf_vjp, onnx="Erf", dtypes=SINGLES, tolerance=8),
    # activations
    Elementwise(name="relu", body=lambda x: maximum(x, const(0, x.dtype)), reference=lambda x: np.maximum(x, 0), onnx="Relu", dtypes=NUMBERS),
    Elementwise(name="sigmoid", body=_sigmoid, reference=reference.sigmoid, vjp=_sigmoid_vjp, onnx="Sigmoid", dtypes=FLOATS, tolerance=16),
    Elementwise(name="silu", body=lambda x: x * _sigmoid(x), reference=lambda x: x * reference.sigmoid(x), vjp=_silu_vjp, dtypes=FLOATS, tolerance=16),
    Elementwise(name="hard_sigmoid", body=lambda x, *, alpha=0.2, beta=0.5: clip(x * alpha + beta, 0.0, 1.0),
                reference=lambda x, alpha=0.2, beta=0.5: np.clip(x * alpha + beta, 0, 1), onnx="HardSigmoid", dtypes=FLOATS),
    Elementwise(name="leaky_relu", body=lambda x, *, alpha=0.01: select(x < 0.0, x * alpha, x),
                reference=lambda x, alpha=0.01: np.where(x < 0, x * alpha, x), onnx="LeakyRelu", dtypes=FLOATS),
    Elementwise(name="elu", body=lambda x, *, alpha=1.0: select(x < 0.0, alpha * (exp(minimum(x, 0.0)) - 1.0), x),
                reference=lambda x, alpha=1.0: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x), onnx="Elu", dtypes=FLOATS, tolerance=32, floor=1e-5),
    Elementwise(name="softplus", body=_softplus, reference=lambda x: np.logaddexp(x, 0), vjp=_softplus_vjp, onnx="Softplus", dtypes=FLOATS, tolerance=16),
    Elementwise(name="gelu", body=lambda x: 0.5 * x * (1.0 + _erf(x * SQRT_HALF)),
                reference=lambda x: 0.5 * x * (1 + reference.erf(x * SQRT_HALF)), vjp=_gelu_vjp, dtypes=SINGLES, tolerance=32, floor=2e-6),
    # comparison and logic
    Elementwise(name="equal", body=scalar.eq, reference=np.equal, onnx="Equal", gives="bool", dtypes=ALL),
    Elementwise(name="less", body=scalar.lt, reference=np.less, onnx="Less", gives="bool", dtypes=NUMBERS),
    Elementwise(name="less_equal", body=scalar.le, reference=np.less_equal, onnx="LessOrEqual", gives="bool", dtypes=NUMBERS),
    Elementwise(name="greater", body=lambda a, b: a > b, reference=np.greater, onnx="Greater", gives="bool", dtypes=NUMBERS),
    Elementwise(name="greater_equal", body=lambda a, b: a >= b, reference=np.greater_equal, onnx="GreaterOrEqual", gives="bool", dtypes=NUMBERS),
    Elementwise(name="is_nan", body=scalar.isnan, reference=np.isnan, onnx="IsNaN", gives="bool", dtypes=FLOATS),
    Elementwise(name="logical_and", body=scalar.and_, reference=np.logical_and, onnx="And", dtypes=LOGIC),
    Elementwise(name="logical_or", body=scalar.or_, reference=np.logical_or, onnx="Or", dtypes=LOGIC),
    Elementwise(name="logical_xor", body=scalar.xor, reference=np.logical_xor, onnx="Xor", dtypes=LOGIC),
    Elementwise(name="logical_not", body=scalar.not_, reference=np.logical_not, onnx="Not", dtypes=LOGIC),
    Elementwise(name="bitwise_and", body=scalar.and_, reference=np.bitwise_and, onnx="BitwiseAnd", dtypes=INTS),
    Elementwise(name="bitwise_or", body=scalar.or_, reference=np.bitwise_or, onnx="BitwiseOr", dtypes=INTS),
    Elementwise(name="bitwise_xor", body=scalar.xor, reference=np.bitwise_xor, onnx="BitwiseXor", dtypes=INTS),
    Elementwise(name="bitwise_not", body=scalar.not_, reference=np.invert, onnx="BitwiseNot", dtypes=INTS),
    # choice and conversion
    Elementwise(name="where", body=select, takes=("bool", "T", "T"), reference=np.where, onnx="Where", dtypes=ALL),
    Elementwise(name="cast", body=_cast, gives="to", reference=reference.cast, vjp=_cast_vjp, dtypes=ALL),
)  # fmt: skip
