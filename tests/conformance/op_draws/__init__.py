"""Random models of one ONNX op each, with random attributes, shapes and dtypes, and sometimes an op before and after it.

DRAWS says how the inputs and attributes of each op are drawn, with the functions of elementwise.py, movement.py and
layers.py. Dimensions may be 0 and may be open, and each input may be a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .elementwise import broadcast, cast, clip, cum, power, quantise, reduce, softmax, unary, where
from .layers import (
    batch_norm,
    conv,
    gemm,
    grid_sample,
    instance_norm,
    layer_norm,
    lrn,
    matmul,
    pool,
    recurrent,
    resize,
    spatial,
)
from .movement import (
    compress,
    concat,
    constant_of_shape,
    depth,
    expand,
    extreme,
    flatten,
    gather,
    gather_elements,
    gather_nd,
    non_zero,
    one_hot,
    pad,
    ranges,
    reshape,
    reverse_sequence,
    scatter_elements,
    scatter_nd,
    shape_of,
    slices,
    split,
    squeeze,
    tile,
    topk,
    transpose,
    trilu,
    unique,
    unsqueeze,
)
from .node import ANY, FLOATS, INTS, NUMBERS, OPSETS, Draw, Node

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
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), softmax), "Transpose": transpose, "Concat": concat, "Split": split, "Slice": slices,
    "Gather": gather, "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "Reshape": reshape, "Flatten": flatten,
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Expand": expand, "Tile": tile, "Pad": pad, "Conv": conv, "ConvTranspose": conv,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool), **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), spatial),
    "MatMul": matmul, "Gemm": gemm, "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm, "LRN": lrn, "CumSum": cum,
    "TopK": topk, "DepthToSpace": depth, "SpaceToDepth": depth, "OneHot": one_hot, "NonZero": non_zero, "Compress": compress,
    "Shape": shape_of, "Size": shape_of, "ConstantOfShape": constant_of_shape, "Range": ranges, "QuantizeLinear": quantise,
    "DequantizeLinear": quantise, "ReverseSequence": reverse_sequence, "Unique": unique, "Resize": resize,
    **dict.fromkeys(("ArgMax", "ArgMin"), extreme), "GatherElements": gather_elements, "GatherND": gather_nd, "Trilu": trilu,
    "GridSample": grid_sample, "LayerNormalization": layer_norm,
    "LSTM": recurrent(4, 2), "GRU": recurrent(3, 1), "RNN": recurrent(1, 1),
}  # fmt: skip
"""An ONNX op ↦ how its inputs and attributes are drawn."""


SINCE: Final[Mapping[str, int]] = {
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), 18), "GridSample": 17, "LayerNormalization": 17,
    "GatherND": 13, "Trilu": 17, "ArgMax": 13, "ArgMin": 13,
}  # fmt: skip
"""The op ↦ the least version that is drawn."""


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
    n = Node(rng, op, int(rng.choice([v for v in OPSETS if v >= SINCE.get(op, 0)])))
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
