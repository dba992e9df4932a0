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


POST_PROCESS = bytes.fromhex(
    "6d61785f646574656374696f6e73006d61785f636c61737365735f7065725f646574656374696f6e006e756d5f636c6173736573007573655f726567"
    "756c61725f6e6d7300646574656374696f6e735f7065725f636c617373006e6d735f73636f72655f7468726573686f6c64006e6d735f696f755f7468"
    "726573686f6c6400795f7363616c6500785f7363616c6500685f7363616c6500775f7363616c65000b5c1294a4374c7e7311222b000000000f000000"
    "0000000001000000000000000b000000000000006400000000000000000000000000144001000000000000000a00000000000000000000000000e03f"
    "333333333333d33f05000000000000000000000000000000000000000000144000000000000024400000000000002440070f07070f0f076b0f0f0f63"
    "2701"
)
"""Options in FlexBuffers: 10 boxes of 5 classes, scores over 0.3, overlaps under 0.5, scales of 10, 10, 5 and 5."""


def likeliest(codes: np.ndarray, scores: np.ndarray, anchors: np.ndarray) -> list[np.ndarray]:
    """As the options say; TensorFlow Lite's interpreter gives the same."""
    center = codes[0, :, :2] / 10 * anchors[:, 2:] + anchors[:, :2]
    half = np.exp(codes[0, :, 2:] / 5) * anchors[:, 2:] / 2
    boxes, best = np.concatenate([center - half, center + half], 1), scores[0, :, 1:].max(1)
    kept: list[int] = []
    for k in np.argsort(-best):
        if best[k] < 0.3 or len(kept) == 10:
            break
        low = np.maximum(boxes[kept, :2], boxes[k, :2])
        common = np.prod(np.maximum(np.minimum(boxes[kept, 2:], boxes[k, 2:]) - low, 0), axis=1)
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
        if not (common > 0.5 * (areas[kept] + areas[k] - common)).any():
            kept.append(int(k))
    whole = [np.zeros((1, 10, 4)), np.zeros((1, 10)), np.zeros((1, 10)), np.array([len(kept)])]
    for y, x in zip(whole, (boxes, scores[0, :, 1:].argmax(1), best), strict=False):
        y[0, : len(kept)] = x[kept]
    return whole


@RUNNERS
@pytest.mark.parametrize("much", [1.0, 0.35])
def test_detections_are_the_likeliest_that_do_not_overlap(device_name: str, much: float) -> None:
    rng = np.random.default_rng(2)
    codes, scores = rng.normal(0, 1, (1, 60, 4)).astype(np.float32), (much * rng.random((1, 60, 6))).astype(np.float32)
    anchors = np.concatenate([rng.random((60, 2)), rng.uniform(0.1, 0.4, (60, 2))], 1).astype(np.float32)
    wanted = likeliest(codes, scores, anchors)
    found = run(
        device_name, "TFLite_Detection_PostProcess", [codes, scores, anchors], *(x.shape for x in wanted), custom=POST_PROCESS, constants=1,
    )  # fmt: skip
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
