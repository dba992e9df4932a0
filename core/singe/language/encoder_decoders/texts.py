"""PairTexts: what the files of a model that translates say of texts: its tokenizer, and how languages are asked for.

A language is a token before the text (Marian, of several languages), one before the text and one with which the answer begins (M2M100 and
NLLB), or a phrase before the text (T5), as config.json says of a task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from ...errors import FormatError, InputError
from ...files.bounded import read_bounded, read_json_object
from ...late_dataclass import dataclass
from ..tokenizing import Tokenizer
from ..tokenizing.sentence_piece import MAX_BYTES, sentence_piece_values

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
    """How a text is asked for in another language. before: tokens before the text; phrase: a text before it; rules: of how the answer is
    chosen, under the names of a generation_config.json."""

    before: tuple[int, ...] = ()
    phrase: str = ""
    rules: Mapping[str, Any] = field(default_factory=dict[str, Any])


class PairTexts:
    """languages: their tokens by code; tasks: of pairs of languages, what config.json says of each."""

    def __init__(self, files: Mapping[str, Path], config: Mapping[str, Any], vocabulary: int, name: str) -> None:
        self._name = name
        self._family: Final = str(config.get("model_type"))
        self.tokenizer, self._count = _tokenizer(files, name)
        known = self.tokenizer.vocabulary[: self._count]
        ids = {token.decode("utf-8", "replace"): k for k, token in enumerate(known) if token}
        if MARKS in files:
            ids = {**_listed(files[MARKS], self._count), **ids}
        end = config.get("eos_token_id")
        self._end: Final = end if type(end) is int else ids.get(END)
        self._unknown: Final = ids.get("<unk>")
        pattern = _MARKS.get(self._family)
        found = [(m, k) for token, k in ids.items() if pattern and (m := pattern.fullmatch(token)) and k < vocabulary]
        self.languages: Final[Mapping[str, int]] = {m[m.lastindex or 0]: k for m, k in found}
        told = config.get("task_specific_params")
        self.tasks: Final[Mapping[tuple[str, str], Mapping[str, Any]]] = {
            (m[1], m[2]): task
            for key, task in (told.items() if isinstance(told, dict) else ())
            if (m := _TASK.fullmatch(key)) and isinstance(task, dict)
        }

    def asked(self, src_lang: str | None, tgt_lang: str | None) -> AskedLanguage:
        """From one language to another, by their codes; None where the model has but one."""
        if self.tasks:
            return self._of_task(src_lang, tgt_lang)
        if self._family == "m2m_100":
            return AskedLanguage(
                (self._language("src_lang", src_lang),),
                rules={"forced_bos_token_id": self._language("tgt_lang", tgt_lang)},
            )
        if src_lang is not None or (tgt_lang is not None and not self.languages):
            given = f"src_lang={src_lang!r:.20}" if src_lang is not None else f"tgt_lang={tgt_lang!r:.20}"
            raise InputError(
                f"translate: got {given}, and the model translates from and to what its name says; leave it out"
            )
        if tgt_lang is None and len(self.languages) < 2:
            return AskedLanguage()
        return AskedLanguage((self._language("tgt_lang", tgt_lang),))

    def _language(self, which: str, code: str | None) -> int:
        found = self.languages.get(code or "")
        if found is None:
            known = ", ".join(sorted(self.languages)) or "none: its files list no languages"
            raise InputError(
                f"translate: {which} is {code!r:.20}, expected the code of a language that the model knows: {known}"
            )
        return found

    def _of_task(self, src_lang: str | None, tgt_lang: str | None) -> AskedLanguage:
        found = [key for key in self.tasks if src_lang in (None, key[0]) and tgt_lang in (None, key[1])]
        if len(found) != 1:
            known = ", ".join(f"{a} to {b}" for a, b in self.tasks)
            raise InputError(
                f"translate: src_lang is {src_lang!r:.20} and tgt_lang {tgt_lang!r:.20}, expected one of: {known}"
            )
        rules = dict(self.tasks[found[0]])
        phrase = rules.pop("prefix", "")
        if not isinstance(phrase, str) or len(phrase) > 1000:
            raise FormatError(f"{self._name}: the prefix of a task is {phrase!r:.60}, expected a short text")
        return AskedLanguage(phrase=phrase, rules=rules)

    def encode(self, text: str, asked: AskedLanguage) -> list[int]:
        """The tokens of a text, between what stands around it."""
        ids = self.tokenizer.encode(asked.phrase + text, add_special=False, parse_special=False)
        if self._unknown is not None:
            ids = [self._unknown if k >= self._count else k for k in ids]
        return [*asked.before, *ids, *(() if self._end is None else (self._end,))]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, of which those without one are left out."""
        return self.tokenizer.decode([k for k in ids if k < self._count]).strip()


def _tokenizer(files: Mapping[str, Path], name: str) -> tuple[Tokenizer, int]:
    """And how many tokens the files number: others are pieces of texts that the model does not know."""
    pieces = next((files[f] for f in _PIECES if f in files), None)
    if pieces is None or (TOKENIZER in files and VOCABULARY not in files):
        if TOKENIZER not in files:
            raise InputError(f"{name}: without a tokenizer: expected {TOKENIZER}, or one of {', '.join(_PIECES)}")
        tokenizer = Tokenizer.of_file(files[TOKENIZER])
        return tokenizer, len(tokenizer.vocabulary)
    numbers = read_json_object(files[VOCABULARY]) if VOCABULARY in files else None
    if numbers is not None and not all(type(x) is int and x >= 0 for x in numbers.values()):
        raise FormatError(f"{files[VOCABULARY]}: expected the numbers of tokens")
    if numbers is None and pieces.name == _BY_NUMBERS:
        raise InputError(
            f"{name}: {pieces.name} without {VOCABULARY}, which numbers its tokens; expected that, or {TOKENIZER}"
        )
    values = sentence_piece_values(read_bounded(pieces, MAX_BYTES), numbers, str(pieces))
    tokenizer = Tokenizer.of_values(values, str(pieces))
    return tokenizer, len(tokenizer.vocabulary) if numbers is None else 1 + max(numbers.values(), default=-1)


def _listed(path: Path, first: int) -> dict[str, int]:
    """The marks that a file lists beside those of the vocabulary, which they follow."""
    values: Any = read_json_object(path).get("additional_special_tokens", [])
    told = values if isinstance(values, list) else []
    texts = [x.get("content") if isinstance(x, dict) else x for x in told]
    return {text: first + k for k, text in enumerate(texts) if isinstance(text, str)}
