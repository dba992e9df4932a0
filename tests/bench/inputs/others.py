"""Models of other kinds for chromium.py: architectures with random weights.

    python tests/bench/inputs/others.py FOLDER [--models squeezenet,…]
    python tests/bench/chromium.py --random [squeezenet,…]

The convolutional ones are the light models of the package onnx, whose weights are constants; `encoder` is a small
transformer like those that embed sentences; those of namesakes.py have the sizes of known models. Each comes with a recording of one input by onnxruntime.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1]))

from inputs.namesakes import minilm_l6, vit_tiny, yolov8n

LIGHT: Final = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES: Final = ("shufflenet", "squeezenet", "inception_v1", "inception_v2", "densenet121", "resnet50")
NORMALISED: Final = ((1, 0.1), (0, 0.1), (0, 0.1), (1, 0.1))
"""The mean and deviation with which a batch norm's scale, shift, mean and variance are drawn."""


def drawn(rng: np.random.Generator, op: str, place: int, shape: tuple[int, ...]) -> np.ndarray:
    """Random numbers for an input of an op; variances are not negative."""
    mean, deviation = NORMALISED[place - 1] if op == "BatchNormalization" else (0, 0.05)
    if len(shape) > 1:
        mean, deviation = 0, (2 / np.prod(shape[1:])) ** 0.5
    values = rng.normal(mean, deviation, shape).astype(np.float32)
    return np.abs(values) if mean else values


def convolutional(name: str) -> ModelProto:
    """A light model, its constant weights drawn at random."""
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    graph, rng = model.graph, np.random.default_rng(0)
    known = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    reader = {x: (n.op_type, k) for n in reversed(graph.node) for k, x in enumerate(n.input)}
    nodes: list[NodeProto] = []
    for n in graph.node:
        if n.op_type != "ConstantOfShape":
            nodes.append(n)
            continue
        known[n.output[0]] = drawn(rng, *reader[n.output[0]], tuple(map(int, known[n.input[0]])))
    used = {x for n in nodes for x in n.input}
    inputs = [i for i in graph.input if i.name in used and i.name not in known]
    weights = [numpy_helper.from_array(a, x) for x, a in known.items() if x in used]
    made = helper.make_graph(nodes, name, inputs, list(graph.output), weights)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=8)


def encoder(layers: int = 6, width: int = 384, heads: int = 12, length: int = 128, words: int = 4000) -> ModelProto:
    """Layers of attention and two products; then the mean over the words."""
    rng = np.random.default_rng(0)
    nodes: list[NodeProto] = []
    weights: list[TensorProto] = []

    def given(values: np.ndarray | float | Sequence[int]) -> str:
        array = np.asarray(values)
        weights.append(numpy_helper.from_array(array.astype(np.float32) if array.dtype.kind == "f" else array, f"w{len(weights)}"))  # fmt: skip
        return weights[-1].name

    def node(op: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, list(inputs), [f"x{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def dense(x: str, n: int, m: int) -> str:
        return node("Add", node("MatMul", x, given(rng.normal(0, n**-0.5, (n, m)))), given(rng.normal(0, 0.02, m)))

    def normal(x: str) -> str:
        off = node("Sub", x, node("ReduceMean", x, axes=[-1]))
        variance = node("ReduceMean", node("Mul", off, off), axes=[-1])
        scaled = node("Div", off, node("Sqrt", node("Add", variance, given(1e-12))))
        return node("Add", node("Mul", scaled, given(np.ones(width))), given(np.zeros(width)))

    def gelu(x: str) -> str:
        return node(
            "Mul", node("Mul", x, node("Add", node("Erf", node("Div", x, given(2**0.5))), given(1.0))), given(0.5)
        )

    apart, whole = given([0, 0, heads, width // heads]), given([0, 0, width])
    tokens = node("Gather", given(rng.normal(0, 0.05, (words, width))), "words", axis=0)
    x = normal(node("Add", tokens, given(rng.normal(0, 0.05, (length, width)))))
    for _ in range(layers):
        q, k, v = (node("Transpose", node("Reshape", dense(x, width, width), apart), perm=p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))  # fmt: skip
        share = node("Softmax", node("Div", node("MatMul", q, k), given((width / heads) ** 0.5)), axis=-1)
        seen = node("Reshape", node("Transpose", node("MatMul", share, v), perm=[0, 2, 1, 3]), whole)
        x = normal(node("Add", dense(seen, width, width), x))
        x = normal(node("Add", dense(gelu(dense(x, width, 4 * width)), 4 * width, width), x))
    nodes.append(helper.make_node("ReduceMean", [x], ["meaning"], axes=[1], keepdims=0))
    takes = helper.make_tensor_value_info("words", TensorProto.INT64, [1, length])
    gives = helper.make_tensor_value_info("meaning", TensorProto.FLOAT, [1, width])
    graph = helper.make_graph(nodes, "encoder", [takes], [gives], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


MODELS: Final[dict[str, Callable[[], ModelProto]]] = {
    **{name: lambda name=name: convolutional(name) for name in NAMES},
    "encoder": encoder,
    "minilm_l6": minilm_l6,
    "vit_tiny": vit_tiny,
    "yolov8n": yolov8n,
}
FOLDER: Final = Path(__file__).resolve().parents[2] / ".cache" / "random"
LIMITS: Final = {"attention_mask": (1, 2), "token_type_ids": (0, 2)}
"""Integers that are drawn for an input; for others, words from 0 to 4000."""


def record(model: ModelProto) -> dict[str, np.ndarray]:
    """One input, and onnxruntime's outputs for it."""
    session, rng = onnxruntime.InferenceSession(model.SerializeToString()), np.random.default_rng(1)
    feeds: dict[str, np.ndarray] = {}
    for i in session.get_inputs():
        whole = "int64" in i.type
        low, high = LIMITS.get(i.name, (0, 4000))
        feeds[i.name] = rng.integers(low, high, i.shape) if whole else rng.normal(0, 1, i.shape).astype(np.float32)
    answers = zip(session.get_outputs(), session.run(None, feeds), strict=True)
    return {f"in:{n}": a for n, a in feeds.items()} | {f"out:{o.name}": np.asarray(a) for o, a in answers}


def prepare(folder: Path = FOLDER, names: Sequence[str] = tuple(MODELS)) -> None:
    """Write the models that are not in the folder yet, each with its recording."""
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise SystemExit(f"unknown {', '.join(unknown)}, there are {', '.join(MODELS)}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.onnx"
        if path.exists():
            continue
        model = MODELS[name]()
        arrays: dict[str, Any] = record(model)
        np.savez(path.with_suffix(".npz"), **arrays)
        onnx.save(model, path)
        print(f"{name}: {path.stat().st_size / 1e6:.1f} MB", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", default=",".join(MODELS), help="names, with commas between them")
    args = parser.parse_args()
    prepare(args.folder, args.models.split(","))


if __name__ == "__main__":
    main()
