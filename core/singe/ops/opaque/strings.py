"""Rows that make or read strings. They run on the host. (Rows that only move elements take strings too.)

In whole arrays, strings are elements of the dtype `string`; `widened` gives them as Python strings in an object array.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ...dtypes import bool_, int64, string, strings, widened
from ...errors import InputError, ShapeError
from ...shapes import Shape, broadcast, product, show
from ..kinds import OPEN_RESULT, Opaque, Results, Shaped, register

LONGEST: Final = 1 << 24
LONGEST_IN_ALL: Final = 1 << 28
"""Characters of strings that are joined."""
CASES: Final = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
"""The changes of case."""


def _constant_shapes(values: tuple[str, ...], shape: Shape) -> Results:
    if len(values) != product(shape):
        raise ShapeError(f"strings: {len(values)} strings for the shape {show(shape)}")
    return ((shape, string),)


def _constant(values: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
    _constant_shapes(values, shape)
    return strings(np.array(values, object).reshape(shape))


def _concat(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Refused where the strings become very long: one that is joined to itself doubles, and so again."""
    first, second = np.broadcast_arrays(widened(x), widened(y))
    longest = max((len(a) + len(b) for a, b in zip(first.flat, second.flat, strict=True)), default=0)
    if longest > LONGEST or longest * first.size > LONGEST_IN_ALL:
        raise InputError(
            f"string_concat: {first.size} strings of up to {longest} characters; at most {LONGEST} each, and {LONGEST_IN_ALL} "
            "in all, are supported"
        )
    return strings(np.asarray(first + second, object))


def _split_shapes(x: Shaped, delimiter: str = "", limit: int | None = None) -> Results:
    return ((*x.shape, None), string), (x.shape, int64)


def _split(x: np.ndarray, delimiter: str = "", limit: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The parts along a new last axis, filled up with empty strings, and their counts. No delimiter: split at white
    space."""
    parts = [text.split(delimiter or None, -1 if limit is None else limit) for text in widened(x).flat]
    counts = np.array([len(p) for p in parts], np.int64)
    found = np.full((len(parts), int(counts.max(initial=0))), "", object)
    for row, p in zip(found, parts, strict=True):
        row[: len(p)] = p
    return strings(found.reshape(*x.shape, found.shape[1])), counts.reshape(x.shape)


def _normalise_shapes(x: Shaped, case: str, stopwords: tuple[str, ...], sensitive: bool) -> Results:
    if case not in CASES:
        raise InputError(f"string_normalize: the case is {case!r}, expected one of {', '.join(CASES)}")
    if len(x.shape) not in (1, 2) or (len(x.shape) == 2 and x.shape[0] != 1):
        raise ShapeError(f"string_normalize: the shape is {show(x.shape)}, expected (C) or (1, C)")
    return (((*x.shape[:-1], None), string),)


def _normalise(x: np.ndarray, case: str, stopwords: tuple[str, ...], sensitive: bool) -> np.ndarray:
    """The strings that are not stopwords; one empty string if none is left."""

    def form(text: str) -> str:
        return text if sensitive else text.lower()

    dropped = {form(word) for word in stopwords}
    kept = [CASES[case](text) for text in widened(x).flat if form(text) not in dropped]
    return strings(np.array(kept or [""], object).reshape(*x.shape[:-1], -1))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError) as e:
        raise InputError(f"the pattern {pattern!r:.60} is not a regular expression: {e}") from None


def _match_shapes(x: Shaped, pattern: str) -> Results:
    _compiled(pattern)
    return ((x.shape, bool_),)


def _match(x: np.ndarray, pattern: str) -> np.ndarray:
    matches = _compiled(pattern).fullmatch
    return np.array([matches(text) is not None for text in widened(x).flat], bool).reshape(x.shape)


def _places(x: np.ndarray, keys: tuple[str, ...]) -> np.ndarray:
    places = {key: k for k, key in reversed(list(enumerate(keys)))}
    return np.array([places.get(text, len(keys)) for text in widened(x).flat], np.int64).reshape(x.shape)


def _tokens_shapes(x: Shaped, pattern: str, between: bool, least: int, marked: bool, fill: str) -> Results:
    _compiled(pattern)
    return (((*x.shape, None), string),)


def _tokens(x: np.ndarray, pattern: str, between: bool, least: int, marked: bool, fill: str) -> np.ndarray:
    """The tokens along a new last axis, filled up with `fill`: what the pattern matches, or (`between`) what is between its
    matches, of at least so many characters; marked with a first and a last token. An empty pattern: each character."""
    find = _compiled(pattern)

    def tokens(text: str) -> list[str]:
        if not pattern:
            found = list(text)
        elif between:
            ends = [m.span() for m in find.finditer(text)]
            found = [text[a:b] for (_, a), (b, _) in zip([(0, 0), *ends], [*ends, (len(text), 0)], strict=True)]
        else:
            found = [m[0] for m in find.finditer(text)]
        kept = [token for token in found if token and len(token) >= least]
        return ["\x02", *kept, "\x03"] if marked else kept

    parts = [tokens(text) for text in widened(x).flat]
    found = np.full((len(parts), max(map(len, parts), default=0)), fill, object)
    for row, p in zip(found, parts, strict=True):
        row[: len(p)] = p
    return strings(found.reshape(*x.shape, found.shape[1]))


def _row(name: str, doc: str, **facts: Any) -> Opaque:
    return Opaque(name=name, doc=doc, dtypes=(string,), **facts)


register(
    _row("strings", "a constant array of strings", public=False, results=_constant_shapes, on_host=_constant),
    _row("string_concat", "each string followed by another",
         results=lambda x, y: ((broadcast([x.shape, y.shape], "string_concat"), string),), on_host=_concat),
    _row("string_split", "the parts of each string, and their number", results=_split_shapes, on_host=_split, host=OPEN_RESULT),
    _row("string_normalize", "strings in upper or lower case, without stopwords", results=_normalise_shapes, on_host=_normalise,
         host=OPEN_RESULT),
    _row("string_places", "the place of each string among the keys; their number if it is none of them", public=False,
         results=lambda x, keys: ((x.shape, int64),), on_host=_places),
    _row("string_tokens", "the parts of each string that a regular expression matches, or those between", results=_tokens_shapes, on_host=_tokens),
    _row("regex_full_match", "whether each string matches a regular expression", results=_match_shapes, on_host=_match),
)  # fmt: skip
