"""Small random ONNX models with open dimensions, drawn node by node; models that onnxruntime refuses are drawn again.

A model has one input of rank 1 to 4 whose dimensions are open or numbers, and a few nodes of DRAWS: ops that move,
slide, resize and reduce, and arithmetic on shapes from which other nodes get their shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from peer import session

OPSET = 18
NAMES = "NLHW"


@dataclass
class Draft:
    """A model that is being drawn. shapes: the shapes of its values at some sizes. All of them are float32."""

    rng: np.random.Generator
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def const(self, value: Any, kind: type = np.int64) -> str:
        name = self.fresh()
        self.constants.append(onnx.numpy_helper.from_array(np.array(value, kind), name))
        return name

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [self.fresh() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0]

    def pick(self, *ranks: int) -> str | None:
        fit = [n for n, s in self.shapes.items() if not ranks or len(s) in ranks]
        return fit[-1 - int(len(fit) * self.rng.random() ** 2)] if fit else None

    def whole(self, low: int, high: int) -> int:
        """A random integer from low to high, inclusive."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.whole(0, len(choices) - 1)]

    def length(self, x: str, axis: int) -> str:
        """A vector of one element, the length of an axis."""
        return self.node("Gather", self.node("Shape", x), self.const([axis]), axis=0)

    def model(self, output: str) -> onnx.ModelProto:
        declared = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.inputs.items()]
        made = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", declared, [made], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


Draw = Callable[[Draft], "str | None"]
"""Draws one value, with one node or a few; None if no value fits."""


# --- what is drawn ---------------------------------------------------------------------------------------------------


def _unary(d: Draft) -> str | None:
    x = d.pick()
    return x and d.node(d.one_of("Relu", "Neg", "Abs", "Tanh", "Sigmoid"), x)


def _binary(d: Draft) -> str | None:
    x = d.pick()
    return x and d.node(d.one_of("Add", "Mul", "Sub", "Max"), x, d.pick() or x)


def _slice(d: Draft) -> str | None:
    x = d.pick(1, 2, 3, 4)
    if x is None:
        return None
    axis, step = d.whole(0, len(d.shapes[x]) - 1), d.one_of(1, 1, 1, 2, 3, -1, -2)
    far = 2**31 - 1

    def end(default: int) -> str:
        if d.rng.random() < 0.25:
            place = d.node("Sub", d.length(x, axis), d.const([d.whole(0, 3)]))
            return d.node("Div", place, d.const([2])) if d.rng.random() < 0.5 else place
        return d.const([d.one_of(default, d.whole(-4, 5), d.whole(-4, 5))])

    first, last = (0, far) if step > 0 else (-1, -far)
    return d.node("Slice", x, end(first), end(last), d.const([axis]), d.const([step]))


def _resize(d: Draft) -> str | None:
    x = d.pick(3, 4)
    if x is None:
        return None
    mode = d.one_of("nearest", "nearest", "linear", "cubic")
    if mode == "cubic" and len(d.shapes[x]) != 4:
        mode = "linear"
    options = {
        "mode": mode,
        "coordinate_transformation_mode": d.one_of("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
    }
    if mode == "nearest":
        options["nearest_mode"] = d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    space = len(d.shapes[x]) - 2
    # Of align_corners with a scale that gives no whole length, ONNX's cases and onnxruntime think differently.
    if d.rng.random() < 0.5 and options["coordinate_transformation_mode"] != "align_corners":
        scales = [1.0, 1.0, *(d.one_of(0.5, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0) for _ in range(space))]
        return d.node("Resize", x, "", d.const(scales, np.float32), **options)
    head = d.node("Slice", d.node("Shape", x), d.const([0]), d.const([2]))
    lengths = [d.length(x, 2 + i) for i in range(space)]
    targets = [
        d.one_of(
            lambda n=n: d.node("Mul", n, d.const([d.whole(1, 3)])), lambda: d.const([d.whole(1, 9)]), lambda n=n: n
        )()
        for n in lengths
    ]
    return d.node("Resize", x, "", "", d.node("Concat", head, *targets, axis=0), **options)


def _window(d: Draft, spaces: int) -> dict[str, Any]:
    kernel = [d.whole(1, 3) for _ in range(spaces)]
    found: dict[str, Any] = {"kernel_shape": kernel, "strides": [d.one_of(1, 2, 2, 3) for _ in range(spaces)]}
    padding = d.one_of("pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if padding == "pads":
        found["pads"] = [d.whole(0, k - 1) for k in (*kernel, *kernel)]
    else:
        found["auto_pad"] = padding
    return found


def _conv(d: Draft) -> str | None:
    x = d.pick(3, 4)
    if x is None or not isinstance(d.shapes[x][1], int) or x not in d.inputs or not isinstance(d.inputs[x][1], int):
        return None
    inputs, space = d.shapes[x][1], len(d.shapes[x]) - 2
    facts = _window(d, space)
    if d.rng.random() < 0.25:
        facts.pop("auto_pad", None)
        w = d.const(d.rng.standard_normal((inputs, 2, *facts["kernel_shape"])), np.float32)
        return d.node("ConvTranspose", x, w, **facts)
    w = d.const(d.rng.standard_normal((2, inputs, *facts["kernel_shape"])), np.float32)
    return d.node("Conv", x, w, **facts)


def _pool(d: Draft) -> str | None:
    x = d.pick(3, 4)
    if x is None:
        return None
    facts = _window(d, len(d.shapes[x]) - 2)
    op = d.one_of("MaxPool", "AveragePool")
    if "pads" in facts:
        facts["ceil_mode"] = d.whole(0, 1)
    if op == "AveragePool":
        facts["count_include_pad"] = d.whole(0, 1)
    return d.node(op, x, **facts)


def _reshape(d: Draft) -> str | None:
    x = d.pick(2, 3, 4)
    if x is None:
        return None
    rank = len(d.shapes[x])
    if d.rng.random() < 0.3:
        return d.node("Flatten", x, axis=d.whole(0, rank))
    axis = d.whole(0, rank - 2)  # two axes become one, or one of them two
    parts = [d.length(x, i) for i in range(rank)]
    joined = d.node("Mul", parts[axis], parts[axis + 1]) if d.rng.random() < 0.5 else d.const([-1])
    target = d.node("Concat", *parts[:axis], joined, *parts[axis + 2 :], axis=0)
    return d.node("Reshape", x, target, allowzero=1)


def _transpose(d: Draft) -> str | None:
    x = d.pick(2, 3, 4)
    return x and d.node("Transpose", x, perm=[int(p) for p in d.rng.permutation(len(d.shapes[x]))])


def _concat(d: Draft) -> str | None:
    x = d.pick(1, 2, 3, 4)
    return x and d.node("Concat", x, d.pick(len(d.shapes[x])) or x, x, axis=d.whole(-1, len(d.shapes[x]) - 1))


def _expand(d: Draft) -> str | None:
    x = d.pick(1, 2, 3)
    if x is None:
        return None
    shape = d.node("Shape", x)
    asked = d.node("Concat", d.const([d.whole(1, 3)]), shape, axis=0)
    if d.rng.random() < 0.5:  # as exporters write it: −1 where a dimension stays
        given = d.const([2, *(-1 for _ in d.shapes[x])])
        ones = d.node("ConstantOfShape", d.const([len(d.shapes[x]) + 1]), value=helper.make_tensor("one", 7, [1], [1]))
        asked = d.node("Where", d.node("Equal", given, d.const([-1])), ones, given)
    return d.node("Expand", x, asked)


def _range(d: Draft) -> str | None:
    x = d.pick(2, 3, 4)
    if x is None:
        return None
    count = d.node("Squeeze", d.length(x, len(d.shapes[x]) - 1), d.const([0]))
    step = d.one_of(1, 1, 2)
    places = d.node("Range", d.const(0), count, d.const(step))
    if step != 1 or d.rng.random() < 0.4:
        return d.node("Gather", x, places, axis=len(d.shapes[x]) - 1)
    return d.node("Add", x, d.node("Cast", places, to=TensorProto.FLOAT))


def _filled(d: Draft) -> str | None:
    x = d.pick(1, 2, 3, 4)
    value = helper.make_tensor("value", 1, [1], [0.5])
    return x and d.node("Add", x, d.node("ConstantOfShape", d.node("Shape", x), value=value))


def _pad(d: Draft) -> str | None:
    x = d.pick(1, 2, 3, 4)
    if x is None:
        return None
    pads = [d.whole(0, 2) for _ in range(2 * len(d.shapes[x]))]
    return d.node("Pad", x, d.const(pads), mode=d.one_of("constant", "constant", "edge", "reflect"))


def _tile(d: Draft) -> str | None:
    x = d.pick(1, 2, 3)
    return x and d.node("Tile", x, d.const([d.whole(1, 2) for _ in d.shapes[x]]))


def _reduce(d: Draft) -> str | None:
    x = d.pick(2, 3, 4)
    if x is None:
        return None
    axis, op = d.whole(-1, len(d.shapes[x]) - 1), d.one_of("ReduceSum", "ReduceMean", "ReduceMax", "Softmax")
    if op == "Softmax":
        return d.node(op, x, axis=axis)
    return d.node(op, x, d.const([axis]), keepdims=d.whole(0, 1))


def _matmul(d: Draft) -> str | None:
    x = d.pick(2, 3, 4)
    if x is None:
        return None
    rank = len(d.shapes[x])
    return d.node("MatMul", x, d.node("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2]))


def _axis(d: Draft) -> str | None:
    x = d.pick(1, 2, 3)
    return x and d.node("Unsqueeze", x, d.const([d.whole(0, len(d.shapes[x]))]))


def _scaled(d: Draft) -> str | None:
    """A value divided by a computed size, as attention divides by the root of one."""
    x = d.pick(1, 2, 3, 4)
    if x is None:
        return None
    count = d.node("Cast", d.length(x, d.whole(0, len(d.shapes[x]) - 1)), to=TensorProto.FLOAT)
    return d.node("Div", x, d.node("Add", d.node("Sqrt", count), d.const([1], np.float32)))


DRAWS: Sequence[Draw] = (
    _unary, _binary, _slice, _slice, _resize, _resize, _conv, _conv, _pool, _pool, _reshape, _transpose, _concat, _expand,
    _range, _filled, _pad, _tile, _reduce, _matmul, _axis, _scaled,
)  # fmt: skip


def draw(seed: int) -> tuple[onnx.ModelProto, tuple[int | str, ...], list[str]]:
    """A model, the shape of its input "x", and its ops."""
    rng = np.random.default_rng(seed)
    d = Draft(rng)
    rank = d.whole(1, 4)
    dims = [d.one_of(NAMES[i], NAMES[i], d.whole(1, 4)) for i in range(rank)]
    if rank > 2:
        dims[1] = d.whole(1, 3)
    d.inputs["x"] = tuple(dims)
    d.shapes["x"] = example(d.inputs["x"], {})
    feed = {"x": np.zeros(d.shapes["x"], np.float32)}
    output, wanted = "x", d.whole(1, 4)
    for _ in range(12):
        if wanted == 0:
            break
        kept = len(d.nodes), len(d.constants)
        made = d.one_of(*DRAWS)(d)
        if made is None:
            continue
        try:
            found = session(d.model(made), as_written=True).run(None, feed)[0]
        except Exception:  # what onnxruntime refuses at ordinary sizes is no model
            del d.nodes[kept[0] :], d.constants[kept[1] :]
            continue
        if found.size > 4096:
            del d.nodes[kept[0] :], d.constants[kept[1] :]
            continue
        d.shapes[made] = found.shape
        output, wanted = made, wanted - 1
    if output == "x":
        output = d.node("Relu", "x")
    return d.model(output), d.inputs["x"], [n.op_type for n in d.nodes]


def example(shape: Sequence[int | str], sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape with numbers for its open dimensions; those that are not given are 6 and more."""
    return tuple(d if isinstance(d, int) else sizes.get(d, 6 + NAMES.index(d)) for d in shape)
