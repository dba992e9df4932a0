"""The networks of tests/bench with random weights, in the sizes of known models: they have as many weights, and Singe runs them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

import singe as sg

WEIGHTS = {"minilm_l6": 22.6e6, "vit_tiny": 5.72e6, "yolov8n": 3.16e6}
"""A model ↦ how many its namesake has."""


@pytest.fixture(scope="module")
def others() -> ModuleType:
    sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
    try:
        return import_module("inputs.others")
    finally:
        sys.path.pop(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_namesake_has_the_weights_and_answers_as_recorded(others: ModuleType, name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    others.prepare(tmp_path, [name])
    path = tmp_path / f"{name}.onnx"
    count = sum(int(np.prod(t.dims)) for t in onnx.load(path).graph.initializer)
    assert count == pytest.approx(WEIGHTS[name], rel=0.01)
    arrays = np.load(path.with_suffix(".npz"))
    inputs = {k[3:]: arrays[k] for k in arrays.files if k.startswith("in:")}
    (wanted,) = (arrays[k] for k in arrays.files if k.startswith("out:"))
    found = np.asarray(sg.load(path)(**inputs))
    assert np.abs(found - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_an_unknown_name_is_refused(others: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="unknown bert, there are shufflenet"):
        others.prepare(tmp_path, ["bert"])
