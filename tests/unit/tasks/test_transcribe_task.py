"""`sg.task("transcribe")`: what it takes, what it gives and writes, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_whisper
from command_line import run
from pair_cases import moonshine_folder, read_pairs, source_of

import singe as sg
from singe.errors import InputError
from singe.files.sounds import wav_bytes
from singe.tasks.saying import SAYING
from singe.tools import options

pytestmark = pytest.mark.slow

RATE = 16000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_whisper.hugging_face(tmp_path_factory.mktemp("whisper"))


def _sound() -> np.ndarray:
    seconds = np.arange(RATE) / RATE
    return (np.sin(900 * seconds * seconds) * np.sin(20 * seconds) * 0.4).astype(np.float32)


def test_files_arrays_and_streams_of_a_sound_give_the_same_text(folder: Path, tmp_path: Path) -> None:
    transcribe = sg.task("transcribe", folder, device="numpy")
    # The loudest comes first, so that a stream knows it from the beginning, too.
    samples = np.round(_sound() * np.linspace(1, 0.1, RATE) * 32767) / 32768
    answer = transcribe(samples, sampling_rate=RATE, language="en")
    assert answer.text
    assert answer.language == "en"
    assert transcribe(wav_bytes(samples, RATE), language="en").text == answer.text
    *_, last = transcribe.stream(
        (samples[k : k + 3000] for k in range(0, RATE, 3000)), language="en", sampling_rate=RATE
    )
    assert last.text == answer.text
    found = transcribe(samples, sampling_rate=RATE)
    assert found.language in transcribe.languages
    transcribe.close()
    with pytest.raises(InputError, match="closed"):
        transcribe(samples, sampling_rate=RATE)


def test_subtitles_have_the_times_of_parts(folder: Path, tmp_path: Path) -> None:
    answer = sg.task("transcribe", folder, device="numpy")(_sound(), sampling_rate=RATE, language="en")
    answer.save(tmp_path / "talk.srt")
    answer.save(tmp_path / "talk.vtt")
    answer.save(tmp_path / "talk.json")
    first = answer.chunks[0]
    number, times, text, *_ = (tmp_path / "talk.srt").read_text("utf-8").split("\n")
    assert (number, text) == ("1", first.text.strip())
    assert times.startswith(f"00:00:{first.start:06.3f}".replace(".", ",") + " --> ")
    assert (tmp_path / "talk.vtt").read_text("utf-8").startswith("WEBVTT\n\n1\n")
    assert json.loads((tmp_path / "talk.json").read_text("utf-8")) == answer.to_dict()


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.safetensors, model\.bin or encoder_model"):
        sg.task("transcribe", tmp_path)


def test_the_help_names_every_task_that_says_something() -> None:
    assert options.SAYING.split(", ") == list(SAYING)


def test_the_command_writes_subtitles(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "talk.wav").write_bytes(wav_bytes(_sound(), RATE))
    told = run(
        capsys,
        "task",
        "transcribe",
        tmp_path / "talk.wav",
        "--model",
        folder,
        "--language",
        "en",
        "-o",
        tmp_path / "talk.srt",
    )
    assert told[0] == 0, told
    assert (tmp_path / "talk.srt").read_text("utf-8").startswith("1\n00:00:")


def test_a_sound_of_no_length_has_no_text(folder: Path) -> None:
    transcribe = sg.task("transcribe", folder, device="numpy")
    for count in (0, 1, 159, 161):
        answer = transcribe(np.zeros(count, np.float32), sampling_rate=RATE, language="en")
        assert all(0 <= part.start <= part.end for part in answer.chunks)


def test_moonshine_is_a_row_under_transcribe(tmp_path: Path) -> None:
    """What its network gives is compared with transformers' in tests/conformance/language."""
    case = read_pairs()["moonshine"]
    folder = moonshine_folder(tmp_path)
    transcribe = sg.task("transcribe", folder, device="numpy")
    sound = source_of("moonshine")
    answer = transcribe(sound, sampling_rate=16_000)
    assert answer.to_dict()["chunks"][0]["timestamp"] == [0.0, len(sound) / 16_000]
    text = case["texts"][0][1:]
    assert list(answer.chunks[0].tokens[: len(text)]) == text
    *_, last = transcribe.stream([sound[:2000], sound[2000:]], sampling_rate=16_000)
    assert last == answer
    assert transcribe(sound[:100], sampling_rate=16_000).text == ""
    with pytest.raises(InputError, match="beams 0"):
        transcribe(sound, sampling_rate=16_000, beams=0)
