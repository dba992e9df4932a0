"""The files of demos/embed, and the digit classifiers that they run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import ROOT

from singe.tools.cli import main as singe

reference = pytest.importorskip("onnx.reference")

EMBED: Final = ROOT / "demos" / "embed"
GREY: Final = np.full((1, 1, 28, 28), 0.5, np.float32)


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
    page.locator("output").filter(has_text=re.compile(r"\d")).wait_for()
    return page.locator("output").text_content()
