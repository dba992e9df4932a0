"""The files of demos/embed, and the digit classifiers that they run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import ROOT

from singe.tools.cli import main as singe

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")

EMBED: Final = ROOT / "demos" / "embed"
GREY: Final = np.full((1, 1, 28, 28), 0.5, np.float32)
PATIENCE: Final = 90_000
"""Milliseconds: WebGPU in software compiles slowly on a busy machine."""


def small_model(path: Path) -> Path:
    """A model with the inputs and outputs of a digit classifier, and meaningless weights."""
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


class Digits:
    """A bundle, and the expected outputs of its model."""

    def __init__(self, model: Path, folder: Path, *options: str) -> None:
        assert singe(["export", str(model), "-o", str(folder), *options]) == 0
        self.folder, self.reference = folder, reference.ReferenceEvaluator(str(model))
        self.logits = self.answer(GREY)

    def answer(self, pixels: np.ndarray) -> np.ndarray:
        return np.asarray(self.reference.run(["logits"], {"input": pixels})[0])[0]

    def assert_answer(self, text: str) -> None:
        """Check ten numbers, each within 1e-4 of the largest."""
        found = np.array([float(word) for word in text.split()])
        assert found.shape == (10,), text
        assert np.abs(found - self.logits).max() <= 1e-4 * max(1, np.abs(self.logits).max())


def answer_of(page: Any) -> str:
    """The text that a page of demos/embed writes when its model has run."""
    page.locator("output").filter(has_text=re.compile(r"\d")).wait_for(timeout=PATIENCE)
    return page.locator("output").text_content()
