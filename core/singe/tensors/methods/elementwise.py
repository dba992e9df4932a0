"""Elementwise functions and operators that are methods beside those of rows: of several rows, or with parameters of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...dtypes import COMPLEX
from ...errors import DTypeError, InputError
from ...ir.scalar import Number
from ...ops import ROWS
from ...shapes import same_form
from ..arithmetic import compute, placed
from ..calls import apply_row, operand
from ..nodes.promotion import is_small_power, matmul_nodes, power
from ..numpy_fallback import numpy_fallback
from ..tensor import Tensor, TensorLike, apply
from .attach import MATRICES, alias, method, takes


@method
def add(x: Tensor, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """x + alpha · other."""
    return compute("add", x, _scaled(x, other, alpha))


@method
def sub(x: Tensor, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """x − alpha · other."""
    return compute("sub", x, _scaled(x, other, alpha))


alias("subtract", sub)


def _scaled(x: Tensor, other: TensorLike, alpha: Number) -> Any:
    """alpha · other; a number stays one."""
    return other if alpha == 1 else placed(x, other)[1] * alpha


@method
def div(x: Tensor, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """The quotients. rounding_mode: "floor", or "trunc" (towards 0), for whole ones; integers stay integers then."""
    if rounding_mode is None:
        return compute("div", x, other)
    if rounding_mode == "floor":
        return compute("floor_divide", x, other)
    if rounding_mode != "trunc":
        raise InputError(f"div: got the rounding mode {rounding_mode!r}, expected 'floor', 'trunc' or None")
    rest = compute("fmod", x, other)
    return compute("div", x, other).trunc() if rest.dtype.is_float else compute("floor_divide", x - rest, other)


alias("divide", div)


@method
def round(x: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest whole number, the even one of two; decimals: the nearest with as many digits behind the point."""
    if not decimals or (not x.dtype.is_float and decimals > 0):
        return compute("round", x)
    if not x.dtype.is_float:
        raise DTypeError(f"round: got {x.dtype} and decimals={decimals}, expected floats; cast them first")
    scale = 10.0 ** abs(decimals)
    return (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale


@method
def __round__(x: Tensor, decimals: int | None = None) -> Tensor:
    return x.round(decimals=decimals or 0)


@method
def __divmod__(x: Tensor, other: TensorLike) -> tuple[Tensor, Tensor]:
    return x // other, x % other


@method
def __rdivmod__(x: Tensor, other: TensorLike) -> tuple[Tensor, Tensor]:
    return other // x, other % x  # pyright: ignore[reportReturnType]


@method
def __contains__(x: Tensor, element: TensorLike) -> bool:
    """Whether any element is equal."""
    same = x == element
    if not isinstance(same, Tensor):
        raise InputError(f"in: got {element!r:.80}, expected a number, or a tensor that broadcasts")
    return same.any().item() is True


@method
def __ne__(x: Tensor, other: object) -> Any:
    same = x.__eq__(other)
    return same if same is NotImplemented else ~same


@method
def ne(x: Tensor, other: TensorLike) -> Tensor:
    """Whether elements differ."""
    return compute("equal", x, other).logical_not()


alias("not_equal", ne)


@method
def equal(x: Tensor, other: TensorLike) -> bool:
    """Whether two tensors have the same shape and elements; `eq` compares element by element."""
    return same_form(x.shape, np.shape(other)) and bool(compute("equal", x, other).all())


@method
def isclose(
    x, other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:  # fmt: skip
    """Whether elements differ by at most atol + rtol · |other|; infinities are close to themselves only."""
    y = placed(x, other)[1]
    near = (x == y) | ((abs(x - y) <= atol + rtol * abs(y)) & (abs(y) < math.inf))
    return near | (x != x) & (y != y) if equal_nan else near


@method
def allclose(x, other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as `isclose` says."""
    return bool(x.isclose(other, rtol, atol, equal_nan).all())


@method
def nan_to_num(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Numbers in place of NaN and infinities: by default 0, and the largest and the least of the dtype."""
    if not x.dtype.is_float:
        return x
    most = x.dtype.most if x.dtype.coding else float(np.finfo(x.dtype.numpy).max)
    high, low = most if posinf is None else posinf, -most if neginf is None else neginf
    finite = apply_row(ROWS["where"], (x == math.inf, high, apply_row(ROWS["where"], (x == -math.inf, low, x))))
    return apply_row(ROWS["where"], (x != x, nan, finite))


@method
def addcmul(x: Tensor, tensor1: TensorLike, tensor2: TensorLike, value: Number = 1) -> Tensor:
    """x + value · tensor1 · tensor2."""
    return x + value * (tensor1 * tensor2)


@method
def addcdiv(x: Tensor, tensor1: TensorLike, tensor2: TensorLike, value: Number = 1) -> Tensor:
    """x + value · tensor1 / tensor2."""
    return x + value * (tensor1 / tensor2)


def weighted(x: Tensor, beta: Number) -> Tensor:
    """beta · x, and zeros for a beta of 0, whatever x has."""
    return beta * x if beta else x.new_zeros(x.shape)


@method
def addmm(x: Tensor, mat1: TensorLike, mat2: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · (mat1 @ mat2)."""
    return weighted(x, beta) + alpha * (mat1 @ mat2)  # pyright: ignore[reportOperatorIssue]


alias("baddbmm", addmm)


@method
def addmv(x: Tensor, mat: TensorLike, vec: TensorLike, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta · x + alpha · (mat @ vec)."""
    return x.addmm(mat, vec, beta, alpha)


@method
def exp2(x: Tensor) -> Tensor:
    """2 to the power of each element."""
    return 2.0**x


@method
def frac(x: Tensor) -> Tensor:
    """Elements without their whole part; the sign stays."""
    return x.fmod(1)


@method
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 − x)), the inverse of sigmoid; eps: x is clipped to eps … 1 − eps before."""
    y = x if eps is None else x.clip(eps, 1 - eps)
    return (y / (1 - y)).log()


@method
def erfc(x: Tensor) -> Tensor:
    """1 − erf(x)."""
    return 1 - x.erf()


@method
def angle(x: Tensor) -> Tensor:
    """The angle of each number in the complex plane: π for negative ones, 0 for the others."""
    if x.dtype in COMPLEX:
        return numpy_fallback("angle", np.angle, x)
    y = x if x.dtype.is_float else x.cast("float32")
    return apply_row(ROWS["where"], (y < 0, math.pi, y.masked_fill(y.isnan().logical_not(), 0.0)))


@method
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0."""
    return compute("equal", x.imag(), 0) if x.dtype in COMPLEX else x.isnan() | True


@method
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissas, of absolute values from 0.5 to 1, and the exponents of 2 with which they give the elements."""
    return numpy_fallback("frexp", lambda array: tuple(np.frexp(array)), x)


@method
def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees."""
    return x * (180 / math.pi)


@method
def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians."""
    return x * (math.pi / 180)


@method
def __pos__(x: Tensor) -> Tensor:
    """The tensor itself."""
    return x


alias("positive", __pos__)


@method
def square(x: Tensor) -> Tensor:
    """x · x."""
    return compute("mul", x, x)


@method
def rsqrt(x: Tensor) -> Tensor:
    """1 / √x."""
    return x.sqrt().reciprocal()


@method
def pow(x: Tensor, exponent: TensorLike) -> Tensor:
    """Elements to a power. Whole exponents and halves up to 16 are products and roots; integers to a negative power
    become float32."""
    number = operand(exponent)
    if is_small_power(number) and (x.dtype.is_float or x.dtype.is_int):
        return apply(lambda b, n: power(b, n, number), x)
    return compute("pow", x, exponent)


@method
def __pow__(x: Tensor, exponent: Any) -> Tensor:
    return x.pow(exponent) if takes("__pow__", exponent) else NotImplemented


@method
def __rpow__(x: Tensor, base: Any) -> Tensor:
    return compute("pow", base, x) if takes("__rpow__", base) else NotImplemented


@method
def __matmul__(x: Tensor, other: Any) -> Tensor:
    return x.matmul(other) if takes("__matmul__", other, MATRICES) else NotImplemented


@method
def __rmatmul__(x: Tensor, other: Any) -> Tensor:
    return apply(matmul_nodes, other, x) if takes("__rmatmul__", other, MATRICES) else NotImplemented


@method
def matmul(x: Tensor, other: TensorLike) -> Tensor:
    """The product of matrices, stacks of matrices, or vectors, with NumPy's meaning."""
    return apply(matmul_nodes, x, other)


for _name in ("mm", "bmm", "mv"):
    alias(_name, matmul)


@method
def clip(x: Tensor, low: TensorLike | None = None, high: TensorLike | None = None) -> Tensor:
    """Elements clipped to the range from low to high (None: no limit)."""
    bounds = ((low, "maximum"), (high, "minimum"))
    if low is not None and high is not None:
        return apply_row(ROWS["clip"], (x, low, high))
    return next((apply_row(ROWS[row], (x, bound)) for bound, row in bounds if bound is not None), x)


@method
def clamp(x: Tensor, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Elements clipped to the range from min to max (None: no limit)."""
    return x.clip(min, max)


@method
def clamp_min(x: Tensor, min: TensorLike) -> Tensor:
    """Elements, or the limit where they are less."""
    return x.clip(min)


@method
def clamp_max(x: Tensor, max: TensorLike) -> Tensor:
    """Elements, or the limit where they are larger."""
    return x.clip(None, max)


@method
def lerp(x: Tensor, end: TensorLike, weight: TensorLike) -> Tensor:
    """x + weight · (end − x)."""
    return x + weight * (end - x)


@method
def where(x: Tensor, condition: TensorLike, other: TensorLike) -> Tensor:
    """The elements where a condition holds, and those of `other` elsewhere."""
    return apply_row(ROWS["where"], (condition, x, other))


@method
def isposinf(x: Tensor) -> Tensor:
    """Whether each element is ∞."""
    return compute("equal", x, math.inf) if x.dtype.is_float else x.isinf()


@method
def isneginf(x: Tensor) -> Tensor:
    """Whether each element is −∞."""
    return compute("equal", x, -math.inf) if x.dtype.is_float else x.isinf()


@method
def fmax(x: Tensor, other: TensorLike) -> Tensor:
    """The larger of two; of NaN and a number the number."""
    return _beside_nan(x.maximum(other), x, other)


@method
def fmin(x: Tensor, other: TensorLike) -> Tensor:
    """The lesser of two; of NaN and a number the number."""
    return _beside_nan(x.minimum(other), x, other)


def _beside_nan(extreme: Tensor, x: Tensor, other: TensorLike) -> Tensor:
    if not extreme.dtype.is_float:
        return extreme
    y = placed(x, other)[1]
    y = y.cast(extreme.dtype) if isinstance(y, Tensor) else y
    kept = apply_row(ROWS["where"], (x.isnan(), y, extreme))
    return kept if not isinstance(y, Tensor) else apply_row(ROWS["where"], (y.isnan(), x.cast(extreme.dtype), kept))


@method
def heaviside(x: Tensor, values: TensorLike) -> Tensor:
    """0 for negative elements, 1 for positive ones, `values` for zeros; NaN for NaN."""
    step = (x > 0).cast(x.dtype)
    step = apply_row(ROWS["where"], (compute("equal", x, 0), values, step))
    return x.where(x.isnan(), step) if x.dtype.is_float else step


@method
def xlogy(x: Tensor, other: TensorLike) -> Tensor:
    """x · log(other), and 0 where x is 0 and the other is not NaN."""
    y = placed(x, other)[1]
    y = y if isinstance(y, Tensor) else x.new_zeros(x.shape) + y
    infinite = (y <= 0) | compute("equal", y, math.inf)  # the logarithm, which 0 takes to 0
    return x * y.masked_fill(compute("equal", x, 0) & infinite, 1).log()


@method
def sinc(x: Tensor) -> Tensor:
    """sin(πx) / (πx), and 1 at 0."""
    turned = (x if x.dtype.is_float else x.cast("float32")) * math.pi
    is_zero = compute("equal", turned, 0)
    return (turned.sin() / turned.masked_fill(is_zero, 1)).masked_fill(is_zero, 1)


@method
def float_power(x: Tensor, exponent: TensorLike) -> Tensor:
    """Elements to a power, in float64."""
    y = placed(x, exponent)[1]
    return x.cast("float64").pow(y.cast("float64") if isinstance(y, Tensor) else float(y))


@method
def logaddexp2(x: Tensor, other: TensorLike) -> Tensor:
    """log₂(2ˣ + 2ʸ)."""
    y = placed(x, other)[1]
    return compute("logaddexp", x * math.log(2), y * math.log(2)) / math.log(2)


@method
def ldexp(x: Tensor, exponent: TensorLike) -> Tensor:
    """x · 2ʸ."""
    y = placed(x, exponent)[1]
    return x * (y.exp2() if isinstance(y, Tensor) else 2.0**y)


@method
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """Elements beyond ±lambd, zeros in place of the others."""
    return x.masked_fill(x.abs() <= lambd, 0)
