"""`sg.task("speak")`: a text, read aloud by a voice of Piper, or by Kokoro."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from ...awaitables import IN_PAGE
from ...errors import InputError
from ...files import zoo
from ...files.places import bundle_at
from ...files.sounds import wav_bytes
from ...files.urls import ZOO
from ...late_dataclass import dataclass
from ...model.files import load
from ...model.model import Model
from ...runtime.device import Device
from ...runtime.devices import DEFAULT
from ...speech.english import TABLES, English, read_dictionary
from ...speech.kokoro import VOCABULARIES, as_piper, description_of, is_kokoro, read_styles
from ...speech.piper import KOKORO, READING, PiperVoice, Speaking, VoiceDescription, read_voice, sentences
from ..answers import Answer, Forms
from ..calling import AnyTask
from ..medium import Files, TaskInput
from ..spec import TaskSpec
from .bundles import bundle_facts

WORDS: Final = "cmudict.dict"
"""A dictionary of English, of the form of CMU's."""
VOICES: Final = "voices"
"""What the folder or the file with the styles of Kokoro's voices is called, at the beginning."""
RULES: Final = "speech.json"
"""How a text becomes signs, and these numbers, for a page."""
ENGLISH: Final = "en"
SLOW: Final = "speak: Kokoro takes half a minute for each second of sound on numpy; device=\"wasm\" (pip install 'singe[wasm]') takes a thirtieth of that"
_log: Final = logging.getLogger("singe")
_SETTINGS: Final[Mapping[str, Any]] = {f.name: f.default for f in fields(Speaking)}


@dataclass(frozen=True)
class SpeechInput(TaskInput):
    """How texts become numbers of phonemes: the facts of a voice."""

    medium: ClassVar[str] = "speech"
    voice: VoiceDescription

    def to_dict(self) -> dict[str, Any]:
        return {"medium": self.medium, **asdict(self.voice)}

    def __str__(self) -> str:
        return f"{self.voice.language or 'any language'}, {self.voice.rate} samples a second"


@dataclass(frozen=True, repr=False)
class SpokenSound(Answer):
    """audio: samples from −1 to 1; sample_rate: how many a second; text: what they say."""

    audio: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32), compare=False)
    sample_rate: int = 0
    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"audio": self.audio.tolist(), "sample_rate": self.sample_rate, "text": self.text}

    def _forms(self) -> Forms:
        return {".wav": lambda: wav_bytes(self.audio, self.sample_rate), **self._told_forms()}

    def __repr__(self) -> str:
        return f"<speak: {len(self.audio) / max(1, self.sample_rate):.2f} s at {self.sample_rate} samples a second>"


class SpeakTask(AnyTask):
    """A voice, which reads texts aloud.

        speak = sg.task("speak")
        speak("Good morning.").save("morning.wav")
        for sound in speak.stream(text):        # sentence by sentence, while the next one is made
            play(sound.audio, sound.sample_rate)

    `stream` also takes a text that comes in parts, such as from a language model. info: the facts of the task; preparation is those of the
    voice.
    """

    streams_texts = True

    def __init__(self, voice: PiperVoice, name: str, words: Path | None, licence: str = "") -> None:
        super().__init__("speak", _SETTINGS, voice)
        self.info: Final = TaskSpec("speak", SpeechInput(voice.description), "piper", licence=licence)
        self._name = name
        self._rate: Final = voice.description.rate
        self._words: Final = words
        self._warned = False

    @property
    def voice(self) -> PiperVoice:
        return self._open()

    @property
    def model(self) -> Model:
        return self.voice.model

    @property
    def files(self) -> Files:
        """What a page needs beside the model: rules of reading, and the dictionary."""
        rules = {
            **READING,
            "most": self.voice.description.most,
            "english": TABLES if self._words else None,
            "words": WORDS,
        }
        told = json.dumps(rules, ensure_ascii=False, separators=(",", ":")).encode()
        return {RULES: told, **({WORDS: self._words.read_bytes()} if self._words else {})}

    @property
    def device(self) -> Device:
        return self.model.device

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], SpokenSound]:
        how = Speaking(**settings)

        def said(source: Any) -> SpokenSound:
            self._begin_voice(how)
            made = [self._said(sentence, how) for sentence in sentences([_checked(source)])]
            audio = np.concatenate([sound.audio for sound in made]) if made else np.zeros(0, np.float32)
            return SpokenSound("speak", None, audio, self._rate, source)

        return said

    def _stream(self, frames: Iterable[str], settings: Mapping[str, Any]) -> Iterator[SpokenSound]:
        how = Speaking(**settings)
        self._begin_voice(how)
        parts = [frames] if isinstance(frames, str) else map(_checked, frames)
        return self._ahead(sentences(parts), how)

    def _begin_voice(self, how: Speaking) -> None:
        """Begin to speak; say once where that takes long."""
        self.voice.begin(how)
        if not self._warned and self.device.name == DEFAULT and self.voice.description.network == KOKORO:
            _log.warning(SLOW)
            self._warned = True

    def _ahead(self, texts: Iterator[str], how: Speaking) -> Iterator[SpokenSound]:
        """The sounds of texts. The next text is waited for, and said, while the sound before it is used; who ends waits for no text."""
        saying, wanted = threading.RLock(), True  # the garbage collector may end it in the pool's thread

        def following() -> SpokenSound | None:
            text = next(texts, None)
            with saying:
                return self._said(text, how) if text is not None and wanted else None

        if IN_PAGE:
            yield from iter(following, None)
            return
        pool = ThreadPoolExecutor(1)
        try:
            made = pool.submit(following)
            while (sound := made.result()) is not None:
                made = pool.submit(following)
                yield sound
        finally:
            with saying:
                wanted = False
            pool.shutdown(wait=False, cancel_futures=True)

    def _said(self, sentence: str, how: Speaking) -> SpokenSound:
        return SpokenSound("speak", None, self.voice.say(sentence, how), self._rate, sentence)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<task speak, closed>"
        return f"<task speak: {self._name} on {self.device.name}, {self._rate} samples a second>"


def _checked(text: Any) -> str:
    if not isinstance(text, str):
        raise InputError(f"speak: got a {type(text).__name__}, expected a text")
    return text


def speak_task(source: str | Path, device: str | Device) -> SpeakTask:
    """Of a row of the zoo, of a folder or a file VOICE.onnx, with VOICE.onnx.json or what Kokoro needs beside it, or of a bundle."""
    if (folder := bundle_at(source)) is not None:
        return _of_bundle(folder, device)
    if isinstance(source, str) and source.startswith(ZOO):
        files = zoo.fetch_all(source)
        path = next(path for name, path in files.items() if name.endswith(".onnx"))
        licence = zoo.find(source).licence
    else:
        path = _model_at(Path(source))
        files, licence = _files_beside(path), ""
    made, description = _voice(path, files, device)
    words = _dictionary(description, files.get(WORDS))
    return SpeakTask(PiperVoice(made, description, _reader(description, words)), path.stem, words, licence)


def _files_beside(model: Path) -> Mapping[str, Path]:
    """The files in the folder of a model, and those of its folder of voices; none where there is no model."""
    if not model.is_file():
        return {}
    names = [*model.parent.iterdir(), *(model.parent / VOICES).glob("*")]
    return {path.relative_to(model.parent).as_posix(): path for path in sorted(names) if path.is_file()}


def _voice(path: Path, files: Mapping[str, Path], device: str | Device) -> tuple[Model, VoiceDescription]:
    """A model of Piper's form, and its facts. Piper's has VOICE.onnx.json beside it; Kokoro's the numbers of its signs, and styles."""
    model = load(path, device, name=path.stem)
    if not is_kokoro(model):
        facts = files.get(f"{path.name}.json")
        if facts is None:
            raise InputError(f"{path}: without {path.name}.json beside it, which numbers the voice's phonemes")
        return model, read_voice(facts)
    vocabulary = next((files[name] for name in VOCABULARIES if name in files), None)
    if vocabulary is None:
        raise InputError(
            f"{path}: without the numbers of Kokoro's signs beside it, expected one of {', '.join(VOCABULARIES)}"
        )
    styles = read_styles(
        {Path(name).stem.removeprefix(f"{VOICES}-"): x for name, x in files.items() if _has_styles(name)}
    )
    if not styles:
        raise InputError(
            f"{path}: without voices beside it, expected {VOICES}/NAME.bin, or an archive {VOICES}*.npz or {VOICES}*.bin"
        )
    speakers = {name: k for k, name in enumerate(styles)}
    return as_piper(model, styles), description_of(vocabulary, speakers)


def _has_styles(name: str) -> bool:
    return name.startswith(VOICES) and name.endswith((".bin", ".npz"))


def _of_bundle(folder: Path, device: str | Device) -> SpeakTask:
    bundle = bundle_facts(folder, "speak", SpeechInput.medium)
    description = VoiceDescription.of_facts(bundle.preparation, str(folder))
    words = None
    if WORDS in bundle.files:
        bundle.file(WORDS)  # so that it is compared with its hash
        words = folder / bundle.files[WORDS]["file"]
    voice = PiperVoice(load(folder, device), description, _reader(description, words))
    return SpeakTask(voice, bundle.name, words, bundle.licence)


def _model_at(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.onnx"))
    if len(found) != 1:
        raise InputError(f"{path}: {len(found)} files .onnx, expected a folder with one voice, or the file itself")
    return found[0]


def _dictionary(description: VoiceDescription, beside: Path | None) -> Path | None:
    """That of a voice's language; of English the one beside it, or the zoo's."""
    if description.letters or description.language != ENGLISH:
        return None
    return beside if beside and beside.is_file() else zoo.fetch(f"{zoo.default_for('speak')}/{WORDS}")


def _reader(description: VoiceDescription, words: Path | None) -> Callable[[str], str]:
    """What makes phonemes of texts in the language of a voice."""
    if words is not None:
        return English(read_dictionary(words)).phonemes
    language = description.language

    def refuse(text: str) -> str:
        raise InputError(f"speak: texts in {language!r:.20} cannot be read yet; give signs of IPA, with phonemes=True")

    return refuse
