"""A voice of Piper: an ONNX model that makes sound of phonemes, and the file beside it that numbers them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import FormatError, InputError
from ..files.bounded import read_json_object
from ..late_dataclass import dataclass
from ..model.model import Model
from .english.numbers import ABBREVIATION, SPACE

BEGIN, END, PAD = "^", "$", "_"
PIPER: Final = "piper"
KOKORO: Final = "kokoro"
MAX_PHONEMES: Final = 1000
"""Of a sentence, unless a voice takes fewer."""
PAUSE_SECONDS: Final = 0.2
"""Of silence after a sentence."""
_SENTENCE: Final = re.compile(
    rf"(?:[^.!?…\n]|[.!?…]+[\"'”’)]*(?!{SPACE}|[.!?…\"'”’)]|$))*(?:[.!?…]+[\"'”’)]*(?={SPACE}|$)|\n+)"
)
_OPEN: Final = re.compile(rf"{ABBREVIATION}(?![\s\S])", re.ASCII | re.IGNORECASE)
"""As in static/tasks/singe-task-speech.js; so is what a sentence is."""
READING: Final[Mapping[str, Any]] = {
    "begin": BEGIN, "end": END, "pad": PAD, "most": MAX_PHONEMES, "pause": PAUSE_SECONDS,
}  # fmt: skip
"""How signs become numbers, for a page, which does as this module."""


@dataclass(frozen=True)
class VoiceDescription:
    """numbers: those of each phoneme. language: the family of its language, such as "en"; letters: whether its phonemes are letters of texts.
    noise, breadth: how much chance is in the voice and in its rhythm. speakers: by name. most: phonemes of a sentence; longer ones are cut
    at a space, and said as several. network: whose it is, PIPER or KOKORO."""

    rate: int
    numbers: Mapping[str, tuple[int, ...]]
    language: str
    letters: bool
    noise: float
    length: float
    breadth: float
    speakers: Mapping[str, int]
    most: int = MAX_PHONEMES
    network: str = PIPER

    @staticmethod
    def of_facts(facts: Mapping[str, Any], source: str) -> VoiceDescription:
        """Of these fields, from a file that may hold anything; source: how errors name it."""
        rate, numbers, speakers = facts.get("rate"), facts.get("numbers"), facts.get("speakers")
        scales: list[Any] = [facts.get(name) for name in ("noise", "length", "breadth")]
        if type(rate) is not int or not 1000 <= rate <= 192_000:
            raise FormatError(f"{source}: sample_rate is {rate!r:.40}, expected samples a second")
        if not (
            isinstance(numbers, dict)
            and {BEGIN, END, PAD} <= numbers.keys()
            and all(map(_are_numbers, numbers.values()))
        ):
            raise FormatError(
                f"{source}: phoneme_id_map: expected numbers of phonemes, among them of {BEGIN}, {END} and {PAD}"
            )
        if not all(type(x) in (int, float) and 0 <= x < 100 for x in scales):
            raise FormatError(f"{source}: inference is {scales!r:.80}, expected numbers from 0 on")
        if not (isinstance(speakers, dict) and all(type(k) is int and k >= 0 for k in speakers.values())):
            raise FormatError(f"{source}: speaker_id_map: expected numbers of speakers")
        most = facts.get("most", MAX_PHONEMES)
        if type(most) is not int or not 1 <= most <= MAX_PHONEMES:
            raise FormatError(f"{source}: most is {most!r:.40}, expected a number of phonemes up to {MAX_PHONEMES}")
        language, letters = facts.get("language"), facts.get("letters")
        if not isinstance(language, str) or not isinstance(letters, bool):
            raise FormatError(f"{source}: language is {language!r:.40}, expected a text")
        network = facts.get("network", PIPER)
        if network not in (PIPER, KOKORO):
            raise FormatError(f"{source}: network is {network!r:.40}, expected {PIPER!r} or {KOKORO!r}")
        noise, length, breadth = map(float, scales)
        return VoiceDescription(
            rate,
            {sign: tuple(ids) for sign, ids in numbers.items()},
            language,
            letters,
            noise,
            length,
            breadth,
            speakers,
            most,
            network,
        )

    def ids(self, signs: str) -> list[int]:
        """The numbers of signs, with marks around and pads between; signs that the voice does not have are left out."""
        pad = self.numbers[PAD]
        ids = [*self.numbers[BEGIN], *pad]
        for sign in signs:
            ids += (*self.numbers[sign], *pad) if sign in self.numbers else ()
        return [*ids, *self.numbers[END]]


def read_voice(path: Path) -> VoiceDescription:
    """The description in a voice's .onnx.json."""
    values = read_json_object(path)

    def part(name: str) -> Mapping[str, Any]:
        found = values.get(name, {})
        if not isinstance(found, dict):
            raise FormatError(f"{path}: {name} is {found!r:.60}, expected an object")
        return found

    kind = values.get("phoneme_type", "espeak")
    if kind not in ("espeak", "text"):
        raise FormatError(f"{path}: phoneme_type is {kind!r:.40}, expected 'espeak' or 'text'")
    scales = part("inference")
    facts = {
        "rate": part("audio").get("sample_rate"),
        "numbers": part("phoneme_id_map"),
        "language": str(part("language").get("family") or str(part("espeak").get("voice", "")).partition("-")[0]),
        "letters": kind == "text",
        "noise": scales.get("noise_scale", 0.667),
        "length": scales.get("length_scale", 1.0),
        "breadth": scales.get("noise_w", 0.8),
        "speakers": part("speaker_id_map"),
    }
    return VoiceDescription.of_facts(facts, str(path))


def _are_numbers(ids: Any) -> bool:
    return isinstance(ids, list) and all(type(k) is int and 0 <= k < 1 << 16 for k in ids)


@dataclass(frozen=True)
class Speaking:
    """How a text is said. speed: 2 is twice as fast; speaker: the name or the number of one, of a voice that has several; seed: of what
    chance adds, so that a text sounds the same again; None: at every call otherwise; phonemes: whether the text is signs of IPA already."""

    speed: float = 1.0
    speaker: str | int = 0
    seed: int | None = 0
    phonemes: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.speed, (int, float)) or not 0.1 <= self.speed <= 10:
            raise InputError(f"speak: speed {self.speed!r:.40}, expected a number from 0.1 to 10")


def sentences(parts: Iterable[str]) -> Iterator[str]:
    """The sentences of a text that comes in parts, each as soon as another one has begun."""
    held = ""
    for part in parts:
        held += part
        while (end := _first_end(held)) < len(held):
            if text := held[:end].strip():
                yield text
            held = held[end:]
    if text := held.strip():
        yield text


def _first_end(text: str) -> int:
    """Where the first sentence of a text ends."""
    at = 0
    while (found := _SENTENCE.match(text, at)) is not None:
        at = found.end()
        if not _OPEN.search(text[:at]):
            return at
    return len(text)


class PiperVoice:
    """A voice on a device. signs: the phonemes of a text."""

    def __init__(self, model: Model, description: VoiceDescription, signs: Callable[[str], str]) -> None:
        names = {x.name for x in model.inputs}
        needed = {"input", "input_lengths", "scales"}
        if not needed <= names <= needed | {"sid"}:
            raise InputError(
                f"speak: the model takes {', '.join(map(str, model.inputs))}; expected {', '.join(sorted(needed))}"
            )
        self.model: Final = model
        self.description: Final = description
        self._signs: Final = signs
        self._speakers: Final = "sid" in names
        self._session: Final = model.session() if model.states else model

    def begin(self, how: Speaking) -> None:
        """Begin the chance of a seed."""
        if how.seed is not None and self.model.states:
            self._session.seed(how.seed)

    def say(self, sentence: str, how: Speaking) -> np.ndarray:
        """The samples of a sentence, and of the pause behind it."""
        d = self.description
        signs = sentence if how.phonemes or d.letters else self._signs(sentence)
        made = [self._run(part, how) for part in _cut(signs, d.most)]
        return np.concatenate([*made, np.zeros(round(PAUSE_SECONDS * d.rate), np.float32)])

    def _run(self, signs: str, how: Speaking) -> np.ndarray:
        d = self.description
        ids = d.ids(signs)
        given = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([d.noise, d.length / how.speed, d.breadth], np.float32),
        }
        speaker = self._speaker(how.speaker)
        if self._speakers:
            given["sid"] = np.array([speaker], np.int64)
        return np.asarray(self._session(given), np.float32).reshape(-1)

    def _speaker(self, speaker: str | int) -> int:
        known = self.description.speakers
        number = known.get(speaker) if isinstance(speaker, str) else speaker
        if number is None or number not in (known.values() or (0,)):
            raise InputError(f"speak: speaker {speaker!r:.40}, expected one of {', '.join(known) or '0'}")
        return number


def _cut(signs: str, most: int) -> Iterator[str]:
    while len(signs) > most:
        place = signs.rfind(" ", 0, most)
        place = most if place <= 0 else place
        yield signs[:place]
        signs = signs[place:]
    if signs.strip():
        yield signs
