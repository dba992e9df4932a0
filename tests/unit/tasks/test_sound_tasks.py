"""Tasks that hear: scores become what the makers' own code makes of them, and a sound in blocks of any size gives what it gives as a whole."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from sound_models import of, talk
from sound_scores import COUNT, MAKERS, key_scores, voice_scores

import singe as sg
from singe.errors import FormatError, InputError
from singe.files.sounds import Sound, sound_of, wav_bytes
from singe.tasks.sound.drawing import TIMES
from singe.tasks.sound.midi import MusicNote, midi_bytes
from singe.tasks.sound.notes import notes_in
from singe.tasks.sound.voices import VoiceFollower, VoiceRules, voices_in
from singe.tasks.spec import TaskSpec

RNG: Final = np.random.default_rng(3)
RATE: Final = 16000
RULES: Final = VoiceRules.of({"threshold": 0.5, "min_speech": 0.25, "min_silence": 0.1, "pad": 0.03}, RATE, 512)
STRICT: Final = VoiceRules.of({"threshold": 0.8, "min_speech": 0.6, "min_silence": 0.3, "pad": 0.2}, RATE, 512)


def test_segments_of_a_whole_sound_are_those_of_silero() -> None:
    assert voices_in(voice_scores(), COUNT, RULES) == [tuple(pair) for pair in MAKERS["whole"]]
    assert voices_in(voice_scores(), COUNT, STRICT) == [tuple(pair) for pair in MAKERS["strict"]]
    assert voices_in([], 0, RULES) == []


def test_segments_of_a_sound_that_comes_are_those_of_silero() -> None:
    follower = VoiceFollower(RULES)
    events: list[list[Any]] = []
    for score in voice_scores():
        before = follower.start
        ended = follower.push(score)
        if ended is not None:
            events.append(["end", ended[1]])
            assert ended[0] == before
        if follower.start is not None and follower.start != before:
            events.append(["start", follower.start])
    assert events == MAKERS["events"]


def test_notes_are_those_of_basic_pitch() -> None:
    found = notes_in(**key_scores(), settings={"onset": 0.5, "threshold": 0.3, "min_length": 0.1277})
    assert len(found) == len(MAKERS["notes"])
    for note, (start, end, pitch, score, bends) in zip(found, MAKERS["notes"], strict=True):
        np.testing.assert_allclose((note.start, note.end, note.score), (start, end, score), atol=2e-6)
        assert (note.pitch, list(note.bends)) == (pitch, bends)


def test_a_midi_file_has_the_notes() -> None:
    data = midi_bytes(
        [MusicNote(0.5, 1.0, 60, 0.5, (0, 3)), MusicNote(0.75, 2.0, 64, 1.0, (1,)), MusicNote(3, 4, 70, 0.2, (-9,))]
    )
    kind, size, form, tracks, beat = struct.unpack(">4sIHHH", data[:14])
    assert (kind, size, form, tracks, beat) == (b"MThd", 6, 0, 1, 220)
    assert struct.unpack(">4sI", data[14:22]) == (b"MTrk", len(data) - 22)
    assert b"\x90\x3c\x40" in data
    assert b"\x90\x40\x7f" in data
    assert data.count(b"\xe0") == 1  # of the notes that sound alone
    assert data.endswith(b"\xff\x2f\x00")


# --- models of each form ---------------------------------------------------------------------------------------------


def block_by_block(made: Any, samples: np.ndarray, rate: int) -> list[Any]:
    cuts = np.sort(RNG.integers(0, len(samples), 25))
    return list(made.stream(np.split(samples, cuts), sampling_rate=rate))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [RATE, 22050])
def test_a_voice_in_blocks_of_any_size_has_the_scores_of_the_whole(on: sg.Device, rate: int) -> None:
    made = sg.task("voices", of("voices"), device=on)
    samples = talk(2)
    whole = made(samples, sampling_rate=rate)
    assert len(whole) >= 1
    answers = block_by_block(made, samples, rate)
    scores = np.concatenate([answer.scores for answer in answers])
    np.testing.assert_allclose(scores, whole.scores, atol=1e-6)
    assert not answers[-1].speaking
    assert [x.end > x.start for answer in answers for x in answer]
    assert repr(whole).startswith(f"<voices: {len(whole)} found>")


@pytest.mark.slow
def test_a_clean_sound_in_blocks_is_that_of_the_whole(on: sg.Device, tmp_path: Path) -> None:
    made = sg.task("denoise", of("denoise"), device=on)
    samples = talk()
    whole = made(samples, sampling_rate=RATE)
    assert whole.audio.shape == samples.shape
    np.testing.assert_allclose(whole.audio, by_numpy(samples), atol=2e-6)
    audio = np.concatenate([answer.audio for answer in block_by_block(made, samples, RATE)])
    np.testing.assert_allclose(audio, whole.audio, atol=1e-6)
    whole.save(tmp_path / "clean.wav")
    np.testing.assert_allclose(sound_of(tmp_path / "clean.wav").samples, whole.audio, atol=1e-4)
    with pytest.raises(InputError, match=r"ends with \.wav"):
        whole.save(tmp_path / "clean.mp3")


def by_numpy(samples: np.ndarray) -> np.ndarray:
    """The windows, their spectra, the model and their sum, one after the other."""
    count = -(-len(samples) // 160)
    padded = np.pad(samples.astype(np.float64), (0, (count + 1) * 160 - len(samples)))
    window = np.sqrt(np.hanning(320))
    spectra = np.stack([np.fft.rfft(padded[k * 160 : k * 160 + 320] * window) for k in range(count)])
    features = np.log10(np.maximum(np.abs(spectra) ** 2, 1e-12)).astype(np.float32)
    gains = np.clip(np.asarray(of("denoise")(features[None]))[0], 1e-4, 1)
    found = np.zeros((count + 1) * 160)
    for k, part in enumerate(np.fft.irfft(spectra * gains) * window):
        found[k * 160 : k * 160 + 320] += part
    return found[: len(samples)]


def test_notes_are_of_a_whole_sound(tmp_path: Path) -> None:
    made = sg.task("notes", of("notes"), device="numpy")
    answer = made(Sound(talk(3), RATE))
    assert all(0 <= note.start < note.end <= 3.1 for note in answer)
    answer.save(tmp_path / "notes.mid")
    assert (tmp_path / "notes.mid").read_bytes()[:4] == b"MThd"
    with pytest.raises(InputError, match="takes whole sounds"):
        next(made.stream([talk()], sampling_rate=RATE))
    voices = sg.task("voices", of("voices"), device="numpy")
    with pytest.raises(InputError, match="does not say how many samples are a second"):
        next(voices.stream([talk()]))
    for whole in (talk(), "talk.wav", {"array": talk(), "sampling_rate": RATE}, None):
        with pytest.raises(InputError, match=r"voices: stream: got a .*, expected a list or a generator of parts"):
            voices.stream(whole)
    with pytest.raises(InputError, match="a block of 16000 samples a second, expected 8000"):
        list(voices.stream([Sound(talk(), 8000), Sound(talk(), RATE)]))


@pytest.mark.slow
def test_a_task_that_hears_is_saved_and_read_again(tmp_path: Path) -> None:
    made = sg.task("voices", of("voices"), device="numpy")
    (tmp_path / "talk.wav").write_bytes(wav_bytes(talk(), RATE))
    made.save(tmp_path / "voices.singe")
    again = sg.task("voices", tmp_path / "voices.singe", device="numpy")
    assert again.info == made.info
    assert again(tmp_path / "talk.wav") == made(tmp_path / "talk.wav")
    several = made([tmp_path / "talk.wav", Sound(talk(2), RATE)])
    assert [type(answer).__name__ for answer in several] == ["Voices", "Voices"]


WRONG: Final[dict[str, tuple[Any, str]]] = {
    "a model of pictures": (lambda: sg.task("voices", sg.Model.of(lambda x: x, {"x": (1, 3, 8, 8)})), "takes no sound as it is known"),
    "a model of other sounds": (lambda: sg.task("denoise", of("voices")), "the logarithm of power, .1, rows, 161 or 513."),
    "another rate": (lambda: sg.task("speaker", of("speaker"), rate=8000), "speaker: rate 8000: this model takes 16000 and nothing"),
    "rows before": (lambda: sg.task("denoise", of("denoise"), before=3), "denoise: before 3: this model takes 0 and nothing else"),
    "a size": (lambda: sg.task("notes", of("notes"), size=224), r"notes: size .224, 224.: only pictures have one"),
    "no rate": (lambda: sg.task("voices", of("voices"), device="numpy")(talk()), "give sampling_rate=16000"),
    "a setting of others": (lambda: sg.task("notes", of("notes"))(talk(), top=3), "got top; expected some of threshold, onset"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name: str) -> None:
    run, told = WRONG[name]
    with pytest.raises(InputError, match=told):
        run()


@pytest.mark.parametrize(
    "change", [{"rate": 0}, {"step": 0}, {"states": 1 << 40}, {"before": -1}, {"rows": "3"}, {"more": 1}]
)
def test_facts_from_a_file_are_checked(change: dict[str, Any]) -> None:
    facts = sg.task("voices", of("voices"), device="numpy").info.to_dict()
    facts["preparation"] |= change
    with pytest.raises(FormatError, match="not the facts of a task"):
        TaskSpec.from_dict(facts, "here")


@pytest.mark.slow
def test_answers_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    for kind in ("voices", "denoise", "notes"):
        answer = sg.task(kind, of(kind), device="numpy")(Sound(talk(2), RATE))
        answer.save(tmp_path / f"{kind}.png")
        assert answer.plot().size[0] == 1200
        below = np.asarray(answer.plot().convert("L"))[-TIMES:]  # two seconds, told each fifth of one
        marks = np.flatnonzero((below < 200).all(0))
        np.testing.assert_allclose(marks, np.arange(1, len(marks) + 1) * 120, atol=1)
        assert len(marks) >= 9
