"""Scores as models of sounds give them, made by a formula, for tests in both languages; what the makers' own code makes of them lies in
sound_scores.json, which is of silero-vad 6.2.3 and basic-pitch 0.4.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

MAKERS: Final[Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
COUNT: Final = 512 * 400 - 77
"""The samples of which `voice_scores` are."""


def voice_scores() -> list[float]:
    """Of 400 rows: voices, pauses of many lengths, and doubt."""
    k = np.arange(400)
    wave = np.sin(k / 9.0) + 0.6 * np.sin(k / 2.3) + 0.3 * np.sin(k * k / 50.0)
    return np.round(1 / (1 + np.exp(-3 * wave)), 4).tolist()


def key_scores() -> dict[str, np.ndarray]:
    """Keys, beginnings and fine pitches of 200 frames: some notes, one without a beginning, and one that is too short."""
    frames = np.arange(200)[:, None]
    keys, onsets = np.full((200, 88), 0.02, np.float32), np.full((200, 88), 0.01, np.float32)
    contours = np.full((200, 264), 0.02, np.float32)
    notes = [
        (10, 50, 39, 0.9),
        (45, 80, 43, 0.7),
        (60, 66, 50, 0.8),
        (90, 150, 87, 0.6),
        (100, 190, 0, 0.8),
        (120, 160, 44, 0.5),
    ]
    for number, (first, last, key, loud) in enumerate(notes):
        inside = (frames[:, 0] >= first) & (frames[:, 0] < last)
        fade = loud * np.exp(-(frames[:, 0] - first) / 80.0)
        keys[inside, key] = fade[inside]
        if number != 5:
            onsets[first : first + 3, key] = [0.4, 0.8, 0.3]
        for frame in range(first, last):
            fine = 3 * key + round(2 * np.sin(frame / 6.0 + number))
            contours[frame, max(0, min(263, fine))] = 0.9
    return {"keys": keys, "onsets": onsets, "contours": contours}
