"""Sounds in files and arrays: what is read is what was written, and damage is a typed error, before memory is taken."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from flac_bytes import Way, flac

from singe.errors import InputError
from singe.files.sounds import Sound, sound_of, wav_bytes

RNG: Final = np.random.default_rng(5)
RATE: Final = 8000
WAYS: Final = {
    "a constant": Way("constant"),
    "as it is": Way("verbatim"),
    "fixed, nothing before": Way("fixed"),
    "fixed, one before": Way("fixed", (1,)),
    "fixed, four before": Way("fixed", (4, -6, 4, -1)),
    "fixed, in partitions": Way("fixed", (2, -1), partitions=2),
    "wide parameters": Way("fixed", (1,), method=1, partitions=1),
    "numbers as they are": Way("fixed", (1,), partitions=1, escaped=True),
    "predicted": Way("predicted", (1500, -700, 64), shift=10),
    "a difference, left": Way("fixed", (1,), side=8),
    "a difference, right": Way("fixed", (1,), side=9),
    "a difference, middle": Way("predicted", (1500, -700), shift=10, side=10),
    "low bits that are none": Way("fixed", (1,), wasted=3),
}


def numbers(bits: int, channels: int, count: int = 200) -> np.ndarray:
    """A sound as whole numbers, a low tone with noise; the low three bits are none."""
    tone = np.sin(np.arange(count) * 0.05)[:, None] * 0.7 * np.linspace(1, 0.5, channels)
    values = np.round((tone + RNG.normal(0, 0.01, tone.shape)) * 2 ** (bits - 1)).astype(int)
    return values >> 3 << 3


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("bits", [8, 16, 24])
def test_a_flac_file_of_each_way(name: str, bits: int) -> None:
    way = replace(WAYS[name], method=int(bits == 24))
    channels = 2 if way.side >= 0 or bits == 24 else 1
    samples = numbers(bits, channels)
    if way.kind == "constant":
        samples[:] = samples[50]
    for total in (None, 0):  # known, and unknown as in a stream
        found = sound_of(flac(samples, RATE, bits, way, total=total))
        assert found.rate == RATE
        np.testing.assert_allclose(found.samples, samples.mean(1) / 2 ** (bits - 1), rtol=0, atol=1e-7)


def test_a_flac_file_of_many_frames_and_channels() -> None:
    samples = numbers(16, 8, 150 * 16)
    found = sound_of(flac(samples, 48000, 16, Way("fixed", (2, -1)), length=16))
    np.testing.assert_allclose(found.samples, samples.mean(1) / 2**15, rtol=0, atol=1e-7)


def test_a_wav_file_that_is_written_is_read_again() -> None:
    samples = np.clip(RNG.normal(0, 0.5, 999), -1, 1).astype(np.float32)
    found = sound_of(wav_bytes(samples, 22050))
    assert found.rate == 22050
    np.testing.assert_allclose(found.samples, samples, rtol=0, atol=1e-4)


LAWS: Final = {
    6: {0xD5: 8, 0x55: -8, 0xAA: 32256, 0x2A: -32256, 0xC5: 264, 0x85: 4224},
    7: {0xFF: 0, 0x7F: 0, 0x80: 32124, 0x00: -32124, 0xEF: 132, 0xAA: 5372},
}
"""A-law and µ-law of G.711: a byte ↦ the number of 16 bits."""


@pytest.mark.parametrize("kind", LAWS)
def test_the_sounds_of_telephones_are_read(kind: int) -> None:
    body = bytes(LAWS[kind])
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, kind, 1, 8000, 8000, 1, 8)
    found = sound_of(b"RIFF\0\0\0\0WAVE" + head + struct.pack("<4sI", b"data", len(body)) + body)
    assert (found.samples * 32768).tolist() == list(LAWS[kind].values())


def test_a_long_wav_file_says_elsewhere_how_many_samples_it_has() -> None:
    samples = np.clip(RNG.normal(0, 0.5, 99), -1, 1).astype(np.float32)
    plain = wav_bytes(samples, RATE)
    sizes = struct.pack("<4sIQQQI", b"ds64", 28, len(plain), 198, 99, 0)
    long = (
        b"RF64\xff\xff\xff\xffWAVE"
        + sizes
        + plain[12:].replace(struct.pack("<4sI", b"data", 198), b"data\xff\xff\xff\xff")
    )
    found = sound_of(long + b"LIST\2\0\0\0ab")
    np.testing.assert_array_equal(found.samples, sound_of(plain).samples)


GIVEN: Final[dict[str, tuple[Any, int | None]]] = {
    "floats": (np.array([0.5, -0.25], np.float32), 16000),
    "float64": (np.array([0.5, -0.25]), 16000),
    "a list": ([0.5, -0.25], 16000),
    "int16": (np.array([16384, -8192], np.int16), 16000),
    "channels first": (np.array([[0.5, -0.25, 0.0], [0.5, -0.25, 0.0]]), 16000),
    "channels last, more frames": (np.array([[0.5, 0.5], [-0.25, -0.25], [0.0, 0.0]]), 16000),
    "as datasets have it": ({"array": np.array([0.5, -0.25]), "sampling_rate": 16000}, None),
    "a sound": (Sound(np.array([0.5, -0.25], np.float32), 16000), None),
}


@pytest.mark.parametrize("name", GIVEN)
def test_arrays_are_taken_with_their_rate(name: str) -> None:
    source, rate = GIVEN[name]
    found = sound_of(source, rate)
    assert (found.rate, found.samples.dtype) == (16000, np.float32)
    np.testing.assert_array_equal(found.samples[:2], np.array([0.5, -0.25], np.float32))


WRONG: Final[dict[str, tuple[Any, int | None, str]]] = {
    "no rate": (np.zeros(3), None, "give sampling_rate=16000"),
    "a rate of none": (np.zeros(3), 0, "0 samples a second; expected 1000 to 1000000"),
    "a rate for a file": (wav_bytes(np.zeros(3), 8000), 8000, "a file says its rate itself"),
    "whole numbers of 64 bits": (np.zeros(3, np.int64), 16000, "got an array int64"),
    "three axes": (np.zeros((1, 2, 3)), 16000, "got an array float64"),
    "too many channels": (np.zeros((100, 200)), 16000, "got an array float64"),
    "nothing of the kind": (object(), 16000, "got a object, expected a path"),
    "a dict of something else": ({"data": 3}, None, "got a dict with 'data'; expected 'array'"),
    "samples that are no numbers": (np.array([np.nan]), 16000, "samples that are not finite"),
    "integers as floats": (np.full(3, 20000.0), 16000, "or above 100; expected numbers around −1 to 1; give int16"),
    "a text": (b"no sound at all", None, "neither a .wav nor a .flac file"),
    "an empty file": (b"", None, "sound: the file is empty"),
    "a picture": (Path(__file__).parents[3] / "docs" / "digits.png", None, "digits.png: a picture, expected a sound"),
    "a sample a second": (wav_bytes(np.zeros(3), 1), None, "at 1 Hz, .*, at 1000 to 1000000 Hz"),
    "no file": ("nothing.wav", None, "nothing.wav"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_sound_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("singe.files.sounds.decoders.DECODERS", {})
    source, rate, told = WRONG[name]
    with pytest.raises(InputError, match=told):
        sound_of(source, rate)


def test_a_file_that_claims_more_than_is_read_is_refused_before_memory_is_taken() -> None:
    huge = flac(numbers(16, 1), RATE, 16, WAYS["a constant"], total=1 << 35)
    with pytest.raises(InputError, match="34359738368 samples, more than the 268435456"):
        sound_of(huge)
    with pytest.raises(InputError, match="has 200 samples of the 300"):
        sound_of(flac(numbers(16, 1), RATE, 16, WAYS["as it is"], total=300))


@pytest.mark.slow
def test_damaged_files_are_typed_errors(tmp_path: Path) -> None:
    """A thousand files with bytes changed, cut or put in: an InputError, or a sound of a length that the file can hold."""
    rng = np.random.default_rng(0)
    whole = [
        wav_bytes(numbers(16, 1)[:, 0] / 2**15, RATE),
        *(flac(numbers(16, 2, 64), RATE, 16, WAYS[name], length=32) for name in WAYS if name != "a constant"),
    ]
    read = 0
    for k in range(1000):
        data = bytearray(whole[k % len(whole)])
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(4 if k % 3 else 0, len(data)))
            match rng.integers(4):
                case 0:
                    data[at] = int(rng.integers(256))
                case 1:
                    data[at] ^= 1 << int(rng.integers(8))
                case 2:
                    del data[at : at + int(rng.integers(1, 40))]
                case _:
                    data[at:at] = rng.bytes(int(rng.integers(1, 9)))
        try:
            read += sound_of(bytes(data)).samples.size <= 1000
        except InputError:
            read += 1
    assert read == 1000


@pytest.mark.slow
def test_a_changed_byte_of_a_flac_file_does_not_change_a_sound() -> None:
    """The checksums find it, so a sound is that of the file or there is none."""
    samples = numbers(16, 2, 64)
    whole = flac(samples, RATE, 16, WAYS["predicted"], length=32)
    first = whole.index(b"\xff\xf8")
    for at in range(first, len(whole)):
        with pytest.raises(InputError, match="damaged"):
            sound_of(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])


def test_a_wav_file_of_no_samples_is_a_sound() -> None:
    assert sound_of(wav_bytes(np.zeros(0), RATE)).samples.shape == (0,)
    assert struct.unpack("<I", wav_bytes(np.zeros(0), RATE)[-4:]) == (0,)
