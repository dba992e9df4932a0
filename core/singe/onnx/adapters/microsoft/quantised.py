"""The quantised ops of the domain com.microsoft, as onnxruntime defines them.

The QLinear ops dequantise, compute in float32, and quantise again. Products multiply integers (quantised.py). Weights of
a few bits are packed in bytes, the first in the lowest bits, with a scale for each block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from ....dtypes import float32, int32, uint8
from ....graph import Node
from ....ir.arrays import convert
from ....ops.products.blocks import BITS, BITS_PER_WORD
from ....shapes import axis_of, ceildiv, show
from .._call import ADAPTERS, Call, adapter, tensors_of
from ..elementwise.basic import cast
from ..movement.shapes import part
from ..products.quantise import centred, dequantised, each_of_block, narrowed, quantised_dynamically
from ..products.quantised import of_rows, product
from ..products.recurrent import recurrent
from .channels import VERSION, channels_first, channels_last, through


def _quantised(call: Call, y: Node, scale: Node, zero: Node | None, like: Node) -> Node:
    """y / scale + zero as the zero point's type, otherwise that of `like`."""
    return narrowed(call, call.b.div(y, _scalar(call, scale)), zero and _scalar(call, zero), (zero or like).dtype)


def _scalar(call: Call, p: Node) -> Node:
    return call.b.reshape(p, shape=())


def _real(call: Call, i: int) -> Node:
    """The number that inputs i, i + 1 and i + 2 represent: integers, their scale and zero point."""
    zero = call.maybe(i + 2)
    return dequantised(call, call.x(i), _scalar(call, call.x(i + 1)), zero and _scalar(call, zero))


# --- elementwise ops, pools, softmax ---------------------------------------------------------------------------------


@adapter("com.microsoft.QLinearAdd")
def _add(call: Call) -> Node:
    return _quantised(call, call.b.add(_real(call, 0), _real(call, 3)), call.x(6), call.maybe(7), call.x())


@adapter("com.microsoft.QLinearMul")
def _mul(call: Call) -> Node:
    return _quantised(call, call.b.mul(_real(call, 0), _real(call, 3)), call.x(6), call.maybe(7), call.x())


@adapter("com.microsoft.QLinearSigmoid")
def _sigmoid(call: Call) -> Node:
    return _quantised(call, call.b.sigmoid(_real(call, 0)), call.x(3), call.maybe(4), call.x())


@adapter("com.microsoft.QLinearLeakyRelu")
def _leaky_relu(call: Call) -> Node:
    y = call.b.leaky_relu(_real(call, 0), alpha=call.attr("alpha", 0.01))
    return _quantised(call, y, call.x(3), call.maybe(4), call.x())


@adapter("com.microsoft.QLinearSoftmax")
def _softmax(call: Call) -> Node:
    y = through(call, "Softmax", _real(call, 0), version=call.attr("opset", VERSION))
    return _quantised(call, y, call.x(3), call.maybe(4), call.x())


@adapter("com.microsoft.QLinearAveragePool")
def _average_pool(call: Call) -> Node:
    last = call.flag("channels_last")
    x = _real(call, 0)
    y = through(call, "AveragePool", channels_first(call, x) if last else x)
    return _quantised(call, channels_last(call, y) if last else y, call.x(3), call.maybe(4), call.x())


@adapter("com.microsoft.QLinearGlobalAveragePool")
def _global_average_pool(call: Call) -> Node:
    last = call.flag("channels_last")
    x = _real(call, 0)
    y = call.b.global_average_pool(channels_first(call, x) if last else x)
    return _quantised(call, channels_last(call, y) if last else y, call.x(3), call.maybe(4), call.x())


@adapter("com.microsoft.QLinearReduceMean")
def _reduce_mean(call: Call) -> Node:
    y = through(call, "ReduceMean", _real(call, 0))
    return _quantised(call, y, call.x(3), call.maybe(4), call.x())


@adapter("com.microsoft.QLinearWhere")
def _where(call: Call) -> Node:
    y = call.b.where(call.x(), _real(call, 1), _real(call, 4))
    return _quantised(call, y, call.x(7), call.maybe(8), call.x(1))


@adapter("com.microsoft.QLinearConcat")
def _concat(call: Call) -> Node:
    if len(call.inputs) < 5 or len(call.inputs) % 3 != 2:
        raise call.fail(f"{len(call.inputs)} inputs; expected a scale, a zero point, and three for each tensor")
    scale, zero = call.x(), call.x(1)
    y = through(call, "Concat", *(_real(call, i) for i in range(2, len(call.inputs), 3)))
    return _quantised(call, y, scale, zero, zero)


@adapter("com.microsoft.QLinearConv")
def _conv(call: Call) -> Node:
    if not call.flag("channels_last"):
        return through(call, "QLinearConv", *call.inputs)
    return channels_last(call, through(call, "QLinearConv", channels_first(call, call.x()), *call.inputs[1:]))


# --- products --------------------------------------------------------------------------------------------------------


def _with_bias(call: Call, y: Node, i: int) -> Node:
    bias = call.maybe(i)
    return y if bias is None else call.b.add(y, cast(call, bias, y.dtype))


@adapter("com.microsoft.MatMulIntegerToFloat")
def _integer_to_float(call: Call) -> Node:
    x, w, scale, w_scale = (call.x(i) for i in range(4))
    sums = cast(call, product(call, x, call.maybe(4), w, call.maybe(5)), scale.dtype)
    return _with_bias(call, call.b.mul(sums, call.b.mul(of_rows(call, scale) or scale, w_scale)), 6)


@adapter("com.microsoft.DynamicQuantizeMatMul")
def _dynamic(call: Call) -> Node:
    x, scale, zero = quantised_dynamically(call, call.x())
    sums = cast(call, product(call, x, zero, call.x(1), call.maybe(3)), float32)
    return _with_bias(call, call.b.mul(sums, call.b.mul(scale, call.x(2))), 4)


@adapter("com.microsoft.QGemm")
def _gemm(call: Call) -> Node:
    """The bias is quantised by the scale of the sums."""
    b = call.b
    x, scale, zero, w, w_scale, w_zero = (call.x(i) for i in range(6))
    w_zero = _along(call, w_zero, 0 if call.flag("transB") else 1)
    whole = centred(call, x, _scalar(call, zero)), centred(call, w, w_zero)
    sums = cast(call, b.gemm(*whole, trans_a=call.flag("transA"), trans_b=call.flag("transB")), float32)
    factor = b.mul(b.mul(_scalar(call, scale), w_scale), b.const(call.attr("alpha", 1.0), float32))
    y = b.mul(_with_bias(call, sums, 6), factor)
    return y if call.maybe(7) is None else _quantised(call, y, call.x(7), call.maybe(8), x)


def _along(call: Call, p: Node, axis: int) -> Node:
    """A number, or one for each index of an axis of a matrix, in a shape that broadcasts with the matrix."""
    if p.shape in ((), (1,)):
        return _scalar(call, p)
    return call.b.reshape(p, shape=(*p.shape, 1) if axis == 0 else (1, *p.shape))


@adapter("com.microsoft.QAttention")
def _attention(call: Call) -> Sequence[Node]:
    """com.microsoft's Attention over the numbers that the input and the weights represent."""
    x = dequantised(call, call.x(), _scalar(call, call.x(3)), call.maybe(6) and _scalar(call, call.x(6)))
    weights = dequantised(call, call.x(1), call.x(4), call.maybe(7))
    given = (x, weights, call.x(2), call.maybe(5), call.maybe(8))
    op = "com.microsoft.Attention"
    return tensors_of(ADAPTERS[op](replace(call, op=op, inputs=given)))


@adapter("com.microsoft.DynamicQuantizeLSTM")
def _lstm(call: Call) -> Sequence[Node]:
    """An LSTM with the weights that the integers represent, which lie transposed, compared with LSTM's. What they are multiplied by is
    quantised too: x as a whole, and the state at each step."""
    b = call.b

    def weights(i: int, k: int) -> Node:
        scale, zero = (
            b.reshape(p, shape=(p.shape[0], 1, p.shape[1] if len(p.shape) == 2 else 1))
            for p in (call.x(k), call.x(k + 1))
        )
        return b.transpose(dequantised(call, call.x(i), scale, zero), perm=(0, 2, 1))

    given = (call.x(), weights(1, 8), weights(2, 10), *(call.maybe(i) for i in range(3, 8)))
    return recurrent(replace(call, op="LSTM", version=VERSION, inputs=given), quantised=True)


# --- weights of a few bits -------------------------------------------------------------------------------------------


def unpacked(call: Call, x: Node, bits: int) -> Node:
    """The numbers of `bits` bits in bytes, along the last axis."""
    if x.dtype is not uint8 or bits not in (1, 2, 4, 8):
        raise call.fail(f"numbers of {bits} bits in {x.dtype}; expected 2, 4 or 8 bits in uint8")
    if bits == 8:
        return x
    b, each = call.b, call.b.const(1 << bits, uint8)
    left = [x]
    for _ in range(8 // bits - 1):
        left.append(b.div(left[-1], each))
    numbers = [*(b.sub(v, b.mul(above, each)) for v, above in pairwise(left)), left[-1]]
    beside = b.concat(*(b.reshape(v, shape=(*v.shape, 1)) for v in numbers), axis=-1)
    return b.reshape(beside, shape=(*x.shape[:-1], x.shape[-1] * len(numbers)))


def _kept_packed(
    call: Call, packed: Node, scale: Node, zeros: Node | None, bits: int, block: int
) -> tuple[Node, Node, Node] | None:
    """Constant weights (columns, blocks, bytes) and their scales and zeros as `dot_blocks` takes them; None if they are
    not constant, or not of whole words."""
    columns, blocks = call.attr("N", 0), -(-call.attr("K", 0) // block)
    stored, scales = packed.value, scale.value
    if bits not in BITS or block * bits % BITS_PER_WORD or stored is None or scales is None:
        return None
    if zeros is None:
        middle = np.asarray(np.float32(1 << bits - 1))
    elif zeros.value is None:
        return None
    elif zeros.dtype is uint8:
        places = np.arange(0, 8, bits, dtype=np.uint8)
        numbers = zeros.value.reshape(columns, -1, 1) >> places & np.uint8((1 << bits) - 1)
        middle = numbers.reshape(columns, -1)[:, :blocks].T
    else:
        middle = zeros.value.reshape(columns, blocks).T
    words = np.ascontiguousarray(stored).reshape(columns, -1).view(np.int32)
    words = words[:, : -(-call.attr("K", 0) * bits // BITS_PER_WORD)].T
    floats = (convert(a, float32.numpy) for a in (scales.reshape(columns, blocks).T, middle))
    # The words stay a view of the file: packing copies them.
    scale, zero = (call.b.const(np.array(a, order="C")) for a in floats)
    return call.b.const(words), scale, zero


def _groups(call: Call, depth: int, block: int) -> Node | None:
    """The block whose scale and zero point each row of the weights has, filled up to whole blocks; None if it is the one
    in which the row lies."""
    if call.maybe(4) is None:
        return None
    given, blocks = call.value(4), ceildiv(depth, block)
    if given.dtype.kind not in "iu" or given.shape not in ((depth,), (blocks * block,)):
        raise call.fail(f"g_idx is {given.dtype} of shape {given.shape}; expected integers of shape ({depth},)")
    own = given[:depth]
    if own.min() < 0 or own.max() >= blocks:
        raise call.fail(f"g_idx has numbers from {own.min()} to {own.max()}; expected those of {blocks} blocks")
    if np.array_equal(own, np.arange(depth) // block):
        return None
    return call.b.const(np.pad(own, (0, blocks * block - depth)).astype(np.int32))


@adapter("com.microsoft.MatMulNBits")
def _matmul_n_bits(call: Call) -> Node:
    b, x = call.b, call.x()
    bits, block = call.attr("bits", 4), call.attr("block_size", 0)
    columns, depth = call.attr("N", 0), call.attr("K", 0)
    if block < 1 or columns < 1 or depth < 1:
        raise call.fail(f"N is {columns}, K {depth} and block_size {block}; expected at least 1")
    if call.attr("weight_prepacked", 0):
        raise call.fail("weights that are prepacked for a GPU; export the model without weight_prepacked")
    blocks = ceildiv(depth, block)
    groups = _groups(call, depth, block)
    packed = call.x(1)
    if packed.shape != (columns, blocks, block * bits // 8):
        raise call.fail(f"weights {show(packed.shape)}; expected {(columns, blocks, block * bits // 8)}")
    zeros = call.maybe(3)
    kept = _kept_packed(call, packed, call.x(2), zeros, bits, block) if groups is None else None
    if kept is not None:
        rows = x if len(x.shape) > 1 else b.reshape(x, shape=(1, *x.shape))
        y = cast(call, b.dot_blocks(cast(call, rows, float32), *kept, bits=bits, block=block), x.dtype)
        return _with_bias(call, y if rows is x else b.reshape(y, shape=(columns,)), 5)

    def each(p: Node) -> Node:
        """A number of each block, in a shape that broadcasts with the weights (columns, blocks, block)."""
        if groups is None:
            return b.reshape(p, shape=(columns, blocks, 1))
        own = b.gather(b.reshape(p, shape=(columns, blocks)), groups, axis=1)
        return b.reshape(own, shape=(columns, blocks, block))

    if zeros is None:
        middle = b.const(1 << bits - 1, uint8)
    elif zeros.dtype is uint8:
        rows = b.reshape(zeros, shape=(columns, ceildiv(blocks * bits, 8)))
        middle = each(part(b, unpacked(call, rows, bits), 1, 0, blocks))
    else:
        middle = each(zeros)
    numbers = unpacked(call, packed, bits)
    numbers = numbers if middle.dtype is uint8 else cast(call, numbers, float32)
    scales = each(call.x(2))
    weights = b.reshape(dequantised(call, numbers, scales, middle), shape=(columns, blocks * block))
    weights = cast(call, b.transpose(part(b, weights, 1, 0, depth), perm=(1, 0)), x.dtype)
    return _with_bias(call, b.matmul(x, weights), 5)


BNB4: Final[Mapping[int, tuple[float, ...]]] = {
    0: tuple(sign * x for sign in (1, -1) for x in (0.0, 0.0052083335, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)),
    1: (
        *(-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0),
        *(0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0),
    ),
}
"""The numbers that MatMulBnb4's codes stand for, by quant_type: floats of 4 bits (FP4) and quantiles of a normal
distribution (NF4)."""


@adapter("com.microsoft.MatMulBnb4")
def _matmul_bnb4(call: Call) -> Node:
    """x · Wᵀ. The codes of W (N, K) lie flat, the first in a byte's high bits; blocks of them go on across rows."""
    b, x, packed, absmax = call.b, call.x(), call.x(1), call.x(2)
    columns, depth, block = call.attr("N", 0), call.attr("K", 0), call.attr("block_size", 0)
    if block < 1 or columns < 1 or depth < 1:
        raise call.fail(f"N is {columns}, K {depth} and block_size {block}; expected at least 1")
    if not call.attr("transB", 1):
        raise call.fail("transB is 0, for which onnxruntime computes no x · W; export the model with transB = 1")
    kind, count = call.attr("quant_type", 1), columns * depth
    if kind not in BNB4:
        raise call.fail(f"quant_type is {kind}; expected 0 (FP4) or 1 (NF4)")
    wanted = (ceildiv(count, 2),), (ceildiv(count, block),)
    if packed.dtype is not uint8 or (packed.shape, absmax.shape) != wanted:
        given = f"weights {show(packed.shape)} of {packed.dtype}, absmax {show(absmax.shape)}"
        raise call.fail(f"{given}; expected {show(wanted[0])} of uint8 and {show(wanted[1])} for N · K = {count}")
    sixteen = b.const(16, uint8)
    high = b.div(packed, sixteen)
    low = b.sub(packed, b.mul(high, sixteen))
    codes = b.reshape(
        b.concat(*(b.reshape(v, shape=(*v.shape, 1)) for v in (high, low)), axis=-1), shape=(2 * wanted[0][0],)
    )
    codes = cast(call, part(b, codes, 0, 0, count), int32)
    numbers = b.gather(b.const(np.array(BNB4[kind], np.float32)), codes, axis=0)
    flat = b.mul(numbers, each_of_block(call, cast(call, absmax, float32), (count,), 0, block))
    weights = b.transpose(b.reshape(flat, shape=(columns, depth)), perm=(1, 0))
    return b.matmul(x, cast(call, weights, x.dtype))


@adapter("com.microsoft.GatherBlockQuantized")
def _gather_blocks(call: Call) -> Node:
    """Slices of a tensor that is quantised in blocks along another axis: only they are dequantised."""
    b = call.b
    data, indices, scales, zeros = call.x(), call.x(1), call.x(2), call.maybe(3)
    rank, bits = len(data.shape), call.attr("bits", 4)
    axis = axis_of(call.attr("gather_axis", 0), rank, "gather_axis")
    blocks = axis_of(call.attr("quantize_axis", 1), rank, "quantize_axis")
    packed = data.dtype is uint8 and bits < 8
    if axis == blocks or (packed and axis == rank - 1):
        raise call.fail(f"gather_axis and quantize_axis are {axis} and {blocks}, of which the second is packed")

    def gathered(x: Node) -> Node:
        """Its slices, unless one serves for all."""
        return b.gather(x, indices, axis=axis)

    numbers = gathered(data)
    scale = gathered(scales)
    middle = None if zeros is None else gathered(zeros)
    if data.dtype is uint8:
        numbers = unpacked(call, numbers, bits)
        middle = b.const(1 << bits - 1, uint8) if middle is None else unpacked(call, middle, bits)
        if middle.shape:
            middle = part(b, middle, len(middle.shape) - 1, 0, scale.shape[-1])
    along = blocks + (len(indices.shape) - 1 if blocks > axis else 0)
    block = call.attr("block_size", 128)
    each = each_of_block(call, scale, numbers.shape, along, block)
    zero = middle if middle is None or not middle.shape else each_of_block(call, middle, numbers.shape, along, block)
    return cast(call, dequantised(call, numbers, each, zero), scales.dtype)
