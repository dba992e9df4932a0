"""Wake words, classes of sounds and speakers: features and networks are those of their makers, and facts that do not fit are refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hearing_cases import CONFIG, MAKERS, lines, sound, transformer_folder
from sound_models import of, shared_networks_in, talk, word_of_vectors

import singe as sg
from singe.errors import FormatError, InputError
from singe.speech.hearing.mel import fbank, kaldi_window, mel_power
from singe.speech.hearing.micro_frontend import BANDS, LENGTH, SCALE, STEP, micro_features
from singe.speech.hearing.voice_encoder import VoiceEncoder, voice_encoder
from singe.tasks.sound.running import SoundRun, raised
from singe.tasks.sound.speakers import turns_of, voices_of, windows_of
from singe.tasks.sound.spec import SoundInput
from singe.weights.safetensors import write_safetensors

RATE: Final = 16000
VOICE: Final = SoundInput("voice bands", RATE, 12320, 200, 13480)


def program_of(function: Any, device: Any, *shapes: tuple[int, ...]) -> Any:
    def whole(*given: sg.Tensor) -> dict[str, sg.Tensor]:
        return {str(k): x for k, x in enumerate(function(*given))}

    return sg.Model.of(whole, {f"x{k}": shape for k, shape in enumerate(shapes)}, device).program()


@pytest.mark.slow
def test_features_of_the_micro_frontend_are_the_same_integers(on: sg.Device) -> None:
    wanted, samples = np.array(MAKERS["micro"]), sound(STEP * 33 + LENGTH - STEP)
    noise = np.zeros((2, BANDS), np.float32)
    program = program_of(lambda x, n: micro_features(x, 3, n), on, (2 * STEP + LENGTH,), noise.shape)
    for k in range(0, 6 if on.name == "webgpu" else 33, 3):
        part = samples[k * STEP : (k + 2) * STEP + LENGTH]
        features, noise = program.run([part, noise])
        np.testing.assert_array_equal(np.round(features / SCALE), wanted[k : k + 3])


@pytest.mark.slow
def test_bands_are_those_of_kaldi_and_of_librosa(on: sg.Device) -> None:
    samples = sound(2000)[None]
    (kaldi,) = program_of(lambda x: [fbank(x, RATE, 16)], on, samples.shape).run([samples])
    np.testing.assert_allclose(kaldi[0], MAKERS["kaldi"], atol=2e-3)
    (librosa,) = program_of(lambda x: [mel_power(x, RATE, 400, 160, 16)], on, samples.shape).run([samples])
    wanted = np.array(MAKERS["librosa"])
    np.testing.assert_allclose(librosa[0], wanted, atol=1e-5 * wanted.max())


def test_windows_that_are_unknown_are_refused() -> None:
    with pytest.raises(InputError, match="window 'hamming', expected hanning or povey"):
        kaldi_window("hamming", 8)


# --- wake words -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_word_is_heard_in_blocks_of_any_size_as_in_the_whole(on: sg.Device, tmp_path: Path) -> None:
    made = sg.task("wake-word", of("wake-word"), labels=["hey you"], device=on)
    samples = talk(0.4 if on.name == "webgpu" else 1.2)
    whole = made(samples, sampling_rate=RATE, threshold=0.5)
    scores = whole.scores
    assert (scores[:4] == 0).all()  # the mean of five
    assert len(scores) == -(-len(samples) // 480)
    crossings = np.flatnonzero((scores > 0.5) & ~(np.append(0, scores[:-1]) > 0.5))
    assert len(crossings)
    assert [round(word.at * RATE) for word in whole] == [(k + 1) * 480 + 320 for k in crossings]
    assert whole[0].label == "hey you"
    parts = list(made.stream(np.split(samples, [100, 3000, 3001]), sampling_rate=RATE, threshold=0.5))
    np.testing.assert_array_equal(np.concatenate([part.scores for part in parts]), scores)
    assert [word for part in parts for word in part] == list(whole)
    whole.save(tmp_path / "words.json")
    assert json.loads((tmp_path / "words.json").read_text()) == whole.to_dict()


@pytest.mark.slow
def test_openwakewords_models_hear_by_the_networks_beside_them(tmp_path: Path) -> None:
    word = word_of_vectors()
    with pytest.raises(InputError, match=r"melspectrogram.onnx and embedding_model.onnx must be beside it"):
        sg.task("wake-word", word, labels=["hey"])
    shared_networks_in(tmp_path)
    made = sg.task("wake-word", word, labels="hey", beside=tmp_path, device="numpy")
    assert made.info.options == {"threshold": 0.5, "mean_of": 1}
    samples = talk(2)[: 1280 * 24]
    frames = (samples.reshape(-1, 160)[:, :32] * 32768) / 10 + 2
    vectors = np.stack([np.tile(frames[k - 76 : k].mean(0), 3) for k in range(80, len(frames) + 1, 8)])
    wanted = 1 / (1 + np.exp(-(vectors[3:].mean(1) * 0.001 + vectors[:-3, 0] * 0.01)))
    scores = np.concatenate([x.scores for x in made.stream(np.split(samples, [1000, 9000]), sampling_rate=RATE)])
    np.testing.assert_allclose(scores[12:], wanted, atol=2e-5)
    sg.onnx.save(
        sg.Model.of(lambda x: x[:, :960].reshape(1, 30, 32), {"x": (1, 1760)}), tmp_path / "melspectrogram.onnx"
    )
    with pytest.raises(InputError, match=r"the network of bands makes \(1, 30, 32\), expected \(8, 32\)"):
        sg.task("wake-word", word, labels=["hey"], beside=tmp_path)


def test_what_models_remember_begins_as_the_model_says() -> None:
    from singe.graph import Builder, Graph, GraphState  # noqa: PLC0415
    from singe.tasks.sound.remembering import remembering  # noqa: PLC0415

    b = Builder()
    x, leaf = b.input("x", (2,), sg.float32), b.input("kept", (2,), sg.float32)
    total = b.add(x, leaf)
    graph = Graph((x,), (total,), ("y",), states=(GraphState(leaf, "kept", np.full(2, -3, np.float32), total),))
    whole, (kept,) = remembering(graph)
    assert (len(whole.inputs), whole.states, kept.place) == (2, (), 1)
    assert kept.initial is not None
    assert (kept.initial == -3).all()
    assert kept.output in whole.output_names


def test_the_file_beside_a_wake_word_says_its_threshold(tmp_path: Path) -> None:
    sg.save(of("wake-word"), tmp_path / "word.singe")
    facts = {"wake_word": "Hey you", "micro": {"probability_cutoff": 0.25, "sliding_window_size": 2}}
    (tmp_path / "word.json").write_text(json.dumps(facts))
    made = sg.task("wake-word", tmp_path / "word.singe", device="numpy")
    assert made.info.labels == ("Hey you",)
    assert made.info.options == {"threshold": 0.25, "mean_of": 2}
    for name, value, error in (
        ("probability_cutoff", 2, "is 2, expected a number from 0 to 1"),
        ("probability_cutoff", 1.0, "is 1, which no score is over"),
        ("sliding_window_size", 2.5, "is 2.5, expected a whole number"),
    ):
        wrong = {**facts, "micro": {"probability_cutoff": 0.25, "sliding_window_size": 2, name: value}}
        (tmp_path / "word.json").write_text(json.dumps(wrong))
        with pytest.raises(FormatError, match=f"{name} {error}"):
            sg.task("wake-word", tmp_path / "word.singe", device="numpy")
    with pytest.raises(InputError, match="threshold is 3, expected"):
        made(np.zeros(2000), sampling_rate=RATE, threshold=3)


# --- classes ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_spectrogram_transformer_hears_what_transformers_hears(on: sg.Device, tmp_path: Path) -> None:
    made = sg.task("sounds", transformer_folder(tmp_path / "heard"), device=on)
    for count, logits in MAKERS["transformer"]["logits"].items():  # one that fills a window, and one that ends before
        answer = made(sound(int(count)), sampling_rate=RATE, top=0)
        chances = np.exp(logits) / np.exp(logits).sum()
        assert [found.label for found in answer] == [CONFIG["id2label"][str(k)] for k in np.argsort(-chances)]
        np.testing.assert_allclose([found.score for found in answer], sorted(chances, reverse=True), atol=1e-5)


@pytest.mark.slow
def test_classes_of_a_long_sound_are_the_mean_over_its_windows(tmp_path: Path) -> None:
    made = sg.task("sounds", of("sounds"), device="numpy", labels=list("abcde"), head="several")
    step = made.info.preparation.step
    samples = sound(step + step // 2)
    chances = [
        {x.label: x.score for x in made(part, sampling_rate=RATE, top=0)}
        for part in (samples[: step + 240], samples[step:])
    ]
    parts = (step, step // 2 - 240)
    wanted = {k: sum(n * part[k] for n, part in zip(parts, chances, strict=True)) / sum(parts) for k in "abcde"}
    for found in made(samples, sampling_rate=RATE, top=0):
        assert found.score == pytest.approx(wanted[found.label], abs=1e-6)
    answer = made(samples, sampling_rate=RATE, top=2)
    assert (len(answer), answer.windows) == (2, 2)
    assert len(made(np.zeros(0), sampling_rate=RATE)) == 0
    waves = sg.Model.of(lambda x: {"y": x.reshape(1, 5, -1).square().mean(2)}, {"x": (8000,)}, name="waves")
    found = sg.task("sounds", waves, device="numpy", head="given")(
        np.r_[np.zeros(1600), np.ones(1600)], sampling_rate=RATE
    )
    assert found[0].index == 1
    assert found[0].score == pytest.approx(1.0)
    with pytest.raises(InputError, match="top is -1"):
        made(samples, sampling_rate=RATE, top=-1)


def test_a_rate_that_is_supposed_is_said_to_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    waves = sg.Model.of(lambda x: {"y": x.reshape(1, 5, -1).square().mean(2)}, {"x": (4000,)}, "numpy", name="waves")
    file = tmp_path / "preprocessor_config.json"
    with caplog.at_level(logging.WARNING, "singe"):
        file.write_text('{"sampling_rate": 32000}')
        assert sg.task("sounds", waves, beside=tmp_path).info.preparation.rate == 32000
        sg.task("sounds", waves, rate=16000)
        assert not caplog.messages
        assert sg.task("sounds", waves).info.preparation.rate == 16000
    assert "sounds: waves is given 16000 samples a second" in caplog.messages[0]
    file.write_text('{"sampling_rate": 3}')
    with pytest.raises(FormatError, match="sampling_rate is 3, expected a number from"):
        sg.task("sounds", waves, beside=tmp_path)
    with pytest.raises(InputError, match="sounds: rate 8000: this model takes 16000 and nothing else"):
        sg.task("sounds", of("sounds"), rate=8000)


WRONG: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "another family": (
        {"model_type": "wav2vec2"},
        "model_type is 'wav2vec2', expected 'audio-spectrogram-transformer'",
    ),
    "a class without a name": ({"id2label": {"0": "rain", "2": "dog"}}, "id2label has 2 names, and none of class 1"),
    "too many layers": ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
    "heads that do not divide": ({"num_attention_heads": 3}, "do not fit"),
    "a layer more": ({"num_hidden_layers": 3}, "the tensor 2.query.weight is missing"),
    "a layer less": ({"num_hidden_layers": 1}, "tensors that Singe does not know"),
    "other patches": ({"frequency_stride": 4}, "the tensor position_embeddings has the shape"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path, wrong: str) -> None:
    change, error = WRONG[wrong]
    folder = transformer_folder(tmp_path / "heard")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **change}))
    with pytest.raises(FormatError, match=error):
        sg.task("sounds", folder, device="numpy")


# --- speakers ---------------------------------------------------------------------------------------------------------


def test_windows_of_a_sound_are_those_of_resemblyzer() -> None:
    for count in (1, 16000, 25599, 31519, 31520, 43839, 43840, 160000, 1234567):
        frames = -(-(count + 1) // 160)
        starts = list(range(0, max(1, frames - 160 + 77 + 1), 77))
        if (count - starts[-1] * 160) / 25600 < 0.75 and len(starts) > 1:
            starts.pop()
        assert windows_of(count, VOICE) == len(starts), count


@pytest.mark.slow
def test_the_encoder_of_voices_is_resemblyzers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    state = {name: rng.normal(0, 0.1, x.shape).astype(np.float32) for name, x in VoiceEncoder().state_dict().items()}
    bands = rng.random((2, 160, 40)).astype(np.float32)

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    x: np.ndarray = bands.astype(np.float64)
    for k in range(3):
        h = c = np.zeros((2, 256))
        rows: list[np.ndarray] = []
        for frame in range(160):
            gates = x[:, frame] @ state[f"lstm.weight_ih_l{k}"].T + state[f"lstm.bias_ih_l{k}"]
            gates = gates + h @ state[f"lstm.weight_hh_l{k}"].T + state[f"lstm.bias_hh_l{k}"]
            take, forget, new, out = np.split(gates, 4, 1)
            c = sigmoid(forget) * c + sigmoid(take) * np.tanh(new)
            h = sigmoid(out) * np.tanh(c)
            rows.append(h)
        x = np.stack(rows, 1)
    wanted = np.maximum(0, x[:, -1] @ state["linear.weight"].T + state["linear.bias"])
    module = VoiceEncoder().with_state(state)
    np.testing.assert_allclose(np.asarray(module(sg.tensor(bands))), wanted, atol=2e-5)
    write_safetensors(tmp_path / "other.safetensors", {"a": np.zeros(3, np.float32)})
    with pytest.raises(InputError, match="no weights of Resemblyzer's encoder"):
        voice_encoder(tmp_path / "other.safetensors", "numpy", "other")


@pytest.mark.slow
def test_a_voice_is_a_vector_of_length_1(on: sg.Device) -> None:
    made = sg.task("speaker", of("speaker"), device=on)
    one, other = made(talk(4), sampling_rate=RATE), made(talk(1), sampling_rate=RATE)
    assert np.linalg.norm(one.vector) == pytest.approx(1, abs=1e-6)
    assert (one.windows, other.windows) == (4, 1)
    quiet, quieter = (made(talk(1) * factor, sampling_rate=RATE) for factor in (0.01, 0.002))
    assert quiet.similarity(quieter) == pytest.approx(1, abs=1e-4)  # both are raised
    with pytest.raises(InputError, match="the sound is empty"):
        made(np.zeros(0), sampling_rate=RATE)


def test_rows_are_told_how_many_of_their_samples_are_of_the_sound() -> None:
    told: list[float] = []

    def run(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        told.extend(given["lengths"].tolist())
        return {}

    through = SoundRun(run, SoundInput("log bands", RATE, 1 << 20, 0, 240, 1, lengths=True))
    through.push(np.zeros(6 << 20, np.float32))
    through.push(np.zeros(1000, np.float32))
    through.finish()
    assert told == [(1 << 20) + 240] * 6 + [1000]


def test_quiet_sounds_are_raised_and_loud_ones_are_not() -> None:
    quiet = np.full(100, 1e-3, np.float32)
    np.testing.assert_allclose(raised(quiet, 30.0), 10**-1.5, rtol=1e-5)
    loud = np.full(100, 0.5, np.float32)
    assert raised(loud, 30.0) is loud
    assert (raised(np.zeros(5, np.float32), 30.0) == 0).all()


def test_windows_that_are_alike_are_of_one_voice() -> None:
    vectors = lines(24)
    wanted = [(k // 4) % 3 for k in range(24)]
    assert voices_of(vectors.astype(float), 0.65, 0) == wanted
    assert len(set(voices_of(vectors.astype(float), 0.65, 2))) == 2
    assert set(voices_of(vectors.astype(float), -1, 0)) == {0}
    several = voices_of(np.random.default_rng(0).normal(size=(200, 8)) / 3, 1.0, 3)
    assert list(dict.fromkeys(several)) == [0, 1, 2]
    turns = turns_of(vectors, [(0.0, 100.0)], 20.0, VOICE, 0.65, 0)
    assert [turn[0] for turn in turns] == [0, 1, 2, 0, 1, 2]
    assert turns[0][1] == 0
    assert turns[-1][2] == 20.0
    assert all(a[2] == b[1] for a, b in pairwise(turns))
    apart = turns_of(vectors, [(5.0, 6.0), (1.0, 2.0)], 20.0, VOICE, 0.65, 0)
    assert apart[0][1:] == (1.0, 2.0)
    assert turns_of(vectors, [], 20.0, VOICE, 0.65, 0) == []


@pytest.mark.slow
def test_who_spoke_when_is_asked_of_segments() -> None:
    made = sg.task("speakers", of("speakers"), device="numpy")
    samples = talk(5)
    whole = made(samples, sampling_rate=RATE)
    assert (whole[0].start, whole[-1].end) == (0.0, len(samples) / RATE)
    voices = sg.task("voices", of("voices"), device="numpy")(samples, sampling_rate=RATE)
    turns = made(samples, sampling_rate=RATE, segments=voices)
    assert {turn.start for turn in turns} >= {segment.start for segment in voices}
    assert made(samples, sampling_rate=RATE, segments=voices.to_dict()) == turns
    assert made(samples, sampling_rate=RATE, segments=[(x.start, x.end) for x in voices]) == turns
    assert repr(turns).startswith(f"<speakers: {turns.speakers} in {len(turns)} turns>")
    for wrong in ([3], ["ab"], [{"start": 1}], [(0.0, float("nan"))]):
        with pytest.raises(InputError, match=r"a segment .* expected those of"):
            made(samples, sampling_rate=RATE, segments=wrong)
