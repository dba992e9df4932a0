"""Real models are read, and written as ONNX files again: onnxruntime gives for both files the same answers, at three batches.
And a model that was trained here leaves with what it learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from networks.families import FAMILIES, check_family, expected, file_of
from onnx_devices import MODELS, check_relative
from peer import answers, session

import singe as sg
from singe import nn
from singe.errors import CompileError

onnx = pytest.importorskip("onnx")
BOUND = 2e-5
"""The largest difference, relative to the largest value of an output."""
NAMES = (
    "basic_pitch", "ch_PP-OCRv4_rec_infer", "efficientnet_lite0", "magika", "minilm_l6_v2_int8", "mnist_cnn", "ppocr_cls", "ppocr_det",
    "silero_vad",
)  # fmt: skip
SMALL = ("magika", "mnist_cnn", "ppocr_cls", "silero_vad")
OPSETS = (13, 17, 21, 22)


def saved(name: str, folder: Path, opset: int) -> tuple[Path, Path, dict[str, np.ndarray]]:
    """The model's file, that which Singe writes of it, and the recorded inputs."""
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is absent: it belongs in {MODELS}")
    out = folder / path.name
    sg.onnx.save(sg.load(path, "numpy"), out, opset)
    onnx.checker.check_model(str(out), full_check=True)
    with np.load(path.with_suffix(".npz")) as data:
        return path, out, {k[3:]: data[k] for k in data.files if k.startswith("in:")}


def check(name: str, folder: Path, opset: int) -> None:
    path, out, given = saved(name, folder, opset)
    theirs, mine = session(path), session(out)
    assert [x.name for x in mine.get_inputs()] == [x.name for x in theirs.get_inputs()]
    opened = all(isinstance(x.shape[0], str) for x in theirs.get_inputs() if x.shape)
    for batch in (1, 2, 3) if opened else (None,):
        arrays = (
            given if batch is None else {k: np.concatenate([x] * 3)[:batch] if x.ndim else x for k, x in given.items()}
        )
        check_relative(answers(mine, arrays), answers(theirs, arrays), BOUND)


@pytest.mark.parametrize("name", SMALL)
def test_a_model_is_read_and_written_again(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, 17)


@pytest.mark.slow
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_written_in_each_opset(name: str, opset: int, tmp_path: Path) -> None:
    check(name, tmp_path, opset)


KEPT = {
    "codec": "needs numbers for its sizes",
    "vits": "draws random numbers",
}
"""Families of which no file is written, and why."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_read_and_written_again(name: str, tmp_path: Path) -> None:
    """onnxruntime computes of the file what it does of the one that was read, at each size."""
    model = sg.load(file_of(name), "numpy")
    if name in KEPT:
        with pytest.raises((CompileError, sg.ShapeError)):
            sg.onnx.save(model, tmp_path / "family.onnx", 18)
        return
    sg.onnx.save(model, tmp_path / "family.onnx", 18)
    onnx.checker.check_model(str(tmp_path / "family.onnx"), full_check=True)
    opened = session(tmp_path / "family.onnx")
    taken = [x.name for x in opened.get_inputs()]
    for feeds, wanted in expected(name):
        check_family(name, answers(opened, {k: x for k, x in feeds.items() if k in taken}), wanted)


def test_a_trained_model_leaves_with_what_it_learned(tmp_path: Path) -> None:
    """Two classes of points: onnxruntime puts each of them where the model does, one by one and in batches."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 2)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    net = nn.Sequential(nn.Linear(2, 16, rng=1), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 2, rng=2))
    step = sg.train.TrainStep(net, sg.optim.Adam(0.05), nn.CrossEntropyLoss(), device="numpy")
    losses = [float(step(x, y)) for _ in range(60)]
    assert losses[-1] < losses[0] / 2
    model = sg.Model.of(step.model.eval(), {"x": ("N", 2)}, "numpy")
    sg.onnx.save(model, tmp_path / "points.onnx")
    onnx.checker.check_model(str(tmp_path / "points.onnx"), full_check=True)
    opened = session(tmp_path / "points.onnx")
    for count in (1, 5, 64):
        found, wanted = answers(opened, {"x": x[:count]})["output"], model(x[:count])
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert (answers(opened, {"x": x})["output"].argmax(1) == y).mean() > 0.8
