"""The models of tests/bench come from packages, so that every race runs from a fresh clone."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import singe as sg

ROOT = Path(__file__).parents[3]
BENCH = ROOT / "tests" / "bench"


@pytest.fixture(scope="module")
def packaged() -> ModuleType:
    spec = spec_from_file_location("singe_bench_packaged", BENCH / "inputs" / "packaged.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def recorded(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays = np.load(path.with_suffix(".npz"))
    inputs, outputs = (
        {k.partition(":")[2]: arrays[k] for k in arrays.files if k.startswith(w)} for w in ("in:", "out:")
    )
    return inputs, outputs


def test_no_race_reads_files_beside_the_repository() -> None:
    texts = {path.name: path.read_text("utf-8") for path in (*BENCH.rglob("*.py"), ROOT / "Makefile")}
    assert [n for n, text in texts.items() if re.search(r'ROOT\.parent|\.\./shared|"shared"', text)] == []


def test_every_model_that_the_suite_names_is_packaged(packaged: ModuleType) -> None:
    named = set(re.findall(r"(\w+)\.onnx", (BENCH / "suite.py").read_text("utf-8")))
    assert named == {"mnist_cnn", "efficientnet_lite0"}
    assert named <= packaged.MODELS.keys()
    assert not packaged.MODELS.keys() & packaged.ABSENT.keys()


@pytest.mark.slow
def test_a_written_model_answers_as_recorded(packaged: ModuleType, tmp_path: Path) -> None:
    left = packaged.prepare(tmp_path, {"mnist_cnn": packaged.MODELS["mnist_cnn"]})
    assert left == packaged.ABSENT
    inputs, outputs = recorded(tmp_path / "mnist_cnn.onnx")
    found = np.asarray(sg.load(tmp_path / "mnist_cnn.onnx")(**inputs))
    np.testing.assert_allclose(found, outputs["logits"], rtol=1e-4, atol=1e-4)


def test_a_model_that_cannot_be_fetched_is_left_out_with_its_reason(packaged: ModuleType, tmp_path: Path) -> None:
    def fails(_: Path) -> bytes:
        raise packaged.WEIGHTS.Unavailable("no network")

    source = packaged.Source(fails, lambda rng: {})
    assert packaged.prepare(tmp_path, {"far": source})["far"] == "no network"
    assert not list(tmp_path.glob("*.onnx"))


def test_a_folder_that_is_given_is_taken_as_it_is(packaged: ModuleType, tmp_path: Path) -> None:
    assert packaged.folder_of(tmp_path) == tmp_path


@pytest.mark.slow
def test_the_pictures_model_is_the_demos(packaged: ModuleType, tmp_path: Path) -> None:
    """Folding the normalisations changes only the rounding."""
    name = "efficientnet_lite0"
    left = packaged.prepare(tmp_path, {name: packaged.MODELS[name]})
    if name in left:
        pytest.skip(left[name])
    inputs, outputs = recorded(tmp_path / f"{name}.onnx")
    found = packaged.WEIGHTS.classify(tmp_path / "fetched" / name)(inputs["input"])
    wanted = outputs["logits"]
    assert (
        np.abs(np.asarray(found["logits"] if isinstance(found, dict) else found) - wanted).max()
        < 1e-4 * np.abs(wanted).max()
    )
