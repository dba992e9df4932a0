"""`sg.task("translate")`: a text in another language, by an encoder that reads it and a decoder that says it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ...errors import InputError
from ...files import zoo
from ...files.urls import ZOO
from ...language.encoder_decoders.files import PairFiles, files_in, open_pair
from ...language.encoder_decoders.generating import MAX_BEAMS, GenerationRules, generated, generated_live, rules_of
from ...language.encoder_decoders.running import SourceReader
from ...language.encoder_decoders.texts import FILES, AskedLanguage, PairTexts
from ...late_dataclass import dataclass
from ...runtime.device import Device
from ...texts import escaped
from ..answers import Answer, Forms
from ..calling import AnyTask
from ..text.medium import text_of

_log: Final = logging.getLogger("singe")
_SETTINGS: Final[Mapping[str, Any]] = {"src_lang": None, "tgt_lang": None, "beams": None}
_UNITS: Final = (
    re.compile(r"(?:[^.!?…。！？\n]|[.!?…](?!\s))*(?:[.!?…。！？]+[\"'”’)」』]*|\n|\Z)\s*"),
    re.compile(r"\S+\s*|\s+"),
    re.compile(r"[\s\S]"),
)
"""Where a text that is too long is cut: between sentences, else between words, else anywhere."""


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

    def __init__(self, files: PairFiles, texts: PairTexts, model: SourceReader) -> None:
        super().__init__("translate", _SETTINGS)
        self.languages: Final = tuple(sorted(texts.languages))
        self.pairs: Final = tuple(texts.tasks)
        self._files, self._texts = files, texts
        self._model: SourceReader | None = model

    @property
    def model(self) -> SourceReader:
        if self._model is None:
            raise self._closed()
        return self._model

    @property
    def device(self) -> Device:
        return self.model.device

    def close(self) -> None:
        self._model = None

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Translation]:
        asked, rules = self._asked(settings)

        def translated(source: Any) -> Translation:
            *_, last = self._course(text_of(source), asked, rules, False)
            return last

        return translated

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Translation]:
        asked, rules = self._asked(settings)
        for source in [frames] if isinstance(frames, str) else frames:
            yield from self._course(text_of(source), asked, rules, rules.beams == 1)

    def _asked(self, settings: Mapping[str, Any]) -> tuple[AskedLanguage, GenerationRules]:
        beams = settings["beams"]
        if beams is not None and (type(beams) is not int or not 0 < beams <= MAX_BEAMS):
            raise InputError(f"translate: beams {beams!r:.40}, expected a number from 1 to {MAX_BEAMS}")
        asked = self._texts.asked(settings["src_lang"], settings["tgt_lang"])
        files = self._files
        told = {**(files.generation or files.config), **asked.rules}
        rules = rules_of(files.config, told, files.vocabulary, self.model.room[1], files.name)
        return asked, rules if beams is None else replace(rules, beams=beams)

    def _course(self, text: str, asked: AskedLanguage, rules: GenerationRules, live: bool) -> Iterator[Translation]:
        """What is said of a text so far, window by window, and token by token (`live`)."""
        windows = self._windows(text, asked)
        said, cut = "", False
        if len(windows) > 1:
            _log.info("translate: a text that is longer than the model is read in %d windows", len(windows))
        for window in windows:
            gap = window[len(window.rstrip()) :] or " "
            self.model.hear(self._texts.encode(window.strip(), asked))
            if live:
                tokens = list[int]()
                for token in generated_live(self.model, rules):
                    tokens.append(token)
                    yield Translation("translate", None, (said + self._texts.decode(tokens)).strip(), len(windows), cut)
                whole = rules.are_whole(tokens)
            else:
                tokens, whole = generated(self.model, rules)
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
        room = self.model.room[0]

        def fits(part: str) -> bool:
            return len(self._texts.encode(part.strip(), asked)) <= room

        if not text.strip():
            return []
        if not fits(""):
            raise InputError(f"translate: of {room} tokens that the model reads at once, none is left for the text")
        return [text] if fits(text) else _parts(text, fits)

    def __repr__(self) -> str:
        if self._model is None:
            return "<task translate, closed>"
        of = f", {len(self.languages)} languages" if len(self.languages) > 1 else ""
        return f"<task translate: {escaped(self._files.name)} on {self.device.name}{of}>"


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


def translate_task(source: str | Path, device: str | Device) -> TranslateTask:
    """Of a folder of Hugging Face, or of a row of the zoo."""
    if isinstance(source, str) and source.startswith(ZOO):
        files = zoo.fetch_all(source)
    else:
        files = files_in(Path(source), FILES)
    opened = open_pair(files, str(source))
    texts = PairTexts(files, opened.config, opened.vocabulary, opened.name)
    return TranslateTask(opened, texts, opened.model(device))
