"""PairTexts: what the files of a model that translates say of texts: its tokenizer, and how languages are asked for.

A language is a token before the text (Marian, of several languages), one before the text and one with which the answer begins (M2M100 and
NLLB), or a phrase before the text (T5), as config.json says of a task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ...errors import FormatError, InputError
from ...files.bounded import read_bounded, read_json_object
from ...late_dataclass import dataclass
from ..tokenizing import Tokenizer
from ..tokenizing.sentence_piece import MAX_BYTES, sentence_piece_values
from .generating import GenerationRules, rules_of

VOCABULARY: Final = "vocab.json"
TOKENIZER: Final = "tokenizer.json"
MARKS: Final = "special_tokens_map.json"
_BY_NUMBERS: Final = "sentencepiece.bpe.model"
_PIECES: Final = ("source.spm", _BY_NUMBERS, "spiece.model")
FILES: Final = (*_PIECES, VOCABULARY, TOKENIZER, MARKS)
"""What is read beside a model."""
END: Final = "</s>"
_TASK: Final = re.compile(r"translation_(\w+)_to_(\w+)")
_MARKS: Final[Mapping[str, re.Pattern[str]]] = {
    "marian": re.compile(r">>([\w-]+)<<"),
    "m2m_100": re.compile(r"__(\w{2,3})__|([a-z]{3}_[A-Z][a-z]{3})"),
}
"""How tokens of languages look, by family."""


@dataclass(frozen=True)
class AskedLanguage:
    """How a text is asked for in another language. before: tokens before the text; phrase: a text before it; rules: of the answer."""

    rules: GenerationRules
    before: tuple[int, ...] = ()
    phrase: str = ""


@dataclass(frozen=True)
class LanguageTask:
    """A pair of languages of which config.json says how a text is asked for."""

    source: str
    target: str
    phrase: str
    rules: GenerationRules


@dataclass(frozen=True)
class TextFacts:
    """What a page needs, too. count: how many tokens the files number: others are pieces of texts that the model does not know, whose token
    is `unknown`; end: the token behind a text; languages: their tokens by code; both: whether that of the text's own language stands before it,
    and the answer begins with that of the other; otherwise the other's stands before the text."""

    count: int
    end: int | None
    unknown: int | None
    languages: Mapping[str, int]
    both: bool
    tasks: Sequence[LanguageTask]
    rules: GenerationRules

    def to_dict(self) -> dict[str, Any]:
        tasks = [{**vars(task), "rules": task.rules.to_config()} for task in self.tasks]
        return {**vars(self), "languages": dict(self.languages), "tasks": tasks, "rules": self.rules.to_config()}

    @staticmethod
    def from_dict(record: Mapping[str, Any], vocabulary: int, room: int, name: str) -> TextFacts:
        """What `to_dict` gave, from a file that may hold anything."""

        def rules(config: Any) -> GenerationRules:
            return rules_of({}, {**config}, vocabulary, room, name)

        def is_token(x: Any) -> bool:
            return type(x) is int and 0 <= x < vocabulary

        try:
            languages, tasks = {**record["languages"]}, [{**task} for task in record["tasks"]]
            made = TextFacts(
                record["count"], record["end"], record["unknown"], languages, record["both"] is True,
                [LanguageTask(x["source"], x["target"], x["phrase"], rules(x["rules"])) for x in tasks], rules(record["rules"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as e:
            raise FormatError(f"{name}: not the facts of what translates ({e!r:.80}); export it once more") from None
        texts = (x for task in made.tasks for x in (task.source, task.target, task.phrase))
        tokens = (*languages.values(), *(x for x in (made.end, made.unknown) if x is not None))
        if type(made.count) is not int or not all(map(is_token, tokens)) or not all(isinstance(x, str) for x in texts):
            raise FormatError(f"{name}: not the facts of what translates; export it once more")
        return made


class PairTexts:
    """A tokenizer, and how languages are asked for. file: what a page has of it, a tokenizer.json."""

    def __init__(self, tokenizer: Tokenizer, file: bytes, facts: TextFacts) -> None:
        self.tokenizer: Final = tokenizer
        self.file: Final = file
        self.facts: Final = facts

    def asked(self, src_lang: str | None, tgt_lang: str | None) -> AskedLanguage:
        """From one language to another, by their codes; None where the model has but one."""
        facts = self.facts
        if facts.tasks:
            return self._of_task(src_lang, tgt_lang)
        if facts.both:
            before = self._language("src_lang", src_lang)
            return AskedLanguage(replace(facts.rules, first=self._language("tgt_lang", tgt_lang)), (before,))
        if src_lang is not None or (tgt_lang is not None and not facts.languages):
            given = f"src_lang={src_lang!r:.20}" if src_lang is not None else f"tgt_lang={tgt_lang!r:.20}"
            raise InputError(
                f"translate: got {given}, and the model translates from and to what its name says; leave it out"
            )
        if tgt_lang is None and len(facts.languages) < 2:
            return AskedLanguage(facts.rules)
        return AskedLanguage(facts.rules, (self._language("tgt_lang", tgt_lang),))

    def _language(self, which: str, code: str | None) -> int:
        found = self.facts.languages.get(code or "")
        if found is None:
            known = ", ".join(sorted(self.facts.languages)) or "none: its files list no languages"
            raise InputError(
                f"translate: {which} is {code!r:.20}, expected the code of a language that the model knows: {known}"
            )
        return found

    def _of_task(self, src_lang: str | None, tgt_lang: str | None) -> AskedLanguage:
        tasks = self.facts.tasks
        found = [x for x in tasks if src_lang in (None, x.source) and tgt_lang in (None, x.target)]
        if len(found) != 1:
            known = ", ".join(f"{x.source} to {x.target}" for x in tasks)
            raise InputError(
                f"translate: src_lang is {src_lang!r:.20} and tgt_lang {tgt_lang!r:.20}, expected one of: {known}"
            )
        return AskedLanguage(found[0].rules, phrase=found[0].phrase)

    def encode(self, text: str, asked: AskedLanguage) -> list[int]:
        """The tokens of a text, between what stands around it."""
        facts = self.facts
        ids = self.tokenizer.encode(asked.phrase + text, add_special=False, parse_special=False)
        if facts.unknown is not None:
            ids = [facts.unknown if k >= facts.count else k for k in ids]
        return [*asked.before, *ids, *(() if facts.end is None else (facts.end,))]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, of which those without one are left out."""
        return self.tokenizer.decode([k for k in ids if k < self.facts.count]).strip()


def texts_of(
    files: Mapping[str, Path], config: Mapping[str, Any], generation: Mapping[str, Any], vocabulary: int, room: int, name: str
) -> PairTexts:  # fmt: skip
    """Of a model's files. vocabulary: how many tokens it scores; room: of an answer."""
    tokenizer, file, count = _tokenizer(files, name)
    ids = {token.decode("utf-8", "replace"): k for k, token in enumerate(tokenizer.vocabulary[:count]) if token}
    if MARKS in files:
        ids = {**_listed(files[MARKS], count), **ids}
    end = config.get("eos_token_id")
    family = str(config.get("model_type"))
    pattern = _MARKS.get(family)
    found = [(m, k) for token, k in ids.items() if pattern and (m := pattern.fullmatch(token)) and k < vocabulary]

    def rules(own: Mapping[str, Any]) -> GenerationRules:
        return rules_of(config, {**(generation or config), **own}, vocabulary, room, name)

    told = config.get("task_specific_params")
    tasks = [
        _task(m, task, rules, name)
        for key, task in (told.items() if isinstance(told, dict) else ())
        if (m := _TASK.fullmatch(key)) and isinstance(task, dict)
    ]
    languages = {m[m.lastindex or 0]: k for m, k in found}
    end = end if type(end) is int else ids.get(END)
    return PairTexts(
        tokenizer, file, TextFacts(count, end, ids.get("<unk>"), languages, family == "m2m_100", tasks, rules({}))
    )


def _task(
    match: re.Match[str], record: Mapping[str, Any], rules: Callable[[Mapping[str, Any]], GenerationRules], name: str
) -> LanguageTask:
    own = dict(record)
    phrase = own.pop("prefix", "")
    if not isinstance(phrase, str) or len(phrase) > 1000:
        raise FormatError(f"{name}: the prefix of a task is {phrase!r:.60}, expected a short text")
    return LanguageTask(match[1], match[2], phrase, rules(own))


def _tokenizer(files: Mapping[str, Path], name: str) -> tuple[Tokenizer, bytes, int]:
    """And its tokenizer.json, and how many tokens the files number."""
    pieces = next((files[f] for f in _PIECES if f in files), None)
    if pieces is None or (TOKENIZER in files and VOCABULARY not in files):
        if TOKENIZER not in files:
            raise InputError(f"{name}: without a tokenizer: expected {TOKENIZER}, or one of {', '.join(_PIECES)}")
        tokenizer = Tokenizer.of_file(files[TOKENIZER])
        return tokenizer, files[TOKENIZER].read_bytes(), len(tokenizer.vocabulary)
    numbers = read_json_object(files[VOCABULARY]) if VOCABULARY in files else None
    if numbers is not None and not all(type(x) is int and x >= 0 for x in numbers.values()):
        raise FormatError(f"{files[VOCABULARY]}: expected the numbers of tokens")
    if numbers is None and pieces.name == _BY_NUMBERS:
        raise InputError(
            f"{name}: {pieces.name} without {VOCABULARY}, which numbers its tokens; expected that, or {TOKENIZER}"
        )
    values = sentence_piece_values(read_bounded(pieces, MAX_BYTES), numbers, str(pieces))
    tokenizer = Tokenizer.of_values(values, str(pieces))
    file = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    return tokenizer, file, len(tokenizer.vocabulary) if numbers is None else 1 + max(numbers.values(), default=-1)


def _listed(path: Path, first: int) -> dict[str, int]:
    """The marks that a file lists beside those of the vocabulary, which they follow."""
    values: Any = read_json_object(path).get("additional_special_tokens", [])
    told = values if isinstance(values, list) else []
    texts = [x.get("content") if isinstance(x, dict) else x for x in told]
    return {text: first + k for k, text in enumerate(texts) if isinstance(text, str)}
