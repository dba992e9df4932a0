"""`sg.task("speak")`: what is said of a text, sentence by sentence, with a seed; a voice of a few nodes stands for Piper's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny_voice import LETTERS, RATE, kokoro_in, voice_in

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


def test_the_first_sound_is_there_before_the_second_sentence_ends(tmp_path: Path) -> None:
    """Of a text that comes in parts; what follows is waited for meanwhile."""
    speak = sg.task("speak", voice_in(tmp_path), device="numpy")
    further = threading.Event()

    def parts() -> Iterator[str]:
        yield "ab. d"
        assert further.wait(60), "the first sound did not come"
        yield "e. ba."

    said = speak.stream(parts())
    first = next(said)
    further.set()
    assert [first.text, *(sound.text for sound in said)] == ["ab.", "de.", "ba."]
    further.clear()
    left = speak.stream(parts())
    next(left)
    del left  # though the next text has not come
    further.set()


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
    for place in (tmp_path / "none.onnx", tmp_path / "nowhere" / "voice.onnx"):
        with pytest.raises(InputError, match=place.name):
            sg.task("speak", place)


def test_kokoro_is_given_the_style_of_a_speaker_for_each_length(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    speak = sg.task("speak", kokoro_in(tmp_path), device="numpy")
    pause = round(PAUSE_SECONDS * 24000)
    assert speak("ba a!", phonemes=True).audio[:-pause].tolist() == [0, 44 * 4, 43 * 4, 16 * 4, 43 * 4, 0]
    assert caplog.text.count("half a minute for each second of sound on numpy") == 1
    other = speak("ba", phonemes=True, speaker="bf_emma", speed=2).audio[:-pause]
    np.testing.assert_allclose(other, np.array([0, 44, 43, 0]) * 1002 / 2, rtol=1e-6)
    long = speak("a" * 700, phonemes=True).audio[:-pause]
    assert long.tolist() == [0, *[43 * 510] * 510, 0, 0, *[43 * 190] * 190, 0]
    sg.export(speak, tmp_path / "public", ["wasm"])
    again = sg.task("speak", tmp_path / "public", device="wasm")
    assert again.info.preparation.voice.network == "kokoro"
    np.testing.assert_array_equal(
        again("ba a", phonemes=True, speaker=1).audio, speak("ba a", phonemes=True, speaker=1).audio
    )
    with pytest.raises(InputError, match="speaker 'joe', expected one of am_adam, bf_emma"):
        speak("a", phonemes=True, speaker="joe")


def test_what_kokoro_needs_is_asked_for(tmp_path: Path) -> None:
    folder = kokoro_in(tmp_path)
    (folder / "voices" / "short.bin").write_bytes(b"1234")
    with pytest.raises(FormatError, match="short"):
        sg.task("speak", folder)
    for path in (folder / "voices").iterdir():
        path.unlink()
    with pytest.raises(InputError, match=r"without voices beside it, expected voices/NAME.bin"):
        sg.task("speak", folder)
    np.savez(folder / "voices.npz", af=np.zeros((3, 256), np.float32))
    with pytest.raises(FormatError, match=r"'af' is float32.3, 256., expected a style, float32.510, 256."):
        sg.task("speak", folder)
    np.savez(folder / "voices.npz", af=np.zeros((510, 1, 256), np.float32))
    assert len(sg.task("speak", folder, device="numpy")("ab", phonemes=True).audio)
    (folder / "vocab.json").write_text('{"vocab": {"a": -1}}')
    with pytest.raises(FormatError, match="expected the numbers of Kokoro's signs"):
        sg.task("speak", folder)
    (folder / "vocab.json").unlink()
    with pytest.raises(InputError, match="without the numbers of Kokoro's signs beside it"):
        sg.task("speak", folder)
