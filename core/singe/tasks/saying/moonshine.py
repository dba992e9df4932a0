"""`sg.task("transcribe")` with a Moonshine, of Hugging Face's files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from ...errors import InputError
from ...files.bounded import read_json_object
from ...files.sounds import blocks_at, sound_of
from ...language.encoder_decoders.files import CONFIG, open_pair
from ...language.encoder_decoders.generating import GenerationRules, rules_of
from ...language.encoder_decoders.sounds import FRAME, FURTHER, LEAST_SAMPLES, RATE
from ...language.tokenizing import Tokenizer
from ...late_dataclass import dataclass
from ...model.model import Model
from ...runtime.device import Device
from ...speech.moonshine import CUT, MoonshineTranscriber
from ...speech.transcript import Transcript
from ..calling import AnyTask
from ..medium import Files, TaskInput
from ..spec import TaskSpec
from .bundles import BundleFacts
from .pairs import checked_beams, most_texts, plain_name, whole_pair

_TOKENIZER: Final = "tokenizer.json"
_SETTINGS: Final[Mapping[str, Any]] = {"sampling_rate": None, "beams": None}


@dataclass(frozen=True)
class MoonshineInput(TaskInput):
    """How a sound becomes frames, and these texts, for a page. rate: of its samples; frame: samples of one, further: frames beyond the vectors;
    least: samples in which something is heard; room: of a sound, and of a text's tokens; texts: the most side by side; rules: of the texts;
    cut: numbers by which a long sound is cut."""

    medium: ClassVar[str] = "moonshine"
    rate: int
    frame: int
    further: int
    least: int
    room: tuple[int, int]
    vocabulary: int
    texts: int
    rules: GenerationRules
    cut: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {"medium": self.medium, **vars(self), "room": list(self.room), "rules": self.rules.to_config()}


class MoonshineTask(AnyTask):
    """What is said in sounds, as TranscribeTask answers: its parts are the windows of a long sound, which are cut where it is quiet."""

    def __init__(
        self, transcriber: MoonshineTranscriber, vocabulary: int, most: int, name: str, tokenizer: bytes, licence: str = ""
    ) -> None:  # fmt: skip
        """vocabulary: how many tokens it scores; most: texts side by side in a page; tokenizer: a tokenizer.json."""
        super().__init__("transcribe", _SETTINGS, transcriber)
        told = MoonshineInput(
            RATE, FRAME, FURTHER, LEAST_SAMPLES, transcriber.model.room, vocabulary, most, transcriber.rules, CUT
        )
        self.info: Final = TaskSpec("transcribe", told, "moonshine", licence=licence)
        self._most, self._name, self._tokenizer = most, name, tokenizer

    @property
    def transcriber(self) -> MoonshineTranscriber:
        return self._open()

    @cached_property
    def model(self) -> Model:
        """All of it as one Model, as a page has it."""
        return self.transcriber.model.whole(plain_name(self._name), self._most)

    @property
    def files(self) -> Files:
        return {_TOKENIZER: self._tokenizer}

    @property
    def device(self) -> Device:
        return self.transcriber.model.device

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Transcript]:
        rate, beams = settings["sampling_rate"], checked_beams("transcribe", settings["beams"])
        return lambda source: self.transcriber(sound_of(source, rate).at(RATE).samples, beams)

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Transcript]:
        blocks = (samples for samples, _ in blocks_at(RATE, frames, settings["sampling_rate"]))
        return self.transcriber.stream(blocks, checked_beams("transcribe", settings["beams"]))

    def __repr__(self) -> str:
        return (
            "<task transcribe, closed>" if self.is_closed else f"<task transcribe: {self._name} on {self.device.name}>"
        )


def is_moonshine(files: Mapping[str, Path]) -> bool:
    return CONFIG in files and read_json_object(files[CONFIG]).get("model_type") == "moonshine"


def moonshine_task(
    files: Mapping[str, Path], device: str | Device, name: str, weights: str | None = None, licence: str = ""
) -> MoonshineTask:
    if _TOKENIZER not in files:
        raise InputError(f"{name}: without {_TOKENIZER}")
    opened = open_pair(files, name, weights)
    model = opened.model(device)
    rules = rules_of(opened.config, opened.generation, opened.vocabulary, model.room[1], name)
    transcriber = MoonshineTranscriber(model, Tokenizer.of_file(files[_TOKENIZER]), rules)
    file = files[_TOKENIZER].read_bytes()
    return MoonshineTask(transcriber, opened.vocabulary, most_texts(rules), name, file, licence)


def moonshine_of_bundle(bundle: BundleFacts, device: str | Device) -> MoonshineTask:
    reader, vocabulary = whole_pair(bundle, device)
    told = bundle.preparation.get("rules")
    rules = rules_of({}, told if isinstance(told, dict) else {}, vocabulary, reader.room[1], str(bundle.folder))
    transcriber = MoonshineTranscriber(reader, bundle.tokenizer(_TOKENIZER), rules)
    return MoonshineTask(transcriber, vocabulary, reader.most, bundle.name, bundle.file(_TOKENIZER), bundle.licence)
