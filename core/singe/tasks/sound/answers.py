"""What tasks that hear answer with: small dataclasses, the same in both languages by `to_dict`. Times are seconds of the sound."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from ...files.sounds import Sound, wav_bytes
from ...late_dataclass import dataclass
from ...texts import escaped
from ..answers import MANY, Answer, Forms, ItemsAnswer
from .midi import MusicNote, midi_bytes


@dataclass(frozen=True)
class Segment:
    """Somebody speaks from start to end. score: the mean of the scores between."""

    start: float
    end: float
    score: float

    def to_dict(self) -> dict[str, float]:
        return {"start": self.start, "end": self.end, "score": self.score}

    def __str__(self) -> str:
        return f"{self.start:.2f} s to {self.end:.2f} s ({self.score:.0%})"


@dataclass(frozen=True, repr=False)
class Voices(ItemsAnswer[Segment]):
    """When somebody speaks. Of a sound that comes in parts: the segments that ended now.

    scores: how sure the model is of a voice, for each `step` seconds. since: when the voice began that still goes on, or None.
    """

    scores: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32), compare=False)
    step: float = field(default=0.0, compare=False)
    since: float | None = None
    sound: Sound | None = field(default=None, compare=False)

    @property
    def speaking(self) -> bool:
        return self.since is not None

    def plot(self) -> Any:
        from .drawing import voices_drawn  # noqa: PLC0415 (Pillow, which only pictures need)

        return voices_drawn(self)

    def _forms(self) -> Forms:
        return {**self._drawn_forms(), **self._told_forms()}

    def __repr__(self) -> str:
        now = f", speaking since {self.since:.2f} s" if self.since is not None else ""
        return self._listed(f"<{self.kind}: {len(self.items)} found{now}>", MANY)


@dataclass(frozen=True)
class WakeWord:
    """A word that was heard. score: the mean of the last scores; at: when it was known, in seconds."""

    label: str
    score: float
    at: float

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "score": self.score, "at": self.at}

    def __str__(self) -> str:
        return f"{escaped(self.label)} at {self.at:.2f} s ({self.score:.0%})"


@dataclass(frozen=True, repr=False)
class WakeWords(ItemsAnswer[WakeWord]):
    """When the word was heard. Of a sound that comes in parts: what was heard now.

    scores: the mean of the last scores, for each `step` seconds.
    """

    scores: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32), compare=False)
    step: float = field(default=0.0, compare=False)
    sound: Sound | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return self._listed(f"<{self.kind}: {len(self.items)} found>", MANY)


@dataclass(frozen=True)
class SpeakerTurn:
    """Somebody speaks from start to end. speaker: the number of the voice, in the order in which they speak first."""

    speaker: int
    start: float
    end: float

    def to_dict(self) -> dict[str, Any]:
        return {"speaker": self.speaker, "start": self.start, "end": self.end}

    def __str__(self) -> str:
        return f"{self.start:.2f} s to {self.end:.2f} s: speaker {self.speaker}"


@dataclass(frozen=True, repr=False)
class SpeakerTurns(ItemsAnswer[SpeakerTurn]):
    """Who spoke when."""

    sound: Sound | None = field(default=None, compare=False)

    @property
    def speakers(self) -> int:
        """How many voices there are."""
        return len({turn.speaker for turn in self.items})

    def __repr__(self) -> str:
        return self._listed(f"<{self.kind}: {self.speakers} in {len(self.items)} turns>", MANY)


@dataclass(frozen=True, repr=False)
class CleanSound(Answer):
    """A sound without noise. audio: its samples, float32; sample_rate: of the model. before: the sound as it was given, at this rate."""

    audio: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32), compare=False)
    sample_rate: int = 16000
    before: Sound | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        return {"audio": self.audio.tolist(), "sample_rate": self.sample_rate}

    def plot(self) -> Any:
        """The spectrum over time, before and after."""
        from .drawing import clean_drawn  # noqa: PLC0415 (Pillow, which only pictures need)

        return clean_drawn(self)

    def _forms(self) -> Forms:
        wave: Forms = {".wav": lambda: wav_bytes(self.audio, self.sample_rate)}
        return {**wave, **self._drawn_forms(), **self._told_forms()}

    def __repr__(self) -> str:
        return f"<{self.kind}: {len(self.audio) / self.sample_rate:.2f} s at {self.sample_rate} Hz>"


@dataclass(frozen=True, repr=False)
class Notes(ItemsAnswer[MusicNote]):
    """The notes of a sound, the first first."""

    sound: Sound | None = field(default=None, compare=False)

    def plot(self) -> Any:
        """A piano roll."""
        from .drawing import notes_drawn  # noqa: PLC0415 (Pillow, which only pictures need)

        return notes_drawn(self)

    def _forms(self) -> Forms:
        return {".mid": lambda: midi_bytes(self.items), **self._drawn_forms(), **self._told_forms()}

    def __repr__(self) -> str:
        return self._listed(f"<{self.kind}: {len(self.items)} notes>", MANY)
