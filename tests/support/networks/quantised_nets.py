"""ONNX models with quantised weights, as bytes: networks of convolutions and a product, quantised in each way there is."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx import ModelProto, helper, numpy_helper

SIDE: Final = 12
KERNELS: Final = ((3, 1), (3, 2), (1, 1), (3, 1))
"""Of each convolution: the side of its window, and its dilation."""
WAYS: Final = ("dynamic int8", "dynamic uint8", "qdq", "qdq uint8")


class _Net:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def const(self, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
        names = [f"t{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attrs))
        return names if outputs > 1 else names[0]

    def weight(self, shape: tuple[int, ...], kind: str) -> tuple[np.ndarray, Any]:
        """Integers, and their zero point."""
        least, most, zero = (0, 256, np.uint8(131)) if kind == "uint8" else (-127, 128, np.int8(0))
        return self.rng.integers(least, most, shape).astype(kind), zero


def quantised(way: str, width: int, seed: int = 0) -> bytes:
    """Convolutions of `width` channels and a product. way: one of WAYS."""
    net = _Net(seed)
    kind = "uint8" if way.endswith("uint8") else "int8"
    x, channels = "x", 3
    for side, dilation in KERNELS:
        w, zero = net.weight((width, channels, side, side), kind)
        attrs: dict[str, Any] = {
            "pads": [dilation * (side // 2)] * 4,
            "dilations": [dilation] * 2,
            "kernel_shape": [side] * 2,
        }
        scale = 1 / (100 * width)
        if way.startswith("dynamic"):
            whole, step, of_x = net.node("DynamicQuantizeLinear", x, outputs=3)
            sums = net.node("ConvInteger", whole, net.const(w), of_x, net.const(zero), **attrs)
            scaled = net.node("Mul", step, net.const(np.float32(scale)))
            found = net.node("Mul", net.node("Cast", sums, to=1), scaled)
            found = net.node("Add", found, net.const(net.rng.normal(size=(1, width, 1, 1)).astype(np.float32)))
        else:
            step, of_x = net.const(np.float32(0.02)), net.const(np.uint8(120))
            given = net.node("DequantizeLinear", net.node("QuantizeLinear", x, step, of_x), step, of_x)
            scales = net.const(net.rng.uniform(scale, 2 * scale, width).astype(np.float32))
            weights = net.node("DequantizeLinear", net.const(w), scales, net.const(np.full(width, zero)), axis=0)
            found = net.node("Conv", given, weights, net.const(net.rng.normal(size=width).astype(np.float32)), **attrs)
        x, channels = net.node("Relu", found), width
    rows = net.node("Transpose", x, perm=[0, 2, 3, 1])
    w, zero = net.weight((width, width + 3), kind)
    if way.startswith("dynamic"):
        whole, step, of_x = net.node("DynamicQuantizeLinear", rows, outputs=3)
        sums = net.node("MatMulInteger", whole, net.const(w), of_x, net.const(zero))
        y = net.node("Mul", net.node("Cast", sums, to=1), net.node("Mul", step, net.const(np.float32(0.001))))
    else:
        y = net.node(
            "MatMul", rows, net.node("DequantizeLinear", net.const(w), net.const(np.float32(0.001)), net.const(zero))
        )
    return _bytes(net, y)


def plain(width: int) -> bytes:
    """Convolutions of `width` channels with float weights."""
    net = _Net(0)
    x, channels = "x", 3
    for side, dilation in KERNELS:
        w = net.const((net.rng.normal(size=(width, channels, side, side)) / width).astype(np.float32))
        attrs: dict[str, Any] = {
            "pads": [dilation * (side // 2)] * 4,
            "dilations": [dilation] * 2,
            "kernel_shape": [side] * 2,
        }
        x = net.node("Relu", net.node("Conv", x, w, **attrs))
        channels = width
    return _bytes(net, x)


def picture(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(1, 3, SIDE, SIDE)).astype(np.float32)


def _bytes(net: _Net, y: str) -> bytes:
    x = helper.make_tensor_value_info("x", 1, [1, 3, SIDE, SIDE])
    graph = helper.make_graph(net.nodes, "quantised", [x], [helper.make_tensor_value_info(y, 1, None)], net.constants)
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()
