"""What a transcription gives: the text, and its parts with their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ..late_dataclass import dataclass
from ..texts import escaped


@dataclass(frozen=True)
class SpokenPart:
    """A part of what is said, from `start` to `end` in seconds. score: the mean chance of the tokens of its window; words: each with its
    times, if they are asked for."""

    text: str
    start: float
    end: float
    score: float
    tokens: Sequence[int] = field(default=(), repr=False)
    words: Sequence[SpokenPart] = ()

    def to_dict(self) -> dict[str, Any]:
        found = {"text": self.text, "timestamp": [self.start, self.end], "score": self.score}
        return {**found, "words": [word.to_dict() for word in self.words]} if self.words else found

    def __str__(self) -> str:
        return f"{_clock(self.start)} to {_clock(self.end)} {escaped(self.text.strip())}"


@dataclass(frozen=True, repr=False)
class Transcript:
    """text: all that is said; chunks: its parts; language: its code."""

    text: str
    chunks: Sequence[SpokenPart]
    language: str

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "language": self.language, "chunks": [chunk.to_dict() for chunk in self.chunks]}

    def __repr__(self) -> str:
        lines = "\n".join(f"  {chunk}" for chunk in self.chunks)
        return f"<transcribe: {len(self.chunks)} parts, language {self.language!r}>" + (f"\n{lines}" if lines else "")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{rest:05.2f}" if hours else f"{minutes}:{rest:05.2f}"
