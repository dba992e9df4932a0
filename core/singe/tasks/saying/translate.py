"""`sg.task("translate")`: a text in another language, by an encoder that reads it and a decoder that says it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from ...errors import InputError
from ...files import zoo
from ...files.places import bundle_at
from ...files.urls import ZOO
from ...language.encoder_decoders.files import files_in, open_pair
from ...language.encoder_decoders.generating import generated, generated_live
from ...language.encoder_decoders.running import SourceReader
from ...language.encoder_decoders.texts import FILES, TOKENIZER, AskedLanguage, PairTexts, TextFacts, texts_of
from ...late_dataclass import dataclass
from ...model.model import Model
from ...runtime.device import Device
from ...texts import escaped
from ..answers import Answer, Forms
from ..calling import AnyTask
from ..medium import Files, TaskInput
from ..spec import TaskSpec
from ..text.medium import text_of
from .bundles import BundleFacts, bundle_facts
from .pairs import checked_beams, most_texts, plain_name, whole_pair

_log: Final = logging.getLogger("singe")
_SETTINGS: Final[Mapping[str, Any]] = {"src_lang": None, "tgt_lang": None, "beams": None}
_UNITS: Final = (
    re.compile(r"""(?:[^.!?…。！？\n]|[.!?…](?!\s))*(?:[.!?…。！？]+["'”’)」』]*|\n|(?![\s\S]))\s*"""),
    re.compile(r"\S+\s*|\s+"),
    re.compile(r"[\s\S]"),
)
"""Where a text that is too long is cut: between sentences, else between words, else anywhere; as in static/tasks/saying."""


@dataclass(frozen=True)
class TranslatingInput(TaskInput):
    """How a text becomes tokens, and these an answer, for a page. room: tokens of a text and of an answer; texts: the most side by side."""

    medium: ClassVar[str] = "translating"
    room: tuple[int, int]
    vocabulary: int
    texts: int
    facts: TextFacts

    def to_dict(self) -> dict[str, Any]:
        own = {"room": list(self.room), "vocabulary": self.vocabulary, "texts": self.texts}
        return {"medium": self.medium, **own, **self.facts.to_dict()}


@dataclass(frozen=True, repr=False)
class Translation(Answer):
    """text: in the other language; windows: in how many parts the text was read, one after the other, where it is longer than the model; cut:
    whether an answer was still going on when it had as many tokens as the model's files allow."""

    text: str = ""
    windows: int = 1
    cut: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"translation_text": self.text}

    def _forms(self) -> Forms:
        return {".txt": f"{self.text}\n".encode, **self._told_forms()}

    def __repr__(self) -> str:
        parts = f", {self.windows} windows" if self.windows > 1 else ""
        return f"<translate{parts}{', cut' if self.cut else ''}: {escaped(self.text)}>"


class TranslateTask(AnyTask):
    """Texts in another language.

        translate = sg.task("translate", "opus-mt-en-de/")
        print(translate("Hello world").text)
        for answer in translate.stream(text, beams=1):      # as it is said
            print(answer.text)

    src_lang, tgt_lang: codes of languages, of models that know several: `languages`, or pairs of them, `pairs`. beams: how many texts are followed
    side by side; without it, as the model's files say. A text that is longer than the model is read in windows, cut between sentences.
    """

    streams_texts = True

    def __init__(
        self, model: SourceReader, texts: PairTexts, vocabulary: int, most: int, name: str, licence: str = ""
    ) -> None:
        """vocabulary: how many tokens it scores; most: texts side by side in a page."""
        super().__init__("translate", _SETTINGS, model)
        self.languages: Final = tuple(sorted(texts.facts.languages))
        self.pairs: Final = tuple((task.source, task.target) for task in texts.facts.tasks)
        told = TranslatingInput(model.room, vocabulary, most, texts.facts)
        self.info: Final = TaskSpec("translate", told, "pair", licence=licence)
        self._texts, self._most, self._name = texts, most, name

    @property
    def reader(self) -> SourceReader:
        return self._open()

    @cached_property
    def model(self) -> Model:
        """All of it as one Model, as a page has it."""
        return self.reader.whole(plain_name(self._name), self._most)

    @property
    def files(self) -> Files:
        return {TOKENIZER: self._texts.file}

    @property
    def device(self) -> Device:
        return self.reader.device

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Translation]:
        asked = self._asked(settings)

        def translated(source: Any) -> Translation:
            *_, last = self._course(text_of(source), asked, False)
            return last

        return translated

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Translation]:
        asked = self._asked(settings)
        for source in [frames] if isinstance(frames, str) else frames:
            yield from self._course(text_of(source), asked, asked.rules.beams == 1)

    def _asked(self, settings: Mapping[str, Any]) -> AskedLanguage:
        beams = checked_beams("translate", settings["beams"])
        asked = self._texts.asked(settings["src_lang"], settings["tgt_lang"])
        return asked if beams is None else replace(asked, rules=replace(asked.rules, beams=beams))

    def _course(self, text: str, asked: AskedLanguage, live: bool) -> Iterator[Translation]:
        """What is said of a text so far, window by window, and token by token (`live`)."""
        rules = asked.rules
        windows = self._windows(text, asked)
        said, cut = "", False
        if len(windows) > 1:
            _log.info("translate: a text that is longer than the model is read in %d windows", len(windows))
        for window in windows:
            gap = window[len(window.rstrip()) :] or " "
            self.reader.hear(self._texts.encode(window.strip(), asked))
            if live:
                tokens = list[int]()
                for token in generated_live(self.reader, rules):
                    tokens.append(token)
                    yield Translation("translate", None, (said + self._texts.decode(tokens)).strip(), len(windows), cut)
                whole = rules.are_whole(tokens)
            else:
                tokens, whole = generated(self.reader, rules)
            said += self._texts.decode(tokens) + gap
            cut = cut or not whole
        if cut:
            _log.warning(
                "translate: an answer of %d tokens, the most that the model's files allow, was still going on",
                rules.most,
            )
        yield Translation("translate", None, said.strip(), len(windows), cut)

    def _windows(self, text: str, asked: AskedLanguage) -> list[str]:
        """The text, or the parts of it that the model can read."""
        room = self.reader.room[0]

        def fits(part: str) -> bool:
            return len(self._texts.encode(part.strip(), asked)) <= room

        if not text.strip():
            return []
        if not fits(""):
            raise InputError(f"translate: of {room} tokens that the model reads at once, none is left for the text")
        return [text] if fits(text) else _parts(text, fits)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<task translate, closed>"
        of = f", {len(self.languages)} languages" if len(self.languages) > 1 else ""
        return f"<task translate: {escaped(self._name)} on {self.device.name}{of}>"


def _parts(text: str, fits: Callable[[str], bool], units: Sequence[re.Pattern[str]] = _UNITS) -> list[str]:
    """Parts that fit, each of as many units as can be."""
    first, *finer = units
    parts, held = list[str](), ""
    for match in first.finditer(text):
        unit = match[0]
        if fits(held + unit):
            held += unit
            continue
        parts += [held] if held.strip() else []
        held = ""
        if fits(unit):
            held = unit
        elif finer:
            parts += _parts(unit, fits, finer)
        else:
            raise InputError(f"translate: {unit!r:.20} has more tokens than the model reads at once")
    return [*parts, held] if held.strip() else parts


def translate_task(source: str | Path, device: str | Device, weights: str | None = None) -> TranslateTask:
    """Of a folder of Hugging Face, of a row of the zoo, or of a bundle. weights: the form to which matrices of floats are rounded."""
    if (folder := bundle_at(source)) is not None:
        return _of_bundle(bundle_facts(folder, "translate", TranslatingInput.medium), device)
    licence = ""
    if isinstance(source, str) and source.startswith(ZOO):
        files, licence = zoo.fetch_all(source), zoo.find(source).licence
    else:
        files = files_in(Path(source), FILES)
    opened = open_pair(files, str(source), weights)
    model = opened.model(device)
    texts = texts_of(files, opened.config, opened.generation, opened.vocabulary, model.room[1], opened.name)
    return TranslateTask(model, texts, opened.vocabulary, most_texts(texts.facts.rules), opened.name, licence)


def _of_bundle(bundle: BundleFacts, device: str | Device) -> TranslateTask:
    reader, vocabulary = whole_pair(bundle, device)
    facts = TextFacts.from_dict(bundle.preparation, vocabulary, reader.room[1], bundle.name)
    texts = PairTexts(bundle.tokenizer(TOKENIZER), bundle.file(TOKENIZER), facts)
    return TranslateTask(reader, texts, vocabulary, reader.most, bundle.name, bundle.licence)
