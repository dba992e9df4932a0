"""Convolutions and matrix products, channels last as the file has them, of floats or of quantised integers.

Of integers less their zero points the sums are exact (in int32, or in floats up to 2²⁴); they are scaled once, by the input's scale
times the weights' by the output's, as TensorFlow Lite's default kernels do. Floats by quantised weights, and 16-bit integers, are
multiplied as floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import float32
from ...graph import Node
from ...ops import as_dtype
from ...ops.products.transposed import conv_or_dot, transposed_last
from ...shapes import floordiv, product, show
from ..model import Quantization
from ._call import Numbers, TfliteCall, activated, dtype_of, is_quantised, op
from .numbers import centred, dequantised, narrowed, quantised
from .windows import padding, steps

Product = Callable[[Node, Node], Node]
"""The product of an input and of weights, both floats or both int32."""


class Operands(NamedTuple):
    """Which inputs a product takes, and the axis of the weights that its outputs have; `moved` makes that the last one."""

    data: int
    weights: int
    bias: int
    axis: int
    moved: Callable[[Node], Node]


def contracted(call: TfliteCall, operands: Operands, contract: Product) -> Node:
    """The product of two inputs plus the bias, as the file stores it."""
    data, weights, bias, axis, outputs = operands
    b, x, w = call.b, call.x(data), call.x(weights)
    scale, into = call.scale(data), call.scale(weights)
    if into is not None and not into.is_single and into.axis != axis:
        raise call.fail(
            f"the weights have a scale for each index of axis {into.axis}; expected axis {axis}, that of the outputs"
        )
    tensor = call.wanted[0]
    to = tensor.quantization if is_quantised(tensor) else None
    if (
        scale is not None
        and into is not None
        and to is not None
        and x.dtype.bits == w.dtype.bits == 8
        and scale.is_single
    ):
        sums = b.cast(contract(centred(b, x, scale), outputs(centred(b, w, into))), to=float32)
        if call.is_given(bias):
            sums = b.add(sums, b.cast(call.x(bias), to=float32))
        scaled = b.mul(sums, b.const(_factor(call, scale, into, to)))
        return activated(call, narrowed(b, scaled, to, dtype_of(tensor)), to)
    x, w = (v if s is None else dequantised(b, v, s) for v, s in ((x, scale), (w, into)))
    real = contract(x, outputs(as_dtype(b, w, x.dtype)))
    if call.is_given(bias):
        given = call.x(bias)
        if given.dtype.is_int:
            if scale is None or into is None:
                raise call.fail(f"the bias is {given.dtype} and the operands are not quantised; expected a float")
            given = b.mul(b.cast(given, to=float32), b.const(scale.scale * into.scale))
        real = b.add(real, as_dtype(b, given, real.dtype))
    real = activated(call, real, None)
    return real if to is None else quantised(b, real, to, dtype_of(tensor))


def _factor(call: TfliteCall, scale: Quantization, into: Quantization, to: Quantization) -> np.ndarray:
    """By what sums are multiplied: one number, or one for each output."""
    if not to.scale.all() or not to.is_single:
        raise call.fail("the output has several scales, or one that is 0; expected a positive number")
    factor = scale.scale * into.scale / to.scale
    return factor.reshape(()) if factor.size == 1 else factor


# --- convolutions --------------------------------------------------------------------------------------------------


def _convolution(call: TfliteCall, operands: Operands, group: Callable[[Node, Node], int]) -> Node:
    x, w = call.ranked(0, 4), call.ranked(1, 4)
    strides, dilations = steps(call), (call.option("dilation_h"), call.option("dilation_w"))
    if not all(1 <= d <= 1 << 16 for d in dilations):
        raise call.fail(f"dilations are {dilations}; expected 1 or more")
    window = tuple(call.number(d, "the weights' shape") for d in w.shape[1:3])
    before, after = padding(call, x.shape[1:3], window, strides, dilations)
    facts: dict[str, Any] = {"strides": strides, "dilations": dilations, "before": before, "after": after}

    def contract(x: Node, w: Node) -> Node:
        return conv_or_dot(call.b, x, w, **facts, group=group(x, w))

    return contracted(call, operands, contract)


@op("CONV_2D", numbers=Numbers.OWN)
def _conv(call: TfliteCall) -> Node:
    """The weights are (outputs, …window, channels of a group)."""

    def group(x: Node, w: Node) -> int:
        channels, per_group = (call.number(d, "the channels") for d in (x.shape[3], w.shape[2]))
        if not per_group or channels % per_group:
            raise call.fail(f"{channels} channels do not fit weights for {per_group}")
        return channels // per_group

    return _convolution(call, Operands(0, 1, 2, 0, lambda w: call.b.transpose(w, perm=(1, 2, 3, 0))), group)


@op("DEPTHWISE_CONV_2D", numbers=Numbers.OWN)
def _depthwise_conv(call: TfliteCall) -> Node:
    """The weights are (1, …window, outputs); a channel has some outputs of its own."""
    w = call.ranked(1, 4)
    if w.shape[0] != 1:
        raise call.fail(f"the weights have the shape {show(w.shape)}; expected 1 as the first length")
    operands = Operands(0, 1, 2, 3, lambda w: call.b.transpose(w, perm=(1, 2, 0, 3)))
    return _convolution(call, operands, lambda x, _: call.number(x.shape[3], "the channels"))


@op("TRANSPOSE_CONV", numbers=Numbers.OWN)
def _transpose_conv(call: TfliteCall) -> Node:
    """The weights are (outputs, …window, channels); input 0 is the shape of the output."""
    x, w = call.ranked(2, 4), call.ranked(1, 4)
    shape = call.dims(0)
    if len(shape) != 4:
        raise call.fail(f"the shape {shape} of the output has {len(shape)} lengths; expected 4")
    window = tuple(call.number(d, "the weights' shape") for d in w.shape[1:3])
    strides = steps(call)
    pads, _ = padding(call, shape[1:3], window, strides, (1, 1))
    before = [call.number(p, "the padding") for p in pads]
    if x.shape[3] != w.shape[3]:
        raise call.fail(f"{x.shape[3]} channels do not fit weights of the shape {show(w.shape)}")
    return contracted(
        call, Operands(2, 1, 3, 0, lambda w: call.b.transpose(w, perm=(1, 2, 3, 0))),
        lambda x, w: transposed_last(call.b, x, w, strides, (1, 1), before, shape[1:3], 1),
    )  # fmt: skip


# --- matrices ------------------------------------------------------------------------------------------------------


@op("FULLY_CONNECTED", numbers=Numbers.OWN)
def _fully_connected(call: TfliteCall) -> Node:
    """Rows times the transpose of the weights, (outputs, depth); the rows are all elements of the input, by their depth."""
    b, w = call.b, call.ranked(1, 2)
    if call.option("weights_format"):
        raise call.fail(f"the weights' format is {call.option('weights_format')}; expected 0, rows in order")
    depth, keep = w.shape[1], call.option("keep_axes")

    def contract(x: Node, w: Node) -> Node:
        whole = product(x.shape)
        if depth == 0 or (keep and x.shape[-1:] != (depth,)) or (isinstance(whole, int) and whole % depth):
            raise call.fail(f"an input {show(x.shape)} does not fit weights {show(call.x(1).shape)}")
        rows = (
            x
            if keep or (len(x.shape) == 2 and x.shape[1] == depth)
            else b.reshape(x, shape=(floordiv(whole, depth), depth))
        )
        return b.dot(rows, w)

    return contracted(call, Operands(0, 1, 2, 0, lambda w: b.transpose(w, perm=(1, 0))), contract)


@op("BATCH_MATMUL", numbers=Numbers.OWN)
def _batch_matmul(call: TfliteCall) -> Node:
    b = call.b

    def turned(x: Node, swap: bool) -> Node:
        last = len(x.shape)
        return b.transpose(x, perm=(*range(last - 2), last - 1, last - 2)) if swap else x

    if any(len(call.x(i).shape) < 2 for i in range(2)):
        raise call.fail("an operand has fewer than 2 axes")
    return contracted(
        call, Operands(0, 1, 2, -1, lambda w: turned(w, call.option("swap_y"))), lambda x, w: b.matmul(turned(x, call.option("swap_x")), w)
    )  # fmt: skip
