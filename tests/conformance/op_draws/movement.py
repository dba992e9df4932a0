"""Ops that move elements, find some, or give shapes."""

from __future__ import annotations

import numpy as np
from onnx import helper

from .node import ANY, Node


def transpose(n: Node) -> None:
    x = n.give(n.shape(), n.one_of(*ANY))
    if x.ndim:
        n.maybe("perm", [int(p) for p in n.rng.permutation(x.ndim)])


def concat(n: Node) -> None:
    shape, kind = n.shape(1, 4, 1), n.one_of(*ANY)
    axis = n.axis(len(shape))
    n.attributes["axis"] = axis
    for _ in range(n.whole(1, 3)):
        n.give([n.whole(0, 3) if i == axis % len(shape) else d for i, d in enumerate(shape)], kind)


def split(n: Node) -> None:
    shape = n.shape(1, 4, 1)
    axis = n.axis(len(shape))
    x = n.give(shape, n.one_of("float32", "int32", "int64"))
    n.attributes["axis"] = axis
    n.outputs = n.whole(1, 3)
    d = x.shape[axis]
    if n.opset >= 18 and n.chance(0.4):
        n.attributes["num_outputs"] = n.outputs
        return
    cuts = sorted(n.whole(0, d) for _ in range(n.outputs - 1))
    lengths = np.diff([0, *cuts, d]).tolist()
    if n.opset >= 13:
        n.const(lengths)
    else:
        n.attributes["split"] = lengths


def slices(n: Node) -> None:
    x = n.give(n.shape(1), n.one_of(*ANY))
    axes = n.axes(x.ndim)
    far = 2**31 - 1
    n.const([n.one_of(0, 0, -far, n.whole(-6, 6), n.whole(-6, 6)) for _ in axes])
    n.const([n.one_of(far, -far, n.whole(-6, 6), n.whole(-6, 6)) for _ in axes])
    n.const(axes)
    if n.chance(0.7):
        n.const([n.one_of(1, 1, 2, 3, -1, -2) for _ in axes])
        ends, steps = n.inputs[2], n.inputs[4]
        assert ends is not None
        assert steps is not None
        ends[(steps < 0) & (ends == far)] = 7  # by which onnxruntime means all elements down to the first


def gather(n: Node) -> None:
    x = n.give(n.shape(1, 4, 1), n.one_of(*ANY))
    axis = n.axis(x.ndim)
    n.attributes["axis"] = axis
    d = x.shape[axis]
    n.const(n.rng.integers(-d, d, n.shape(0, 2)), n.one_of("int32", "int64"))


def gather_elements(n: Node) -> None:
    x = n.give(n.shape(1, 4), n.one_of(*ANY))
    axis = n.axis(x.ndim)
    n.attributes["axis"] = axis
    d = x.shape[axis]
    count = n.whole(0, 4) if d else 0
    shape = [count if i == axis % x.ndim else n.whole(min(k, 1), k) for i, k in enumerate(x.shape)]
    n.const(n.rng.integers(-d, max(d, 1), shape), n.one_of("int32", "int64"))


def gather_nd(n: Node) -> None:
    x = n.give(n.shape(1, 4, 1), n.one_of("float32", "float64", "int32", "int64", "bool"))
    batch = n.whole(0, x.ndim - 1) if n.chance(0.4) else 0
    n.maybe("batch_dims", batch, 1.0 if batch else 0.2)
    depth = n.whole(1, x.ndim - batch)
    places = [*x.shape[:batch], *n.shape(0, 2)]
    n.const(np.stack([n.rng.integers(-d, d, places) for d in x.shape[batch : batch + depth]], -1))


def extreme(n: Node) -> None:
    """Where the largest or least element is, along an axis that has elements."""
    shape = list(n.shape(1))
    axis = n.axis(len(shape))
    shape[axis] = max(shape[axis], 1)
    n.give(shape, n.one_of("float32", "float64", "int32", "int8", "uint8"))
    n.attributes["axis"] = axis
    n.maybe("keepdims", n.whole(0, 1))
    n.maybe("select_last_index", 1, 0.3)


def trilu(n: Node) -> None:
    n.give(n.shape(2, 4), n.one_of("float32", "float64", "int64", "bool"))
    n.maybe("upper", n.whole(0, 1))
    if n.chance(0.7):
        n.const(n.whole(-6, 6))


def scatter_elements(n: Node) -> None:
    x = n.give(n.shape(1, 3, 1), n.one_of("float32", "int32", "int64", "float64"))
    axis = n.axis(x.ndim)
    d = x.shape[axis]
    count = n.whole(0, d)
    shape = [count if i == axis % x.ndim else n.whole(1, k) for i, k in enumerate(x.shape)]
    places = np.argsort(n.rng.random([d if i == axis % x.ndim else k for i, k in enumerate(shape)]), axis=axis)
    n.const(places.take(range(count), axis=axis))  # no place twice
    n.give(shape, x.dtype.name)
    n.attributes["axis"] = axis
    if n.opset >= 18:
        n.maybe("reduction", n.one_of("none", "add", "mul", "max", "min"))


def scatter_nd(n: Node) -> None:
    x = n.give(n.shape(1, 3, 1), n.one_of("float32", "int32", "int64"))
    depth = n.whole(1, x.ndim)
    total = int(np.prod(x.shape[:depth]))
    count = n.whole(1, total)
    flat = n.rng.permutation(total)[:count]
    n.const(np.stack(np.unravel_index(flat, x.shape[:depth]), -1))
    n.give((count, *x.shape[depth:]), x.dtype.name)
    if n.opset >= 18:
        n.maybe("reduction", n.one_of("none", "add", "mul", "max", "min"))


def reshape(n: Node) -> None:
    x = n.give(n.shape(1, 4), n.one_of(*ANY))
    target: list[int] = [int(d) for d in n.rng.permutation(x.shape)]
    if len(target) > 1 and n.chance(0.5):
        at = n.whole(0, len(target) - 2)
        target[at : at + 2] = [target[at] * target[at + 1]]
    if 0 not in target and n.chance(0.5):
        target[n.whole(0, len(target) - 1)] = -1
    if n.chance(0.2):
        target.insert(n.whole(0, len(target)), 1)
    n.const(target)
    if n.opset >= 14:
        n.maybe("allowzero", int(0 in target), 1.0 if 0 in target else 0.2)


def flatten(n: Node) -> None:
    x = n.give(n.shape(1), n.one_of("float32", "int32"))
    n.maybe("axis", n.whole(-x.ndim, x.ndim))


def squeeze(n: Node) -> None:
    shape = [1 if n.chance(0.5) else d for d in n.shape(1)]
    n.give(shape, n.one_of(*ANY))
    ones = [i - (len(shape) if n.chance(0.3) else 0) for i, d in enumerate(shape) if d == 1]
    if ones:
        listed(n, n.rng.permutation(ones).tolist()[: n.whole(1, len(ones))])


def unsqueeze(n: Node) -> None:
    x = n.give(n.shape(0, 3), n.one_of(*ANY))
    count = n.whole(1, 2)
    listed(n, [int(a) for a in n.rng.permutation(x.ndim + count)[:count]])


def listed(n: Node, axes: list[int]) -> None:
    """Axes as an input, or before version 13 as an attribute."""
    if n.opset >= 13:
        n.const(axes)
    else:
        n.attributes["axes"] = axes


def expand(n: Node) -> None:
    shape = n.shape(1)
    n.give([1 if n.chance(0.4) else d for d in shape], n.one_of(*ANY))
    n.const([*([n.whole(1, 3)] if n.chance(0.3) else []), *(1 if n.chance(0.2) else d for d in shape)])


def tile(n: Node) -> None:
    x = n.give(n.shape(1, 3), n.one_of("float32", "int32", "int64", "bool", "uint8"))
    n.const([n.whole(0 if n.chance(0.05) else 1, 3) for _ in range(x.ndim)])


def pad(n: Node) -> None:
    x = n.give(n.shape(1, 4, 1), n.one_of("float32", "int32", "int64", "float64"))
    n.attributes["mode"] = mode = n.one_of(
        "constant", "constant", "edge", "reflect", *(["wrap"] if n.opset >= 19 else [])
    )
    most = [d - 1 if mode == "reflect" else 2 for d in x.shape]
    n.const(
        [
            n.whole(-1 if d > 2 and mode == "constant" and n.chance(0.2) else 0, min(m, 3))
            for _ in range(2)
            for d, m in zip(x.shape, most, strict=True)
        ]
    )
    if mode == "constant" and n.chance(0.6):
        n.const(n.whole(-2, 2), x.dtype.name)


def depth(n: Node) -> None:
    block = n.whole(1, 3)
    n.attributes["blocksize"] = block
    b, c, h, w = n.whole(1, 2), n.whole(1, 2), n.whole(1, 3), n.whole(1, 3)
    if n.op == "DepthToSpace":
        n.give((b, c * block * block, h, w), "float32")
        n.maybe("mode", n.one_of("DCR", "CRD"))
    else:
        n.give((b, c, h * block, w * block), "float32")


def one_hot(n: Node) -> None:
    n.const(n.rng.integers(-6, 6, n.shape(0, 2, 1)), "int64")
    n.const(n.whole(1, 5))
    n.const([0, 1], n.one_of("float32", "int64"))
    assert n.inputs[0] is not None
    n.maybe("axis", n.whole(-n.inputs[0].ndim - 1, n.inputs[0].ndim))


def topk(n: Node) -> None:
    shape = n.shape(1, 3, 1)
    axis = n.axis(len(shape))
    count = int(np.prod(shape))
    n.inputs.append(n.rng.permutation(count).reshape(shape).astype(n.one_of("float32", "float64", "int64", "int32")))
    n.const([n.whole(0, shape[axis])])
    n.attributes["axis"] = axis
    n.maybe("largest", n.whole(0, 1))
    n.outputs = 2


def non_zero(n: Node) -> None:
    x = n.give(n.shape(1, 3), n.one_of("float32", "int32", "int64", "bool", "uint8"), 0, 1)
    x[...] = x.astype(np.int64)


def compress(n: Node) -> None:
    x = n.give(n.shape(1, 3, 1), n.one_of("float32", "int64"))
    if n.chance(0.8):
        axis = n.axis(x.ndim)
        n.attributes["axis"] = axis
        n.const(n.rng.random(n.whole(1, x.shape[axis])) < 0.5, "bool")
    else:
        n.const(n.rng.random(n.whole(1, x.size)) < 0.5, "bool")


def unique(n: Node) -> None:
    x = n.give(n.shape(1, 3, 1), n.one_of("float32", "int64"), 0, 3)
    x[...] = x.astype(np.int64)
    n.maybe("axis", n.axis(x.ndim))
    n.maybe("sorted", 1)
    n.outputs = n.whole(1, 4)


def reverse_sequence(n: Node) -> None:
    x = n.give(n.shape(2, 4, 1), n.one_of("float32", "int64"))
    time = n.whole(0, 1)
    n.attributes |= {"time_axis": time, "batch_axis": 1 - time}
    n.const(n.rng.integers(1, x.shape[time] + 1, x.shape[1 - time]))


def shape_of(n: Node) -> None:
    x = n.give(n.shape(), n.one_of(*ANY))
    if n.opset >= 15 and n.op == "Shape":
        n.maybe("start", n.whole(-x.ndim - 1, x.ndim + 1), 0.4)
        n.maybe("end", n.whole(-x.ndim - 1, x.ndim + 1), 0.4)


def constant_of_shape(n: Node) -> None:
    n.const(n.shape(1))
    n.maybe("value", helper.make_tensor("v", n.one_of(1, 7, 6, 9), [1], [1]))


def ranges(n: Node) -> None:
    kind = n.one_of("int64", "int32", "float32")
    for value in (n.whole(-3, 3), n.whole(-9, 9), n.one_of(1, 2, 3, -1, -2)):
        n.const(value, kind)
