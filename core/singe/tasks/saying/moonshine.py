"""`sg.task("transcribe")` with a Moonshine, of Hugging Face's files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ...errors import InputError
from ...files.bounded import read_json_object
from ...files.sounds import blocks_at, sound_of
from ...language.encoder_decoders.files import CONFIG, open_pair
from ...language.encoder_decoders.generating import MAX_BEAMS, rules_of
from ...language.encoder_decoders.sounds import RATE
from ...language.tokenizing import Tokenizer
from ...runtime.device import Device
from ...speech.moonshine import MoonshineTranscriber
from ...speech.transcript import Transcript
from ..calling import AnyTask

_TOKENIZER: Final = "tokenizer.json"
_SETTINGS: Final[Mapping[str, Any]] = {"sampling_rate": None, "beams": None}


class MoonshineTask(AnyTask):
    """What is said in sounds, as TranscribeTask answers: its parts are the windows of a long sound, which are cut where it is quiet."""

    def __init__(self, transcriber: MoonshineTranscriber, name: str) -> None:
        super().__init__("transcribe", _SETTINGS)
        self._name = name
        self._transcriber: MoonshineTranscriber | None = transcriber

    @property
    def transcriber(self) -> MoonshineTranscriber:
        if self._transcriber is None:
            raise self._closed()
        return self._transcriber

    @property
    def device(self) -> Device:
        return self.transcriber.model.device

    def close(self) -> None:
        self._transcriber = None

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Transcript]:
        rate, beams = settings["sampling_rate"], _beams(settings)
        return lambda source: self.transcriber(sound_of(source, rate).at(RATE).samples, beams)

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Transcript]:
        blocks = (samples for samples, _ in blocks_at(RATE, frames, settings["sampling_rate"]))
        return self.transcriber.stream(blocks, _beams(settings))

    def __repr__(self) -> str:
        return (
            "<task transcribe, closed>"
            if self._transcriber is None
            else f"<task transcribe: {self._name} on {self.device.name}>"
        )


def _beams(settings: Mapping[str, Any]) -> int | None:
    beams = settings["beams"]
    if beams is not None and (type(beams) is not int or not 0 < beams <= MAX_BEAMS):
        raise InputError(f"transcribe: beams {beams!r:.40}, expected a number from 1 to {MAX_BEAMS}")
    return beams


def is_moonshine(files: Mapping[str, Path]) -> bool:
    return CONFIG in files and read_json_object(files[CONFIG]).get("model_type") == "moonshine"


def moonshine_task(files: Mapping[str, Path], device: str | Device, name: str) -> MoonshineTask:
    if _TOKENIZER not in files:
        raise InputError(f"{name}: without {_TOKENIZER}")
    opened = open_pair(files, name)
    model = opened.model(device)
    rules = rules_of(opened.config, opened.generation, opened.vocabulary, model.room[1], name)
    return MoonshineTask(MoonshineTranscriber(model, Tokenizer.of_file(files[_TOKENIZER]), rules), name)
