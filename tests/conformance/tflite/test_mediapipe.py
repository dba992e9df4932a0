"""MediaPipe's models, out of a package of PyPI, beside TensorFlow Lite's interpreter, by `mediapipe.json`; and its own ops, computed once more."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from devices import NUMPY, RUNNERS
from tflite_bytes import Op, Value, model_bytes

import singe as sg
from singe.tflite import flexbuffer

PACKAGE: Final = "mediapipe==0.10.14"
PLATFORM: Final = (
    "--platform",
    "manylinux_2_17_x86_64",
    "--python-version",
    "311",
    "--implementation",
    "cp",
    "--abi",
    "cp311",
)
ANSWERS: Final = json.loads(Path(__file__).with_name("mediapipe.json").read_bytes())
"""Model ↦ for each output its shape, its largest magnitude and some of its numbers, evenly spread."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("mediapipe")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary=:all:",
        *PLATFORM,
        "-d",
        into,
        PACKAGE,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{PACKAGE} cannot be fetched: {done.stderr[-200:]}")
    with zipfile.ZipFile(next(into.glob("*.whl"))) as wheel:
        wheel.extractall(into, [name for name in wheel.namelist() if name.endswith(".tflite")])
    return into


@NUMPY
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("name", ANSWERS)
def test_a_model_answers_as_the_interpreter_does(name: str, device_name: str, folder: Path) -> None:
    (path,) = folder.rglob(f"{name}.tflite")
    model = sg.load(path, device_name)
    (photo,) = model.inputs
    made = model(np.random.default_rng(0).random([int(str(d)) for d in photo.shape or ()], np.float32))
    for y, told in zip(made.values() if isinstance(made, dict) else [made], ANSWERS[name], strict=True):
        assert list(y.shape) == told["shape"]
        some = y.ravel()[:: told["step"]]
        np.testing.assert_allclose(some, told["numbers"], rtol=0, atol=max(1e-3 * told["largest"], 1e-6))


@pytest.mark.slow
@pytest.mark.full
def test_the_model_with_attention_is_read(folder: Path) -> None:
    (path,) = folder.rglob("face_landmark_with_attention.tflite")
    made = sg.load(path, "numpy")(np.random.default_rng(0).random((1, 192, 192, 3), np.float32))
    assert all(np.isfinite(y).all() for y in made.values())


# --- ops -------------------------------------------------------------------------------------------------------------


def run(
    device: str,
    op: str,
    inputs: list[np.ndarray],
    *outputs: tuple[int, ...],
    custom: bytes = b"",
    constants: int = 0,
    version: int = 1,
) -> Any:
    values = [Value(x, is_constant=k >= len(inputs) - constants) for k, x in enumerate(inputs)]
    values += [Value(np.zeros(shape, np.float32)) for shape in outputs]
    ends = [len(inputs) + k for k in range(len(outputs))]
    places = list(range(len(inputs)))
    data = model_bytes(
        values, [Op(f"CUSTOM:{op}", places, ends, {}, custom, version)], places[: len(inputs) - constants], ends
    )
    made = sg.load(data, device)(*inputs[: len(inputs) - constants])
    return list(made.values()) if isinstance(made, dict) else made


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


@RUNNERS
@pytest.mark.parametrize("padding", [1, 2])
def test_transposed_convolutions_with_a_bias(device_name: str, padding: int) -> None:
    x, w, bias = draw(1, 3, 4, 2), draw(5, 3, 3, 2), draw(5)
    cut = [0, 0] if padding == 2 else [max(3 - (d - 1) % 2 - 1, 0) for d in (3, 4)]
    whole = np.zeros((1, 7, 9, 5), np.float32)
    for i, j, k, m in np.ndindex(3, 4, 3, 3):
        whole[:, 2 * i + k, 2 * j + m] += x[:, i, j] @ w[:, k, m].T
    height, width = 7 - cut[0], 9 - cut[1]
    wanted = whole[:, cut[0] // 2 : cut[0] // 2 + height, cut[1] // 2 : cut[1] // 2 + width] + bias
    y = run(
        device_name,
        "Convolution2DTransposeBias",
        [x, w, bias],
        wanted.shape,
        custom=struct.pack("<3i", padding, 2, 2),
        constants=2,
    )
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


@RUNNERS
def test_elements_go_back_to_where_a_pool_found_them(device_name: str) -> None:
    x, options = np.abs(draw(2, 4, 6, 3)) + 1, struct.pack("<6i", 1, 2, 2, 2, 2, 0)
    values, places = run(device_name, "MaxPoolingWithArgmax2D", [x], (2, 2, 3, 3), (2, 2, 3, 3), custom=options)
    windows = x.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(2, 2, 3, 3, 4)
    np.testing.assert_array_equal(values, windows.max(-1))
    np.testing.assert_array_equal(places.astype(int), windows.argmax(-1))
    back = run(device_name, "MaxUnpooling2D", [values, places], x.shape, custom=options)
    np.testing.assert_array_equal(back, np.where(x == np.repeat(np.repeat(values, 2, 1), 2, 2), x, 0))


MATRIX: Final = np.array([[[0.9, -0.3, 0, 2], [0.25, 0.8, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]]], np.float32)


@RUNNERS
@pytest.mark.parametrize("coordinates", [2, 3])
def test_landmarks_are_moved_by_a_matrix(device_name: str, coordinates: int) -> None:
    x = draw(1, 7, coordinates)
    wanted = x.copy()
    wanted[..., :2] = x[..., :2] @ MATRIX[0, :2, :2].T + MATRIX[0, :2, 3]
    y = run(device_name, "TransformLandmarks", [x, MATRIX], x.shape, version=2)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)


@RUNNERS
def test_pictures_are_sampled_through_a_matrix(device_name: str) -> None:
    x, options = draw(1, 6, 7, 2), b"output_height\x00output_width\x00\x02\x1c\x0f\x02\x01\x02\x10\x10\x04\x04\x04$\x01"
    wanted = np.zeros((1, 16, 16, 2), np.float32)
    for i, j in np.ndindex(16, 16):
        across, down = MATRIX[0, :2, :2] @ (j + 0.5, i + 0.5) + MATRIX[0, :2, 3] - 0.5
        if 0 <= across <= 6 and 0 <= down <= 5:
            left, top = int(across), int(down)
            for k, m in np.ndindex(2, 2):
                row, column, part = top + k, left + m, abs(1 - k - down + top) * abs(1 - m - across + left)
                if part:
                    wanted[0, i, j] += part * x[0, row, column]
    y = run(device_name, "TransformTensorBilinear", [x, MATRIX], wanted.shape, custom=options, version=2)
    assert np.count_nonzero(wanted) > 20
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)


@RUNNERS
def test_a_box_around_landmarks_becomes_a_matrix(device_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw(1, 9, 3) * 10
    options = {
        "subset_idxs": [0, 2, 4, 8], "left_rotation_idx": 1, "right_rotation_idx": 5, "target_rotation_radians": 0.25,
        "output_height": 16, "output_width": 12, "scale_x": 1.5, "scale_y": 1.25,
    }  # fmt: skip
    monkeypatch.setattr("singe.tflite.ops.custom.read_options", lambda _: options)
    y = run(device_name, "Landmarks2TransformMatrix", [x], (1, 4, 4), version=2)
    turn = 0.25 - np.arctan2(*(x[0, 5, :2] - x[0, 1, :2])[::-1])
    level = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    box = x[0, options["subset_idxs"], :2] @ level.T
    size, middle = box.max(0) - box.min(0), (box.max(0) + box.min(0)) / 2
    for corner in ((0, 0), (12, 0), (12, 16)):  # a corner of the picture lies at that of the enlarged box
        share = np.array(corner) / (12, 16) - 0.5
        wanted = level.T @ (middle + share * size * (1.5, 1.25))
        np.testing.assert_allclose(y[0, :2, :2] @ corner + y[0, :2, 3], wanted, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(y[0, 2:], [[0, 0, 1, 0], [0, 0, 0, 1]])
    assert flexbuffer.read_options(b"") == {}
