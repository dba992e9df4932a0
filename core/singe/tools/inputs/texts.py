"""Texts as inputs of models: as strings, or as the numbers of word pieces in the vocabulary of a BERT."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...dtypes import string
from ...errors import InputError
from ...model.arguments import TensorSpec

UNKNOWN, FIRST, LAST, PADDING = "[UNK]", "[CLS]", "[SEP]", "[PAD]"
LONGEST: Final = 100
"""The longest word, in characters, that is cut into pieces."""
INPUTS: Final[Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "input_ids": lambda numbers, used: numbers,
    "attention_mask": lambda numbers, used: used,
    "token_type_ids": lambda numbers, used: np.zeros_like(numbers),
}
"""What an input of this name is, from the numbers of the pieces and from where there are pieces."""


def read_texts(texts: Sequence[str], vocabulary: str | None, specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The inputs that these texts make: with a file of a vocabulary those of INPUTS, otherwise the one input of strings."""
    if not texts:
        if vocabulary is not None:
            raise InputError("--vocab needs a --text")
        return {}
    if vocabulary is not None:
        return _pieces(texts, read_vocabulary(vocabulary), specs)
    found = [p for p in specs if p.dtype is string]
    if len(found) != 1:
        raise InputError(f"--text needs one input of strings, or --vocab; the inputs are {_named(specs)}")
    (spec,) = found
    array = np.array(texts, object)
    if spec.shape is None or len(spec.shape) == 1:
        return {spec.name: array}
    if not spec.shape and len(texts) > 1:
        raise InputError(f"got {len(texts)} times --text, expected one for the input {spec}")
    return {spec.name: array.reshape((-1, *(1,) * (len(spec.shape) - 1)) if spec.shape else ())}


def _named(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(map(str, specs))


def _pieces(texts: Sequence[str], numbers: Mapping[str, int], specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The pieces of all texts, as many for each, in the inputs that the model has."""
    given = [p for p in specs if p.name in INPUTS]
    if "input_ids" not in {p.name for p in given}:
        raise InputError(f"--vocab needs an input named input_ids; the inputs are {_named(specs)}")
    every = [[numbers[FIRST], *pieces(text, numbers), numbers[LAST]] for text in texts]
    needed = max(map(len, every))
    fixed = [p.shape[1] for p in given if p.shape is not None and len(p.shape) == 2 and isinstance(p.shape[1], int)]
    length = fixed[0] if fixed else needed
    if needed > length:
        raise InputError(f"--text: the text has {needed} pieces, and the model takes {length}; give a shorter one")
    ids = np.array([row + [numbers[PADDING]] * (length - len(row)) for row in every])
    used = np.array([[1] * len(row) + [0] * (length - len(row)) for row in every])
    return {p.name: INPUTS[p.name](ids, used).astype(p.dtype.numpy) for p in given}


def read_vocabulary(path: str) -> dict[str, int]:
    """The number of each piece: the line in which the file has it."""
    try:
        lines = Path(path).read_text("utf-8-sig").split("\n")
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: a vocabulary must be UTF-8 text: {e}") from e
    found = {piece: number for number, piece in enumerate(lines)}
    missing = [piece for piece in (UNKNOWN, FIRST, LAST, PADDING) if piece not in found]
    if missing:
        raise InputError(f"{path}: expected a vocabulary of word pieces, one a line; {', '.join(missing)} is not in it")
    return found


def pieces(text: str, numbers: Mapping[str, int]) -> list[int]:
    """The numbers of a text's pieces. Letters are made small, without accents, if the vocabulary has small ones only."""
    if "A" not in numbers:
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if _stands_alone(c) else c for c in text if _is_shown(c))
    return [number for word in spaced.split() for number in _cut(word, numbers)]


def _is_shown(c: str) -> bool:
    return c.isspace() or (unicodedata.category(c)[0] != "C" and c != "\ufffd")


def _stands_alone(c: str) -> bool:
    """Punctuation, the symbols of ASCII, and Chinese characters."""
    chinese = unicodedata.name(c, "").startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH"))
    symbol = c.isascii() and c.isprintable() and not c.isalnum() and c != " "
    return symbol or chinese or unicodedata.category(c)[0] == "P"


def _cut(word: str, numbers: Mapping[str, int]) -> list[int]:
    """The longest pieces from the left; those after the first begin with ##. A word that they do not make is unknown."""
    found: list[int] = []
    at = 0
    while at < len(word):
        mark = "##" if at else ""
        ends = range(len(word), at, -1) if len(word) <= LONGEST else ()
        end = next((k for k in ends if mark + word[at:k] in numbers), None)
        if end is None:
            return [numbers[UNKNOWN]]
        found.append(numbers[mark + word[at:end]])
        at = end
    return found
