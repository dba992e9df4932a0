"""Models of one op beside onnxruntime-web: ops that compute (attention, norms, products) and ops that move data (gather, top-k).

    python tests/bench/races/ops.py [--cases top_k,nms,…] [--threads 1] [--rounds 10]

Both run in one Chromium, in turns, as in chromium.py. Outputs are compared with the native onnxruntime's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from chromium import WHO, heading, race
from ort_web import CHROMIUM, FLAGS

RNG: Final = np.random.default_rng(0)
OPSET: Final = 23


@dataclass(frozen=True)
class Case:
    """One node: its inputs in order (None: left out), which of them are constants, and its attributes."""

    op: str
    inputs: Mapping[str, np.ndarray | None]
    constants: tuple[str, ...] = ()
    results: int = 1
    attrs: Mapping[str, Any] = field(default_factory=dict)
    near: float = 1e-4  # the largest difference of an element

    @property
    def given(self) -> dict[str, np.ndarray]:
        return {name: a for name, a in self.inputs.items() if a is not None and name not in self.constants}

    def model(self) -> onnx.ModelProto:
        outputs = [f"y{i}" for i in range(self.results)]
        names = ["" if a is None else name for name, a in self.inputs.items()]
        kinds = {name: helper.np_dtype_to_tensor_dtype(a.dtype) for name, a in self.given.items()}
        values = [helper.make_tensor_value_info(name, kinds[name], a.shape) for name, a in self.given.items()]
        constants = [
            numpy_helper.from_array(a, n) for n, a in self.inputs.items() if a is not None and n in self.constants
        ]
        node = helper.make_node(self.op, names, outputs, **self.attrs)
        ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph([node], "one", values, ends, constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        return onnx.shape_inference.infer_shapes(made)


def _drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _top_k(k: int, *shape: int) -> Case:
    return Case("TopK", {"x": _drawn(*shape), "k": np.array([k])}, ("k",), 2)


def _resize(mode: str) -> Case:
    scales = np.array([1, 1, 2, 2], np.float32)
    return Case(
        "Resize", {"x": _drawn(1, 32, 64, 64), "roi": None, "scales": scales}, ("scales",), attrs={"mode": mode}
    )


def _pool(op: str, window: int, apart: int, before: int, *shape: int) -> Case:
    attrs = {"kernel_shape": [window] * 2, "strides": [apart] * 2, "pads": [before] * 4}
    return Case(op, {"x": _drawn(*shape)}, attrs=attrs)


def _boxes(classes: int, boxes: int, most: int) -> Case:
    corners = RNG.uniform(0, 640, (1, boxes, 2))
    given = np.concatenate([corners, corners + RNG.uniform(10, 90, corners.shape)], -1).astype(np.float32)
    limits = {"most": np.array([most]), "overlap": np.array([0.5], np.float32), "least": np.array([0.5], np.float32)}
    scores = RNG.random((1, classes, boxes), np.float32)
    return Case("NonMaxSuppression", {"boxes": given, "scores": scores, **limits}, tuple(limits))


def _attention(heads: int, groups: int, queries: int, keys: int, width: int, **attrs: int) -> Case:
    q, (k, v) = _drawn(1, heads, queries, width), (_drawn(1, groups, keys, width) for _ in range(2))
    return Case("Attention", {"q": q, "k": k, "v": v}, attrs=attrs)


def _recurrent(op: str, gates: int, steps: int, width: int) -> Case:
    weights = {name: _drawn(1, gates * width, width) / width**0.5 for name in "wr"}
    return Case(op, {"x": _drawn(steps, 1, width), **weights}, ("w", "r"), attrs={"hidden_size": width})


def _integers(*shape: int) -> np.ndarray:
    return RNG.integers(-127, 128, shape).astype(np.int8)


def _quantised_conv(channels: int, window: int, side: int) -> Case:
    x = RNG.integers(0, 256, (1, channels, side, side)).astype(np.uint8)
    scale, zero = {"x": 0.02, "w": 0.01, "y": 0.5}, {"x": np.uint8(128), "w": np.int8(0), "y": np.uint8(128)}
    given: dict[str, np.ndarray | None] = {"x": x}
    for name in "xwy":
        if name == "w":
            given["w"] = _integers(channels, channels, window, window)
        given |= {f"{name}_scale": np.array(scale[name], np.float32), f"{name}_zero": np.array(zero[name])}
    return Case("QLinearConv", given, tuple(n for n in given if n != "x"), attrs={"pads": [window // 2] * 4}, near=1)


def _places(*shape: int) -> np.ndarray:
    return RNG.integers(0, 1000, shape)


CASES: Final[Mapping[str, Case]] = {
    "attention: 12 heads, 128 × 128, 64": _attention(12, 12, 128, 128, 64),
    "attention: 12 heads, 512 × 512, 64, causal": _attention(12, 12, 512, 512, 64, is_causal=1),
    "attention: 32 heads of 8, 1 × 1,024, 64": _attention(32, 8, 1, 1024, 64),
    "layer_norm: 197 × 768": Case("LayerNormalization", {"x": _drawn(197, 768), "g": _drawn(768), "b": _drawn(768)}, ("g", "b")),
    "rms_norm: 197 × 768": Case("RMSNormalization", {"x": _drawn(197, 768), "g": _drawn(768)}, ("g",)),
    "softmax: 12 × 197²": Case("Softmax", {"x": _drawn(12, 197, 197)}),
    "gelu: 197 × 3,072": Case("Gelu", {"x": _drawn(197, 3072)}),
    "matmul: 12 times 197 × 64 · 197": Case("MatMul", {"a": _drawn(12, 197, 64), "b": _drawn(12, 64, 197)}),
    "matmul: 1 × 1,280 · 1,000": Case("MatMul", {"a": _drawn(1, 1280), "b": _drawn(1280, 1000)}, ("b",)),
    "matmul: 8 × 384 · 1,536": Case("MatMul", {"a": _drawn(8, 384), "b": _drawn(384, 1536)}, ("b",)),
    "matmul of integers: 128 × 384 · 1,536": Case(
        "MatMulInteger", {"a": RNG.integers(0, 256, (128, 384)).astype(np.uint8), "b": _integers(384, 1536)}, ("b",)
    ),
    "convolution of integers: 1×1, 128 × 28²": _quantised_conv(128, 1, 28),
    "convolution of integers: 3×3, 64 × 56²": _quantised_conv(64, 3, 56),
    "lstm: 100 steps of 256": _recurrent("LSTM", 4, 100, 256),
    "gru: 100 steps of 256": _recurrent("GRU", 3, 100, 256),
    "gather: 256 rows of 30,000 × 384": Case("Gather", {"w": _drawn(30000, 384), "i": RNG.integers(0, 30000, (1, 256))}, ("w",)),
    "gather_elements: 1,000 × 256": Case("GatherElements", {"x": _drawn(1000, 256), "i": _places(1000, 256)}, attrs={"axis": 0}),
    "top_k: 300 of 672,000": _top_k(300, 1, 672000),
    "top_k: 100 of 50,000": _top_k(100, 1, 50000),
    "top_k: 1 of 80, 300 times": _top_k(1, 300, 80),
    "sort: 30,000": _top_k(30000, 1, 30000),
    "resize: linear, 32 × 64² to 128²": _resize("linear"),
    "resize: cubic, 32 × 64² to 128²": _resize("cubic"),
    "grid_sample: linear, 32 × 64²": Case(
        "GridSample", {"x": _drawn(1, 32, 64, 64), "g": RNG.uniform(-1, 1, (1, 64, 64, 2)).astype(np.float32)}, attrs={"mode": "linear"}
    ),
    "scatter_elements: sum, 4,000 × 256": Case(
        "ScatterElements", {"x": _drawn(1000, 256), "i": _places(4000, 256), "u": _drawn(4000, 256)}, attrs={"axis": 0, "reduction": "add"}
    ),
    "scatter_nd: sum, 4,000 × 256": Case("ScatterND", {"x": _drawn(1000, 256), "i": _places(4000, 1), "u": _drawn(4000, 256)}, attrs={"reduction": "add"}),
    "max_pool: 3×3, stride 2, 64 × 112²": _pool("MaxPool", 3, 2, 1, 1, 64, 112, 112),
    "max_pool: 2×2, stride 2, 64 × 112²": _pool("MaxPool", 2, 2, 0, 1, 64, 112, 112),
    "max_pool: 5×5, 64 × 40²": _pool("MaxPool", 5, 1, 2, 1, 64, 40, 40),
    "average_pool: 3×3, 64 × 56²": _pool("AveragePool", 3, 1, 1, 1, 64, 56, 56),
    "transpose: 1,024²": Case("Transpose", {"x": _drawn(1024, 1024)}, attrs={"perm": [1, 0]}),
    "nms: 100 of 2,000, 20 classes": _boxes(20, 2000, 100),
    "nms: 300 of 8,400": _boxes(1, 8400, 300),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="beginnings of names, with commas between them (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, WebAssembly")
        heading("op", args.threads, "ms (least)", "ratio of the least")
        for name in (n for n in CASES if n.startswith(tuple(args.cases.split(",")))):
            case = CASES[name]
            with tempfile.TemporaryDirectory(prefix="singe-op-") as made:
                path = Path(made) / "one.onnx"
                onnx.save(case.model(), path)
                session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
                outputs = [o.name for o in session.get_outputs()]
                wanted = dict(zip(outputs, map(np.asarray, session.run(outputs, case.given)), strict=True))
                times, errors = race(browser, path, case.given, wanted, args.threads, args.rounds)
            assert errors[WHO[0]] <= case.near, (name, errors)
            cells = [f"{statistics.median(times[who]):.2f} ({min(times[who]):.2f})" for who in WHO]
            print(f"| {name} | {' | '.join(cells)} | {min(times[WHO[0]]) / min(times[WHO[1]]):.2f} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
