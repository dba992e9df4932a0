"""Draws what was heard, as pictures of Pillow: time goes from left to right, with its numbers below."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...files.pictures import canvas_of, pen_on
from .answers import CleanSound, Notes, Voices
from .midi import name_of_pitch

WIDTH: Final = 1200
WAVE: Final = 200
CURVE: Final = 60
KEY: Final = 6
TIMES: Final = 16
"""Pixels."""
STEPS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""Seconds between two times that are written: the first of these with which at most MARKS are."""
MARKS: Final = 15
SPECTRUM: Final = 257
DECIBELS: Final = 80
"""What is quieter by so much than the loudest is black."""
_PAPER: Final = (255, 255, 255)
_QUIET: Final = (150, 155, 165)
_VOICE: Final = (20, 120, 80)
_SHADE: Final = (222, 242, 232)
_INK: Final = (60, 65, 75)


def _columns(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most of what lies in each column of pixels."""
    edges = np.linspace(0, len(values), WIDTH + 1).astype(int)
    starts = np.minimum(edges[:-1], max(0, len(values) - 1))
    return np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)


def _over_time(pixels: np.ndarray, seconds: float) -> tuple[Any, Any]:
    """The picture with the times below, and its pen."""
    picture = canvas_of(np.concatenate([pixels, np.full((TIMES, WIDTH, 3), _PAPER, np.uint8)]))
    pen, top = pen_on(picture), len(pixels)
    step = next((step for step in STEPS if seconds / step <= MARKS), STEPS[-1])
    for k in range(1, int(seconds / step) + 1):
        x = k * step / seconds * WIDTH
        pen.line([(x, top), (x, top + TIMES)], fill=_QUIET)
        pen.text((x + 3, top + 2), f"{k * step:g} s" if step < 60 else f"{k * step / 60:g} min", fill=_INK)
    return picture, pen


def voices_drawn(answer: Voices) -> Any:
    """The wave, with what is spoken shaded, above the scores."""
    if answer.sound is None or not len(answer.sound.samples):
        raise InputError(
            f"{answer.kind}: there is no sound to draw; of parts that come, each is drawn by whoever has it"
        )
    sound = answer.sound
    pixels = np.full((WAVE + CURVE, WIDTH, 3), _PAPER, np.uint8)
    spoken = np.zeros(WIDTH, bool)
    for item in answer:
        left, right = (round(t / sound.seconds * WIDTH) for t in (item.start, item.end))
        pixels[:, left:right] = _SHADE
        spoken[left:right] = True
    least, most = _columns(sound.samples / max(1e-3, float(np.abs(sound.samples).max())))
    middle = WAVE / 2
    for x in range(WIDTH):
        top, bottom = round(middle - most[x] * (middle - 4)), round(middle - least[x] * (middle - 4)) + 1
        pixels[top:bottom, x] = _VOICE if spoken[x] else _QUIET
    picture, pen = _over_time(pixels, sound.seconds)
    scores = answer.scores[(np.arange(WIDTH) * len(answer.scores) // WIDTH)]
    line = [(float(x), WAVE + CURVE - 2 - float(score) * (CURVE - 6)) for x, score in enumerate(scores)]
    pen.line(line, fill=_INK, width=1)
    return picture


def notes_drawn(answer: Notes) -> Any:
    """A piano roll: a line for each key, darker the louder a note is."""
    pitches = [note.pitch for note in answer] or [54, 66]
    low, high = min(pitches) - 2, max(pitches) + 2
    seconds = max([note.end for note in answer] + [0.0 if answer.sound is None else answer.sound.seconds, 1e-3])
    pixels = np.full(((high - low + 1) * KEY, WIDTH, 3), _PAPER, np.uint8)
    for pitch in range(low, high + 1):
        if name_of_pitch(pitch)[1] == "♯":
            pixels[(high - pitch) * KEY : (high - pitch + 1) * KEY] = (244, 244, 247)
    for note in answer:
        left, right = (round(t / seconds * WIDTH) for t in (note.start, note.end))
        top = (high - note.pitch) * KEY
        colour = np.array(_VOICE) * note.score + np.array(_SHADE) * (1 - note.score)
        pixels[top : top + KEY - 1, left : max(left + 2, right - 1)] = np.round(colour)
    picture, pen = _over_time(pixels, seconds)
    for pitch in range(low, high + 1):
        if pitch % 12 == 0:
            pen.text((2, (high - pitch) * KEY - 3), name_of_pitch(pitch), fill=_INK)
    return picture


def clean_drawn(answer: CleanSound) -> Any:
    """The spectra over time, of what was given above what is left, by the same scale."""
    given = np.zeros(0) if answer.before is None else answer.before.samples
    if not len(given):
        raise InputError(
            f"{answer.kind}: there is no sound to draw; of parts that come, each is drawn by whoever has it"
        )
    spectra = [_spectrum(x) for x in (given, answer.audio)]
    loudest = max(x.max() for x in spectra)
    gap = np.full((8, WIDTH, 3), _PAPER, np.uint8)
    upper, lower = (_heat(1 + (x - loudest) / DECIBELS) for x in spectra)
    picture, pen = _over_time(np.concatenate([upper, gap, lower]), len(answer.audio) / answer.sample_rate)
    for top, name in ((0, "before"), (len(upper) + len(gap), "after")):
        pen.text((4, top + 2), name, fill=_PAPER)
    return picture


def _spectrum(samples: np.ndarray) -> np.ndarray:
    """The decibels (frequencies, columns), the highest frequency above."""
    length = 2 * (SPECTRUM - 1)
    padded = np.pad(samples, (0, length))
    starts = np.linspace(0, len(samples), WIDTH, endpoint=False).astype(int)
    parts = padded[starts[:, None] + np.arange(length)] * np.hanning(length)
    return 20 * np.log10(np.abs(np.fft.rfft(parts)) + 1e-9).T[::-1]


def _heat(values: np.ndarray) -> np.ndarray:
    """Numbers from 0 to 1 as colours, from black over red to white."""
    x = np.clip(values, 0, 1)[..., None]
    return np.round(255 * np.clip(x * 3 - np.arange(3), 0, 1)).astype(np.uint8)
