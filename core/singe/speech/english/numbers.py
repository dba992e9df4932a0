"""What stands in a text and is no word, as words: figures, amounts of money, times, years, abbreviations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

SPACE: Final = "[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""What `str.strip` takes away, as a pattern that other languages read alike; so are all here, of ASCII's digits and letters, which
static/tasks/singe-task-speech-english.js has, too."""

_SMALL: Final = re.findall(
    "[a-z]+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
)
_TENS: Final = re.findall("[a-z]+", "zero ten twenty thirty forty fifty sixty seventy eighty ninety")
_GROUPS: Final = ("", "thousand", "million", "billion", "trillion", "quadrillion")
_ORDINALS: Final[Mapping[str, str]] = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip
MAX_DIGITS: Final = 18
"""Longer numbers are read digit by digit."""
_UNITS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "$": ("dollar", "dollars", "cent", "cents"), "£": ("pound", "pounds", "penny", "pence"), "€": ("euro", "euros", "cent", "cents"),
}  # fmt: skip
_SIGNS: Final[Mapping[str, str]] = {
    "%": "percent",
    "&": "and",
    "+": "plus",
    "=": "equals",
    "@": "at",
    "°": "degrees",
    "#": "number",
}
_SHORT: Final[Mapping[str, str]] = {
    "mr": "mister", "mrs": "missus", "ms": "miz", "dr": "doctor", "st": "saint", "prof": "professor", "etc": "et cetera", "vs": "versus",
    "e.g": "for example", "i.e": "that is", "jr": "junior", "sr": "senior", "no": "number", "approx": "approximately", "inc": "incorporated",
}  # fmt: skip
ABBREVIATION: Final = rf"\b({'|'.join(map(re.escape, _SHORT))})\."
"""What ends in a full stop that ends no sentence, in large and small letters."""


def number(value: int) -> str:
    """A number from 0 on, as words."""
    if value < 20:
        return _SMALL[value]
    if value < 100:
        return _TENS[value // 10] + (f" {_SMALL[value % 10]}" if value % 10 else "")
    if value < 1000:
        return f"{_SMALL[value // 100]} hundred" + (f" {number(value % 100)}" if value % 100 else "")
    parts: list[str] = []
    for name in _GROUPS:
        value, rest = divmod(value, 1000)
        if rest:
            parts.append(f"{number(rest)} {name}".strip())
    return " ".join(reversed(parts))


def _digits(text: str) -> str:
    return " ".join(_SMALL[int(x)] for x in text)


def _whole(text: str) -> str:
    plain = text.replace(",", "")
    return number(int(plain)) if len(plain) <= MAX_DIGITS else _digits(plain)


def ordinal(value: int) -> str:
    *before, last = number(value).split()
    if last in _ORDINALS:
        last = _ORDINALS[last]
    else:
        last = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return " ".join((*before, last))


def year(value: int) -> str:
    """As years are read: in pairs of figures, but for the first ten of each century and a round thousand."""
    first, rest = divmod(value, 100)
    if value % 1000 < 10:
        return number(value)
    if rest == 0:
        return f"{number(first)} hundred"
    return f"{number(first)} {f'oh {number(rest)}' if rest < 10 else number(rest)}"


def _money(found: re.Match[str]) -> str:
    one, several, part, parts = _UNITS[found[1]]
    whole = found[2].replace(",", "")
    words = f"{_whole(whole)} {one if whole == '1' else several}"
    if found[4]:
        return f"{_whole(whole)}{f' point {_digits(found[3])}' if found[3] else ''} {found[4]} {several}"
    cents = int((found[3] or "0").ljust(2, "0")[:2])
    return words + (f" and {number(cents)} {part if cents == 1 else parts}" if cents else "")


def _time(found: re.Match[str]) -> str:
    minutes = int(found[2])
    words = "o'clock" if not minutes else f"oh {number(minutes)}" if minutes < 10 else number(minutes)
    return f"{number(int(found[1]))} {words}"


def _decimal(found: re.Match[str]) -> str:
    return f"{_whole(found[1])} point {_digits(found[2])}"


_RULES: Final[Mapping[str, tuple[str, Callable[[re.Match[str]], str]]]] = {
    "short": (rf"{ABBREVIATION}(?= |,|$)", lambda m: _SHORT[m[1].lower()]),
    "money": (r"([$£€])(\d[\d,]*)(?:\.(\d{1,2}))?(?: (thousand|million|billion|trillion))?", _money),
    "time": (r"\b(\d{1,2}):(\d\d)\b", _time),
    "ordinal": (r"\b(\d[\d,]*)(?:st|nd|rd|th)\b", lambda m: ordinal(int(m[1].replace(",", "")[:MAX_DIGITS]))),
    "decimal": (r"\b(\d[\d,]*)\.(\d+)", _decimal),
    "year": (r"\b(1[1-9]\d\d|20\d\d)s?\b", lambda m: year(int(m[1])) + ("s" if m[0].endswith("s") else "")),
    "minus": (r"(?<![\w.])-(?=\d)", lambda m: "minus "),
    "whole": (r"\d{1,3}(?:,\d{3})+|\d+", lambda m: f" {_whole(m[0])} "),
    "sign": ("|".join(map(re.escape, _SIGNS)), lambda m: f" {_SIGNS[m[0]]} "),
}
"""What stands in a text, in the order in which it becomes words."""
_READ: Final = [
    (re.compile(pattern, re.ASCII | re.IGNORECASE if name == "short" else re.ASCII), words)
    for name, (pattern, words) in _RULES.items()
]
_SPACES: Final = re.compile(f"{SPACE}+")

TABLES: Final[Mapping[str, Any]] = {
    "small": _SMALL, "tens": _TENS, "groups": _GROUPS, "ordinals": _ORDINALS, "most_digits": MAX_DIGITS, "units": _UNITS, "signs": _SIGNS,
    "short": _SHORT,
}  # fmt: skip
"""All that is data here, for a page, which reads as this does."""


def in_words(text: str) -> str:
    """The text with words in place of figures and signs."""
    text = _SPACES.sub(" ", text)
    for pattern, words in _READ:
        text = pattern.sub(words, text)
    return re.sub(" +", " ", text).strip(" ")
