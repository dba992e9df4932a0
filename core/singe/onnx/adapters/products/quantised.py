"""Products of quantised numbers: the zero points are subtracted, integers are multiplied and summed in int32, floats in
float32. MatMulInteger and ConvInteger give the sums; QLinearMatMul and QLinearConv scale and quantise them again."""

from __future__ import annotations

from dataclasses import replace

from ....dtypes import float32
from ....graph import Node
from .._call import ADAPTERS, Call, adapter
from ..elementwise.basic import cast
from .quantise import centred, narrowed


def of_rows(call: Call, p: Node | None) -> Node | None:
    """A scale or zero point of a product's left operand: a vector has one number for each row."""
    return call.b.reshape(p, shape=(*p.shape, 1)) if p is not None and len(p.shape) == 1 and p.shape[0] != 1 else p


def product(call: Call, x: Node, zero: Node | None, w: Node, w_zero: Node | None) -> Node:
    """(x − zero) @ (w − w_zero). The right operand's numbers are those of its columns."""
    return call.b.matmul(centred(call, x, of_rows(call, zero)), centred(call, w, w_zero))


def of_outputs(call: Call, p: Node, w: Node) -> Node:
    """A scale or zero point of a convolution's weights, one number or one for each output, in a shape that broadcasts
    with the weights."""
    if p.shape in ((), (1,)):
        return call.b.reshape(p, shape=())
    return call.b.reshape(p, shape=(*p.shape, *(1,) * (len(w.shape) - 1)))


def convolution(call: Call, x: Node, zero: Node | None, w: Node, w_zero: Node | None) -> Node:
    """The convolution of x − zero with w − w_zero, by the attributes of Conv; the padding is 0."""
    weights = centred(call, w, None if w_zero is None else of_outputs(call, w_zero, w))
    made = ADAPTERS["Conv"](replace(call, op="Conv", inputs=(centred(call, x, zero), weights)))
    assert isinstance(made, Node)
    return made


@adapter("MatMulInteger")
def _matmul_integer(call: Call) -> Node:
    return product(call, call.x(), call.maybe(2), call.x(1), call.maybe(3))


@adapter("ConvInteger")
def _conv_integer(call: Call) -> Node:
    return convolution(call, call.x(), call.maybe(2), call.x(1), call.maybe(3))


@adapter("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Node:
    b = call.b
    x, scale, zero, w, w_scale, w_zero, to_scale, to_zero = (call.x(i) for i in range(8))
    sums = cast(call, product(call, x, zero, w, w_zero), float32)
    given, into, out = (
        cast(call, s, float32) for s in (of_rows(call, scale) or scale, w_scale, of_rows(call, to_scale) or to_scale)
    )
    scaled = b.mul(sums, b.div(b.mul(given, into), out))
    return narrowed(call, scaled, of_rows(call, to_zero), to_zero.dtype)


@adapter("QLinearConv")
def _qlinear_conv(call: Call) -> Node:
    b = call.b
    x, scale, zero, w, w_scale, w_zero, to_scale, to_zero = (call.x(i) for i in range(8))
    sums = cast(call, convolution(call, x, zero, w, w_zero), float32)
    outputs = (*w.shape[:1], *(1,) * (len(w.shape) - 2))
    if call.maybe(8) is not None:
        sums = b.add(sums, b.reshape(cast(call, call.x(8), float32), shape=outputs))
    into = b.reshape(w_scale, shape=() if w_scale.shape in ((), (1,)) else outputs)
    scaled = b.mul(sums, b.div(b.mul(b.reshape(scale, shape=()), into), b.reshape(to_scale, shape=())))
    return narrowed(call, scaled, b.reshape(to_zero, shape=()), to_zero.dtype)
