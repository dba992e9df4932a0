"""English words as phonemes of the CMU dictionary, and a text as the signs of IPA that voices of Piper are trained with."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...errors import FormatError
from . import letters, numbers
from .letters import by_letters
from .numbers import in_words

_IPA: Final[Mapping[str, str]] = {
    "AA": "ɑː", "AE": "æ", "AH": "ʌ", "AO": "ɔː", "AW": "aʊ", "AY": "aɪ", "B": "b", "CH": "tʃ", "D": "d", "DH": "ð", "EH": "ɛ",
    "ER": "ɜː", "EY": "eɪ", "F": "f", "G": "ɡ", "HH": "h", "IH": "ɪ", "IY": "iː", "JH": "dʒ", "K": "k", "L": "l", "M": "m", "N": "n",
    "NG": "ŋ", "OW": "oʊ", "OY": "ɔɪ", "P": "p", "R": "ɹ", "S": "s", "SH": "ʃ", "T": "t", "TH": "θ", "UH": "ʊ", "UW": "uː", "V": "v",
    "W": "w", "Y": "j", "Z": "z", "ZH": "ʒ",
}  # fmt: skip
_UNSTRESSED: Final[Mapping[str, str]] = {"AH": "ə", "ER": "ɚ", "IY": "i"}
_STRESS: Final = {"1": "ˈ", "2": "ˌ"}
_WEAK: Final[Mapping[str, str]] = {
    "a": "ɐ", "an": "ɐn", "the": "ðə", "to": "tə", "of": "ʌv", "and": "ænd", "for": "fɔːɹ", "at": "æt", "was": "wʌz", "from": "fɹʌm",
}  # fmt: skip
_LIGHT: Final = frozenset(
    re.findall(
        "[a-z]+",
        "in is it as that with on are be by or you i he she we they this his her my your our their its has have had do does did can could "
        "will would shall should may might must if than then them him us me who which were been am so",
    )
)
"""Words that bear no stress among others."""
_LETTERS: Final = dict(
    re.findall(
        r"(\w):(\S+)",
        "a:EY1 b:B-IY1 c:S-IY1 d:D-IY1 e:IY1 f:EH1-F g:JH-IY1 h:EY1-CH i:AY1 j:JH-EY1 k:K-EY1 l:EH1-L m:EH1-M n:EH1-N o:OW1 p:P-IY1 "
        "q:K-Y-UW1 r:AA1-R s:EH1-S t:T-IY1 u:Y-UW1 v:V-IY1 w:D-AH1-B-AH0-L-Y-UW0 x:EH1-K-S y:W-AY1 z:Z-IY1",
    )
)
"""How letters are called."""
_ENDINGS: Final = (
    ("'s", "", "s"), ("s'", "", "s"), ("es", "e", "s"), ("s", "", "s"), ("ed", "", "ed"), ("ed", "e", "ed"), ("ing", "", "ing"),
    ("ing", "e", "ing"), ("ly", "", "ly"),
)  # fmt: skip
"""Endings, what stands in their place in the word without, and which row of _AFTER they sound like."""
_AFTER: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "s": (("S Z SH ZH CH JH", "IH0 Z"), ("P T K F TH", "S"), ("", "Z")),
    "ed": (("T D", "IH0 D"), ("P K F S SH CH TH", "T"), ("", "D")),
    "ing": (("", "IH0 NG"),),
    "ly": (("", "L IY0"),),
}
"""An ending ↦ its sounds by the sound before it; the last row is for all others."""
_PARTS: Final = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*'?|[.,;:!?]|[—–()]")
_OTHERS: Final = re.compile(r"[^\W\d_a-zA-Z]+")
"""Letters of other scripts."""
_LATIN: Final = {
    "ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "ı": "i",
}  # fmt: skip
"""Letters that are others without an accent."""
_log: Final = logging.getLogger("singe")
_CALLED: Final = re.compile("[A-Z]{1,5}")
"""Words that are said letter by letter."""
MAX_BYTES: Final = 1 << 25
_LINE: Final = re.compile(r"([^\s(]+)(?:\(\d\))? +(\S.*)")

TABLES: Final[Mapping[str, Any]] = {
    "numbers": numbers.TABLES, "letters": letters.TABLES, "ipa": _IPA, "unstressed": _UNSTRESSED, "stress": _STRESS, "weak": _WEAK,
    "light": sorted(_LIGHT), "called": _LETTERS, "endings": _ENDINGS, "after": _AFTER, "latin": _LATIN,
}  # fmt: skip
"""All that is data in this room, for a page, which reads as this does."""

Dictionary = Mapping[str, str]
"""A word ↦ its phonemes, with spaces between them."""


def read_dictionary(path: Path) -> Dictionary:
    """A dictionary of the form of CMU's: on each line a word and its phonemes; the first of several counts."""
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise FormatError(f"{path}: {len(data)} bytes, at most {MAX_BYTES} are read")
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as e:
        raise FormatError(f"{path}: expected UTF-8 text: {e}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        line = line.partition("#")[0].strip()
        if not line or line.startswith(";;;"):
            continue
        parts = _LINE.fullmatch(line)
        if parts is None or not all(sound.rstrip("012") in _IPA for sound in parts[2].split()):
            raise FormatError(f"{path}: line {number} is {line!r:.60}, expected a word and its phonemes")
        found.setdefault(parts[1].lower(), parts[2])
    return found


def _in_letters(text: str) -> str:
    """A text without accents, and with the letters of English alone; what has others is left out, and said to be."""
    apart = unicodedata.normalize("NFD", text.translate(str.maketrans(_LATIN)))
    plain = "".join(c for c in apart if unicodedata.category(c) != "Mn")
    for word in _OTHERS.findall(plain):
        _log.warning("speak: %r is left out: it has no letters of English; phonemes=True takes signs of IPA", word)
    return _OTHERS.sub(" ", plain)


class English:
    """Reads texts with a dictionary; other words by their letters."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary: Final = dictionary

    def phonemes(self, text: str) -> str:
        """The signs of a text, with spaces between words, and its punctuation."""
        parts = _PARTS.findall(in_words(_in_letters(text)).replace("’", "'"))
        made: list[str] = []
        for k, part in enumerate(parts):
            if not part[0].isalpha():
                sign = part if part in ".,;:!?" else ","
                if made and made[-1][-1] not in ".,;:!?":
                    made[-1] += sign
                continue
            following = parts[k + 1] if k + 1 < len(parts) and parts[k + 1][0].isalpha() else ""
            made.append(self._signs(part, following))
        return " ".join(made)

    def _signs(self, word: str, following: str) -> str:
        small = word.lower()
        if small == "the" and following[:1].lower() in set("aeiou"):
            return "ðɪ"
        if small in _WEAK and following:
            return _WEAK[small]
        sounds = self.sounds(word)
        light = small in _LIGHT
        return "".join(
            _sign(sound, sounds[k - 1] if k else "", sounds[k + 1] if k + 1 < len(sounds) else "", light)
            for k, sound in enumerate(sounds)
        )

    def sounds(self, word: str) -> Sequence[str]:
        """The phonemes of a word."""
        small = word.lower()
        found = self._dictionary.get(small)
        if found is not None:
            return found.split()
        if _CALLED.fullmatch(word):
            return [sound for letter in small for sound in _LETTERS[letter].split("-")]
        for ending, instead, sounds in _ENDINGS:
            if small.endswith(ending):
                stem = self._dictionary.get(small.removesuffix(ending) + instead)
                if stem is not None:
                    return [*stem.split(), *_ending(sounds, stem.split()[-1])]
        return by_letters(small.replace("'", ""))


def _ending(name: str, last: str) -> Sequence[str]:
    """The sounds of an ending after a sound."""
    return next(sounds.split() for before, sounds in _AFTER[name] if not before or last in before.split())


def _sign(sound: str, before: str, after: str, light: bool) -> str:
    name, stress = sound.rstrip("012"), sound[len(sound.rstrip("012")) :]
    if name == "T" and before[:1] in tuple("AEIOUR") and after.endswith("0") and after[:1] in tuple("AEIOU"):
        return "ɾ"
    if stress == "0" and name in _UNSTRESSED:
        return _UNSTRESSED[name]
    return ("" if light else _STRESS.get(stress, "")) + _IPA[name]
