"""ONNX models whose shapes depend on data, with data to run them on;
and nodes with an input that gives lengths of axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

F, I = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
node = onnx.helper.make_node


def model(
    nodes: list[Any],
    inputs: dict[str, tuple[int, list[Any]]],
    outputs: list[str],
    constants: dict[str, Any] | None = None,
    opset: int = 18,
) -> Any:
    """A model of nodes; outputs are of any type and shape."""
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=9)
    inferred = onnx.shape_inference.infer_shapes(made)
    for out in made.graph.output:
        found = next(v for v in inferred.graph.output if v.name == out.name)
        out.type.tensor_type.elem_type = found.type.tensor_type.elem_type
    return made


def places_of_the_large() -> tuple[Any, list[dict[str, np.ndarray]]]:
    """NonZero → Gather: the squares of the elements above 0, their sum, and how many there are."""
    nodes = [
        node("Greater", ["x", "zero"], ["large"]),
        node("NonZero", ["large"], ["places"]),
        node("Squeeze", ["places", "first"], ["place"]),
        node("Gather", ["x", "place"], ["kept"]),
        node("Mul", ["kept", "kept"], ["squares"]),
        node("ReduceSum", ["squares"], ["total"], keepdims=0),
        node("Shape", ["place"], ["count"]),
    ]
    rng = np.random.default_rng(0)
    data = [{"x": rng.normal(size=n).astype(np.float32)} for n in (8, 30, 1)]
    data.append({"x": -np.ones(4, np.float32)})
    constants = {"zero": np.float32(0), "first": np.array([0])}
    return model(nodes, {"x": (F, ["N"])}, ["squares", "total", "count"], constants), data


def detector() -> tuple[Any, list[dict[str, np.ndarray]]]:
    """NonMaxSuppression at the end: the boxes that are kept, and their scores."""
    nodes = [
        node("Sigmoid", ["logits"], ["scores"]),
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"]),
        node("Gather", ["chosen", "two"], ["index"], axis=1),
        node("Squeeze", ["boxes", "zero"], ["flat"]),
        node("Gather", ["flat", "index"], ["kept"]),
        node("Gather", ["chosen", "one"], ["kind"], axis=1),
        node("Cast", ["kind"], ["label"], to=F),
    ]
    rng = np.random.default_rng(1)
    data = []
    for count, shift in ((12, 0.0), (40, 0.5), (12, -30.0), (1, 3.0)):
        corner = rng.uniform(0, 4, (1, count, 2))
        boxes = np.concatenate([corner, corner + rng.uniform(0.5, 2, (1, count, 2))], -1).astype(np.float32)
        data.append({"boxes": boxes, "logits": (rng.normal(size=(1, 3, count)) + shift).astype(np.float32)})
    constants = {
        "most": np.array([5]), "overlap": np.array([0.4], np.float32), "least": np.array([0.3], np.float32),
        "two": np.int64(2), "one": np.int64(1), "zero": np.array([0]),
    }  # fmt: skip
    inputs = {"boxes": (F, [1, "N", 4]), "logits": (F, [1, 3, "N"])}
    return model(nodes, inputs, ["chosen", "kept", "label"], constants), data


def best_of() -> tuple[Any, list[dict[str, np.ndarray]]]:
    """TopK in the middle, with k from an input: the mean of the best elements, times all elements."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("TopK", ["r", "k"], ["best", "at"], axis=-1),
        node("ReduceMean", ["best", "last"], ["mean"], keepdims=1),
        node("Mul", ["x", "mean"], ["y"]),
    ]
    rng = np.random.default_rng(2)
    data = [{"x": rng.normal(size=(n, 9)).astype(np.float32), "k": np.array([k])} for n, k in ((2, 3), (5, 9), (1, 1))]
    return model(nodes, {"x": (F, ["N", 9]), "k": (I, [1])}, ["y", "best", "at"], {"last": np.array([-1])}), data


def positions() -> tuple[Any, list[dict[str, np.ndarray]]]:
    """Range over a computed length: the elements of a mask that are 1 are numbered,
    and tiled as often as an input says."""
    nodes = [
        node("Cast", ["mask"], ["whole"], to=I),
        node("ReduceSum", ["whole"], ["count"], keepdims=0),
        node("Range", ["zero", "count", "two"], ["range"]),
        node("Cast", ["range"], ["floats"], to=F),
        node("Sin", ["floats"], ["waves"]),
        node("Tile", ["waves", "often"], ["tiled"]),
        node("Slice", ["tiled", "start", "end"], ["part"]),
        node("Pad", ["part", "pads"], ["padded"]),
    ]
    data = [
        {"mask": (np.arange(n) % 3 > 0).astype(np.float32), "often": np.array([t]), "end": np.array([e]), "pads": np.array(p)}
        for n, t, e, p in ((10, 1, 3, [0, 2]), (40, 3, -4, [1, 0]), (1, 2, 5, [2, 2]), (12, 0, 9, [1, 1]), (30, 2, 12, [-2, -3]))
    ]  # fmt: skip
    constants = {"zero": np.int64(0), "two": np.int64(2), "start": np.array([1])}
    inputs = {"mask": (F, ["N"]), "often": (I, [1]), "end": (I, [1]), "pads": (I, [2])}
    return model(nodes, inputs, ["range", "part", "padded"], constants), data


def shapes() -> tuple[Any, list[dict[str, np.ndarray]]]:
    """Reshape, Expand, Split and Resize to shapes that inputs give; the number of rows is open."""
    nodes = [
        node("Shape", ["x"], ["own"], start=0, end=1),
        node("Concat", ["own", "shape"], ["whole"], axis=0),
        node("Reshape", ["x", "whole"], ["y"]),
        node("Add", ["y", "one"], ["z"]),
        node("Expand", ["z", "wide"], ["w"]),
        node("Split", ["x", "parts"], ["a", "b"], axis=1),
        node("Unsqueeze", ["y", "axes"], ["image"]),
        node("Resize", ["image", "", "", "size"], ["r"], mode="linear"),
    ]
    rng = np.random.default_rng(3)
    data = [
        {"x": rng.normal(size=(n, 12)).astype(np.float32), "shape": np.array(s), "wide": np.array(w), "parts": np.array(p),
         "size": np.array([1, n, *z])}
        for n, s, w, p, z in (
            (2, [3, -1], [2, 1, 3, 4], [5, 7], [6, 4]), (5, [-1, 6], [1, 5, 1, 6], [12, 0], [1, 3]), (1, [12, 1], [3, 4, 12, 1], [1, 11], [24, 2]),
        )
    ]  # fmt: skip
    inputs = {"x": (F, ["N", 12]), "shape": (I, [2]), "wide": (I, [4]), "parts": (I, [2]), "size": (I, [4])}
    constants = {"one": np.float32(1), "axes": np.array([0])}
    return model(nodes, inputs, ["z", "w", "a", "b", "r"], constants), data


def scaled_sizes() -> tuple[Any, list[dict[str, np.ndarray]]]:
    """Lengths that are computed from sizes in floats, a step that is a size, and an axis of open length that must be 1."""
    nodes = [
        node("Shape", ["x"], ["rows"], start=0, end=1),
        node("Cast", ["rows"], ["float"], to=F),
        node("Mul", ["float", "factor"], ["more"]),
        node("Floor", ["more"], ["floor"]),
        node("Cast", ["floor"], ["count"], to=I),
        node("Concat", ["count", "three"], ["wide"], axis=0),
        node("Expand", ["row", "wide"], ["y"]),
        node("Squeeze", ["rows", "zeros"], ["step"]),
        node("Range", ["zero", "hundred", "step"], ["range"]),
        node("Squeeze", ["x", "ones"], ["flat"]),
        node("Neg", ["flat"], ["z"]),
    ]
    data = [{"x": np.arange(n, dtype=np.float32)[:, None], "row": np.ones((1, 3), np.float32)} for n in (4, 7, 1)]
    constants = {
        "factor": np.float32(1.5), "three": np.array([3]), "zero": np.int64(0), "hundred": np.int64(100), "ones": np.array([1]),
        "zeros": np.array([0]),
    }  # fmt: skip
    return model(nodes, {"x": (F, ["N", "W"]), "row": (F, [1, 3])}, ["y", "range", "z"], constants), data


MODELS = {f.__name__: f for f in (places_of_the_large, detector, best_of, positions, shapes, scaled_sizes)}


IMPOSSIBLE = (np.array([-2, 3]), np.array([2**40, 2**40]), np.array([2**20, 2**20]))
ASKED = {
    "ConstantOfShape": (["s"], {}, np.array([2, 3]), (2, 3)),
    "Reshape": (["c", "s"], {"c": np.arange(6)}, np.array([3, -1]), (3, 2)),
    "Expand": (["c", "s"], {"c": np.array([1])}, np.array([3, 2]), (3, 2)),
    "Tile": (["c", "s"], {"c": np.ones((2, 2), np.int64)}, np.array([1, 3]), (2, 6)),
}
"""Ops with an input s that gives lengths of axes: the node's inputs, those that are constants, a value of s,
the output's shape."""


def asking(op: str) -> bytes:
    """The model of a node of ASKED."""
    inputs, constants, _, _ = ASKED[op]
    return model([node(op, inputs, ["y"])], {"s": (I, [2])}, ["y"], constants).SerializeToString()
