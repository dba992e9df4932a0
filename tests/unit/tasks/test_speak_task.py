"""`sg.task("speak")`: what is said of a text, sentence by sentence, with a seed; a voice of a few nodes stands for Piper's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_voice import LETTERS, RATE, voice_in

import singe as sg
from singe.errors import FormatError, InputError
from singe.files.sounds import sound_of
from singe.speech.piper import PAUSE_SECONDS

pytestmark = pytest.mark.slow


def test_a_text_sounds_the_same_again_and_is_said_sentence_by_sentence(tmp_path: Path) -> None:
    speak = sg.task("speak", voice_in(tmp_path), device="numpy")
    answer = speak("ab, c. de!")
    np.testing.assert_array_equal(answer.audio, speak("ab, c. de!").audio)
    assert answer.sample_rate == RATE
    parts = list(speak.stream("ab, c. de!"))
    assert [part.text for part in parts] == ["ab, c.", "de!"]
    np.testing.assert_array_equal(np.concatenate([part.audio for part in parts]), answer.audio)
    assert [part.text for part in speak.stream(iter("ab, c. de!"))] == ["ab, c.", "de!"]
    assert not np.array_equal(answer.audio, speak("ab, c. de!", seed=None).audio)
    answer.save(tmp_path / "said.wav")
    np.testing.assert_allclose(sound_of(tmp_path / "said.wav").samples, answer.audio, atol=1e-3)
    with pytest.raises(InputError, match="speaker 3, expected one of 0"):
        speak("ab", speaker=3)
    speak.close()
    with pytest.raises(InputError, match="closed"):
        speak("ab")


def test_phonemes_are_numbered_with_marks_around_and_pads_between(tmp_path: Path) -> None:
    speak = sg.task("speak", voice_in(tmp_path, inference={"noise_scale": 0}), device="numpy")
    pause = round(PAUSE_SECONDS * RATE)
    said = speak("ba?").audio[:-pause] * 100
    expected = [LETTERS.index(x) for x in "^_b_a_$"]
    np.testing.assert_allclose(said, expected, atol=1e-3)
    np.testing.assert_allclose(speak("ba", speed=2).audio[:-pause] * 200, expected, atol=1e-3)


def test_a_bundle_is_read_back(tmp_path: Path) -> None:
    speak = sg.task("speak", voice_in(tmp_path, speaker_id_map={}), device="numpy")
    sg.export(speak, tmp_path / "public", ["wasm"])
    again = sg.task("speak", tmp_path / "public", device="wasm")
    assert again.info == speak.info
    signs = "ab, c. de!"
    there = sg.task("speak", tmp_path / "voice.onnx", device="wasm")(signs).audio
    np.testing.assert_array_equal(again(signs).audio, there)
    with pytest.raises(InputError, match="its task is 'speak', got 'embed'"):
        sg.task("embed", tmp_path / "public")
    manifest = tmp_path / "public" / "model.json"
    for old, new, told in (
        ('"rate":8000', '"rate":8', "sample_rate"),
        ('"speakers":{}', '"speakers":[]', "speaker_id_map"),
        ('"kind":"speak"', '"kind":"x"', "its task is 'x'"),
    ):
        text = manifest.read_text()
        assert old in text
        manifest.write_text(text.replace(old, new))
        with pytest.raises(sg.SingeError, match=told):
            sg.task("speak", tmp_path / "public")
        manifest.write_text(text)


def test_what_a_voice_does_not_have_is_refused(tmp_path: Path) -> None:
    speak = sg.task("speak", voice_in(tmp_path, phoneme_type="espeak", language={"family": "de"}), device="numpy")
    with pytest.raises(InputError, match="phonemes=True"):
        speak("guten Tag")
    assert len(speak("ɡuten", phonemes=True).audio)
    with pytest.raises(InputError, match="speed"):
        speak("a", speed=0)
    with pytest.raises(InputError, match="expected a text"):
        speak(3)
    for facts, told in (
        ({"audio": {}}, "sample_rate"), ({"phoneme_id_map": {"a": [1]}}, "phoneme_id_map"), ({"phoneme_type": "x"}, "phoneme_type"),
        ({"inference": {"noise_scale": -1}}, "inference"), ({"speaker_id_map": {"a": "b"}}, "speaker_id_map"), ({"audio": []}, "object"),
    ):  # fmt: skip
        with pytest.raises(FormatError, match=told):
            sg.task("speak", voice_in(tmp_path, **facts), device="numpy")
    (tmp_path / "voice.onnx.json").unlink()
    with pytest.raises(InputError, match=r"voice\.onnx\.json"):
        sg.task("speak", tmp_path / "voice.onnx")
