"""A small convolutional network and a small transformer, as onnxruntime's tools quantise them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import onnx
from exact import evaluated
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

WIDTH: Final = 32
HEADS: Final = 2
LENGTH: Final = 7


class Maker:
    """Nodes in order, with random weights."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        fan = float(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32))

    def constant(self, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=f"n{len(self.nodes)}", **attributes))
        return out

    def model(self, y: str, shape: Sequence[int | str]) -> onnx.ModelProto:
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        out = helper.make_empty_tensor_value_info(y)
        graph = helper.make_graph(self.nodes, "small", [given], [out], self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)


def cnn() -> onnx.ModelProto:
    """Convolutions plain, strided, depthwise and 1 × 1, with a sum, poolings and a classifier."""
    m = Maker()

    def conv(x: str, channels: int, outputs: int, window: int, **attributes: Any) -> str:
        group = attributes.get("group", 1)
        w, bias = m.weight(outputs, channels // group, window, window), m.weight(outputs)
        return m("Conv", x, w, bias, kernel_shape=[window] * 2, pads=[window // 2] * 4, **attributes)

    x = m("Relu", conv("x", 3, 16, 3, strides=[2, 2]))
    y = m("Relu", conv(x, 16, 16, 3, group=16))
    x = m("Add", x, conv(y, 16, 16, 1))
    x = m("MaxPool", m("Clip", conv(x, 16, 24, 3), m.constant(np.float32(0)), m.constant(np.float32(6))),
          kernel_shape=[2, 2], strides=[2, 2])  # fmt: skip
    x = m("Concat", x, m("Sigmoid", conv(x, 24, 8, 1)), axis=1)
    x = m("Flatten", m("GlobalAveragePool", x))
    return m.model(m("Gemm", x, m.weight(32, 20), m.weight(20)), ("N", 3, 24, 24))


def transformer() -> onnx.ModelProto:
    """Two layers of attention and of two products with a GELU between, after layer norms of primitive ops."""
    m = Maker()

    def linear(x: str, inputs: int, outputs: int) -> str:
        return m("Add", m("MatMul", x, m.weight(inputs, outputs)), m.weight(outputs))

    def norm(x: str) -> str:
        centred = m("Sub", x, m("ReduceMean", x, axes=[-1]))
        spread = m(
            "Sqrt", m("Add", m("ReduceMean", m("Mul", centred, centred), axes=[-1]), m.constant(np.float32(1e-5)))
        )
        return m("Div", centred, spread)

    def heads(x: str, perm: Sequence[int]) -> str:
        return m("Transpose", m("Reshape", x, m.constant(np.array([0, LENGTH, HEADS, WIDTH // HEADS]))), perm=perm)

    x = "x"
    for _ in range(2):
        y = norm(x)
        q, k, v = (heads(linear(y, WIDTH, WIDTH), perm) for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        met = m("Softmax", m("Mul", m("MatMul", q, k), m.constant(np.float32(0.25))), axis=-1)
        joined = m("Transpose", m("MatMul", met, v), perm=[0, 2, 1, 3])
        x = m("Add", x, linear(m("Reshape", joined, m.constant(np.array([0, LENGTH, WIDTH]))), WIDTH, WIDTH))
        y = linear(norm(x), WIDTH, 2 * WIDTH)
        bent = m("Mul", y, m("Add", m("Erf", m("Mul", y, m.constant(np.float32(0.7071)))), m.constant(np.float32(1))))
        x = m("Add", x, linear(bent, 2 * WIDTH, WIDTH))
    return m.model(norm(x), ("N", LENGTH, WIDTH))


def inputs_of(model: onnx.ModelProto, count: int, seed: int = 0) -> np.ndarray:
    """`count` random items as the model takes them."""
    dims = model.graph.input[0].type.tensor_type.shape.dim
    return np.random.default_rng(seed).standard_normal((count, *(d.dim_value for d in dims[1:]))).astype(np.float32)


class _Samples(CalibrationDataReader):
    def __init__(self, model: onnx.ModelProto) -> None:
        self._each: Iterator[np.ndarray] = iter(inputs_of(model, 8, seed=1)[:, None])

    def get_next(self) -> dict[str, np.ndarray] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        x = next(self._each, None)
        return None if x is None else {"x": x}


FORMS: Final = {
    "QDQ": {"quant_format": QuantFormat.QDQ, "activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8},
    "QDQ by channel": {
        "quant_format": QuantFormat.QDQ,
        "activation_type": QuantType.QInt8,
        "weight_type": QuantType.QInt8,
        "per_channel": True,
    },
    "operators": {
        "quant_format": QuantFormat.QOperator,
        "activation_type": QuantType.QUInt8,
        "weight_type": QuantType.QUInt8,
    },
    "dynamic": {"weight_type": QuantType.QInt8},
    "dynamic, unsigned": {"weight_type": QuantType.QUInt8, "per_channel": True},
}
"""How a model may be quantised."""


def quantised(model: onnx.ModelProto, form: str, folder: Any) -> bytes:
    """The model in one of FORMS; `folder` takes the files of the tools."""
    logging.disable(logging.WARNING)
    try:
        source, made = folder / "float.onnx", folder / "int8.onnx"
        onnx.save(model, source)
        if form.startswith("dynamic"):
            quantize_dynamic(source, made, **FORMS[form])
        else:
            quantize_static(source, made, _Samples(model), **FORMS[form])
        return made.read_bytes()
    finally:
        logging.disable(logging.NOTSET)


NETWORKS: Final = {"cnn": cnn, "transformer": transformer}
MOST, MEAN = 2e-2, 1e-3
"""Bounds on the differences of check_quantised."""


def expected_quantised(plain: onnx.ModelProto, model: bytes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Inputs of several batch sizes, and what exact arithmetic makes of them node by node."""
    given = (inputs_of(plain, count) for count in (1, 3))
    return [(x, evaluated(model, {"x": x})[0]) for x in given]


def check_quantised(found: np.ndarray, wanted: np.ndarray) -> None:
    """Differences relative to the largest value: a rounding that falls the other way moves what follows by a few steps."""
    away = np.abs(found - wanted) / np.abs(wanted).max()
    assert found.shape == wanted.shape
    assert away.max() <= MOST
    assert away.mean() <= MEAN
