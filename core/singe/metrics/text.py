"""Metrics of texts: lists of strings, and perplexity of a language model's logits."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np

from ..errors import InputError, ShapeError
from ..late_dataclass import dataclass
from ._metric import Metric, State, array, one_of, ratio
from .classes import check_classes, numbers

Texts: TypeAlias = "str | Sequence[str]"
ROWS: Final = 64
"""How many rows of logits are widened at once: a vocabulary is large."""


@dataclass(frozen=True, kw_only=True)
class Perplexity(Metric):
    """exp of the mean of −log p(target), from logits (…, vocabulary) and the numbers of tokens (…)."""

    label: ClassVar = "perplexity"
    best: ClassVar = "least"
    ignore_index: int | None = None

    def count(self, prediction: Any, target: Any) -> State:
        x, y = array(prediction), numbers("Perplexity", array(target))
        if x.shape[:-1] != y.shape:
            raise ShapeError(
                f"Perplexity: logits {x.shape} and targets {y.shape}, expected (…, vocabulary) and (…): the vocabulary is the last axis"
            )
        kept = np.ones(y.shape, bool) if self.ignore_index is None else y != self.ignore_index
        x, y, places = x.reshape(-1, x.shape[-1]), y.ravel(), np.flatnonzero(kept)
        check_classes("Perplexity", "targets", y[places], x.shape[-1])
        total = 0.0
        for start in range(0, len(places), ROWS):
            at = places[start : start + ROWS]
            logits = x[at].astype(np.float64)
            most = logits.max(1)
            sums = np.log(np.exp(logits - most[:, None]).sum(1)) + most
            total += float((sums - logits[np.arange(len(at)), y[at]]).sum())
        return {"sum": np.asarray(total), "tokens": np.asarray(len(places))}

    def value(self, state: State) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(ratio(state["sum"], state["tokens"])))


def _listed(what: str, prediction: Texts, target: Any) -> list[tuple[str, list[str]]]:
    """Each text with its references, of which there may be several."""
    texts = [prediction] if isinstance(prediction, str) else list(prediction)
    wanted = [target] if isinstance(target, str) else list(target)
    if len(texts) != len(wanted):
        raise InputError(f"{what}: {len(texts)} texts and {len(wanted)} references, expected as many of both")
    found = [(x, [y] if isinstance(y, str) else list(y)) for x, y in zip(texts, wanted, strict=True)]
    for x, ys in found:
        if not isinstance(x, str) or not ys or not all(isinstance(y, str) for y in ys):
            raise InputError(f"{what}: got {x!r:.60} and {ys!r:.60}, expected a string and one or more references")
    return found


def _runs(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each n tokens follow one another."""
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


@dataclass(frozen=True, kw_only=True)
class BLEU(Metric):
    """BLEU of a corpus (Papineni et al., 2002): the geometric mean of how many 1 to `n` words in a row occur in a
    reference, less what is too short. From 0 to 1; 0 where no `n` words in a row are found, as of texts of fewer words.

    tokens: splits a text into words, at spaces by default. smooth: adds 1 to the counts of two or more words (Lin and
    Och, 2004), for single sentences.
    """

    label: ClassVar = "BLEU"
    n: int = 4
    smooth: bool = False
    tokens: Callable[[str], list[str]] = str.split

    def count(self, prediction: Texts, target: Any) -> State:
        found, total = np.zeros(self.n, np.int64), np.zeros(self.n, np.int64)
        length = wanted = 0
        for text, references in _listed("BLEU", prediction, target):
            words, others = self.tokens(text), [self.tokens(r) for r in references]
            length += len(words)
            wanted += min((len(o) for o in others), key=lambda size: (abs(size - len(words)), size))
            for n in range(1, self.n + 1):
                known: Counter[tuple[str, ...]] = Counter()
                for other in others:
                    known |= _runs(other, n)
                runs = _runs(words, n)
                found[n - 1] += (runs & known).total()
                total[n - 1] += runs.total()
        return {"found": found, "total": total, "length": np.asarray(length), "wanted": np.asarray(wanted)}

    def value(self, state: State) -> float:
        more = np.array([0, *[int(self.smooth)] * (self.n - 1)])
        found, total = state["found"] + more, state["total"] + more
        if not state["length"]:
            return float("nan") if not state["wanted"] else 0.0
        if not found.all() or not total.all():
            return 0.0
        short = min(0.0, 1 - float(state["wanted"] / state["length"]))
        return math.exp(short + float(np.log(found / total).mean()))


_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True)
class ROUGE(Metric):
    """ROUGE (Lin, 2004) of summaries: the overlap with a reference in words ("1"), in pairs of words ("2"), or in their
    longest common subsequence ("L"); the mean over texts of precision, recall or their F-measure.

    Words are runs of letters and digits in lower case. Of several references the one with the best F-measure counts.
    """

    kind: Literal["1", "2", "L"] = "1"
    measure: Literal["f", "precision", "recall"] = "f"

    def __post_init__(self) -> None:
        one_of("ROUGE", "kind", self.kind, ("1", "2", "L"))
        one_of("ROUGE", "measure", self.measure, ("f", "precision", "recall"))

    @property
    def name(self) -> str:
        return f"ROUGE-{self.kind}"

    def count(self, prediction: Texts, target: Any) -> State:
        listed = _listed("ROUGE", prediction, target)
        total = 0.0
        for text, references in listed:
            words = _WORD.findall(text.lower())
            scores = [self._scores(words, _WORD.findall(r.lower())) for r in references]
            total += max(scores, key=lambda s: s["f"])[self.measure]
        return {"sum": np.asarray(total), "texts": np.asarray(len(listed))}

    def _scores(self, words: list[str], other: list[str]) -> dict[str, float]:
        if self.kind == "L":
            common, mine, theirs = _longest(words, other), len(words), len(other)
        else:
            runs, wanted = _runs(words, int(self.kind)), _runs(other, int(self.kind))
            common, mine, theirs = (runs & wanted).total(), runs.total(), wanted.total()
        precision, recall = common / max(mine, 1), common / max(theirs, 1)
        both = precision + recall
        return {"precision": precision, "recall": recall, "f": 2 * precision * recall / both if both else 0.0}

    def value(self, state: State) -> float:
        return ratio(state["sum"], state["texts"])


def _coded(first: Sequence[str], second: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Tokens as numbers."""
    place = {token: k for k, token in enumerate(dict.fromkeys((*first, *second)))}
    return np.array([place[t] for t in first], int), np.array([place[t] for t in second], int)


def _longest(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    a, b = _coded(first, second)
    row = np.zeros(len(b) + 1, int)
    for token in a:
        row[1:] = np.maximum.accumulate(np.where(b == token, row[:-1] + 1, row[1:]))
    return int(row[-1])


def edits(first: Sequence[str], second: Sequence[str]) -> int:
    """The least number of tokens to insert, delete or replace that makes one sequence of the other (Levenshtein)."""
    a, b = _coded(first, second)
    places = np.arange(len(b) + 1)
    row = places.copy()
    for token in a:
        kept = np.concatenate([row[:1] + 1, np.minimum(row[1:] + 1, row[:-1] + (b != token))])
        row = np.minimum.accumulate(kept - places) + places  # insertions, all at once
    return int(row[-1])


@dataclass(frozen=True, kw_only=True)
class _ErrorRate(Metric):
    """Insertions, deletions and replacements that make the references of the texts, over the references' length."""

    best: ClassVar = "least"
    tokens: ClassVar[Callable[[str], list[str]]]

    def count(self, prediction: Texts, target: Any) -> State:
        wrong = length = 0
        for text, references in _listed(self.label, prediction, target):
            if len(references) > 1:
                raise InputError(f"{self.label}: got {len(references)} references for one text, expected one")
            wanted = type(self).tokens(references[0])
            wrong += edits(type(self).tokens(text), wanted)
            length += len(wanted)
        return {"wrong": np.asarray(wrong), "length": np.asarray(length)}

    def value(self, state: State) -> float:
        return ratio(state["wrong"], state["length"])


@dataclass(frozen=True, kw_only=True)
class CER(_ErrorRate):
    """The rate of wrong characters; it may exceed 1."""

    label: ClassVar = "CER"
    tokens: ClassVar[Callable[[str], list[str]]] = list


@dataclass(frozen=True, kw_only=True)
class WER(_ErrorRate):
    """The rate of wrong words, which spaces separate; it may exceed 1."""

    label: ClassVar = "WER"
    tokens: ClassVar[Callable[[str], list[str]]] = str.split
