"""Elementwise rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np


def divide(a: Any, b: Any) -> Any:
    """a / b; integers are rounded toward zero, computed with Python's integers."""
    if a.dtype.kind == "f":
        return a / b
    exact = np.vectorize(lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), otypes=[object])
    return exact(a.astype(object), b.astype(object)).astype(a.dtype)


def fmod(a: Any, b: Any) -> Any:
    """What is left of a after division by b, with the sign of a; integers by Python's integers."""
    if a.dtype.kind == "f":
        return np.vectorize(_float_rest, otypes=[np.float64])(a, b)
    exact = np.vectorize(lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1), otypes=[object])
    return np.asarray(exact(a.astype(object), b.astype(object)), object).astype(a.dtype)


def _float_rest(x: float, y: float) -> float:
    return math.nan if math.isinf(x) or y == 0 else math.fmod(x, y)


def remainder(a: Any, b: Any) -> Any:
    """What is left of a after division by b, with the sign of b."""
    rest = fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def lcm(a: Any, b: Any) -> Any:
    """np.lcm, which overflows otherwise."""
    return np.abs(a // np.maximum(np.gcd(a, b), 1) * b)


def floor_divide(a: Any, b: Any) -> Any:
    """The largest whole number that is at most a / b."""
    if a.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.floor_divide(a, b)
    exact = np.vectorize(lambda x, y: x // y, otypes=[object])
    return np.asarray(exact(a.astype(object), b.astype(object)), object).astype(a.dtype)


def power(x: Any, y: Any) -> Any:
    """Integers by Python's; a negative exponent gives a number that is rounded toward zero."""
    if x.dtype.kind == "f":
        return np.power(x, y)
    bits = 8 * x.dtype.itemsize

    def one(a: int, n: int) -> int:
        return (a**n if n >= 0 else a ** (n % 2) if abs(a) == 1 else 0) % (1 << bits)

    exact = np.asarray(np.vectorize(one, otypes=[object])(x.astype(object), y.astype(object)), object)
    return exact.astype(f"u{bits // 8}").view(x.dtype)


def nextafter(x: Any, to: Any) -> Any:
    """Among float32, which the given float64 are."""
    return np.nextafter(x.astype(np.float32), to.astype(np.float32))


def cast(x: np.ndarray, to: Any) -> np.ndarray:
    """Floats go to integers toward zero, saturating at 32 or 64 bits, NaN to 0; integers wrap."""
    if x.dtype.kind != "f" or not to.is_int:
        return x.astype(to.numpy)
    limits = np.iinfo(np.int64 if to.size == 8 else np.int32)

    def one(v: float) -> int:
        if math.isnan(v):
            return 0
        return (
            limits.max if v == math.inf else limits.min if v == -math.inf else min(max(int(v), limits.min), limits.max)
        )

    return np.array([one(v) for v in x.ravel().tolist()], np.int64).astype(to.numpy).reshape(x.shape)


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def celu(x: Any, alpha: float = 1.0) -> Any:
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x / alpha, 0)), 0)


def shrink(x: np.ndarray, lambd: float = 0.5, bias: float = 0.0) -> np.ndarray:
    if x.dtype.kind in "iu":
        lambd, bias = int(lambd), int(bias)
    moved = np.where(x > lambd, x - np.asarray(bias, x.dtype), np.zeros_like(x))
    return moved if x.dtype.kind == "u" else np.where(x < -lambd, x + np.asarray(bias, x.dtype), moved)


def isinf(x: Any, detect_negative: bool = True, detect_positive: bool = True) -> Any:
    return (np.isposinf(x) & detect_positive) | (np.isneginf(x) & detect_negative)


def _shift(move: Callable[[int, int], int]) -> Callable[..., np.ndarray]:
    """A shift of Python's integers; an amount that is negative counts as large."""

    def shift(x: np.ndarray, amount: np.ndarray) -> np.ndarray:
        bits = 8 * x.dtype.itemsize
        each = np.vectorize(lambda a, n: move(a, n if 0 <= n < bits else bits), otypes=[object])
        wide = np.asarray(each(x.astype(object), amount.astype(object)) % (1 << bits), object)
        return wide.astype(f"u{x.dtype.itemsize}").view(x.dtype)

    return shift


left_shift: Final = _shift(operator.lshift)
right_shift: Final = _shift(operator.rshift)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def swiglu(gate: np.ndarray, x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return gate / (1 + np.exp(-alpha * gate)) * x


REFERENCES: Final[Mapping[str, Callable[..., Any]]] = {
    "erf": erf,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "hard_sigmoid": lambda x, alpha=0.2, beta=0.5: np.clip(x * alpha + beta, 0, 1),
    "leaky_relu": lambda x, alpha=0.01: np.where(x < 0, x * alpha, x),
    "elu": lambda x, alpha=1.0: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "celu": celu,
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "thresholded_relu": lambda x, alpha=1.0: np.where(x > alpha, x, 0),
    "shrink": shrink,
    "softplus": lambda x: np.logaddexp(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x * math.sqrt(0.5))),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": divide,
    "fmod": fmod,
    "remainder": remainder,
    "floor_divide": floor_divide,
    "gcd": np.gcd,
    "lcm": lcm,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "reciprocal": lambda x: 1 / x,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "sqrt": np.sqrt,
    "exp": np.exp,
    "falling_exp": np.exp,
    "trunc": np.trunc,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
    "stop_gradient": lambda x: x,
    "recomputed": lambda x, after: x,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "bitwise_left_shift": left_shift,
    "bitwise_right_shift": right_shift,
    "signbit": np.signbit,
    "copysign": np.copysign,
    "nextafter": nextafter,
    "cast": cast,
    "bit_cast": lambda x, to: x.view(to.numpy),
    "gelu_tanh": gelu_tanh,
    "swiglu": swiglu,
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "isnan": np.isnan,
    "isinf": isinf,
    "isfinite": np.isfinite,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "where": np.where,
    "pow": power,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "atanh": np.arctanh,
}
"""By the names of rows."""
