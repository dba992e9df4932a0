"""Normalisations over the last axes of each element of a batch: layer norm and RMS norm; and the norm of several arrays together,
with the checks of a step of training, which look at it.

Normalisations compute in the compute type, and round once at the end.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ...dtypes import FLOATS, float32
from ...shapes import axis_of
from ..kinds import Composite, as_dtype, register


def axes_from(x: Any, axis: int, what: str) -> tuple[int, ...]:
    """The axes from `axis` to the last."""
    rank = len(x.shape)
    return tuple(range(axis_of(axis, rank, what), rank))


def standardised(b: Any, x: Any, axis: int, epsilon: float) -> tuple[Any, Any, Any]:
    """(x − mean) / √(variance + ε) over the axes from `axis` on, the mean, and 1 / √(variance + ε)."""
    axes = axes_from(x, axis, "layer_norm")
    mean = b.reduce_mean(x, axes=axes)
    off = b.sub(x, mean)
    variance = b.reduce_mean(b.mul(off, off), axes=axes)
    inverse = b.reciprocal(b.sqrt(b.add(variance, b.const(epsilon, x.dtype))))
    return b.mul(off, inverse), mean, inverse


def inverse_rms(b: Any, x: Any, axis: int, epsilon: float) -> Any:
    """1 / √(mean of squares + ε) over the axes from `axis` on."""
    square = b.reduce_mean(b.mul(x, x), axes=axes_from(x, axis, "rms_norm"))
    return b.reciprocal(b.sqrt(b.add(square, b.const(epsilon, x.dtype))))


def scaled(b: Any, x: Any, scale: Any, shift: Any) -> Any:
    """x · scale + shift; None: without it."""
    x = x if scale is None else b.mul(x, as_dtype(b, scale, x.dtype))
    return x if shift is None else b.add(x, as_dtype(b, shift, x.dtype))


def _layer_norm(b: Any, x: Any, scale: Any = None, shift: Any = None, *, axis: int = -1, epsilon: float = 1e-5) -> Any:
    normal, _, _ = standardised(b, as_dtype(b, x, x.dtype.compute), axis, epsilon)
    return as_dtype(b, scaled(b, normal, scale, shift), x.dtype)


def _rms_norm(b: Any, x: Any, scale: Any = None, *, axis: int = -1, epsilon: float = 1e-5) -> Any:
    wide = as_dtype(b, x, x.dtype.compute)
    return as_dtype(b, scaled(b, b.mul(wide, inverse_rms(b, wide, axis, epsilon)), scale, None), x.dtype)


def _joint_norm(b: Any, *several: Any) -> Any:
    squares = [b.reduce_sum(b.mul(x, x), axes=tuple(range(len(x.shape)))) for x in several]
    return b.sqrt(functools.reduce(b.add, [b.reshape(x, shape=()) for x in squares]))


def _checks(b: Any, loss: Any, norm: Any, code: Any, *, finite: bool) -> Any:
    fine = b.equal(code, b.const(0.0, float32))
    for x in (loss, norm) if finite else ():
        fine = b.logical_and(fine, b.less(b.abs(x), b.const(math.inf, float32)))
    return b.concat(*(b.reshape(x, shape=(1,)) for x in (loss, norm, code)), axis=0), fine


register(
    Composite(name="layer_norm", doc="(x − mean) / √(variance + epsilon) · scale + shift over the axes from `axis` on", dtypes=FLOATS,
              lower=_layer_norm, tolerance=64, floor=1e-5),
    Composite(name="joint_norm", public=False, doc="the square root of the sum of the squares of all elements of several arrays", dtypes=(float32,),
              lower=_joint_norm, tolerance=64),
    Composite(name="checks", public=False, doc="three numbers of a step of training in one vector, the loss, the norm of the gradients and a code; and "
              "whether the code is 0 and, with `finite`, the others are neither NaN nor infinite", dtypes=(float32,),
              lower=_checks),
    Composite(name="rms_norm", doc="x / √(mean of x² + epsilon) · scale over the axes from `axis` on", dtypes=FLOATS,
              lower=_rms_norm, tolerance=64, floor=1e-5),
)  # fmt: skip
