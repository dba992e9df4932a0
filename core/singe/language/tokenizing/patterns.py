"""The patterns by which byte-level tokenizers cut text before they merge: a closed table, by the names that GGUF gives them.

A pattern is written as in `tokenizer.json` (Oniguruma's syntax, \\p{…} is a general category of Unicode) and is one of the
table, to the letter: a pattern from a file is never compiled, because it could take exponential time. `pattern_splitter` gives
the function that cuts.

Python's `re` has no \\p{…}. The classes are written out for the Basic Multilingual Plane, which `re` looks up in a bitmap;
ranges beyond it would be searched one by one. A character beyond is replaced by one of its category within, and the lengths of
the pieces then cut the text itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import accumulate
from typing import Final, TypeAlias

from ...errors import FormatError

Splitter: TypeAlias = Callable[[str], list[str]]
"""A text ↦ its pieces, which joined are the text."""

_CONTRACTIONS: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LATER_SPACES: Final = r"\s+(?!\S)|\s+"
GPT2: Final = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_LATER_SPACES}"
_LLAMA3: Final = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_QWEN2: Final = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_QWEN35: Final = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _cased(end: str, digits: str) -> str:
    """Words cut where capitals begin, as in GPT-4o."""
    before = r"[^\r\n\p{L}\p{N}]?"
    return rf"{before}{_UPPER}*{_LOWER}+{end}|{before}{_UPPER}+{_LOWER}*{end}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


_GPT4O: Final = _cased(_CONTRACTIONS + "?", r"\p{N}{1,3}")
_TEKKEN: Final = _cased("", r"\p{N}")
_DEEPSEEK_SYMBOLS: Final = r"!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~".replace(r"\"", '"')
_DEEPSEEK3: Final = (
    "\\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    f"[{_DEEPSEEK_SYMBOLS}][A-Za-z]+|[^\r\n\\p{{L}}\\p{{P}}\\p{{S}}]?[\\p{{L}}\\p{{M}}]+| ?[\\p{{P}}\\p{{S}}]+[\r\n]*|{_SPACES}",
)
_DIGIT: Final = r"\p{N}"

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    name: patterns
    for names, patterns in {
        "gpt-2 phi-2 jina-es jina-de jina-v2-de jina-v2-es jina-v2-code mpt olmo trillion granite-docling gigachat jais roberta-bpe":
            (GPT2,),
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe": (_LLAMA3,),
        "qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez kormo": (_QWEN2,),
        "qwen35": (_QWEN35,),
        "smollm starcoder refact command-r codeshell exaone minerva-7b": (_DIGIT, GPT2),
        "gpt-4o llama4 gpt-oss": (_GPT4O,),
        "tekken": (_TEKKEN,),
        "deepseek-v3 hunyuan-dense": _DEEPSEEK3,
    }.items()
    for name in names.split()
}  # fmt: skip
"""The names of `tokenizer.ggml.pre` ↦ the patterns that cut, one after the other."""

KNOWN: Final[frozenset[str]] = frozenset(pattern for patterns in KINDS.values() for pattern in patterns)
"""The patterns that a `tokenizer.json` may have."""

STAND_INS: Final[Mapping[str, str]] = {
    "Lu": "Ā", "Ll": "ā", "Lt": "ǅ", "Lm": "ʰ", "Lo": "ƻ", "Mn": "\u0300", "Mc": "\u0903", "Me": "\u0488", "Nd": "٠",
    "Nl": "Ⅰ", "No": "²", "Pc": "‿", "Pd": "‐", "Ps": "⁅", "Pe": "⁆", "Pi": "‘", "Pf": "’", "Po": "‰", "Sm": "±",
    "Sc": "¢", "Sk": "˂", "So": "©", "Cf": "\u200b", "Cn": "\u0378", "Co": "\ue000",
}  # fmt: skip
"""General categories of characters beyond the Basic Multilingual Plane ↦ a character of the plane that no pattern names."""
SPACE: Final = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What \\s means: Unicode's White_Space. (Python's has four control characters more, JavaScript's a mark of byte order.)"""
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")
_PARTS: Final = re.compile(r"\\p\{(\w+)\}|\\s|\\S|\\.|\[\^?|\]|(.)", re.DOTALL)


@cache
def _ranges() -> Mapping[str, str]:
    """General categories, and their first letters ↦ the characters of the Basic Multilingual Plane, as within a class of `re`."""
    runs: dict[str, list[list[int]]] = {}
    for code in range(0x10000):
        category = unicodedata.category(chr(code))
        for name in (category, category[0]):
            spans = runs.setdefault(name, [])
            if spans and spans[-1][1] == code - 1:
                spans[-1][1] = code
            else:
                spans.append([code, code])
    return {name: "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in spans) for name, spans in runs.items()}


def category_class(*categories: str) -> str:
    """The characters of general categories in the Basic Multilingual Plane, as they stand in a class of `re`."""
    return "".join(_ranges()[name] for name in categories)


def in_python(pattern: str) -> str:
    """A pattern of the table as `re` writes it."""

    def parts() -> Iterator[str]:
        inside = False
        for part in _PARTS.finditer(pattern):
            text = part[0]
            if text.startswith("["):
                inside = True
            elif text == "]":
                inside = False
            if part[1]:
                text = category_class(part[1]) if inside else f"[{category_class(part[1])}]"
            elif text == r"\s":
                text = SPACE if inside else f"[{SPACE}]"
            elif text == r"\S":
                text = f"[^{SPACE}]"
            yield text

    return "".join(parts())


@cache
def pattern_splitter(pattern: str) -> Splitter:
    """Cuts a text into the matches of a pattern and what lies between them."""
    if pattern not in KNOWN:
        raise FormatError(
            f"the pattern {pattern!r:.300} of a pre-tokenizer is none of the {len(KNOWN)} that Singe knows"
        )
    compiled = re.compile(in_python(pattern))

    def split(text: str) -> list[str]:
        plain = _BEYOND.sub(lambda m: STAND_INS[unicodedata.category(m[0])], text)
        pieces = compiled.findall(plain)
        if sum(map(len, pieces)) != len(text):
            pieces = _with_gaps(compiled, plain)
        if plain is text or plain == text:
            return pieces
        ends = list(accumulate(map(len, pieces)))
        return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    return split


def _with_gaps(compiled: re.Pattern[str], text: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    for match in compiled.finditer(text):
        start, end = match.span()
        if at < start:
            pieces.append(text[at:start])
        pieces.append(text[start:end])
        at = end
    if at < len(text):
        pieces.append(text[at:])
    return pieces


def kind_splitters(kind: str) -> list[Splitter]:
    """The cuts of a `tokenizer.ggml.pre`."""
    if kind not in KINDS:
        raise FormatError(
            f"tokenizer.ggml.pre is {kind!r:.80}, expected one of {', '.join(KINDS)}: text would be cut in the wrong places"
        )
    return [pattern_splitter(pattern) for pattern in KINDS[kind]]
