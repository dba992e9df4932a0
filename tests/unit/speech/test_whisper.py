"""Whisper's network: what it hears and says is what OpenAI's own gives, from each form of file; damaged files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_whisper
from devices import NUMPY, RUNNERS
from tiny_whisper import opened

from singe.errors import FormatError, InputError, SingeError
from singe.language.encoder_decoders.onnx_files import onnx_weights
from singe.language.encoder_decoders.running import MOST_TEXTS
from singe.speech.hearing.mel import slaney_bands
from singe.speech.whisper.files import files_in
from singe.speech.whisper.model import SpeechModel
from singe.speech.whisper.spectrogram import LENGTH, STEP, sample_count, samples_for
from singe.speech.whisper.whole import TYPES
from singe.weights import read_weights

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_whisper.hugging_face(tmp_path_factory.mktemp("whisper"))


def _scores(model: SpeechModel) -> np.ndarray:
    window = tiny_whisper.window()
    model.hear(window, float(window.max()), tiny_whisper.COUNT)
    texts, ids = model.texts(1), tiny_whisper.IDS
    return np.concatenate([texts.add([ids[:4]], 4)[0], *(texts.add([[token]])[0] for token in ids[4:])])


@NUMPY
def test_what_it_says_of_a_window_is_what_the_reference_says(folder: Path, device_name: str) -> None:
    expected = tiny_whisper.expected()
    scores = _scores(opened(folder).model(device_name))
    np.testing.assert_allclose(scores, expected["scores"], atol=2e-4 * np.abs(expected["scores"]).max())


def test_both_forms_of_files_give_the_same_model(folder: Path, tmp_path: Path) -> None:
    other = tiny_whisper.ctranslate2(tmp_path / "other")
    np.testing.assert_allclose(
        _scores(opened(other).model("numpy")),
        _scores(opened(folder).model("numpy")),
        atol=1e-5,
    )


def test_matrices_of_8_bits_say_nearly_the_same(tmp_path: Path) -> None:
    expected = tiny_whisper.expected()["scores"]
    scores = _scores(opened(tiny_whisper.ctranslate2(tmp_path / "int8", int8=True)).model("numpy"))
    error = np.abs(scores - expected).max() / np.abs(expected).max()
    assert 1e-4 < error < 0.05


@RUNNERS
def test_one_program_with_all_functions_says_what_several_models_say(folder: Path, device_name: str) -> None:
    several = opened(folder).model(device_name)
    d, ids = several.description, list(tiny_whisper.IDS)
    seconds = np.arange(sample_count(d.frames)) / 16_000
    samples = (np.sin(900 * seconds * seconds) * 0.4).astype(np.float32)
    powers, loudest = several.window(samples, 2)
    peak = loudest + 1
    several.hear(powers, peak, tiny_whisper.COUNT)
    seen, scores = several.align(ids)
    session = several.whole("whisper").session()
    nothing = {
        "samples": 0,
        "peak": 0,
        "count": 1,
        "ids": 0,
        "keys": (0, 0),
        "rows": (0, 0),
        "order": 0,
        "looked": (0, 0),
    }

    def run(**given: Any) -> Any:
        return session(
            {name: np.asarray(given.get(name, np.zeros(shape)), TYPES[name]) for name, shape in nothing.items()}
        )

    def count(n: int) -> np.ndarray:
        return np.empty((n, 0))

    window = samples_for(samples, 2, d.frames)
    np.testing.assert_allclose(run(samples=window)["loudest"], powers.max(), atol=1e-5)
    heard = run(samples=window, peak=[peak], count=[tiny_whisper.COUNT])
    np.testing.assert_allclose(heard["loudest"], peak, atol=1e-5)
    said = run(ids=ids, keys=count(7), rows=count(7), looked=count(7))
    np.testing.assert_allclose(said["scores"], scores, atol=2e-4)
    np.testing.assert_allclose(said["seen"], seen, atol=2e-4)
    run(ids=ids[:4], keys=count(4), rows=count(1))
    for k, token in enumerate(ids[4:], 4):
        np.testing.assert_allclose(
            run(ids=[token], keys=count(k + 1), rows=count(1))["scores"][0], scores[k], atol=2e-4
        )
    run(ids=ids[:5], keys=count(5), rows=count(1))
    beside = run(ids=[ids[5]] * MOST_TEXTS, keys=count(6), rows=count(1), order=[0] * MOST_TEXTS)["scores"]
    np.testing.assert_allclose(beside, np.tile(scores[5], (MOST_TEXTS, 1)), atol=2e-4)


@pytest.mark.parametrize(
    "names", [["decoder_model_merged.onnx"], ["decoder_model.onnx", "decoder_with_past_model.onnx"]]
)
def test_the_weights_of_onnx_files_are_those_of_safetensors(names: list[str], tmp_path: Path) -> None:
    path = tiny_whisper.onnx_files(tmp_path / "onnx", *names)
    stored, wanted = onnx_weights(files_in(path)), tiny_whisper.arrays()
    assert stored.keys() - {"proj_out.weight"} == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(stored[name].read(), array, err_msg=name)
    assert opened(path).model("numpy").whole("hear").name == "hear"


@pytest.mark.parametrize(
    "names", [["decoder_model_merged.onnx"], ["decoder_model.onnx", "decoder_with_past_model.onnx"]]
)
def test_onnx_files_say_what_the_reference_says(names: list[str], tmp_path: Path) -> None:
    expected = tiny_whisper.expected()["scores"]
    model = opened(tiny_whisper.onnx_files(tmp_path / "onnx", *names)).model("wasm")
    np.testing.assert_allclose(_scores(model), expected, atol=2e-4 * np.abs(expected).max())
    with pytest.raises(InputError, match="decoder_model_merged"):
        opened(tiny_whisper.onnx_files(tmp_path / "half", "decoder_model.onnx"))


def test_texts_side_by_side_go_on_from_the_ones_that_are_named(folder: Path, tmp_path: Path) -> None:
    _check_order(opened(folder).model("numpy"))
    _check_order(opened(tiny_whisper.onnx_files(tmp_path / "onnx", "decoder_model_merged.onnx")).model("numpy"))


def _check_order(model: SpeechModel) -> None:
    window = tiny_whisper.window()
    model.hear(window, float(window.max()), tiny_whisper.COUNT)
    several = model.texts(2)
    several.add([[28, 3], [28, 9]])
    found = several.add([[5], [6]], order=[1, 1])
    for row, last in zip(found, (5, 6), strict=True):
        one = model.texts(1)
        np.testing.assert_allclose(row[0], one.add([[28, 9, last]])[0, 0], atol=1e-4)


def test_bands_are_triangles_of_area_one_over_the_frequencies() -> None:
    weights = slaney_bands(16000, 400, 80)
    assert weights.shape == (LENGTH // 2 + 1, 80)
    inside = weights[:, 20:60]
    np.testing.assert_allclose(inside.sum(0) * 16000 / LENGTH, 1, atol=0.2)
    assert abs(weights.max() - 0.025880683) < 1e-8  # librosa's, of these sizes


def test_frames_are_those_of_a_mirrored_beginning_and_a_silent_end() -> None:
    samples = np.arange(1, 1001, dtype=np.float32)
    found = samples_for(samples, 0, 10)
    assert len(found) == 10 * STEP + LENGTH - STEP
    padded = np.concatenate([np.pad(samples, (200, 0), "reflect"), np.zeros(2000, np.float32)])
    np.testing.assert_array_equal(found, padded[: len(found)])
    np.testing.assert_array_equal(samples_for(samples, 3, 10), padded[3 * STEP :][: len(found)])


def test_damaged_files_of_ctranslate2_are_refused(tmp_path: Path) -> None:
    data = bytearray(tiny_whisper.ctranslate2_bytes())
    rng = np.random.default_rng(0)
    for k in range(300):
        cut = data[: rng.integers(6, len(data))] if k % 3 == 0 else bytearray(data)
        for place in rng.integers(0, min(len(cut), 4000), 3):
            cut[place] = rng.integers(256)
        try:
            read_weights(bytes(cut))
        except SingeError:
            continue
    with pytest.raises(FormatError, match="ends before"):
        read_weights(bytes(data[: len(data) // 2]))
    with pytest.raises(FormatError, match="after the end"):
        read_weights(bytes(data) + b"?")


def test_a_folder_with_other_sizes_than_it_says_is_refused(tmp_path: Path) -> None:
    folder = tiny_whisper.hugging_face(tmp_path / "wrong")
    for key, value, told in (
        ("d_model", 32, "expected"), ("encoder_layers", 1, "does not know"), ("decoder_layers", 3, "missing"),
        ("activation_function", "relu", "expected 'gelu'"), ("max_target_positions", -1, "expected a number"),
    ):  # fmt: skip
        (folder / "config.json").write_text(json.dumps({**tiny_whisper.config(), key: value}))
        with pytest.raises(FormatError, match=told):
            opened(folder).model("numpy")
