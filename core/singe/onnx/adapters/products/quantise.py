"""Quantising and dequantising: x / scale, rounded and shifted by a zero point, as a narrow type; and back."""

from __future__ import annotations

from collections.abc import Sequence

from ....dtypes import DType, float32, int32, uint8
from ....graph import Node
from ....ops.products.integers import in_steps
from ....shapes import Shape, ceildiv, same, show
from .._call import Call, adapter
from ..elementwise.basic import cast, dtype_of_code, saturating
from ..movement.shapes import part


def spread(call: Call, p: Node, x: Node) -> Node:
    """A scale or zero point p in a shape that broadcasts with x.
    p has one number, one for each index of an axis, or one for each block."""
    b, rank = call.b, len(x.shape)
    if p.shape in ((), (1,)):
        return b.reshape(p, shape=())
    axis = call.axis(1, rank)
    block = call.attr("block_size", 0)
    if block:
        return each_of_block(call, p, x.shape, axis, block)
    if len(p.shape) != 1 or not same(p.shape[0], x.shape[axis], "the scales of an axis"):
        raise call.fail(f"a scale of shape {show(p.shape)} for axis {axis} of {show(x.shape)}; expected one for each")
    return b.reshape(p, shape=tuple(x.shape[axis] if k == axis else 1 for k in range(rank)))


def each_of_block(call: Call, p: Node, shape: Shape, axis: int, block: int) -> Node:
    """p, which has one number for each `block` elements along an axis of `shape`, with one number for each element."""
    b, rank, length = call.b, len(shape), shape[axis]
    wanted = "one for each block along the axis"
    if block < 0 or len(p.shape) != rank or not same(p.shape[axis], ceildiv(length, block), wanted):
        raise call.fail(f"blocks of {block}, a scale of shape {show(p.shape)} for {show(shape)}; expected {wanted}")
    if isinstance(length, int):
        block = min(block, max(length, 1))
    count = p.shape[axis]
    before, after = p.shape[:axis], p.shape[axis + 1 :]
    each = b.expand(b.reshape(p, shape=(*before, count, 1, *after)), shape=(*before, count, block, *after))
    every = b.reshape(each, shape=(*before, count * block, *after))
    return part(b, every, axis, 0, length)


def centred(call: Call, x: Node, zero: Node | None) -> Node:
    """x − zero, as int32 for integers and as float32 for floats."""
    wide = int32 if x.dtype.is_int else float32
    whole = cast(call, x, wide)
    return whole if zero is None else call.b.sub(whole, cast(call, zero, wide))


def dequantised(call: Call, x: Node, scale: Node, zero: Node | None) -> Node:
    """(x − zero) · scale in float32; the scale and the zero point broadcast with x."""
    return call.b.mul(cast(call, centred(call, x, zero), float32), cast(call, scale, float32))


def narrowed(call: Call, scaled: Node, zero: Node | None, to: DType) -> Node:
    """`scaled`, which is x / scale, as a narrow type: integers are rounded, shifted and clipped, floats are cast."""
    b = call.b
    if to.is_int:
        whole = b.round(scaled)
        whole = whole if zero is None else b.add(whole, cast(call, zero, float32))
        least, most = (b.const(float(v), float32) for v in to.limits)
        return cast(call, b.clip(whole, least, most), to)
    return saturating(call, scaled, to)


@adapter("QuantizeLinear", "com.microsoft.QuantizeLinear")
def _quantise(call: Call) -> Node:
    x, scale, zero = call.x(), call.x(1), call.maybe(2)
    code = call.attr("output_dtype", 0)
    to = zero.dtype if zero is not None else dtype_of_code(call, code) if code else uint8
    scaled = call.b.div(cast(call, x, float32), spread(call, cast(call, scale, float32), x))
    return narrowed(call, scaled, None if zero is None else spread(call, zero, x), to)


@adapter("DequantizeLinear", "com.microsoft.DequantizeLinear")
def _dequantise(call: Call) -> Node:
    x, scale, zero = call.x(), call.x(1), call.maybe(2)
    code = call.attr("output_dtype", 0)
    zero = None if zero is None else spread(call, zero, x)
    value = dequantised(call, x, spread(call, scale, x), zero)
    return cast(call, value, dtype_of_code(call, code) if code else scale.dtype)


@adapter("DynamicQuantizeLinear")
def _dynamic(call: Call) -> Sequence[Node]:
    return quantised_dynamically(call, call.x())


def quantised_dynamically(call: Call, x: Node) -> tuple[Node, Node, Node]:
    """x as uint8, where 0 … 255 covers the least element, the largest element and 0; the scale; the zero point."""
    whole, scale, zero = in_steps(call.b, x)
    return cast(call, whole, uint8), scale, cast(call, zero, uint8)
