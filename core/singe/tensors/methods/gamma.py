"""The gamma function and its kin, erfinv and Bessel's I₀.

What needs as many steps as its elements demand runs in NumPy on the host; the others are compositions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...dtypes import float32
from ...errors import InputError
from ..numpy_fallback import numpy_fallback
from ..tensor import Tensor, TensorLike
from .attach import alias, method

_ASYMPTOTIC: Final = 4.0
"""From here on, the series of lgamma and digamma have float32's precision; smaller numbers are moved here."""
_ERFINV_NEAR: Final = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
    1.50140941,
)  # fmt: skip
_ERFINV_FAR: Final = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406,
    2.83297682,
)  # fmt: skip
"""Polynomials by M. Giles, "Approximating the erfinv function": erfinv(x) / x in w − 2.5 and in √w − 3, w = −log(1 − x²)."""

_EVEN_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)
"""The Bernoulli numbers B₂, B₄, …"""
_FAR: Final = 10.0
"""From here on, the series of the zeta function have float64's precision."""
_STEPS: Final = 10_000
"""The most steps of a series: those of the zeta function are given up then, and give NaN; the others need fewer."""
_LARGE: Final = 1e6
"""Above this, the incomplete gamma function's series would take some 10 √a steps."""
_erfc: Final = np.vectorize(math.erfc, otypes=[float])


def floating(x: Tensor) -> Tensor:
    """The elements as floats."""
    return x if x.dtype.is_float else x.cast(float32)


@method
def lgamma(x: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
    x = floating(x)
    mirrored = x < 0.5
    y = (1 - x).where(mirrored, x)
    small = y < _ASYMPTOTIC
    z = (y + 4).where(small, y)
    below = (y * (y + 1) * (y + 2) * (y + 3)).where(small, 1.0)
    i = 1 / z
    series = i * (1 / 12 - i * i * (1 / 360 - i * i * (1 / 1260 - i * i / 1680)))
    value = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series - below.log()
    value = value.masked_fill(y == math.inf, math.inf)
    turn = ((x - x.floor()).where(mirrored, 0.5) * math.pi).sin()
    return (math.log(math.pi) - turn.abs().log() - value).where(mirrored, value)


@method
def digamma(x: Tensor) -> Tensor:
    """The derivative of lgamma."""
    x = floating(x)
    mirrored = x < 0.5
    y = (1 - x).where(mirrored, x)
    small = y < _ASYMPTOTIC
    z = (y + 4).where(small, y)
    below = 1 / y + 1 / (y + 1) + 1 / (y + 2) + 1 / (y + 3)
    i = 1 / (z * z)
    series = i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i / 240)))
    value = z.log() - 0.5 / z - series - below.where(small, 0.0)
    part = x - x.floor()
    turn = part.where(mirrored, 0.5) * math.pi
    found = (value - math.pi * turn.cos() / turn.sin()).where(mirrored, value)
    whole = mirrored.logical_and(part == 0)
    return found.masked_fill(whole, math.nan).masked_fill(x == 0, -math.inf)


@method
def erfinv(x: Tensor) -> Tensor:
    """The inverse of erf."""
    x = floating(x)
    w = -((1 - x) * (1 + x)).log()
    near = w < 5
    t = (w - 2.5).where(near, w.clip(5.0, 100.0).sqrt() - 3)
    low, high = t * _ERFINV_NEAR[0], t * _ERFINV_FAR[0]
    for a, b in zip(_ERFINV_NEAR[1:-1], _ERFINV_FAR[1:-1], strict=True):
        low, high = (low + a) * t, (high + b) * t
    value = x * (low + _ERFINV_NEAR[-1]).where(near, high + _ERFINV_FAR[-1])
    return value.masked_fill(x == 1, math.inf).masked_fill(x == -1, -math.inf).masked_fill(x.abs() > 1, math.nan)


@method
def mvlgamma(x: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of p dimensions."""
    if p < 1:
        raise InputError(f"mvlgamma: got {p} dimensions, expected 1 or more")
    y = floating(x)
    total = y.lgamma()
    for k in range(1, p):
        total = total + (y - k / 2).lgamma()
    return total + p * (p - 1) / 4 * math.log(math.pi)


@method
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""
    return numpy_fallback("i0", _same_type(np.i0), floating(x))


@method
def polygamma(x: Any, n: Any) -> Tensor:
    """The n-th derivative of digamma: x.polygamma(n), or sg.polygamma(n, x)."""
    x, n = (n, x) if isinstance(n, Tensor) else (x, n)
    if not isinstance(x, Tensor) or not isinstance(n, (int, np.integer)) or n < 0:
        raise InputError(f"polygamma: got the derivative {n!r}, expected a whole number of 0 or more, and a tensor")
    if n == 0:
        return x.digamma()
    sign = 1.0 if n % 2 else -1.0
    return numpy_fallback("polygamma", _same_type(lambda y: sign * math.factorial(n) * _zeta(n + 1, y)), floating(x))


@method
def igamma(x: Tensor, other: TensorLike) -> Tensor:
    """The share of the gamma function of x whose integral runs from 0 to the other number."""
    return numpy_fallback("igamma", _same_type(lambda a, y: _gamma_shares(a, y)[0]), *_two(x, other))


@method
def igammac(x: Tensor, other: TensorLike) -> Tensor:
    """The share of the gamma function of x whose integral runs from the other number on: 1 − igamma."""
    return numpy_fallback("igammac", _same_type(lambda a, y: _gamma_shares(a, y)[1]), *_two(x, other))


alias("gammainc", igamma)
alias("gammaincc", igammac)


def _two(x: Tensor, other: TensorLike) -> tuple[Tensor, Tensor]:
    return floating(x), other if isinstance(other, Tensor) else floating(x).new_tensor(other)


def _same_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, computed in float64, with results of the type of the first array."""
    return lambda x, *more: np.asarray(function(*(np.asarray(y, np.float64) for y in (x, *more))), x.dtype)


def _zeta(s: int, x: np.ndarray) -> np.ndarray:
    """Hurwitz's zeta function, Σ (x + k)⁻ˢ: the first terms, and Euler's and Maclaurin's formula for the others."""
    y, total = x.copy(), np.zeros_like(x)
    for _ in range(_STEPS):
        near = y < _FAR
        if not near.any():
            break
        total += np.where(near, y ** float(-s), 0)
        y = np.where(near, y + 1, y)
    total = np.where(y < _FAR, np.nan, total) + y ** (1.0 - s) / (s - 1) + y ** float(-s) / 2
    factor = y ** (-s - 1.0) * s
    for j, number in enumerate(_EVEN_BERNOULLI, 1):
        total += number / math.factorial(2 * j) * factor
        factor = factor * (s + 2 * j - 1) * (s + 2 * j) / y**2
    return np.where((x <= 0) & (x == np.floor(x)), np.inf, total)


def _gamma_shares(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The integrals of tᵃ⁻¹ e⁻ᵗ / Γ(a) from 0 to x and from x on: by a series below a + 1, by a continued fraction above; for
    an a so large that these take too many steps, by the normal distribution."""
    a, x = (np.array(y) for y in np.broadcast_arrays(a, x))
    fits = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    large = fits & (a > _LARGE)
    b, y = (np.where(fits & ~large, z, 1.0) for z in (a, x))
    scale = np.exp(b * np.log(y) - y - np.vectorize(math.lgamma, otypes=[float])(b))
    total = term = 1 / b
    for k in range(1, _STEPS):
        term = np.where(y < b + 1, term * y / (b + k), 0)
        total = total + term
        if not (term > total * 1e-17).any():
            break
    below = total * scale
    upper = _upper_fraction(b, np.maximum(y, b + 1)) * scale
    low = np.where(y < b + 1, below, 1 - upper)
    high = np.where(y < b + 1, 1 - below, upper)
    if large.any():
        low, high = (np.where(large, *pair) for pair in zip(_normal_shares(a, x, large), (low, high), strict=True))
    ends = np.where((a < 0) | (x < 0) | np.isnan(a) | np.isnan(x) | ((a == 0) & (x == 0)), np.nan, 0.0)
    low_end = ends + np.where((a == 0) | (np.isinf(x) & np.isfinite(a)), 1.0, 0.0)
    low_end = np.where(np.isinf(x) & np.isinf(a), np.nan, low_end)
    return np.where(fits, low, low_end), np.where(fits, high, 1 - low_end)


def _normal_shares(a: np.ndarray, x: np.ndarray, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both integrals for large a: N. M. Temme's expansion with its first correction."""
    a, x = np.where(where, a, _LARGE), np.where(where, x, _LARGE)
    mu = (x - a) / a
    near = np.abs(mu) < 1e-3  # where the differences below would lose their digits
    half = np.where(near, mu**2 * (1 / 2 - mu * (1 / 3 - mu * (1 / 4 - mu / 5))), mu - np.log1p(mu))
    eta = np.sign(mu) * np.sqrt(2 * half)
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = np.where(near, -1 / 3 + eta * (1 / 12 - eta * 2 / 135), 1 / mu - 1 / eta)
    spread = np.exp(-a * half) / np.sqrt(2 * np.pi * a) * correction
    upper, lower = (_erfc(sign * eta * np.sqrt(a / 2)) / 2 + sign * spread for sign in (1, -1))
    return lower, upper


def _upper_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Lentz's evaluation of the continued fraction of Γ(a, x) / (xᵃ e⁻ˣ), for x > a."""
    b = x + 1 - a
    c, d = np.full_like(x, 1e300), 1 / b
    found = d
    for k in range(1, _STEPS):
        part = -k * (k - a)
        b = b + 2
        d = 1 / (part * d + b)
        c = b + part / c
        found = found * (d * c)
        if np.all(np.abs(d * c - 1) < 1e-16):
            break
    return found
