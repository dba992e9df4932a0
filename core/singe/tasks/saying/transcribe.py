"""`sg.task("transcribe")`: what is said in a sound, with its times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from ...files import zoo
from ...files.places import bundle_at
from ...files.sounds import blocks_at, sound_of
from ...files.urls import ZOO
from ...language.encoder_decoders.running import MOST_TEXTS
from ...language.tokenizing import Tokenizer
from ...late_dataclass import dataclass
from ...model.files import load
from ...model.model import Model
from ...runtime.device import Device
from ...speech.tokens import WhisperTokens
from ...speech.transcribing import RULES, TranscribeOptions, Transcriber
from ...speech.transcript import Transcript
from ...speech.whisper.files import files_in, open_whisper
from ...speech.whisper.model import SpeechModel
from ...speech.whisper.spectrogram import LENGTH, RATE, STEP
from ...speech.whisper.whole import BundleSizes, WholeWhisper
from ...speech.words import WORDS
from ..calling import AnyTask
from ..medium import Files, TaskInput
from ..spec import TaskSpec
from .bundles import BundleFacts, bundle_facts
from .moonshine import MoonshineInput, MoonshineTask, is_moonshine, moonshine_of_bundle, moonshine_task
from .pairs import plain_name

TOKENIZER: Final = "tokenizer.json"

_SETTINGS: Final[Mapping[str, Any]] = {"sampling_rate": None, **{f.name: f.default for f in fields(TranscribeOptions)}}


@dataclass(frozen=True)
class HearingInput(TaskInput):
    """How a sound becomes windows, and these texts, for a page. rate: of its samples; step, length: samples from frame to frame, and of
    one; frames, positions: of a window; room: of a text's tokens; texts: the most side by side; tokens, rules, words: tables of what
    Python does."""

    medium: ClassVar[str] = "hearing"
    rate: int
    step: int
    length: int
    frames: int
    positions: int
    room: int
    vocabulary: int
    texts: int
    tokens: Mapping[str, Any]
    rules: Mapping[str, Any]
    words: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"medium": self.medium, **asdict(self)}


class TranscribeTask(AnyTask):
    """What is said in sounds: a path, a URL, bytes, an array with `sampling_rate`.

        answer = sg.task("transcribe")("talk.wav")
        print(answer.text)
        for part in answer.chunks:
            print(part.start, part.end, part.text)

    `stream` takes blocks of samples, with their `sampling_rate`, and gives what is said so far: the last parts may still
    change; the last answer is whole. languages: those that the model knows. info, model, files: what a page has of it.
    """

    def __init__(
        self, model: SpeechModel, tokens: WhisperTokens, name: str, tokenizer: bytes, licence: str = ""
    ) -> None:
        """tokenizer: a tokenizer.json."""
        super().__init__("transcribe", _SETTINGS, Transcriber(model, tokens))
        self.languages: Final = tuple(tokens.languages) or ("en",)
        d = model.description
        told = HearingInput(
            RATE, STEP, LENGTH, d.frames, d.positions, d.room, d.vocabulary, MOST_TEXTS, tokens.table(), RULES, WORDS
        )
        self.info: Final = TaskSpec("transcribe", told, "whisper", licence=licence)
        self._name, self._tokenizer = name, tokenizer

    @property
    def transcriber(self) -> Transcriber:
        return self._open()

    @cached_property
    def model(self) -> Model:
        return self.transcriber.model.whole(plain_name(self._name))

    @property
    def files(self) -> Files:
        return {TOKENIZER: self._tokenizer}

    @property
    def device(self) -> Device:
        return self.transcriber.model.device

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Transcript]:
        options, rate = _options(settings)
        return lambda source: self.transcriber(sound_of(source, rate).at(RATE).samples, options)

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Transcript]:
        options, rate = _options(settings)
        return self.transcriber.stream((samples for samples, _ in blocks_at(RATE, frames, rate)), options)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<task transcribe, closed>"
        return f"<task transcribe: {self._name} on {self.device.name}, languages {', '.join(self.languages)}>"


def _options(settings: Mapping[str, Any]) -> tuple[TranscribeOptions, int | None]:
    given = dict(settings)
    rate = given.pop("sampling_rate")
    return TranscribeOptions(**given), rate


def transcribe_task(
    source: str | Path, device: str | Device, weights: str | None = None
) -> TranscribeTask | MoonshineTask:
    """Of a folder of Hugging Face or CTranslate2, of a row of the zoo, or of a bundle. weights: the form to which matrices of floats are
    rounded."""
    if (folder := bundle_at(source)) is not None:
        bundle = bundle_facts(folder, "transcribe", HearingInput.medium, MoonshineInput.medium)
        is_whisper = bundle.preparation["medium"] == HearingInput.medium
        return _of_bundle(bundle, device) if is_whisper else moonshine_of_bundle(bundle, device)
    if isinstance(source, str) and source.startswith(ZOO):
        files, licence = zoo.fetch_all(source), zoo.find(source).licence
    else:
        files, licence = files_in(Path(source)), ""
    if is_moonshine(files):
        return moonshine_task(files, device, str(source), weights, licence)
    opened = open_whisper(files, str(source), weights)
    tokens = WhisperTokens.of_model(Tokenizer.of_file(opened.tokenizer), opened.description, opened.name)
    return TranscribeTask(opened.model(device), tokens, opened.name, opened.tokenizer.read_bytes(), licence)


def _of_bundle(bundle: BundleFacts, device: str | Device) -> TranscribeTask:
    names = ("positions", "room", "vocabulary", "texts")
    sizes = BundleSizes(*map(bundle.number, names))
    table = bundle.preparation.get("tokens")
    marks = WhisperTokens(
        bundle.tokenizer(TOKENIZER), table if isinstance(table, dict) else {}, sizes.vocabulary, str(bundle.folder)
    )
    model = WholeWhisper(load(bundle.folder, device, name=bundle.name), sizes, str(bundle.folder))
    return TranscribeTask(model, marks, bundle.name, bundle.file(TOKENIZER), bundle.licence)
