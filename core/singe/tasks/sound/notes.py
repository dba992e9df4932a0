"""Which notes sound: scores of keys, of their beginnings and of fine pitches become notes, as basic-pitch's own rules have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .midi import MusicNote

LOWEST: Final = 21
"""The pitch of the first key, in MIDI."""
KEYS: Final = 88
FRAMES_A_SECOND: Final = 22050 // 256
FRAMES_OF_WINDOW: Final = 172
QUIET: Final = 11
"""After so many frames without it, a note has ended."""
BEND_REACH: Final = 25
BINS: Final = 3 * KEYS
_SHIFT: Final = 256 / 22050 * (FRAMES_OF_WINDOW - 43844 / 256) + 0.0018
"""By how much frames lie earlier for each window; the last part is from the model's makers."""


def notes_in(keys: np.ndarray, onsets: np.ndarray, contours: np.ndarray, settings: Any) -> list[MusicNote]:
    """keys and onsets (frames, KEYS), contours (frames, BINS): of each frame."""
    least = round(settings["min_length"] * 22050 / 256)
    found = list(_found(keys, onsets, settings["onset"], settings["threshold"], least))
    times = np.arange(len(keys)) * 256 / 22050 - _SHIFT * (np.arange(len(keys)) // FRAMES_OF_WINDOW)
    made = [
        MusicNote(float(times[a]), float(times[b]), key + LOWEST, score, _bends(contours[a:b], key))
        for a, b, key, score in found
    ]
    return sorted(made, key=lambda n: (n.start, n.pitch, n.end))


def _found(
    keys: np.ndarray, onsets: np.ndarray, least_onset: float, least_key: float, least_length: int
) -> Iterator[tuple[int, int, int, float]]:
    """The first frame, the one after the last, the key, and the mean score of each note."""
    count = len(keys)
    if count < 3:
        return
    starts = _with_rises(onsets, keys)
    left = keys.copy()
    middle = starts[1:-1]
    peaks = np.zeros(starts.shape, bool)
    peaks[1:-1] = (middle > starts[:-2]) & (middle > starts[2:]) & (middle >= least_onset)
    for start, key in np.argwhere(peaks)[::-1].tolist():
        if start >= count - 1:
            continue
        end = _end(left, start + 1, key, least_key)
        if end - start <= least_length:
            continue
        left[start:end, max(0, key - 1) : key + 2] = 0
        yield start, end, key, float(np.mean(keys[start:end, key]))
    loud = np.flatnonzero(left > least_key)
    for place in loud[np.argsort(-left.reshape(-1)[loud], kind="stable")].tolist():
        middle_frame, key = divmod(place, left.shape[1])
        if not left[middle_frame, key]:
            continue  # a note that is louder has it
        left[middle_frame, key] = 0
        end = _walk(left, middle_frame, key, least_key, 1)
        start = _walk(left, middle_frame, key, least_key, -1)
        if end - start > least_length:
            yield start, end, key, float(np.mean(keys[start:end, key]))


def _end(left: np.ndarray, frame: int, key: int, least: float) -> int:
    quiet = 0
    while frame < len(left) - 1 and quiet < QUIET:
        quiet = quiet + 1 if left[frame, key] < least else 0
        frame += 1
    return frame - quiet


def _walk(left: np.ndarray, middle: int, key: int, least: float, way: int) -> int:
    """The last frame of a note in a direction; what it takes is taken from what is left."""
    frame, quiet = middle + way, 0
    while (frame < len(left) - 1 if way > 0 else frame > 0) and quiet < QUIET:
        quiet = quiet + 1 if left[frame, key] < least else 0
        left[frame, max(0, key - 1) : key + 2] = 0
        frame += way
    return frame - way - way * quiet


def _with_rises(onsets: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Where a key rises within two frames a note begins, too, though the model says nothing of it."""
    padded = np.concatenate([np.zeros((2, keys.shape[1]), keys.dtype), keys])
    rises = np.minimum(keys - padded[1:-1], keys - padded[:-2])
    rises[rises < 0] = 0
    rises[:2] = 0
    highest = rises.max()
    return np.maximum(onsets, onsets.max() * rises / highest) if highest > 0 else onsets


def _bends(contours: np.ndarray, key: int) -> tuple[int, ...]:
    """The likeliest pitch of each frame, as bins from the key's own."""
    middle = 3 * key
    first, last = max(0, middle - BEND_REACH), min(BINS, middle + BEND_REACH + 1)
    near = np.exp(-0.5 * ((np.arange(first, last) - middle) / 5.0) ** 2)
    return tuple((np.argmax(contours[:, first:last] * near, axis=1) + first - middle).tolist())
