"""Graphs of nodes and edges, tables, and series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from .family import Family, Feeds, normal
from .net import FLOAT, INT64, Net

EDGES = {"x": (FLOAT, ("num_nodes", 6)), "edge_index": (INT64, (2, "num_edges"))}


def networks(rng: np.random.Generator) -> Sequence[Feeds]:
    """Nodes with random edges between them."""
    return [
        {"x": normal(rng, nodes, 6), "edge_index": rng.integers(0, nodes, (2, edges))}
        for nodes, edges in ((5, 12), (9, 20))
    ]


def _scattered(net: Net, values: str, index: str, count: str, width: int, reduction: str = "add") -> str:
    zeros = net.Expand(0.0, net.shape(count, width))
    index = net.Expand(net.unsqueeze(index, 1), net.Shape(values))
    return net.ScatterElements(zeros, index, values, axis=0, reduction=reduction)


def convolved_graph() -> onnx.ModelProto:
    """Each edge weighs by the degrees of its ends; nodes see themselves too."""
    net = Net(61, 18)
    x, count = "x", net.size("x", 0)
    line = net.Range(0, count, 1)
    edges = net.Concat("edge_index", net.Expand(net.unsqueeze(line, 0), net.shape(2, count)), axis=1)
    source, target = (net.Gather(edges, i, axis=0) for i in range(2))
    ones = net.Expand(1.0, net.Shape(target))
    degree = net.ScatterElements(net.Expand(0.0, net.shape(count)), target, ones, axis=0, reduction="add")
    root = net.Pow(degree, -0.5)
    root = net.Where(net.Equal(root, float("inf")), 0.0, root)
    weight = net.Mul(net.Gather(root, source), net.Gather(root, target))
    for inputs, outputs in ((6, 8), (8, 3)):
        y = net.MatMul(x, net.weights(inputs, outputs))
        y = net.Mul(net.unsqueeze(weight, -1), net.Gather(y, source))
        x = net.Add(_scattered(net, y, target, count, outputs), net.weights(outputs))
        x = net.Relu(x) if outputs == 8 else x
    net.output(net.LogSoftmax(x, axis=1), "logits")
    return net.model(EDGES)


def attending_graph() -> onnx.ModelProto:
    """A softmax over the edges of each node: the greatest by ScatterElements, then sums."""
    net = Net(62, 18)
    heads, size, count = 2, 4, net.size("x", 0)
    source, target = (net.Gather("edge_index", i, axis=0) for i in range(2))
    y = net.view(net.MatMul("x", net.weights(6, heads * size)), -1, heads, size)
    of_source, of_target = (net.sum(net.Mul(y, net.weights(1, heads, size)), -1, keepdims=0) for _ in range(2))
    score = net.LeakyRelu(net.Add(net.Gather(of_source, source), net.Gather(of_target, target)), alpha=0.2)
    low = net.Expand(float(np.finfo(np.float32).min), net.shape(count, heads))
    index = net.Expand(net.unsqueeze(target, 1), net.Shape(score))
    most = net.ScatterElements(low, index, score, axis=0, reduction="max")
    score = net.Exp(net.Sub(score, net.Gather(most, target)))
    total = net.Add(net.Gather(_scattered(net, score, target, count, heads), target), 1e-16)
    share = net.unsqueeze(net.Div(score, total), -1)
    message = net.Mul(share, net.Gather(y, source))
    zeros = net.Expand(0.0, net.shape(count, heads, size))
    met = net.ScatterND(zeros, net.unsqueeze(target, -1), message, reduction="add")
    x = net.Elu(net.Add(net.view(met, -1, heads * size), net.weights(heads * size)), alpha=1.0)
    net.output(net.linear(net.mean(x, 0), heads * size, 3), "graph")
    net.output(x, "nodes")
    return net.model(EDGES)


def _trees(rng: np.random.Generator, count: int, features: int, depth: int = 3) -> dict[str, list]:
    """Full trees as attributes of ai.onnx.ml's ensembles."""
    found: dict[str, list] = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}  # fmt: skip
    leaves: list[tuple[int, int, float]] = []
    inner = 2**depth - 1
    for tree in range(count):
        for node in range(2 * inner + 1):
            leaf = node >= inner
            row = (tree, node, int(rng.integers(features)), float(np.float32(rng.normal())), "LEAF" if leaf else "BRANCH_LEQ",
                   0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2)  # fmt: skip
            for values, value in zip(found.values(), row, strict=True):
                values.append(value)
            if leaf:
                leaves.append((tree, node, float(np.float32(rng.normal() / 4))))
    return {f"nodes_{k}": v for k, v in found.items()} | {"leaves": leaves}


def boosted_classifier() -> onnx.ModelProto:
    """LightGBM and XGBoost by onnxmltools, scikit-learn by skl2onnx: a label, and probabilities of all classes."""
    net, classes = Net(63, 15), 3
    trees = _trees(net.rng, 2 * classes, 4)
    leaves = trees.pop("leaves")
    label, scores = net.many(
        2, "TreeEnsembleClassifier", "X", domain="ai.onnx.ml", **trees, class_ids=[t % classes for t, _, _ in leaves],
        class_treeids=[t for t, _, _ in leaves], class_nodeids=[n for _, n, _ in leaves],
        class_weights=[w for _, _, w in leaves], classlabels_int64s=list(range(classes)), post_transform="SOFTMAX",
        base_values=[0.1, 0.0, -0.1],
    )  # fmt: skip
    net.output(net.Reshape(label, (-1,)), "label", INT64)
    net.output(net.op("Normalizer", scores, domain="ai.onnx.ml", norm="L1"), "probabilities")
    return net.model({"X": (FLOAT, (None, 4))})


def boosted_regressor() -> onnx.ModelProto:
    """Features are scaled and imputed; sums of leaves."""
    net = Net(64, 15)
    trees = _trees(net.rng, 5, 4)
    leaves = trees.pop("leaves")
    x = net.op("Imputer", "X", domain="ai.onnx.ml", imputed_value_floats=[0.5, 0.0, -0.5, 1.0], replaced_value_float=float("nan"))  # fmt: skip
    x = net.op("Scaler", x, domain="ai.onnx.ml", offset=[0.1, 0.2, 0.0, -0.1], scale=[1.0, 0.5, 2.0, 1.5])
    y = net.op(
        "TreeEnsembleRegressor", x, domain="ai.onnx.ml", **trees, n_targets=1, target_ids=[0] * len(leaves),
        target_treeids=[t for t, _, _ in leaves], target_nodeids=[n for _, n, _ in leaves],
        target_weights=[w for _, _, w in leaves], base_values=[2.0],
    )  # fmt: skip
    net.output(y, "variable")
    return net.model({"X": (FLOAT, (None, 4))})


def tables(rng: np.random.Generator) -> Sequence[Feeds]:
    return [{"X": normal(rng, n, 4)} for n in (1, 17)]


def series() -> onnx.ModelProto:
    """Patches of a series, normalised by its own mean and spread, which the forecast gets back."""
    net, width, side, step = Net(65, 17), 16, 8, 4
    mean = net.mean("past_values", 1)
    centred = net.Sub("past_values", mean)
    spread = net.Sqrt(net.Add(net.mean(net.Mul(centred, centred), 1), 1e-5))
    x = net.Transpose(net.Div(centred, spread), perm=[0, 2, 1])
    x = net.Pad(x, (0, 0, 0, 0, 0, step), mode="edge")
    n, channels = net.size(x, 0), net.size(x, 1)
    starts = np.arange(5) * step
    parts = net.Gather(x, starts[:, None] + np.arange(side), axis=2)  # as `unfold` is exported
    y = net.view(net.linear(parts, side, width), net.Mul(n, channels), 5, width)
    y = net.Add(y, net.weights(5, width))
    y = net.layer_norm(net.Add(y, net.attention(y, y, width, 2)), width)
    y = net.layer_norm(net.Add(y, net.linear(net.gelu(net.linear(y, width, 32)), 32, width)), width)
    y = net.Transpose(net.view(net.gemm(net.Flatten(y), 5 * width, 6), n, channels, 6), perm=[0, 2, 1])
    net.output(net.Add(net.Mul(y, spread), mean), "prediction_outputs")
    return net.model({"past_values": (FLOAT, ("batch", 20, "channels"))})


def _turns(net: Net, count: str, body: list[onnx.NodeProto], state: str, result: str) -> None:
    """A loop over positions, as tf2onnx and PyTorch write one: a count, a condition, a state."""
    graph = helper.make_graph(
        body, "body",
        [helper.make_tensor_value_info("turn", INT64, ()), helper.make_tensor_value_info("go", 9, ()),
         helper.make_tensor_value_info("state_in", FLOAT, None)],
        [helper.make_tensor_value_info("go_out", 9, ()), helper.make_tensor_value_info("state_out", FLOAT, None),
         helper.make_tensor_value_info("step", FLOAT, None)],
    )  # fmt: skip
    net.node("Loop", count, np.bool_(True), state, outputs=[None, result], body=graph)


def state_space() -> onnx.ModelProto:
    """Mamba's scan: a state that each word changes by its own rates, in a Loop."""
    net, width, size = Net(66, 16), 8, 4
    x = net.Gather(net.weights(30, width), "input_ids")
    y, gate = net.split(net.linear(x, width, 2 * width, False), [width, width], 2)
    y = net.conv1(net.Transpose(y, perm=[0, 2, 1]), width, width, 4, group=width, pad=3)
    y = net.silu(net.slice(y, 2, 0, net.size(x, 1)))
    y = net.Transpose(y, perm=[0, 2, 1])
    step = net.Softplus(net.linear(y, width, width))
    b, c = (net.linear(y, width, size, False) for _ in range(2))
    rate = net.Exp(net.Mul(net.unsqueeze(step, -1), net.const(-np.tile(np.arange(1.0, size + 1), (width, 1)))))
    drive = net.Mul(net.Mul(net.unsqueeze(step, -1), net.unsqueeze(b, 2)), net.unsqueeze(y, -1))
    state = net.Expand(0.0, net.shape(net.size(x, 0), width, size))
    outer, net.nodes = net.nodes, []
    here = net.Gather(rate, "turn", axis=1), net.Gather(drive, "turn", axis=1)
    net.nodes.append(helper.make_node("Identity", ["go"], ["go_out"]))
    net.nodes.append(helper.make_node("Add", [net.Mul(here[0], "state_in"), here[1]], ["state_out"]))
    seen = net.MatMul("state_out", net.unsqueeze(net.Gather(c, "turn", axis=1), -1))
    net.nodes.append(helper.make_node("Identity", [net.squeeze(seen, -1)], ["step"]))
    body, net.nodes = net.nodes, outer
    _turns(net, net.size(x, 1), body, state, "steps")
    met = net.Add(net.Transpose("steps", perm=[1, 0, 2]), net.Mul(y, net.positive(width)))
    net.output(net.linear(net.Mul(met, net.silu(gate)), width, 30, False), "logits")
    return net.model({"input_ids": (INT64, ("batch_size", "sequence_length"))})


OTHER = {
    "convolved_graph": Family("GCN, GraphSAGE (PyTorch Geometric)", "sums over edges by ScatterElements with add", convolved_graph, networks),
    "attending_graph": Family("GAT", "a softmax over each node's edges: ScatterElements with max and add, ScatterND", attending_graph, networks),
    "boosted_classifier": Family("XGBoost, LightGBM, scikit-learn, classifiers", "TreeEnsembleClassifier, Normalizer", boosted_classifier, tables),
    "boosted_regressor": Family("XGBoost, LightGBM, scikit-learn, regressors", "Imputer, Scaler, TreeEnsembleRegressor", boosted_regressor, tables),
    "series": Family("PatchTST, Chronos-Bolt", "patches by Gather, own mean and spread", series,
                     lambda rng: [{"past_values": normal(rng, n, 20, c)} for n, c in ((1, 3), (2, 1))]),
    "state_space": Family("Mamba", "a Loop over tokens with a state", state_space,
                          lambda rng: [{"input_ids": rng.integers(0, 30, shape)} for shape in ((1, 5), (2, 9))]),
}  # fmt: skip
