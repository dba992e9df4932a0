"""Normalisation by norms along an axis, by mean and variance over axes, and over groups of channels."""

from __future__ import annotations

from ....dtypes import float32
from ....graph import Builder, Node
from ....shapes import axes_of, same, show
from .._call import Call, adapter
from ..elementwise.basic import cast


@adapter("LpNormalization")
def _lp(call: Call) -> Node:
    """x over its norm; where that is 0, x."""
    x, b = call.x(), call.b
    axes, order = (call.axis(-1, len(x.shape)),), call.attr("p", 2)
    if order not in (1, 2):
        raise call.fail(f"p is {order}; expected 1 or 2")
    wide = cast(call, x, x.dtype.compute)
    size = b.reduce_sum(b.abs(wide) if order == 1 else b.mul(wide, wide), axes=axes)
    size = size if order == 1 else b.sqrt(size)
    none = b.equal(size, b.const(0, size.dtype))
    return cast(call, b.div(wide, b.where(none, b.const(1, size.dtype), size)), x.dtype)


def _centred(b: Builder, x: Node, axes: tuple[int, ...]) -> tuple[Node, Node]:
    """x without its mean, and its variance."""
    off = b.sub(x, b.reduce_mean(x, axes=axes))
    return off, b.reduce_mean(b.mul(off, off), axes=axes)


@adapter("MeanVarianceNormalization")
def _mean_variance(call: Call) -> Node:
    x, b = call.x(), call.b
    axes = axes_of(call.items("axes", int) or (0, 2, 3), len(x.shape), call.op)
    off, variance = _centred(b, cast(call, x, x.dtype.compute), axes)
    return cast(call, b.div(off, b.add(b.sqrt(variance), b.const(1e-9, off.dtype))), x.dtype)


@adapter("GroupNormalization")
def _groups(call: Call) -> Node:
    """Scale and shift are those of each channel; before version 21, of each group."""
    x, b = call.x(), call.b
    groups, rank = call.attr("num_groups", 0), len(x.shape)
    channels = x.shape[1] if rank > 2 else 0
    if groups < 1 or rank < 3 or not same(channels // groups * groups, channels, "GroupNormalization: equal groups"):
        raise call.fail(f"{groups} groups of the channels of {show(x.shape)}; expected equal groups, and spatial axes")
    kind = float32 if call.attr("stash_type", 1) == 1 else x.dtype
    split = b.reshape(cast(call, x, kind), shape=(x.shape[0], groups, channels // groups, *x.shape[2:]))
    off, variance = _centred(b, split, tuple(range(2, rank + 1)))
    normal = b.div(off, b.sqrt(b.add(variance, b.const(call.attr("epsilon", 1e-5), kind))))
    each = (groups, channels // groups if call.version >= 21 else 1, *(1,) * (rank - 2))
    scale, shift = (b.reshape(call.x(i), shape=each) for i in (1, 2))
    return b.reshape(b.add(b.mul(cast(call, normal, x.dtype), scale), shift), shape=x.shape)
