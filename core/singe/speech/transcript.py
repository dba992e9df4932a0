"""What a transcription gives: the text, and its parts with their times."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from ..files import write_as
from ..late_dataclass import dataclass
from ..texts import escaped


@dataclass(frozen=True)
class SpokenPart:
    """A part of what is said, from `start` to `end` in seconds. score: the mean chance of the tokens of its window, of a word its own; words: if they are
    asked for."""

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
    """text: all that is said; chunks: its parts; language: its code. suffix: of a file that `save` writes, where nobody
    says."""

    text: str
    chunks: Sequence[SpokenPart]
    language: str

    @property
    def suffix(self) -> str:
        return next(iter(_FORMS))

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "language": self.language, "chunks": [chunk.to_dict() for chunk in self.chunks]}

    def save(self, path: str | Path) -> None:
        """Write it to a file: as plain text, .txt, as subtitles, .srt or .vtt, or as .json."""
        write_as(path, {suffix: lambda form=form: form(self).encode() for suffix, form in _FORMS.items()})

    def __repr__(self) -> str:
        lines = "\n".join(f"  {chunk}" for chunk in self.chunks)
        return f"<transcribe: {len(self.chunks)} parts, language {self.language!r}>" + (f"\n{lines}" if lines else "")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{rest:05.2f}" if hours else f"{minutes}:{rest:05.2f}"


def _subtitles(transcript: Transcript, point: str) -> str:
    def time(seconds: float) -> str:
        thousandths = round(seconds * 1000)
        minutes, rest = divmod(thousandths // 1000, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}{point}{thousandths % 1000:03}"

    return "".join(
        f"{k}\n{time(part.start)} --> {time(part.end)}\n{part.text.strip()}\n\n"
        for k, part in enumerate(transcript.chunks, 1)
    )


_FORMS: Final[Mapping[str, Callable[[Transcript], str]]] = {
    ".txt": lambda transcript: f"{transcript.text}\n",
    ".srt": lambda transcript: _subtitles(transcript, ","),
    ".vtt": lambda transcript: f"WEBVTT\n\n{_subtitles(transcript, '.')}",
    ".json": lambda transcript: json.dumps(transcript.to_dict(), ensure_ascii=False),
}
