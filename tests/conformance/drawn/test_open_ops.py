"""Ops over open or empty dimensions, of integers, and of one element, that random models once found wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import singe as sg
from singe.errors import SingeError


@dataclass(frozen=True)
class Case:
    """Nodes from the inputs to y. inputs: name ↦ dimensions and value."""

    nodes: Sequence[onnx.NodeProto]
    inputs: Mapping[str, tuple[Sequence[int | str], np.ndarray]]
    wanted: np.ndarray | None  # None: an error of Singe's
    constants: Mapping[str, Any] = field(default_factory=dict)


def node(op: str, *inputs: str, to: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [to], **attributes)


COUNT = np.arange(12, dtype=np.float32).reshape(4, 3)
THREE = np.ones((1, 1, 3), np.float32)
CASES = {
    "parts of an open axis": Case(
        [helper.make_node("Split", ["x", "lengths"], ["other", "y"], axis=0)],
        {"x": (("N", 3), COUNT)}, COUNT[1:], {"lengths": np.array([1, 3])}),
    "parts that are not all of it": Case(
        [helper.make_node("Split", ["x", "lengths"], ["other", "y"], axis=0)],
        {"x": (("N", 3), COUNT[:3])}, None, {"lengths": np.array([1, 3])}),
    "the norm of integers": Case(
        [node("ReduceL2", "x", "axes", keepdims=0)],
        {"x": ((2, "N"), np.array([[3, 4], [5, 12]], np.int32))}, np.array([5, 13], np.int32), {"axes": np.array([1])}),
    "places of an open depth": Case(
        [node("ScatterND", "x", "i", "part")],
        {"x": (("N", 3), COUNT), "i": (("K", "D"), np.array([[0, 1], [3, 2]])), "part": (("K",), np.array([-1, -2], np.float32))},
        np.array([[0, -1, 2], [3, 4, 5], [6, 7, 8], [9, 10, -2]], np.float32)),
    "recurrent weights of open shape": Case(
        [helper.make_node("RNN", ["x", "w", "r"], ["", "y"], hidden_size=2)],
        {"x": (("T", 1, 1), np.ones((2, 1, 1), np.float32)), "w": ((1, 2, 1), np.full((1, 2, 1), 0.5, np.float32)),
         "r": ((1, "H", "H2"), np.zeros((1, 2, 2), np.float32))},
        np.full((1, 1, 2), np.tanh(0.5), np.float32)),
    "one chosen element of 16 bits": Case(
        [node("Gather", "x", "i", to="one"), node("Neg", "one")],
        {"x": ((2,), np.array([3, 4], np.int16))}, np.array(-4, np.int16), {"i": np.array(1)}),
    "one of three parts turned, of one column": Case(
        [node("Transpose", "x", to="turned", perm=[1, 0]), node("Concat", "turned", "b", "c", axis=1)],
        {"x": ((3, "N"), COUNT.T), "b": ((4, 1), COUNT[:, :1]), "c": (("K", "L"), COUNT)},
        np.concatenate([COUNT, COUNT[:, :1], COUNT], 1)),
    "a length below zero that is resized": Case(
        [node("Conv", "x", "w", to="c"), node("Resize", "c", "", "scales")],
        {"x": (("N", 1, "L"), np.ones((1, 1, 1), np.float32))}, None,
        {"w": THREE, "scales": np.array([1, 1, 0.6], np.float32)}),
    "a length resized to nothing": Case(
        [node("Resize", "x", "", "scales")],
        {"x": (("N", 1, "L"), np.ones((1, 1, 1), np.float32))}, np.zeros((1, 1, 0), np.float32),
        {"scales": np.array([1, 1, 0.6], np.float32)}),
    "pads of four axes that a run computes": Case(
        [node("Pad", "x", "pads")],
        {"x": (("N", 1, "H", "W"), np.ones((1, 1, 1, 1), np.float32)), "pads": ((8,), np.array([0, 0, 1, 0, 0, 0, 0, 1]))},
        np.array([[[[0, 0], [1, 0]]]], np.float32)),
    "the mean of nothing": Case(
        [node("ReduceMean", "x", "axes", keepdims=1)],
        {"x": ((2, "N"), np.zeros((2, 0), np.float32))}, np.full((2, 1), np.nan, np.float32), {"axes": np.array([1])}),
    "the largest of nothing": Case(
        [node("ArgMax", "x", axis=1)], {"x": (("N", "M"), np.zeros((2, 0), np.float32))}, None),
    "the largest of each of no rows of nothing": Case(
        [node("ArgMax", "x", axis=1)], {"x": (("N", "M"), np.zeros((0, 0), np.float32))}, np.zeros((0, 1), np.int64)),
    "marks at the largest of nothing": Case(
        [node("Hardmax", "x", axis=1)], {"x": (("N", "M"), np.zeros((2, 0), np.float32))}, np.zeros((2, 0), np.float32)),
    "elements at an open depth": Case(
        [node("GatherND", "x", "i")],
        {"x": (("N", 3), COUNT), "i": (("K", "D"), np.array([[3, -1], [0, 1]]))}, np.array([11, 1], np.float32)),
    "an element of a vector": Case(
        [node("GatherND", "x", "i")], {"x": (("N",), COUNT[:, 0])}, np.array(9, np.float32), {"i": np.array([3])}),
    "the first row of an open axis, for each of another": Case(
        [node("Slice", "x", "zero", "one", to="first"), node("Shape", "first", to="shape"),
         node("Expand", "e", "shape", to="wide"), node("Add", "first", "wide")],
        {"x": (("N", 3), COUNT), "e": (("K", 1), COUNT[:, :1])}, COUNT[:1] + COUNT[:, :1],
        {"zero": np.array([0]), "one": np.array([1])}),
    "the first row of nothing, for each of another": Case(
        [node("Slice", "x", "zero", "one", to="first"), node("Add", "first", "e")],
        {"x": (("N", 3), COUNT[:0]), "e": (("K", 1), COUNT[:, :1])}, None,
        {"zero": np.array([0]), "one": np.array([1])}),
    "a region of an open axis": Case(
        [node("Resize", "x", "roi", "", "sizes", mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0)],
        {"x": ((1, 1, "L"), np.arange(5, dtype=np.float32).reshape(1, 1, 5))},
        np.array([[[9, 0, 2, 4, 9]]], np.float32),
        {"roi": np.array([0, 0, -0.5, 1, 1, 1.5], np.float32), "sizes": np.array([1, 1, 5])}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
def test_answers_and_errors(device_name: str, name: str) -> None:
    case = CASES[name]
    declared = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(x.dtype), list(dims))
        for k, (dims, x) in case.inputs.items()
    ]
    constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in case.constants.items()]
    graph = helper.make_graph(list(case.nodes), "g", declared, [onnx.ValueInfoProto(name="y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    loaded, given = sg.load(model.SerializeToString(), device=device_name), [x for _, x in case.inputs.values()]
    if case.wanted is None:
        with pytest.raises(SingeError):
            loaded(*given)
        return
    found = loaded(*given)
    assert (found.shape, found.dtype) == (case.wanted.shape, case.wanted.dtype)
    np.testing.assert_allclose(found, case.wanted, rtol=1e-5)
