"""Quantised numbers: several nodes that are one op of ONNX, and weights that are packed in words.

What was read from QuantizeLinear, DequantizeLinear, MatMulInteger and ConvInteger is found again, so that engines take their fast
paths; packed weights become a DequantizeLinear in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from ....dtypes import DType, float32, int8, int16, int32, uint4, uint8, uint16
from ....graph import Builder, Node
from ....ir.arrays import convert
from ....ops.products.blocks import BITS_PER_WORD
from ....shapes import plain
from ..block import Block
from ..facts import SINCE
from ..records import Attribute
from ..rules import Rule
from .products import conv_facts, conv_pads, padded_by_numbers

BYTES: Final = (int8, uint8)
SHORT: Final = (int16, uint16)


class _Centred(NamedTuple):
    """q − zero: integers and their zero point; None for 0."""

    q: Node
    zero: Node | None


def _uncast(n: Node, to: DType) -> Node | None:
    """What a cast to a type reads; None if the node is no such cast."""
    return n.inputs[0] if n.op == "cast" and n.attrs["to"] is to else None


def _centred(n: Node) -> _Centred | None:
    """The int32 node as integers of a narrower type less their zero point."""
    if n.op == "sub":
        q, zero = (_uncast(x, int32) for x in n.inputs)
        return _Centred(q, zero) if q is not None and zero is not None and q.dtype is zero.dtype else None
    q = _uncast(n, int32)
    return None if q is None else _Centred(q, None)


def _unshaped(n: Node) -> Node:
    """A scale or a zero point without the reshape that lets it broadcast."""
    return n.inputs[0] if n.op == "reshape" and len(n.inputs[0].shape) <= 1 else n


def _number(w: Block, n: Node) -> str:
    """A node of one element as a scalar."""
    written = _below(n)
    return w.name(written) if written.shape == () else w.reshape(w.name(written), ())


# --- dequantising, quantising ----------------------------------------------------------------------------------------


def _axis(p: Node, x: Node) -> int | None:
    """The axis of x along which p has its elements: −1 for a single one, None if there is no such axis."""
    if all(d == 1 for d in p.shape):
        return -1
    shape = (1,) * (len(x.shape) - len(p.shape)) + tuple(p.shape)
    long = [k for k, d in enumerate(shape) if d != 1]
    return (
        long[0]
        if len(shape) == len(x.shape) and len(long) == 1 and plain(shape[long[0]]) == plain(x.shape[long[0]])
        else None
    )


class _Scaled(NamedTuple):
    """What a node dequantises or quantises, by which scale and zero point."""

    x: Node
    scale: Node
    zero: Node | None
    axis: int


def _dequantised(n: Node) -> _Scaled | None:
    """(q − zero) · scale in float32, for a scale of float32."""
    if n.op != "mul" or n.dtype is not float32:
        return None
    whole, scale = n.inputs
    inner = _uncast(whole, float32)
    found = None if inner is None or inner.dtype is not int32 else _centred(inner)
    if found is None or found.q.dtype not in (*BYTES, *SHORT):
        return None
    axis = _axis(scale, found.q)
    if axis is None or (found.zero is not None and _axis(found.zero, found.q) != axis):
        return None
    return _Scaled(found.q, scale, found.zero, axis)


def _vector(w: Block, n: Node, axis: int) -> str:
    """A scale or a zero point, as QuantizeLinear takes it: a scalar or a vector."""
    if axis < 0:
        return _number(w, n)
    written = _below(n)
    return (
        w.name(written) if len(written.shape) == 1 else w.reshape(w.name(written), tuple(d for d in n.shape if d != 1))
    )


def _parts(find: Callable[[Node], _Scaled | None], n: Node) -> list[Node]:
    found = find(n)
    assert found is not None
    return [found.x, _below(found.scale), *([] if found.zero is None else [_below(found.zero)])]


def _below(n: Node) -> Node:
    """The node that is written for a scale or a zero point."""
    flat = _unshaped(n)
    return flat if len(flat.shape) == 1 and n.shape != () else n


def _scale(op: str, find: Callable[[Node], _Scaled | None], w: Block, n: Node, *_: str) -> str:
    found = find(n)
    assert found is not None
    zero = "" if found.zero is None else _vector(w, found.zero, found.axis)
    facts: dict[str, Attribute] = {"axis": found.axis} if found.axis >= 0 else {}
    return w.node(op, w.name(found.x), _vector(w, found.scale, found.axis), zero, **facts)


def _dequantise_takes(w: Block, n: Node) -> bool:
    found = _dequantised(n)
    return found is not None and (found.x.dtype in BYTES or w.opset >= SINCE["ShortQuantize"])


def _quantised(n: Node) -> _Scaled | None:
    """round(x / scale) + zero, clipped to a type of whole numbers."""
    to = n.dtype
    if n.op != "cast" or to not in (*BYTES, *SHORT) or n.inputs[0].op != "clip":
        return None
    total, low, high = n.inputs[0].inputs
    limits = tuple(
        None if v.value is None or v.dtype is not float32 else float(v.value.reshape(-1)[0]) for v in (low, high)
    )
    if limits != tuple(map(float, to.limits)):
        return None
    zero: Node | None = None
    if total.op == "add":
        total, shift = total.inputs
        zero = _uncast(shift, float32)
        if zero is None or zero.dtype is not to:
            return None
    if total.op != "round" or total.inputs[0].op != "div":
        return None
    x, scale = total.inputs[0].inputs
    if x.dtype is not float32 or (zero is None and to is not uint8):
        return None
    axis = _axis(scale, x)
    fits = axis is not None and (zero is None or _axis(zero, x) == axis)
    return _Scaled(x, scale, zero, axis) if fits and axis is not None else None


def _quantise_takes(w: Block, n: Node) -> bool:
    return _quantised(n) is not None and (n.dtype in BYTES or w.opset >= SINCE["ShortQuantize"])


# --- products of integers --------------------------------------------------------------------------------------------


def _operands(n: Node) -> tuple[_Centred, _Centred] | None:
    """The operands of a product in int32, if both are bytes less a zero point of one number, or of the right one's columns."""
    x, y = (_centred(v) if v.dtype is int32 else None for v in n.inputs[:2])
    if len(n.inputs) != 2 or x is None or y is None or x.q.dtype not in BYTES or y.q.dtype not in BYTES:
        return None
    if x.zero is not None and any(d != 1 for d in x.zero.shape):
        return None
    return x, y


def _matmul_operands(n: Node) -> tuple[_Centred, _Centred] | None:
    found = _operands(n)
    if found is None:
        return None
    zero = found[1].zero
    return found if zero is None or len(zero.shape) <= 1 else None


def _conv_operands(n: Node) -> tuple[_Centred, _Centred] | None:
    found = _operands(n)
    if found is None or not padded_by_numbers(n):
        return None
    zero = found[1].zero
    return found if zero is None or all(d == 1 for d in zero.shape) else None


def _reads(operands: tuple[_Centred, _Centred] | None) -> list[Node]:
    assert operands is not None
    return [x for c in operands for x in (c.q, c.zero and _below(c.zero)) if x is not None]


def _zeros(w: Block, x: _Centred, y: _Centred) -> tuple[str, str]:
    names = [
        w.const(0, c.q.dtype)
        if c.zero is None
        else _number(w, c.zero)
        if all(d == 1 for d in c.zero.shape)
        else w.name(_below(c.zero))
        for c in (x, y)
    ]
    return names[0], names[1]


def _matmul_integer(w: Block, n: Node, *_: str) -> str:
    found = _matmul_operands(n)
    assert found is not None
    x, y = found
    return w.node("MatMulInteger", w.name(x.q), w.name(y.q), *_zeros(w, x, y))


def _conv_integer(w: Block, n: Node, *_: str) -> str:
    found = _conv_operands(n)
    assert found is not None
    x, y = found
    facts = conv_facts(n, y.q.shape[2:])
    return w.node("ConvInteger", w.name(x.q), w.name(y.q), *_zeros(w, x, y), **facts, pads=conv_pads(n))


def _dot_integers(w: Block, n: Node, x: str, y: str) -> str:
    """Whole numbers in float32, which int32 holds."""
    return w.node("MatMul", w.cast(x, float32, int32), w.cast(y, int8, int32))


# --- packed weights --------------------------------------------------------------------------------------------------


def _blocks(n: Node) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The words, scales and zeros of packed weights; None if they are no constants."""
    b = Builder()
    words, scale, zero = (b.value_of(x) for x in n.inputs[1:])
    return None if words is None or scale is None or zero is None else (words, scale, zero)


def _dot_blocks(w: Block, n: Node, x: str, *_: str) -> str:
    found = _blocks(n)
    assert found is not None
    words, scale, zero = found
    bits, block = n.attrs["bits"], n.attrs["block"]
    depth, (blocks, outputs) = n.inputs[0].shape[-1], scale.shape
    assert isinstance(depth, int)
    each = BITS_PER_WORD // bits
    places = np.arange(each, dtype=np.uint32)[:, None] * np.uint32(bits)
    q = (words.view(np.uint32)[:, None] >> places & np.uint32((1 << bits) - 1)).astype(np.uint8)
    room = np.zeros((blocks * block, outputs), np.uint8)
    numbers = q.reshape(-1, outputs)[: len(room)]
    room[: len(numbers)] = numbers
    zeros = np.broadcast_to(zero, scale.shape)
    whole = bool(((zeros == np.rint(zeros)) & (zeros >= 0) & (zeros < 1 << bits)).all())
    if w.opset < SINCE["BlockedDequantize"]:
        matrix = _by_reshapes(w, room, scale, zeros, block)
        if len(room) != depth:
            matrix = w.node("Slice", matrix, w.vector([0]), w.vector([depth]), w.vector([0]))
        return w.node("MatMul", x, matrix)
    kind = uint4 if bits == 4 else uint8
    point = w.constants.add(convert(zeros, kind.numpy)) if whole else ""
    weights = w.constants.add(convert(room[:depth], kind.numpy), "weight")
    matrix = w.node("DequantizeLinear", weights, w.constants.add(scale), point, axis=0, block_size=block)
    if not whole:  # zeros that are no integers are subtracted afterwards
        shift = np.repeat((zeros * scale).astype(np.float32), block, axis=0)[:depth]
        matrix = w.node("Sub", matrix, w.constants.add(shift))
    return w.node("MatMul", x, matrix)


def _by_reshapes(w: Block, q: np.ndarray, scale: np.ndarray, zeros: np.ndarray, block: int) -> str:
    """A DequantizeLinear without blocks, then the scales of the blocks."""
    blocks, outputs = scale.shape
    one = w.const(np.float32(1), float32)
    whole = w.node("DequantizeLinear", w.constants.add(q.reshape(blocks, block, outputs), "weight"), one)
    off = w.node("Sub", whole, w.constants.add(zeros.reshape(blocks, 1, outputs).astype(np.float32)))
    return w.reshape(w.node("Mul", off, w.constants.add(scale.reshape(blocks, 1, outputs))), (blocks * block, outputs))


def _dot_blocks_takes(w: Block, n: Node) -> bool:
    return isinstance(n.inputs[0].shape[-1], int) and _blocks(n) is not None


RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "cast": (Rule(partial(_scale, "QuantizeLinear", _quantised), _quantise_takes, partial(_parts, _quantised)),),
    "conv": (Rule(_conv_integer, lambda w, n: _conv_operands(n) is not None, lambda n: _reads(_conv_operands(n))),),
    "dot_blocks": (Rule(_dot_blocks, _dot_blocks_takes, lambda n: n.inputs[:1]),),
    "dot_integers": (Rule(_dot_integers),),
    "matmul": (
        Rule(_matmul_integer, lambda w, n: _matmul_operands(n) is not None, lambda n: _reads(_matmul_operands(n))),
    ),
    "mul": (Rule(partial(_scale, "DequantizeLinear", _dequantised), _dequantise_takes, partial(_parts, _dequantised)),),
}
