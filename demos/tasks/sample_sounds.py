"""The sounds of the pages that hear, made in the build: a voice of the zoo, alone and in noise, and a tune of sines."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any, Final

import numpy as np

import singe as sg

RATE: Final = 22050
"""That of the voice."""
SAID: Final = (
    "Good morning. Is the window still open?",
    "Then I shall close it, and we begin.",
    "A voice may stop at any time, and go on a little later.",
)
CALLED: Final = ("I have nothing to say to you.", "Okay Nabu. What is the time?", "Okay, now you may go.")
PAUSE: Final = 0.9
"""Seconds of silence around what is said."""
TO_NOISE: Final = 1.6
"""How much louder the voice is than the noise, as a ratio of amplitudes."""
BEAT: Final = 0.4
"""Seconds."""
TUNE: Final = (
    (67, 1), (72, 1), (74, 1), (76, 2), (74, 1), (72, 1), (69, 1), (67, 2),
    (64, 1), (69, 1), (67, 1), (65, 2), (62, 1), (64, 1), (71, 1), (72, 3),
)  # fmt: skip
"""Pitches of MIDI, and their beats."""
BASS: Final = ((48, 6), (53, 3), (50, 5), (43, 4), (48, 3))


def write(folder: Path) -> None:
    """talk.wav, call.wav, fan.wav, rain.wav and tune.wav."""
    with_pauses, call = _said(SAID), _said(CALLED)
    rng = np.random.default_rng(0)
    count = len(with_pauses)
    sounds = {
        "talk": with_pauses + 0.001 * rng.standard_normal(count),
        "call": call,
        "fan": _beside(with_pauses, _fan(rng, count)),
        "rain": _beside(with_pauses, _rain(rng, count)),
        "tune": _played(TUNE) + 0.7 * _played(BASS),
    }
    for name, samples in sounds.items():
        with wave.open(str(folder / f"{name}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(np.round(samples * (28000 / np.abs(samples).max())).astype("<i2").tobytes())


def _said(texts: tuple[str, ...]) -> Any:
    speak = sg.task("speak", "zoo:joe")
    pause = np.zeros(round(PAUSE * RATE))
    parts = [part for text in texts for part in (pause, speak(text).audio)]
    speak.close()
    return np.concatenate((*parts, pause))


def _beside(voice: Any, noise: Any) -> Any:
    spoken = voice[np.abs(voice) > 0.01]
    return voice + noise * (spoken.std() / noise.std() / TO_NOISE)


def _coloured(rng: np.random.Generator, count: int, power: float) -> Any:
    """Noise whose amplitudes go with a power of the frequency."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    hertz = np.maximum(np.fft.rfftfreq(count, 1 / RATE), 60)
    return np.fft.irfft(spectrum * (hertz / 60) ** power, count)


def _fan(rng: np.random.Generator, count: int) -> Any:
    """Air, and the hum of a motor."""
    air = _coloured(rng, count, -0.6)
    seconds = np.arange(count) / RATE
    hum = sum(np.sin(2 * np.pi * 98 * k * seconds) / k for k in (1, 2, 3, 5))
    return air / air.std() + 0.5 * hum * (1 + 0.2 * np.sin(2 * np.pi * 7 * seconds))


def _rain(rng: np.random.Generator, count: int) -> Any:
    """Many drops that are far, and some that are near."""
    drops = np.where(rng.random(count) < 40 / RATE, rng.uniform(1, 3, count), 0)
    drop = np.exp(-np.arange(600) / 90) * rng.standard_normal(600)
    far = _coloured(rng, count, 0.1)
    return far / far.std() + np.convolve(drops, drop)[:count]


def _played(notes: tuple[tuple[int, int], ...]) -> Any:
    """Each note is three sines that fade."""
    parts: list[Any] = []
    for pitch, beats in notes:
        seconds = np.arange(round(beats * BEAT * RATE)) / RATE
        hertz = 440 * 2 ** ((pitch - 69) / 12)
        sines = sum(np.sin(2 * np.pi * hertz * k * seconds) / k**2 for k in range(1, 4))
        parts.append(
            sines * np.exp(-1.5 * seconds) * np.minimum(1, seconds / 0.01) * np.minimum(1, seconds[::-1] / 0.02)
        )
    return np.concatenate(parts)
