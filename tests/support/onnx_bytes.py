"""ONNX files as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")


helper, numpy_helper, TensorProto = onnx.helper, onnx.numpy_helper, onnx.TensorProto


def tag_len(number: int, payload: bytes) -> bytes:
    return number_bytes(number << 3 | 2) + number_bytes(len(payload)) + payload


def number_bytes(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def rich() -> Any:
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    branch = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["b"])],
        "branch",
        [],
        [helper.make_tensor_value_info("b", f32, None)],
        [numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")],
    )
    twice = helper.make_node("If", ["c"], ["n"], then_branch=branch, else_branch=branch)
    nested = helper.make_graph([twice], "nested", [], [])
    values, indices = helper.make_tensor("v", f32, [2], [1.0, 2.0]), helper.make_tensor("i", i64, [2], [1, 4])
    sparse = helper.make_sparse_tensor(values, indices, [2, 3])
    nodes = [
        helper.make_node("If", ["c"], ["y"], "choose", then_branch=branch, else_branch=nested),
        helper.make_node("Constant", [], ["k"], value=helper.make_tensor("", f32, [20], [0.5] * 20)),
        helper.make_node("Constant", [], ["s"], sparse_value=sparse),
        helper.make_node("Conv", ["x", "", "w"], ["z"], domain="ai.onnx", pads=[1, 1, 300, -1], auto_pad="NOTSET"),
        helper.make_node(
            "Odd",
            ["x"],
            ["o"],
            domain="own",
            f=0.25,
            fs=[1.5, -2.5],
            names=["a", "é"],
            data=b"\xff\xfe",
        ),
        helper.make_node("Optional", [], ["q"], type=helper.make_tensor_type_proto(f32, [2])),
    ]
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(i64, ["N", None]))
    graph = helper.make_graph(
        nodes,
        "rich",
        [helper.make_tensor_value_info("x", f32, ["N", 3, None]), helper.make_value_info("list", sequence)],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [0])],
        [
            helper.make_tensor("ints", i64, [4], [1, -1, 2**40, 0]),
            helper.make_tensor("bits", TensorProto.BFLOAT16, [2], [1.0, 2.0]),
            helper.make_tensor("words", TensorProto.STRING, [2], ["one", "two"]),
            numpy_helper.from_array(np.ones((2, 2), np.float16), "half"),
        ],
        value_info=[helper.make_tensor_value_info("z", f32, [1, 2])],
    )
    scaled = helper.make_node("Scale", ["a"], ["b"])
    scaled.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function(
        "own",
        "Odd",
        ["a"],
        ["b"],
        [scaled],
        [helper.make_opsetid("", 17)],
        attributes=["alpha"],
        attribute_protos=[helper.make_attribute("beta", 3)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=opsets)
    helper.set_model_props(model, {"author": "nobody", "żó": "łć"})
    return model
