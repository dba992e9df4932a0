"""Shared by the races of matrix products: a model of one product, and the machine's peak."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from singe_wasm.code.encode import Body, get_local, i32, integers, memory, module

ROOF_WORK: Final = 768
"""Operations per turn of `roof`."""


def onnx_product(m: int, weight: np.ndarray) -> bytes:
    """A model y = x · weight, of m rows."""
    k, n = weight.shape
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "product", [value("x", TensorProto.FLOAT, [m, k])],
        [value("y", TensorProto.FLOAT, [m, n])], [onnx.numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()


def roof(relaxed: bool) -> bytes:
    """A module whose k0(turns) multiplies and adds in registers, ROOF_WORK operations per turn."""
    body = Body(integers(1))
    totals = [body.local("v128") for _ in range(12)]
    factor, turn = body.local("v128"), body.local("i32")
    for local in (factor, *totals):
        body.add(i32(0) + memory("v128.load"))
        body.set(local)
    with body.count(turn, get_local(0), 1, True):
        for total in totals * (ROOF_WORK // (8 * len(totals))):
            body.get(factor, factor)
            body.multiply_add(total)
    for total in totals:
        body.add(i32(0))
        body.get(total)
        body.add(memory("v128.store"))
    return module({"k0": body.finish()}, {}, relaxed)
