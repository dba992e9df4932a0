"""Elementwise ops, reductions, casts and quantised values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from .node import ANY, FLOATS, Draw, Node


def unary(kinds: Sequence[str] = FLOATS, low: float = -4, high: float = 4, **attributes: tuple[float, float]) -> Draw:
    def draw(n: Node) -> None:
        n.give(n.shape(), n.one_of(*kinds), low, high)
        for name, (least, most) in attributes.items():
            n.maybe(name, float(n.rng.random() * (most - least) + least))

    return draw


def broadcast(kinds: Sequence[str], count: int = 2, low: float = -4, high: float = 4) -> Draw:
    """So many inputs (0: 1 to 3) whose shapes broadcast."""

    def draw(n: Node) -> None:
        shape, kind = n.shape(), n.one_of(*kinds)
        for _ in range(count if count > 0 else n.whole(1, 3)):
            part = shape[n.whole(0, len(shape)) :] if n.chance(0.3) else shape
            n.give([1 if n.chance(0.2) else d for d in part], kind, low, high)

    return draw


def where(n: Node) -> None:
    broadcast(ANY, 3)(n)
    assert n.inputs[0] is not None
    n.inputs[0] = n.rng.random(n.inputs[0].shape) < 0.5


def power(n: Node) -> None:
    broadcast(("float32", "int32", "int64", "float64"), 2, 0, 4)(n)


def clip(n: Node) -> None:
    kind = n.one_of("float32", "float32", "float64", "int32", "int64", "uint8", "int8")
    n.give(n.shape(), kind)
    for value in (n.whole(0, 1), n.whole(1, 3)):
        if n.chance(0.7):
            n.const(value, kind)
        else:
            n.inputs.append(None)


def cast(n: Node) -> None:
    kind = n.one_of(*ANY)
    n.give(n.shape(), n.one_of(*ANY), 0 if kind[0] == "u" else -4, 4)  # what negative floats become has no rule
    n.attributes["to"] = int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def reduce(kinds: Sequence[str] = ("float32", "float64", "int32"), low: float = -4) -> Draw:
    def draw(n: Node) -> None:
        shape = n.shape(1)
        of_nothing = n.op == "ReduceMean" and 0 in shape  # which integers cannot say
        x = n.give(shape, "float32" if of_nothing else n.one_of(*kinds), low)
        n.maybe("keepdims", n.whole(0, 1))
        if n.chance(0.85):
            axes = n.axes(x.ndim)
            if n.opset >= 18 or (n.op == "ReduceSum" and n.opset >= 13):
                n.const(axes)
            else:
                n.attributes["axes"] = axes
        if n.opset >= 18 or (n.op == "ReduceSum" and n.opset >= 13):
            n.maybe("noop_with_empty_axes", n.whole(0, 1), 0.2)

    return draw


def softmax(n: Node) -> None:
    x = n.give(n.shape(1), n.one_of(*FLOATS))
    n.maybe("axis", n.axis(x.ndim))


def cum(n: Node) -> None:
    x = n.give(n.shape(1), n.one_of("float32", "float64", "int32", "int64"))
    n.const(n.axis(x.ndim), n.one_of("int32", "int64"))
    n.maybe("exclusive", 1, 0.4)
    n.maybe("reverse", 1, 0.4)


def quantise(n: Node) -> None:
    shape = n.shape(1, 4, 1)
    kind = n.one_of("int8", "uint8")
    axis = n.axis(len(shape))
    single = n.chance(0.5)
    if not single:
        n.attributes["axis"] = axis
    along = () if single else (shape[axis],)
    n.give(shape, "float32" if n.op == "QuantizeLinear" else kind, -100, 100)
    n.const(n.rng.random(along) + 0.5, "float32")
    if n.op == "DequantizeLinear" or n.chance(0.8):
        n.const(n.array(along, kind, -3, 3), kind)
