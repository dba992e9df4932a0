"""Quantised integers and the real numbers that they stand for: (integer − zero) · scale.

Integers are made as TensorFlow Lite's default kernels make them: a number divided by the scale, in float32, is rounded to the nearest integer
and clipped to the type. Of two integers that are equally near, products, tables and floats give the even one; sums, and integers of which
only the scale changes, the greater one (`ties_up`).
"""

from __future__ import annotations

import numpy as np

from ...dtypes import DType, float32, int32
from ...errors import ImportFailure
from ...graph import Builder, Node
from ...ops import as_dtype
from ..model import Quantization


def spread(b: Builder, numbers: np.ndarray, x: Node, axis: int) -> Node:
    """A scale or zero point as a node that broadcasts with x: one number, or one for each index of an axis."""
    if numbers.size == 1:
        return b.const(np.ascontiguousarray(numbers.reshape(())))
    return b.const(np.ascontiguousarray(numbers).reshape([-1 if k == axis else 1 for k in range(len(x.shape))]))


def centred(b: Builder, x: Node, scale: Quantization) -> Node:
    """The integers less their zero point, as int32."""
    whole = as_dtype(b, x, int32)
    return whole if not scale.zero.any() else b.sub(whole, spread(b, scale.zero, x, scale.axis))


def dequantised(b: Builder, x: Node, scale: Quantization) -> Node:
    """What integers stand for, in float32."""
    return b.mul(b.cast(centred(b, x, scale), to=float32), spread(b, scale.scale, x, scale.axis))


def quantised(b: Builder, x: Node, scale: Quantization, to: DType, *, ties_up: bool = False) -> Node:
    """Real numbers as integers of this scale."""
    _check(scale)
    return narrowed(
        b, b.div(as_dtype(b, x, float32), spread(b, scale.scale, x, scale.axis)), scale, to, ties_up=ties_up
    )


def _check(scale: Quantization) -> None:
    if not scale.scale.all():
        raise ImportFailure("a scale is 0; expected a positive number")


def narrowed(b: Builder, scaled: Node, scale: Quantization, to: DType, *, ties_up: bool = False) -> Node:
    """Numbers that are divided by the scale already, as integers of it."""
    whole = b.floor(b.add(scaled, b.const(0.5, float32))) if ties_up else b.round(scaled)
    if scale.zero.any():
        whole = b.add(whole, spread(b, scale.zero.astype(np.float32), scaled, scale.axis))
    least, most = (b.const(float(v), float32) for v in to.limits)
    return b.cast(b.clip(whole, least, most), to=to)


def requantised(b: Builder, x: Node, scale: Quantization, new: Quantization, to: DType) -> Node:
    """Integers of one scale as those of another."""
    _check(new)
    if not scale.is_single or not new.is_single:
        return quantised(b, dequantised(b, x, scale), new, to, ties_up=True)
    by = np.float32(float(scale.scale[0]) / float(new.scale[0]))
    scaled = b.mul(b.cast(centred(b, x, scale), to=float32), b.const(np.asarray(by)))
    return narrowed(b, scaled, new, to, ties_up=True)
