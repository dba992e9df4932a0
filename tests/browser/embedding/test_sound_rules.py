"""Tasks that hear, in JavaScript: scores become what Python makes of them, and blocks of any size give the rows of the whole."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from bundles import STATIC
from hearing_cases import lines
from pages import node
from sound_scores import COUNT, MAKERS, key_scores, voice_scores

from singe.tasks.kinds.hearing.wake_word import WordFollower
from singe.tasks.sound.midi import MusicNote, midi_bytes
from singe.tasks.sound.speakers import turns_of, windows_of
from singe.tasks.sound.spec import SoundInput
from singe.tasks.spec import TaskSpec

TASKS: Final = (STATIC / "tasks").as_uri()
RULES: Final = f'const rules = await import("{TASKS}/singe-task-sounds-rules.js");'
LIMITS: Final = {"threshold": 0.5, "speech": 4000, "silence": 1600, "pad": 480, "step": 512}
STRICT: Final = {"threshold": 0.8, "speech": 9600, "silence": 4800, "pad": 3200, "step": 512}


def test_segments_are_those_of_silero() -> None:
    body = f"""{RULES}
    const follower = new rules.VoiceFollower(given.limits);
    const events = [];
    for (const score of given.scores) {{
      const before = follower.start;
      const ended = follower.push(score);
      if (ended) events.push(["end", ended[1]]);
      if (follower.start !== null && follower.start !== before) events.push(["start", follower.start]);
    }}
    const whole = [given.limits, given.strict].map((limits) => rules.voicesIn(given.scores, given.count, limits));
    return [...whole, events];
    """
    found = node(body, scores=voice_scores(), count=COUNT, limits=LIMITS, strict=STRICT)
    assert found == [MAKERS["whole"], MAKERS["strict"], MAKERS["events"]]


def test_samples_that_no_sound_has_are_refused() -> None:
    body = f"""
    const {{ samplesOf }} = await import("{TASKS}/singe-task-sources.js");
    const refused = (value) => samplesOf([0, value], 16000, 16000).then(String, (error) => error.message);
    return [await refused(NaN), await refused(1e4), (await samplesOf([0, 1], 16000, 16000)).length];
    """
    told = "sound: samples that are not finite, or above 100; expected numbers around −1 to 1"
    assert node(body) == [told, told, 2]


def test_notes_are_those_of_basic_pitch() -> None:
    scores = {name: values.ravel().tolist() for name, values in key_scores().items()}
    body = f"""{RULES}
    const scores = Object.fromEntries(Object.entries(given.scores).map(([name, values]) => [name, Float32Array.from(values)]));
    return rules.notesIn(scores, {{ threshold: 0.3, onset: 0.5, min_length: 0.1277 }});
    """
    found = node(body, scores=scores)
    assert [(note["pitch"], note["bends"]) for note in found] == [(note[2], note[4]) for note in MAKERS["notes"]]
    numbers = [[note["start"], note["end"], note["score"]] for note in found]
    np.testing.assert_allclose(numbers, [[note[0], note[1], note[3]] for note in MAKERS["notes"]], atol=2e-6)


def test_words_are_heard_and_voices_told_apart_as_in_python() -> None:
    scores = voice_scores()
    info = TaskSpec(
        "wake-word", SoundInput(step=480, after=320), "chance", ("word",), "", {"threshold": 0.7, "mean_of": 5}
    )
    words, means = WordFollower(info, {"threshold": None}).push(scores)
    vectors, spec = lines(24), SoundInput(step=12320, before=200, after=13480)
    segments = [(7.0, 12.5), (0.0, 4.0)]
    turns = [turns_of(vectors, segments, 12.0, spec, 0.65, count) for count in (0, 2)]
    body = f"""{RULES}
    const follower = new rules.WordFollower({{ label: "word", threshold: 0.7, meanOf: 5, step: 0.03, after: 0.02 }});
    const parts = [given.scores.slice(0, 7), given.scores.slice(7)].map((part) => follower.push(part));
    const vectors = given.vectors.map((one) => Float32Array.from(one));
    const turns = [0, 2].map((count) => rules.turnsOf(vectors, given.segments, 12, given.spec, 0.65, count));
    return [parts.flatMap(({{ words }}) => words), parts.flatMap(({{ means }}) => [...means]), turns, rules.windowsOf(43840, given.spec)];
    """
    facts = {"rate": spec.rate, "step": spec.step, "before": spec.before, "after": spec.after}
    found = node(body, scores=scores, vectors=vectors.tolist(), segments=segments, spec=facts)
    assert len(words) > 2
    assert [(word["at"], word["score"]) for word in found[0]] == [
        pytest.approx((word.at, word.score)) for word in words
    ]
    np.testing.assert_allclose(found[1], means, rtol=1e-6)
    assert [[tuple(turn) for turn in some] for some in found[2]] == [
        [pytest.approx(turn) for turn in some] for some in turns
    ]
    assert len(turns[0]) > 3
    assert found[3] == windows_of(43840, spec)


SPEC: Final[dict[str, Any]] = {"rate": 16000, "step": 7, "before": 3, "after": 2, "rows": 0, "states": 1}


def test_blocks_of_any_size_give_the_rows_of_the_whole() -> None:
    body = f"""
    const {{ SoundRun }} = await import("{TASKS}/singe-task-sounds.js");
    const run = async ({{ samples, state }}) => {{
      const [rows, width] = samples.shape;
      const score = new Float32Array(rows);
      let kept = state.data[0];
      for (let k = 0; k < rows; k++) {{
        const row = samples.data.subarray(k * width, (k + 1) * width);
        score[k] = kept + row.reduce((sum, x, at) => sum + x * (at + 1), 0);
        kept = (kept + row[3]) % 5;
      }}
      return {{ score: {{ data: score }}, state: {{ data: Float32Array.of(kept) }} }};
    }};
    const samples = Float32Array.from({{ length: given.count }}, (_, k) => k % 11);
    const found = [];
    for (const size of [given.count, 1, 5, 64]) {{
      const through = new SoundRun(run, given.spec);
      const scores = [];
      for (let at = 0; at < given.count; at += size) scores.push(...((await through.push(samples.slice(at, at + size))).score ?? []));
      scores.push(...((await through.finish()).score ?? []));
      found.push(scores);
    }}
    return found;
    """
    whole, *others = node(body, count=100, spec=SPEC)
    assert len(whole) == -(-100 // 7)
    assert others == [whole] * 3


def test_a_midi_file_is_that_of_python() -> None:
    notes = [MusicNote(note[0], note[1], note[2], note[3], note[4]) for note in MAKERS["notes"]]
    notes += [
        MusicNote(90, 95.5, 60, 0.5, (0, 3)),
        MusicNote(99, 1000, 64, 2.0, (-99, 99)),
        MusicNote(98, 98.5, 1, 0.0),
    ]
    body = f"""const {{ toMidi }} = await import("{STATIC.as_uri()}/singe-sound.js");
    return [...new Uint8Array(await toMidi(given.notes).arrayBuffer())];"""
    assert bytes(node(body, notes=[note.to_dict() for note in notes])) == midi_bytes(notes)


def test_the_rate_of_a_file_is_in_its_first_bytes() -> None:
    from singe.files.sounds import wav_bytes  # noqa: PLC0415

    wav = wav_bytes(np.zeros(3), 22050)
    flac = b"fLaC" + bytes([0, 0, 0, 34]) + bytes(10) + (44100 << 44).to_bytes(8, "big") + bytes(16)
    body = f"""
    const {{ rateOf }} = await import("{(STATIC / "singe-sound.js").as_uri()}");
    return given.files.map((bytes) => rateOf(Uint8Array.from(bytes).buffer));
    """
    assert node(body, files=[list(x) for x in (wav, flac, b"ID3", b"", wav[:20])]) == [
        22050,
        44100,
        48000,
        48000,
        48000,
    ]


def test_a_ring_keeps_the_latest_samples() -> None:
    body = f"""
    const {{ SampleRing }} = await import("{(STATIC / "singe-sound.js").as_uri()}");
    const ring = new SampleRing(5);
    const found = [];
    for (const part of [[1, 2, 3], [4, 5, 6, 7], null, [8], null, [1, 2, 3, 4, 5, 6, 7], null, null]) {{
      if (part) ring.write(Float32Array.from(part));
      else found.push([...ring.read()]);
    }}
    return [found, ring.dropped];
    """
    assert node(body) == [[[3, 4, 5, 6, 7], [8], [3, 4, 5, 6, 7], []], 4]
