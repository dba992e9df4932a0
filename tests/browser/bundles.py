"""Bundles for the tests of the runner, written by `export`: of small Graphs, of the shared models, and of a small file."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from singe.dtypes import bool_, dtype, float16, float32, int32, int64, uint8
from singe.graph import Builder, Graph
from singe.model.files import load
from singe.model.model import Model
from singe.shapes import size
from singe.tools.export.bundle import export

ROOT: Final = Path(__file__).parents[2]
STATIC: Final = ROOT / "static"
MODELS: Final = ROOT.parent / "shared" / "models"
MODEL_NAMES: Final = ("basic_pitch", "efficientnet_lite0", "magika", "mnist_cnn", "ppocr_cls", "ppocr_det")
BOUND: Final = 1e-4
BOUNDS: Final = {"basic_pitch": 5e-3}
"""Models whose recording differs from a float64 run by more than BOUND; see tests/conformance/models/test_real_models.py."""
RUN: Final = """
    const model = await load(given.url, { device: given.device, threads: 1 });
    const outputs = [];
    for (const inputs of given.cases) outputs.push(pack(await model.run(unpack(inputs))));
    await model.dispose();
    return outputs;
"""
"""The body of a test: the outputs of a bundle for each of its cases."""


Group = tuple[int, int, list[int]]
"""A group of words: the position of its head, the head, and the words that follow."""


def groups_of(program: dict[str, Any]) -> list[Group]:
    """The groups of a program in a manifest."""
    words, at, found = program["words"], 0, []
    while at < len(words):
        end = at + 2 + words[at + 1]
        found.append((at, words[at], words[at + 2 : end]))
        at = end
    return found


def write_bundle(graph: Graph, folder: Path, name: str) -> Path:
    """The bundle of a graph, for both devices."""
    export(Model(graph, "numpy", name), folder)
    return folder


# --- models ----------------------------------------------------------------------------------------------------------


def small_graph() -> Graph:
    """A graph with an open batch, an int32 and a bool input: scores = keep ? x · w + bias[k] :
    −1, and negated = ¬keep."""
    b = Builder()
    n = size("N")
    x, k, keep = b.input("x", (n, 3), float32), b.input("k", (n, 1), int32), b.input("keep", (n, 1), bool_)
    w = b.const(np.arange(12, dtype=np.float32).reshape(3, 4) - 5)
    shifted = b.add(b.matmul(x, w), b.cast(k, to=float32))
    scores = b.where(keep, shifted, b.const(np.float32(-1)))
    return Graph((x, k, keep), (scores, b.logical_not(keep), b.add(k, k)), ("scores", "negated", "twice"))


def small_case(count: int, seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Inputs of the small graph, and the outputs computed with NumPy."""
    rng = np.random.default_rng((count, seed))
    x = rng.normal(size=(count, 3)).astype(np.float32)
    k = rng.integers(-9, 9, (count, 1)).astype(np.int32)
    keep = rng.integers(0, 2, (count, 1)).astype(bool)
    w = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    scores = np.where(keep, x @ w + k, np.float32(-1)).astype(np.float32)
    return {"x": x, "k": k, "keep": keep}, {"scores": scores, "negated": ~keep, "twice": k + k}


def dtypes_graph() -> Graph:
    """A graph with every dtype; one output is an input, another a constant."""
    b = Builder()
    n = size("N")
    h, i, u = b.input("h", (n,), float16), b.input("i", (n,), int64), b.input("u", (n,), uint8)
    table = b.const(np.array([3, -4], np.int64))
    outputs = (b.add(h, h), b.add(i, i), b.add(u, u), i, u, table)
    return Graph((h, i, u), outputs, ("half", "long", "byte", "same_i", "same_u", "table"))


def dtypes_case(count: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Inputs of that graph, and the outputs computed with NumPy."""
    rng = np.random.default_rng(count)
    h = rng.normal(size=count).astype(np.float16)
    i = rng.integers(-(2**60), 2**60, count)
    u = rng.integers(0, 256, count).astype(np.uint8)
    outputs = {"half": h + h, "long": i + i, "byte": u + u, "same_i": i, "same_u": u}
    return {"h": h, "i": i, "u": u}, {**outputs, "table": np.array([3, -4])}


def weighty_graph() -> Graph:
    """A graph with weights that are worth storing in fewer bytes:
    a plain and a depthwise convolution, and a product."""
    b = Builder()
    rng = np.random.default_rng(4)

    def const(*shape: int) -> Any:
        return b.const((rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    facts = {"strides": (1, 1), "dilations": (1, 1), "before": (1, 1), "after": (1, 1)}
    x = b.input("x", (size("N"), 5, 7, 6), float32)
    y = b.relu(b.conv(x, const(32, 5, 3, 3), const(32), group=1, **facts))
    y = b.relu(b.conv(y, const(32, 1, 3, 3), group=32, **facts))
    wide = const(32 * 42, 16)
    assert wide.value is not None
    scaled = b.const(wide.value * np.logspace(-12, 1, 16, dtype=np.float32))  # channels beyond float16
    return Graph((x,), (b.add(b.matmul(b.reshape(y, shape=(size("N"), 32 * 42)), scaled), const(16)),), ("y",))


GRAPHS: Final = {"small": small_graph, "dtypes": dtypes_graph, "weighty": weighty_graph}
"""The graphs of our own."""


def model_graph(name: str) -> Graph:
    """The graph of a model in the shared folder, with an open batch;
    other open dimensions are those of its recorded input."""
    shapes = {k: ("N", *v.shape[1:]) for k, v in model_case(name)[0].items()}
    return load(MODELS / f"{name}.onnx", device="numpy", input_shapes=shapes).graph()


def model_case(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A shared model's recorded inputs, and onnxruntime's outputs."""
    with np.load(MODELS / f"{name}.npz") as data:
        sides = [{k[len(p) :]: v for k, v in data.items() if k.startswith(p)} for p in ("in:", "out:")]
    return sides[0], sides[1]


# --- tensors as plain data, as harness.js has them -------------------------------------------------------------------


def packed(tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """Arrays as JSON data."""
    return {
        k: {"dtype": dtype(v.dtype).name, "shape": list(v.shape), "data": b64encode(v.tobytes()).decode()}
        for k, v in tensors.items()
    }


def unpacked(tensors: dict[str, Any]) -> dict[str, np.ndarray]:
    """JSON data as arrays."""
    return {
        k: np.frombuffer(b64decode(v["data"]), dtype(v["dtype"]).numpy).reshape(v["shape"]) for k, v in tensors.items()
    }


def assert_close(found: dict[str, Any], expected: dict[str, np.ndarray], bound: float = BOUND) -> None:
    """Check a runner's outputs: floats within a bound relative to the largest expected value, others equal."""
    got = unpacked(found)
    assert got.keys() == expected.keys()
    for name, wanted in expected.items():
        assert (got[name].dtype, got[name].shape) == (wanted.dtype, wanted.shape), name
        if not np.issubdtype(wanted.dtype, np.floating):
            assert np.array_equal(got[name], wanted), name
            continue
        difference = np.abs(got[name].astype(np.float64) - wanted.astype(np.float64)).max(initial=0)
        assert difference <= bound * max(1.0, np.abs(wanted.astype(np.float64)).max(initial=0)), name


def small_model(path: Path) -> Path:
    """An ONNX model with the inputs and outputs of a digit classifier, and meaningless weights."""
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(5)

    def weight(name: str, *shape: int) -> Any:
        return onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32) / 8, name)

    make, info, kind = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            make("Conv", ["input", "w0", "b0"], ["c"], strides=[2, 2]),
            make("Relu", ["c"], ["r"]),
            make("Flatten", ["r"], ["f"]),
            make("Gemm", ["f", "w1", "b1"], ["logits"]),
        ],
        "digits",
        [info("input", kind, ["N", 1, 28, 28])],
        [info("logits", kind, ["N", 10])],
        [weight("w0", 8, 1, 3, 3), weight("b0", 8), weight("w1", 8 * 13 * 13, 10), weight("b1", 10)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)
    return path
