"""Notes as a MIDI file: of one track, at 120 beats a minute. Notes that others overlap have no bends, which are of all keys at once."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Final

from ...late_dataclass import dataclass

TICKS_A_BEAT: Final = 220
MICROSECONDS_A_BEAT: Final = 500_000
PROGRAM: Final = 4
"""An electric piano."""
TICKS_OF_BEND: Final = 4096 / 3
"""A third of a semitone, of 8192 for two."""
_NAMES: Final = ("C", "C♯", "D", "D♯", "E", "F", "F♯", "G", "G♯", "A", "A♯", "B")


@dataclass(frozen=True)
class MusicNote:
    """From start to end, in seconds. pitch: a number of MIDI, 60 is the middle C. score: how loud it is, from 0 to 1. bends: thirds of a
    semitone from the pitch, evenly over the note's time."""

    start: float
    end: float
    pitch: int
    score: float
    bends: Sequence[int] = field(default=(), compare=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "end": self.end,
            "pitch": self.pitch,
            "score": self.score,
            "bends": list(self.bends),
        }

    def __str__(self) -> str:
        return f"{name_of_pitch(self.pitch):4}{self.start:.2f} s to {self.end:.2f} s ({self.score:.0%})"


def name_of_pitch(pitch: int) -> str:
    return f"{_NAMES[pitch % 12]}{pitch // 12 - 1}"


def midi_bytes(notes: Iterable[MusicNote]) -> bytes:
    ordered = sorted(notes, key=lambda n: (n.start, n.end, n.pitch))
    events: list[tuple[int, int, bytes]] = []
    for note, alone in zip(ordered, _alone(ordered), strict=True):
        velocity = max(1, min(127, round(127 * note.score)))
        events.append((_ticks(note.start), 2, bytes((0x90, note.pitch, velocity))))
        events.append((_ticks(note.end), 0, bytes((0x80, note.pitch, 0))))
        for k, bend in enumerate(note.bends if alone else ()):
            at = note.start + (note.end - note.start) * k / max(1, len(note.bends) - 1)
            value = max(-8192, min(8191, round(bend * TICKS_OF_BEND))) + 8192
            events.append((_ticks(at), 1, bytes((0xE0, value & 127, value >> 7))))
    track = _event(0, b"\xff\x51\x03" + MICROSECONDS_A_BEAT.to_bytes(3, "big")) + _event(0, bytes((0xC0, PROGRAM)))
    now = 0
    for ticks, _, data in sorted(events):
        track += _event(ticks - now, data)
        now = ticks
    track += _event(1, b"\xff\x2f\x00")
    head = struct.pack(">4sIHHH", b"MThd", 6, 0, 1, TICKS_A_BEAT)
    return head + struct.pack(">4sI", b"MTrk", len(track)) + track


def _alone(notes: Sequence[MusicNote]) -> list[bool]:
    """Of notes in order, which sound with no other."""
    alone = [True] * len(notes)
    for k, note in enumerate(notes):
        for other in range(k + 1, len(notes)):
            if notes[other].start >= note.end:
                break
            alone[k] = alone[other] = False
    return alone


def _ticks(seconds: float) -> int:
    return round(seconds * 1e6 / MICROSECONDS_A_BEAT * TICKS_A_BEAT)


def _event(after: int, data: bytes) -> bytes:
    """An event, and the ticks before it: 7 bits a byte, the highest says that more follow."""
    parts = [after & 127]
    while after := after >> 7:
        parts.append(after & 127 | 128)
    return bytes(reversed(parts)) + data
