"""Random models of one ONNX op each, with random attributes, shapes and dtypes, and sometimes an op before and after it.

DRAWS says how the inputs and attributes of each op are drawn. Dimensions may be 0 and may be open, and each input may be a
constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOATS: Final = ("float32", "float32", "float32", "float16", "float64")
INTS: Final = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
NUMBERS: Final = (*FLOATS, "int32", "int64", "int8", "uint8")
ANY: Final = (*NUMBERS, "bool", "int16", "uint16", "uint32", "uint64")
OPSETS: Final = (11, 13, 17, 18, 21)


@dataclass
class Node:
    """The op that is drawn. inputs: arrays, None for one that is left out; constant: the numbers of those that must be
    constants; exact: the numbers of outputs whose values are compared without a tolerance."""

    rng: np.random.Generator
    op: str
    opset: int
    inputs: list[np.ndarray | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constant: set[int] = field(default_factory=set)

    def whole(self, low: int, high: int) -> int:
        """A random integer from low to high, inclusive."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.whole(0, len(choices) - 1)]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def shape(self, low: int = 0, high: int = 4, least: int = 0) -> tuple[int, ...]:
        """A shape of a rank from low to high; one in thirty dimensions is 0 unless `least` says more."""
        rank = self.whole(low, high)
        return tuple(0 if least == 0 and self.chance(0.03) else self.whole(max(least, 1), 5) for _ in range(rank))

    def array(self, shape: Sequence[int], kind: str, low: float = -4, high: float = 4) -> np.ndarray:
        if kind == "bool":
            return self.rng.random(shape) < 0.5
        if kind.startswith("float"):
            return (self.rng.random(shape) * (high - low) + low).astype(kind)
        return self.rng.integers(0 if kind[0] == "u" else int(low), int(high) + 1, shape).astype(kind)

    def give(self, shape: Sequence[int], kind: str, low: float = -4, high: float = 4) -> np.ndarray:
        self.inputs.append(self.array(shape, kind, low, high))
        return self.inputs[-1]  # pyright: ignore[reportReturnType]

    def const(self, values: Any, kind: str = "int64", *, always: bool = False) -> None:
        """An input of these values, which may be a constant or must be."""
        if always or self.chance(0.7):
            self.constant.add(len(self.inputs))
        self.inputs.append(np.array(values, kind))

    def maybe(self, name: str, value: Any, p: float = 0.6) -> None:
        if self.chance(p):
            self.attributes[name] = value

    def axis(self, rank: int) -> int:
        return self.whole(-rank, rank - 1)

    def axes(self, rank: int) -> list[int]:
        """Some axes, counted from either end."""
        some = self.rng.permutation(rank)[: self.whole(1, rank)]
        return [int(a) - (rank if self.chance(0.3) else 0) for a in some]


Draw = Callable[[Node], None]


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


def cast(n: Node) -> None:
    kind = n.one_of(*ANY)
    n.give(n.shape(), n.one_of(*ANY), 0 if kind[0] == "u" else -4, 4)  # what negative floats become has no rule
    n.attributes["to"] = int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


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


def window(n: Node, spaces: int, ceil: bool = False, dilate: bool = True) -> None:
    kernel = [n.whole(1, 3) for _ in range(spaces)]
    n.attributes["kernel_shape"] = kernel
    n.maybe("strides", [n.one_of(1, 2, 2, 3) for _ in range(spaces)])
    if dilate:
        n.maybe("dilations", [n.one_of(1, 1, 2) for _ in range(spaces)], 0.3)
    padding = n.one_of("pads", "pads", "", "SAME_UPPER", "SAME_LOWER", "VALID")
    if padding == "pads":
        n.attributes["pads"] = [n.whole(0, k - 1) for k in (*kernel, *kernel)]
    elif padding:
        n.attributes["auto_pad"] = padding
        if padding.startswith("SAME"):
            n.attributes.pop("dilations", None)
            # Of a pool whose step is longer than the window, onnxruntime takes negative padding or refuses it; of a Conv, none.
            strides = n.attributes.get("strides", kernel)
            if n.op.endswith("Pool") and any(s > k for s, k in zip(strides, kernel, strict=True)):
                del n.attributes["strides"]
    if ceil and not padding.startswith(("SAME", "VALID")):
        n.maybe("ceil_mode", 1, 0.3)


def conv(n: Node) -> None:
    spaces, group = n.whole(1, 3), n.one_of(1, 1, 2)
    window(n, spaces)
    inside, outside = group * n.whole(1, 3), group * n.whole(1, 2)
    n.give((n.whole(1, 2), inside, *(n.whole(5, 9) for _ in range(spaces))), "float32")
    kernel = n.attributes["kernel_shape"]
    n.attributes["group"] = group
    if n.op == "Conv":
        n.const(n.array((outside, inside // group, *kernel), "float32"), "float32")
    else:
        n.attributes.pop("auto_pad", None)
        strides = n.attributes.get("strides", [1] * spaces)
        n.maybe("output_padding", [n.whole(0, s - 1) for s in strides], 0.3)
        n.const(n.array((inside, outside // group, *kernel), "float32"), "float32")
    if n.chance(0.5):
        n.const(n.array((outside,), "float32"), "float32")


def pool(n: Node) -> None:
    spaces = n.whole(1, 3)
    window(
        n, spaces, n.op != "LpPool" or n.opset >= 18, n.op == "MaxPool" or n.opset >= (18 if n.op == "LpPool" else 19)
    )
    n.give(
        (n.whole(1, 2), n.whole(1, 3), *(n.whole(5, 9) for _ in range(spaces))),
        n.one_of("float32", "float32", "float64") if n.op == "MaxPool" else "float32",
    )
    if n.op == "AveragePool":
        n.maybe("count_include_pad", 1)
    elif n.op == "LpPool":
        n.maybe("p", n.whole(1, 3))
    elif n.chance(0.3):
        n.outputs = 2


def spatial(n: Node) -> None:
    n.give((n.whole(1, 2), n.whole(1, 3), *n.shape(1, 3, 1)), "float32")
    if n.op == "GlobalLpPool":
        n.maybe("p", n.whole(1, 3))


def matmul(n: Node) -> None:
    kind = n.one_of("float32", "float32", "float64", "int32", "uint32", "int64")
    m, k, l = n.whole(1, 5), n.whole(0 if n.chance(0.03) else 1, 6), n.whole(1, 5)
    batch = n.shape(0, 2)
    left = (k,) if n.chance(0.1) else (*(1 if n.chance(0.2) else d for d in batch), m, k)
    right = (k,) if n.chance(0.1) else (*(1 if n.chance(0.2) else d for d in batch[n.whole(0, len(batch)) :]), k, l)
    n.give(left, kind)
    n.const(n.array(right, kind), kind)


def gemm(n: Node) -> None:
    kind = n.one_of("float32", "float32", "float64")
    m, k, l = n.whole(1, 5), n.whole(1, 6), n.whole(1, 5)
    a, b = n.whole(0, 1), n.whole(0, 1)
    n.attributes |= {"transA": a, "transB": b}
    n.maybe("alpha", 0.5)
    n.maybe("beta", 2.0)
    n.give((k, m) if a else (m, k), kind)
    n.const(n.array((l, k) if b else (k, l), kind), kind)
    if n.chance(0.7):
        n.const(n.array(n.one_of((m, l), (1, l), (l,), (m, 1), ()), kind), kind)


def batch_norm(n: Node) -> None:
    channels = n.whole(1, 4)
    n.give((n.whole(1, 3), channels, *n.shape(0, 3)), "float32")
    for low in (-2, -2, -2, 0.1):
        n.const(n.array((channels,), "float32", low, 2), "float32")
    n.maybe("epsilon", 1e-3)


def instance_norm(n: Node) -> None:
    channels = n.whole(1, 4)
    n.give((n.whole(1, 3), channels, *n.shape(1, 3, 2)), "float32")
    for _ in range(2):
        n.const(n.array((channels,), "float32"), "float32")


def lrn(n: Node) -> None:
    n.give((n.whole(1, 2), n.whole(1, 6), *n.shape(2, 2, 1)), "float32")
    n.attributes["size"] = n.one_of(1, 3, 5)


def clip(n: Node) -> None:
    kind = n.one_of("float32", "float32", "float64", "int32", "int64", "uint8", "int8")
    n.give(n.shape(), kind)
    for value in (n.whole(0, 1), n.whole(1, 3)):
        if n.chance(0.7):
            n.const(value, kind)
        else:
            n.inputs.append(None)


def cum(n: Node) -> None:
    x = n.give(n.shape(1), n.one_of("float32", "float64", "int32", "int64"))
    n.const(n.axis(x.ndim), n.one_of("int32", "int64"))
    n.maybe("exclusive", 1, 0.4)
    n.maybe("reverse", 1, 0.4)


def topk(n: Node) -> None:
    shape = n.shape(1, 3, 1)
    axis = n.axis(len(shape))
    count = int(np.prod(shape))
    n.inputs.append(n.rng.permutation(count).reshape(shape).astype(n.one_of("float32", "float64", "int64", "int32")))
    n.const([n.whole(0, shape[axis])])
    n.attributes["axis"] = axis
    n.maybe("largest", n.whole(0, 1))
    n.outputs = 2


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


def reverse_sequence(n: Node) -> None:
    x = n.give(n.shape(2, 4, 1), n.one_of("float32", "int64"))
    time = n.whole(0, 1)
    n.attributes |= {"time_axis": time, "batch_axis": 1 - time}
    n.const(n.rng.integers(1, x.shape[time] + 1, x.shape[1 - time]))


def unique(n: Node) -> None:
    x = n.give(n.shape(1, 3, 1), n.one_of("float32", "int64"), 0, 3)
    x[...] = x.astype(np.int64)
    n.maybe("axis", n.axis(x.ndim))
    n.maybe("sorted", 1)
    n.outputs = n.whole(1, 4)


def resize(n: Node) -> None:
    shape = n.shape(2, 4, 1)
    n.give(shape, "float32")
    mode = n.one_of("nearest", "linear")
    n.attributes |= {
        "mode": mode,
        "coordinate_transformation_mode": n.one_of("half_pixel", "asymmetric", "pytorch_half_pixel"),
    }
    if mode == "nearest":
        n.attributes["nearest_mode"] = n.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    n.const([], "float32", always=True)
    still = max(0, len(shape) - 2)
    if n.chance(0.5):
        n.const([1.0] * still + [n.one_of(0.5, 1, 1.5, 2, 3) for _ in shape[still:]], "float32")
    else:
        n.const([], "float32", always=True)
        n.const([*shape[:still], *(n.whole(1, 7) for _ in shape[still:])])


def recurrent(gates: int, states: int) -> Draw:
    def draw(n: Node) -> None:
        steps, batch, width, hidden = n.whole(1, 4), n.whole(1, 3), n.whole(1, 4), n.whole(1, 4)
        both = n.chance(0.4)
        count = 2 if both else 1
        n.attributes |= {
            "hidden_size": hidden,
            "direction": "bidirectional" if both else n.one_of("forward", "reverse"),
        }
        n.give((steps, batch, width), "float32", -1, 1)
        n.const(n.array((count, gates * hidden, width), "float32", -1, 1), "float32")
        n.const(n.array((count, gates * hidden, hidden), "float32", -1, 1), "float32")
        n.inputs.append(n.array((count, 2 * gates * hidden), "float32", -1, 1) if n.chance(0.6) else None)
        n.inputs.append(None)
        for _ in range(states):
            n.inputs.append(n.array((count, batch, hidden), "float32", -1, 1) if n.chance(0.5) else None)
        if n.op == "GRU":
            n.maybe("linear_before_reset", 1)
        n.outputs = 1 + n.whole(0, states)

    return draw


LOGIC: Final = broadcast(("bool",))
ORDER: Final = broadcast(("float32", "float64", "int32", "int64", "int8", "uint8"))
BITS: Final = broadcast(INTS)
REDUCE: Final = reduce()

DRAWS: Final[Mapping[str, Draw]] = {
    **dict.fromkeys(("Abs", "Neg", "Sign"), unary((*FLOATS, "int32", "int64", "int8"))),
    **dict.fromkeys(("Ceil", "Floor", "Round", "Exp", "Sin", "Cos", "Tanh", "Sigmoid", "Erf", "Softplus", "Softsign", "Relu"), unary()),
    **dict.fromkeys(("Reciprocal", "Log", "Sqrt"), unary(low=0.1)),
    "Tan": unary(low=-1.4, high=1.4), "IsNaN": unary(("float32", "float16", "float64")),
    "Elu": unary(alpha=(0.1, 2)), "LeakyRelu": unary(alpha=(0, 1)), "Selu": unary(), "HardSigmoid": unary(alpha=(0, 1), beta=(0, 1)),
    "Not": unary(("bool",)), "BitwiseNot": unary(INTS), "Identity": unary(ANY), "Dropout": unary(("float32",)),
    **dict.fromkeys(("Add", "Sub", "Mul"), broadcast(NUMBERS)), "Div": broadcast(("float32", "float64", "int32", "int64"), 2, 1, 9),
    "Pow": power, "PRelu": broadcast(("float32",)), **dict.fromkeys(("Max", "Min"), broadcast(("float32", "float64", "int32", "int64"), 0)),
    **dict.fromkeys(("Sum", "Mean"), broadcast(("float32",), 0)), **dict.fromkeys(("And", "Or", "Xor"), LOGIC),
    **dict.fromkeys(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"), ORDER),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), BITS), "Where": where, "Clip": clip, "Cast": cast,
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"), REDUCE),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), reduce(("float32", "float64"), 0.1)),
    **dict.fromkeys(("Softmax", "LogSoftmax"), softmax), "Transpose": transpose, "Concat": concat, "Split": split, "Slice": slices,
    "Gather": gather, "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "Reshape": reshape, "Flatten": flatten,
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Expand": expand, "Tile": tile, "Pad": pad, "Conv": conv, "ConvTranspose": conv,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool), **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), spatial),
    "MatMul": matmul, "Gemm": gemm, "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm, "LRN": lrn, "CumSum": cum,
    "TopK": topk, "DepthToSpace": depth, "SpaceToDepth": depth, "OneHot": one_hot, "NonZero": non_zero, "Compress": compress,
    "Shape": shape_of, "Size": shape_of, "ConstantOfShape": constant_of_shape, "Range": ranges, "QuantizeLinear": quantise,
    "DequantizeLinear": quantise, "ReverseSequence": reverse_sequence, "Unique": unique, "Resize": resize,
    "LSTM": recurrent(4, 2), "GRU": recurrent(3, 1), "RNN": recurrent(1, 1),
}  # fmt: skip
"""An ONNX op ↦ how its inputs and attributes are drawn."""


@dataclass(frozen=True)
class Case:
    """A random model and its inputs. text: what was drawn, for people."""

    op: str
    model: onnx.ModelProto
    feed: Mapping[str, np.ndarray]
    text: str


def draw(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    names = list(DRAWS)
    op = names[int(rng.integers(len(names)))]
    n = Node(rng, op, 18 if op.startswith("Bitwise") else OPSETS[int(rng.integers(len(OPSETS)))])
    DRAWS[op](n)
    nodes, consts, inputs, feed, given = [], [], [], {}, []
    for k, array in enumerate(n.inputs):
        name = f"i{k}" if array is not None else ""
        given.append(name)
        if array is None:
            continue
        if k in n.constant:
            consts.append(numpy_helper.from_array(array, name))
            continue
        source = name
        if k == 0 and array.ndim > 1 and n.chance(0.2):  # an op before it
            source, perm = "before", [int(p) for p in rng.permutation(array.ndim)]
            nodes.append(helper.make_node("Transpose", [source], [name], perm=perm))
            array = np.ascontiguousarray(array.transpose(np.argsort(perm)))
        dims = [f"{source}_{i}" if n.chance(0.4) else d for i, d in enumerate(array.shape)]
        inputs.append(helper.make_tensor_value_info(source, helper.np_dtype_to_tensor_dtype(array.dtype), dims))
        feed[source] = array
    while given and not given[-1]:
        given.pop()
    outputs = [f"o{k}" for k in range(n.outputs)]
    nodes.append(helper.make_node(op, given, outputs, **n.attributes))
    if n.chance(0.25):  # an op behind it
        nodes.append(helper.make_node(n.one_of("Neg", "Abs", "Identity"), ["o0"], ["behind"]))
        outputs[0] = "behind"
    made = [onnx.ValueInfoProto(name=o) for o in outputs]
    graph = helper.make_graph(nodes, "g", inputs, made, consts)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", n.opset)], ir_version=8)
    shapes = ", ".join(
        "-" if a is None else f"{a.dtype}{list(a.shape)}{'!' if k in n.constant else ''}"
        for k, a in enumerate(n.inputs)
    )
    return Case(op, model, feed, f"seed {seed}: {op}-{n.opset}({shapes}) {n.attributes}")
