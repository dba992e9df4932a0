"""Activations, and the error function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...dtypes import FLOATS, NUMBERS, SINGLES
from ...errors import DTypeError
from ...ir import scalar
from ...ir.scalar import Expr, clip, const, exp, log, maximum, minimum, select
from ..kinds import Elementwise, register

SQRT_HALF: Final = math.sqrt(0.5)


def polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    total = const(coefficients[0], x.dtype)
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _erf(x: Expr) -> Expr:
    """erf as x · P(x²) / Q(x²), our own minimax fit, within 6 ulp; beyond ±4 it is ±1 in float32."""
    t = clip(x, -4.0, 4.0)
    s = t * t
    top = polynomial(s, _ERF_TOP)
    bottom = polynomial(s, _ERF_BOTTOM)
    return clip(t * top / bottom, -1.0, 1.0)


_ERF_TOP: Final = (1.9109846e-08, -1.9422346e-06, 1.4728215e-04, 3.9905128e-03, 5.1524781e-02, 2.0712475e-01, 1.1283791)
_ERF_BOTTOM: Final = (1.0210884e-03, 1.4957989e-02, 1.1797051e-01, 5.1689076e-01, 1.0)


def _sigmoid(x: Expr) -> Expr:
    return 1.0 / (1.0 + exp(-x))


def _softplus(x: Expr) -> Expr:
    return maximum(x, 0.0) + log(1.0 + exp(-scalar.absolute(x)))


def _mish(x: Expr) -> Expr:
    """x · tanh(softplus(x)) as a quotient of polynomials in u = e^−|x|, which cannot overflow."""
    u = exp(-scalar.absolute(x))
    low, high = u * (u + 2.0), 1.0 + 2.0 * u
    return x * (select(x < 0.0, low, high) / select(x < 0.0, low + 2.0, high + 2.0 * u * u))


def _celu(x: Expr, *, alpha: float = 1.0) -> Expr:
    return select(x < 0.0, alpha * (exp(select(x < 0.0, x / alpha, const(0, x.dtype))) - 1.0), x)


def _shrink(x: Expr, *, lambd: float = 0.5, bias: float = 0.0) -> Expr:
    """Among integers, the attributes are rounded toward zero."""
    if x.dtype.is_int and not (math.isfinite(lambd) and math.isfinite(bias)):
        raise DTypeError(f"shrink: lambd {lambd} and bias {bias} for integers; expected finite numbers")
    above = select(x > lambd, x - bias, const(0, x.dtype))
    return above if x.dtype.kind == "uint" else select(x < -lambd, x + bias, above)


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


def _relu_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    """Nothing at 0, as in PyTorch."""
    zero = b.const(0, y.dtype)
    return [b.where(b.greater(y, zero), g, zero)]


def _sigmoid_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [b.mul(g, b.mul(y, b.sub(b.const(1.0, y.dtype), y)))]


def _silu_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    s = b.sigmoid(inputs[0])
    return [b.mul(g, b.add(s, b.mul(y, b.sub(b.const(1.0, y.dtype), s))))]


def _softplus_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    return [b.mul(g, b.sigmoid(inputs[0]))]


register(
    Elementwise(name="erf", doc="the error function: 2 / √π times the integral of e^(−t²) from 0 to x",
        promote="float", numpy=np.vectorize(math.erf, otypes=[float]), standard="",
        body=_erf, vjp=_erf_vjp, onnx="Erf", dtypes=SINGLES, tolerance=8),
    Elementwise(name="relu", doc="x where it is positive, 0 elsewhere",
        body=lambda x: maximum(x, const(0, x.dtype)), vjp=_relu_vjp, onnx="Relu", dtypes=NUMBERS),
    Elementwise(name="sigmoid", doc="1 / (1 + e^(−x))",
        promote="float", numpy=lambda x: 1 / (1 + np.exp(-x)), standard="", also=("expit",),
        body=_sigmoid, vjp=_sigmoid_vjp, onnx="Sigmoid", dtypes=FLOATS, tolerance=16),
    Elementwise(name="silu", doc="x · sigmoid(x), also known as swish",
        body=lambda x: x * _sigmoid(x), vjp=_silu_vjp, dtypes=FLOATS, tolerance=16),
    Elementwise(name="hard_sigmoid", doc="alpha · x + beta, clipped to 0 … 1",
        body=lambda x, *, alpha=0.2, beta=0.5: clip(x * alpha + beta, 0.0, 1.0),
                onnx="HardSigmoid", dtypes=FLOATS),
    Elementwise(name="leaky_relu", doc="x where it is positive, alpha · x elsewhere",
        body=lambda x, *, alpha=0.01: select(x < 0.0, x * alpha, x),
                onnx="LeakyRelu", dtypes=FLOATS),
    Elementwise(name="elu", doc="x where it is positive, alpha · (e^x − 1) elsewhere",
        body=lambda x, *, alpha=1.0: select(x < 0.0, alpha * (exp(minimum(x, 0.0)) - 1.0), x),
                onnx="Elu", dtypes=FLOATS, tolerance=32, floor=1e-5),
    Elementwise(name="celu", doc="x where it is positive, alpha · (e^(x / alpha) − 1) elsewhere",
        body=_celu, onnx="Celu", dtypes=FLOATS, tolerance=32, floor=1e-5),
    Elementwise(name="mish", doc="x · tanh(softplus(x))",
        body=_mish, onnx="Mish", dtypes=FLOATS, tolerance=16),
    Elementwise(name="hard_swish", doc="x · (x / 6 + ½), the factor clipped to 0 … 1",
        body=lambda x: x * clip(x / 6.0 + 0.5, 0.0, 1.0),
                onnx="HardSwish", dtypes=FLOATS, domain=(-8, 8)),
    Elementwise(name="thresholded_relu", doc="x where it is greater than alpha, 0 elsewhere",
        body=lambda x, *, alpha=1.0: select(x > alpha, x, const(0, x.dtype)),
                onnx="ThresholdedRelu", dtypes=FLOATS),
    Elementwise(name="shrink", doc="x − bias above lambd, x + bias below −lambd, 0 between",
        body=_shrink, onnx="Shrink", dtypes=NUMBERS),
    Elementwise(name="softplus", doc="log(1 + e^x), a smooth relu",
        body=_softplus, vjp=_softplus_vjp, onnx="Softplus", dtypes=FLOATS, tolerance=16),
    Elementwise(name="gelu", doc="x · Φ(x), where Φ is the distribution function of the standard normal distribution",
        body=lambda x: 0.5 * x * (1.0 + _erf(x * SQRT_HALF)),
                vjp=_gelu_vjp, dtypes=SINGLES, tolerance=32, floor=2e-6),
)  # fmt: skip
