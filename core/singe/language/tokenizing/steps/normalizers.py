"""What tokenizers do to a text before they cut it: one function for each kind of `tokenizer.json`.

A normalizer maps a text, and whether it stands at the start, to a text. None may make a text more than GROWTH times as long.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from ....errors import FormatError
from ..fields import Fields
from ..patterns import SPACE, in_python, known
from .charsmap import charsmap

Normalizer: TypeAlias = Callable[[str, bool], str]
GROWTH: Final = 32
"""How much longer a text may become: NFKC makes 18 characters of one."""
MAX_STEPS: Final = 32
CHINESE: Final = (
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b920-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f"
)
"""The characters that BERT takes for words."""


def same(text: str, _first: bool) -> str:
    """The text as it is."""
    return text


def in_turn(steps: Sequence[Normalizer]) -> Normalizer:
    """One normalizer after the other."""
    if not steps:
        return same
    if len(steps) > MAX_STEPS:
        raise FormatError(f"{len(steps)} normalizers, expected at most {MAX_STEPS}")

    def normalize(text: str, first: bool) -> str:
        limit = GROWTH * len(text) + 1024
        for step in steps:
            text = step(text, first)
            if len(text) > limit:
                raise FormatError(f"a text became more than {GROWTH} times as long by the tokenizer's normalizers")
        return text

    return normalize


def plain(change: Callable[[str], str]) -> Normalizer:
    """A normalizer that does the same anywhere."""
    return lambda text, _first: change(text)


def lower(text: str) -> str:
    """Each letter in lower case, without regard to its neighbours."""
    return text.replace("Σ", "σ").lower()


def without_accents(text: str) -> str:
    return text if text.isascii() else "".join(c for c in text if unicodedata.category(c) != "Mn")


def _composed(form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> Normalizer:
    return lambda text, _first: text if text.isascii() else unicodedata.normalize(form, text)


_IDEOGRAPH: Final = re.compile(f"([{CHINESE}])")
_WHITE: Final = re.compile(f"[{SPACE}]")
_AT_START: Final = re.compile(f"\\A[{SPACE}]+")
_AT_END: Final = re.compile(f"[{SPACE}]+\\Z")
_NOTHING_MT: Final = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
_SPACE_MT: Final = re.compile("[\t\n\x0c\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]")


def _cleaned(text: str) -> str:
    kept = "".join(
        c for c in text if c in "\t\n\r" or (c != "\ufffd" and unicodedata.category(c) not in ("Cc", "Cf", "Co"))
    )
    return _WHITE.sub(" ", kept)


def bert(clean: bool = True, chinese: bool = True, strip_accents: bool = True, lower_case: bool = True) -> Normalizer:
    """BERT's: control characters away, ideographs apart, no accents, lower case."""

    def normalize(text: str, _first: bool) -> str:
        if clean and not (text.isascii() and text.isprintable()):
            text = _cleaned(text)
        if chinese and not text.isascii():
            text = _IDEOGRAPH.sub(r" \1 ", text)
        if strip_accents and not text.isascii():
            text = without_accents(unicodedata.normalize("NFD", text))
        return lower(text) if lower_case else text

    return normalize


def _bert(fields: Fields) -> Normalizer:
    lower_case = fields.flag("lowercase", True)
    accents = fields.flag("strip_accents", lower_case, or_none=True)
    return bert(fields.flag("clean_text", True), fields.flag("handle_chinese_chars", True), accents, lower_case)


def _prepend(fields: Fields) -> Normalizer:
    start = fields.short_text("prepend")
    return lambda text, _first: start + text if text else text


def _replace(fields: Fields) -> Normalizer:
    pattern, content = fields.node("pattern"), fields.short_text("content", "")
    if "String" in pattern:
        old = pattern.short_text("String")
        if not old:
            raise FormatError(f"{pattern.place}: an empty text cannot be replaced")
        return lambda text, _first: text.replace(old, content)
    compiled = re.compile(in_python(known(pattern.text("Regex"))))
    return lambda text, _first: compiled.sub(lambda _: content, text)


def _strip(fields: Fields) -> Normalizer:
    left, right = fields.flag("strip_left", True), fields.flag("strip_right", True)

    def normalize(text: str, _first: bool) -> str:
        text = _AT_START.sub("", text) if left else text
        return _AT_END.sub("", text) if right else text

    return normalize


def _nmt(text: str) -> str:
    return _SPACE_MT.sub(" ", _NOTHING_MT.sub("", text))


def _precompiled(fields: Fields) -> Normalizer:
    try:
        return charsmap(b64decode(fields.text("precompiled_charsmap"), validate=True))
    except (Base64Error, ValueError):
        raise FormatError(f"{fields.place}.precompiled_charsmap is no base64") from None


def _sequence(fields: Fields) -> Normalizer:
    return in_turn([normalizer(item) for item in fields.nodes("normalizers")])


KINDS: Final[Mapping[str, Callable[[Fields], Normalizer]]] = {
    "BertNormalizer": _bert,
    "Lowercase": lambda _: plain(lower),
    "NFC": lambda _: _composed("NFC"),
    "NFD": lambda _: _composed("NFD"),
    "NFKC": lambda _: _composed("NFKC"),
    "NFKD": lambda _: _composed("NFKD"),
    "Nmt": lambda _: plain(_nmt),
    "Precompiled": _precompiled,
    "Prepend": _prepend,
    "Replace": _replace,
    "Sequence": _sequence,
    "Strip": _strip,
    "StripAccents": lambda _: plain(without_accents),
}
"""The normalizers of `tokenizer.json` by their `type`."""


def normalizer(fields: Fields) -> Normalizer:
    """A normalizer of a `tokenizer.json`."""
    return in_turn([fields.choose(KINDS)(fields)])
