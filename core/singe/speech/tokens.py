"""The marks of Whisper's vocabulary, and which tokens may come next: times in pairs that do not go back, and no marks or noises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import FormatError, InputError
from ..language.tokenizing import Tokenizer
from .whisper.description import WhisperDescription

SECONDS: Final = 0.02
"""From one token of a time to the next, and from one position of the encoder to the next."""
FIRST_TIME: Final = 1.0
"""The latest time, in seconds of a window, with which its text begins."""
ENGLISH_END: Final = 50256
"""The end of a text in the vocabulary of models of English alone; others have one more token before it."""
_LANGUAGE: Final = re.compile(r"<\|([a-z]{2,3})\|>")
_NO_SPEECH: Final = ("<|nospeech|>", "<|nocaptions|>")


_MARKS: Final = ("end", "start", "before", "transcribe", "translate", "no_speech", "no_times", "times")


class WhisperTokens:
    """languages: by code, of a model that has several; times: the first of the tokens that stand for times."""

    def __init__(self, tokenizer: Tokenizer, table: Mapping[str, Any], vocabulary: int, name: str) -> None:
        """table: as `table` gives it, or as a file has it, which may hold anything; vocabulary: how many tokens the model scores."""
        lists = [table.get("never"), table.get("never_first"), [table.get(key) for key in _MARKS]]
        lists.append(list(codes.values()) if isinstance(codes := table.get("languages"), dict) else None)
        first_times = table.get("first_times")
        fits = all(isinstance(x, list) and all(type(k) is int and 0 <= k < vocabulary for k in x) for x in lists)
        if not fits or type(first_times) is not int or first_times < 0:
            raise FormatError(f"{name}: not the table of a Whisper's tokens below {vocabulary}; export it once more")
        self.tokenizer = tokenizer
        self.end, self.start, self.before = table["end"], table["start"], table["before"]
        self.transcribe, self.translate = table["transcribe"], table["translate"]
        self.no_speech, self.no_times, self.times = table["no_speech"], table["no_times"], table["times"]
        self.languages: Mapping[str, int] = dict(table["languages"])
        self.never, self.never_first = (np.array(table[key], np.int64) for key in ("never", "never_first"))
        self.first_times: int = first_times

    @classmethod
    def of_model(cls, tokenizer: Tokenizer, d: WhisperDescription, name: str) -> WhisperTokens:
        """By the names that a tokenizer has for them."""
        ids = {tokenizer.vocabulary[k].decode("utf-8", "replace"): k for k in tokenizer.special}

        def mark(*names: str) -> int:
            found = next((ids[x] for x in names if x in ids), None)
            if found is None or found >= d.vocabulary:
                raise FormatError(
                    f"{name}: without the token {' or '.join(names)}; give the tokenizer.json of this model"
                )
            return found

        end, start, before = mark("<|endoftext|>"), mark("<|startoftranscript|>"), mark("<|startofprev|>")
        transcribe, translate = mark("<|transcribe|>"), mark("<|translate|>")
        no_speech, no_times = mark(*_NO_SPEECH), mark("<|notimestamps|>")
        times = no_times + 1
        if d.vocabulary - times <= d.positions:
            raise FormatError(f"{name}: {d.vocabulary - times} tokens of times, expected {d.positions + 1}")
        codes = {m[1]: k for text, k in ids.items() if (m := _LANGUAGE.fullmatch(text)) and k < d.vocabulary}
        marks = (transcribe, translate, start, before, no_speech, *_optional(ids, "<|startoflm|>"))
        table = {
            **dict(zip(_MARKS, (end, start, before, transcribe, translate, no_speech, no_times, times), strict=True)),
            "first_times": round(FIRST_TIME / SECONDS), "never": sorted({*d.suppressed, *marks}),
            "never_first": sorted({*d.suppressed_first, end, *tokenizer.encode(" ", add_special=False)}),
            # Models of English alone have the marks of languages, and use none.
            "languages": codes if end != ENGLISH_END else {},
        }  # fmt: skip
        return cls(tokenizer, table, d.vocabulary, name)

    def table(self) -> dict[str, Any]:
        """What a page needs of them."""
        return {
            **{name: getattr(self, name) for name in (*_MARKS, "first_times")},
            "never": self.never.tolist(), "never_first": self.never_first.tolist(), "languages": dict(self.languages),
        }  # fmt: skip

    def begun(self, language: str | None, translate: bool) -> list[int]:
        """The tokens with which a text begins."""
        if not self.languages:
            if translate or language not in (None, "en"):
                raise InputError(
                    "transcribe: the model knows English alone; leave language and translate out, or take another model"
                )
            return [self.start]
        if language is None or language not in self.languages:
            raise InputError(f"transcribe: language {language!r:.40}, expected one of {', '.join(self.languages)}")
        return [self.start, self.languages[language], self.translate if translate else self.transcribe]

    def after(self, before: Sequence[int], room: int) -> list[int]:
        """What stands before a text that follows another: the latest tokens of that."""
        return [self.before, *before[-(room // 2 - 1) :]] if before else []

    def text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode([k for k in ids if k < self.end])

    def allow(self, scores: np.ndarray, said: Sequence[int]) -> None:
        """Give tokens that may not come after those of the window a score of −∞."""
        scores[self.never] = -np.inf
        scores[self.no_times] = -np.inf
        times = self.times
        if not said:
            scores[self.never_first] = -np.inf
            scores[:times] = -np.inf
            scores[times + self.first_times + 1 :] = -np.inf
        else:
            last, before = said[-1] >= times, len(said) < 2 or said[-2] >= times
            if last and before:
                scores[times:] = -np.inf
            elif last:
                scores[: self.end] = -np.inf
            latest = next((k for k in reversed(said) if k >= times), None)
            if latest is not None:
                scores[times : latest if last and not before else latest + 1] = -np.inf
        most = scores.max()
        if most > -np.inf:
            of_times = np.exp(scores[times:] - most).sum()
            if of_times > np.exp(scores[:times].max() - most):
                scores[:times] = -np.inf


def _optional(ids: Mapping[str, int], name: str) -> tuple[int, ...]:
    return (ids[name],) if name in ids else ()
