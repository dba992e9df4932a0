"""`sg.task("transcribe")`: what is said in a sound, with its times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from ...files import zoo
from ...files.sounds import blocks_at, sound_of
from ...files.urls import ZOO
from ...language.tokenizing import Tokenizer
from ...runtime.device import Device
from ...speech.tokens import WhisperTokens
from ...speech.transcribing import TranscribeOptions, Transcriber
from ...speech.transcript import Transcript
from ...speech.whisper.files import files_in, open_whisper
from ...speech.whisper.model import SpeechModel
from ...speech.whisper.spectrogram import RATE
from ..calling import AnyTask

_SETTINGS: Final[Mapping[str, Any]] = {"sampling_rate": None, **{f.name: f.default for f in fields(TranscribeOptions)}}


class TranscribeTask(AnyTask):
    """What is said in sounds: a path, a URL, bytes, an array with `sampling_rate`.

        answer = sg.task("transcribe")("talk.wav")
        print(answer.text)
        for part in answer.chunks:
            print(part.start, part.end, part.text)

    `stream` takes blocks of samples, with their `sampling_rate`, and gives what is said so far: the last parts may still
    change; the last answer is whole. languages: those that the model knows.
    """

    def __init__(self, model: SpeechModel, tokens: WhisperTokens, name: str) -> None:
        super().__init__("transcribe", _SETTINGS)
        self.languages: Final = tuple(tokens.languages) or ("en",)
        self._name = name
        self._transcriber: Transcriber | None = Transcriber(model, tokens)

    @property
    def transcriber(self) -> Transcriber:
        if self._transcriber is None:
            raise self._closed()
        return self._transcriber

    @property
    def device(self) -> Device:
        return self.transcriber.model.device

    def close(self) -> None:
        self._transcriber = None

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Transcript]:
        options, rate = _options(settings)
        return lambda source: self.transcriber(sound_of(source, rate).at(RATE).samples, options)

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Transcript]:
        options, rate = _options(settings)
        return self.transcriber.stream((samples for samples, _ in blocks_at(RATE, frames, rate)), options)

    def __repr__(self) -> str:
        if self._transcriber is None:
            return "<task transcribe, closed>"
        return f"<task transcribe: {self._name} on {self.device.name}, languages {', '.join(self.languages)}>"


def _options(settings: Mapping[str, Any]) -> tuple[TranscribeOptions, int | None]:
    given = dict(settings)
    rate = given.pop("sampling_rate")
    return TranscribeOptions(**given), rate


def transcribe_task(source: str | Path, device: str | Device) -> TranscribeTask:
    """Of a folder of Hugging Face or CTranslate2, or of a row of the zoo."""
    if isinstance(source, str) and source.startswith(ZOO):
        files = zoo.fetch_all(source)
    else:
        files = files_in(Path(source))
    opened = open_whisper(files, str(source))
    tokens = WhisperTokens(Tokenizer.of_file(opened.tokenizer), opened.description, opened.name)
    return TranscribeTask(opened.model(device), tokens, opened.name)
