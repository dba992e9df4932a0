"""What is said of each token of a text: of what entity it is a part, and which token stands where one is hidden."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...tensors.tensor import Tensor
from ..answers import Arrays, Entities, Entity, Finding, Findings
from ..spec import TaskSpec
from ..text.medium import TEXT, Asking, Reading, TextFrame, text_of
from .base import Asked, Head, Shapes, TaskKind, Tensors, only

OUTSIDE: Final = "O"
"""The label of tokens that are part of nothing."""
UNSPACED: Final = ((0x0E00, 0x1100), (0x1780, 0x1800), (0x2E80, 0xAC00), (0xF900, 0x30000))
"""Scripts of South East Asia, China and Japan, in which no space says where a word ends."""
FILLINGS: Final = 20
"""So many tokens are given of a place, at most."""
MASKS: Final = ("[MASK]", "<mask>")


def _are_rows(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    """One output (texts, tokens, classes)."""
    shape = only(shapes)
    return {} if len(shape) == 3 and asked.labels in (None, shape[2]) else None


def _classes(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The likeliest class of each token, and its chance."""
    chances = only(outputs).to(dtype="float32").softmax(2)
    best = chances.topk(1, axis=2)
    return {"token_scores": best.values[:, :, 0], "token_classes": best.indices[:, :, 0].to(dtype="int32")}


def _located(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    return [Asking(text_of(source), located=True)]


def _entities(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> Entities:
    """A word has the class of its first token, and neighbours of one class are one entity, unless a "B-" begins another."""
    threshold = settings["threshold"]
    if not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise InputError(f"{spec.kind}: threshold is {threshold!r:.40}, expected a score from 0 to 1")
    text, spans = reading.questions[0].text, reading.spans[0]
    classes, scores = _by_token(outputs, reading, len(spans))
    items: list[Entity] = []
    label, begin, end, own = "", 0, 0, list[float]()

    def close() -> None:
        if label and own and np.mean(own) >= threshold:
            items.append(Entity(label, float(np.mean(own)), text[begin:end], begin, end))

    for k, (a, b) in enumerate(spans):
        if a == b:
            continue
        if k and a == end and _runs_on(text[a - 1]) and _runs_on(text[a]):
            end = b  # the rest of a word
            continue
        if k and a < end:  # a token of the same characters
            continue
        mark, _, name = spec.label(int(classes[k])).rpartition("-")
        name = "" if spec.label(int(classes[k])) == OUTSIDE else name
        if name and name == label and mark not in ("B", "S", "U"):
            end = b
            own.append(float(scores[k]))
            continue
        close()
        label, begin, end, own = name, a, b, [float(scores[k])]
    close()
    return Entities(spec.kind, None, items, reading.windows)


def _runs_on(character: str) -> bool:
    """Whether it is part of a word of a script that has spaces between words."""
    code = ord(character)
    return unicodedata.category(character)[0] in "LMN" and not any(a <= code < b for a, b in UNSPACED)


def _by_token(outputs: Arrays, reading: Reading, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The class and the score of each token of the text. Where windows overlap, the second half of the overlap is the later one's."""
    classes, scores = np.zeros(count, np.int32), np.zeros(count, np.float32)
    for k, row in enumerate(reading.rows):
        shared = 0 if not row.start else row.count - row.inner
        skipped = shared // 2
        inside = slice(row.first + skipped, row.first + row.count)
        part = slice(row.start + skipped, row.start + row.count)
        classes[part], scores[part] = outputs["token_classes"][k, inside], outputs["token_scores"][k, inside]
    return classes, scores


# --- a hidden token ---------------------------------------------------------------------------------------------------


def _fillings(outputs: Tensors, frame: TextFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The likeliest tokens of each place."""
    best = only(outputs).to(dtype="float32").softmax(2).topk(FILLINGS, axis=2)
    return {"token_scores": best.values, "token_ids": best.indices.to(dtype="int32")}


def _are_many(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shape = only(shapes)
    return {} if len(shape) == 3 and (shape[2] == 0 or shape[2] >= FILLINGS) else None


def _hidden(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    return [Asking(text_of(source), marks=True)]


def _filled(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> Findings:
    top = settings["top"]
    if type(top) is not int or not 1 <= top <= FILLINGS:
        raise InputError(f"{spec.kind}: top is {top!r:.40}, expected how many words to give, from 1 to {FILLINGS}")
    names = {i: reading.tokenizer.vocabulary[i].decode("utf-8", "replace") for i in reading.tokenizer.special}
    masks = {i for i, name in names.items() if name.strip() in MASKS}
    text = reading.source
    count = sum(text.count(names[i].strip()) for i in masks)
    if count != 1:
        told = " or ".join(sorted(names[i].strip() for i in masks)) or "none: its tokenizer has no such token"
        raise InputError(f"{spec.kind}: {count} hidden words, expected one, written {told}")
    places = [
        (len(row.ids) - 2 * abs(at - len(row.ids) // 2), k, at)
        for k, row in enumerate(reading.rows)
        for at, i in enumerate(row.ids)
        if i in masks
    ]
    _, k, at = max(places)  # where most of the text stands around it
    words = [reading.tokenizer.decode([int(i)]).strip() for i in outputs["token_ids"][k, at, :top]]
    scores, ids = outputs["token_scores"][k, at], outputs["token_ids"][k, at]
    return Findings(
        spec.kind, None, [Finding(word, float(scores[n]), int(ids[n])) for n, word in enumerate(words)], windows=reading.windows
    )  # fmt: skip


TAG: Final = TaskKind(
    "tag", "names of people, places and more in a text", TEXT,
    (Head("tokens", "scores of classes for each token, (texts, tokens, classes)", _are_rows, _classes),),
    _entities, 512, labels="config.json", settings={"threshold": 0.0}, asks=_located, network="tokens",
)  # fmt: skip
FILL_MASK: Final = TaskKind(
    "fill-mask", "the words that may stand where one is hidden", TEXT,
    (Head("vocabulary", "scores of all tokens for each place, (texts, tokens, vocabulary)", _are_many, _fillings),),
    _filled, 512, settings={"top": 5}, asks=_hidden, network="words",
)  # fmt: skip
